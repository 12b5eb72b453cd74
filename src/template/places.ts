/**
 * The search path of templates: the project's own, then the folders of CLAUDE_CODE_AGENT_TEMPLATES, then the user's
 * with the installed packs, then the shipped ones.
 */

import { dirname, isAbsolute, join, resolve, sep } from 'node:path';
import { advise } from '../core/advice.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import { hint } from '../core/nearest.ts';
import { configRoot } from '../store/paths.ts';
import { schema } from '../store/schema.ts';
import { readYaml } from '../store/yaml-text.ts';
import { tryPath } from '../system/system-error.ts';
import type { World } from '../system/world.ts';
import { readTextFile } from './text-file.ts';

export const templateKinds = ['prompt', 'config', 'workflow'] as const;
export type TemplateKind = (typeof templateKinds)[number];

/** A folder with `prompts`, `configs` and `workflows`, any of which may be missing. */
export interface TemplatePlace {
  readonly folder: string;
  readonly origin: 'project' | 'environment' | 'user' | 'shipped';
  readonly pack?: string;
}

export interface PlacesInput {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly packageRoot: string;
  readonly projects: readonly string[];
}

/** The folders in order of precedence. Nothing is read. */
export function templatePlaces({ env, packageRoot, projects }: PlacesInput): readonly TemplatePlace[] {
  const user = userTemplates(env);
  const places: TemplatePlace[] = [
    ...projects.map((project) => ({
      folder: join(project, '.claude-code-agent', 'templates'),
      origin: 'project' as const,
    })),
    // A relative folder would depend on the current folder.
    ...(env.CLAUDE_CODE_AGENT_TEMPLATES ?? '')
      .split(':')
      .filter((folder) => isAbsolute(folder))
      .map((folder) => ({ folder: resolve(folder), origin: 'environment' as const })),
    ...(user.ok ? [{ folder: user.value, origin: 'user' as const }] : []),
    { folder: join(packageRoot, 'templates'), origin: 'shipped' },
  ];
  const seen = new Set<string>();
  return places.filter(({ folder }) => !seen.has(folder) && seen.add(folder));
}

/** The folder and its parents up to the one with `.git`; outside a repository the folder alone. */
export function upToRepository({ files }: World, folder: string): string[] {
  const path: string[] = [];
  for (let here = folder; ; here = dirname(here)) {
    path.push(here);
    if (files.info(join(here, '.git')) !== null) return path;
    if (dirname(here) === here) return [folder];
  }
}

export function userTemplates(env: PlacesInput['env']): Result<string> {
  const root = configRoot(env);
  return root.ok ? ok(join(root.value, 'templates')) : root;
}

export function packsFolder(templates: string): string {
  return join(templates, 'packs');
}

export interface FoundTemplate {
  readonly kind: TemplateKind;
  readonly name: string;
  /** Absolute: a file, or the folder of a config template. */
  readonly path: string;
  readonly place: TemplatePlace;
}

export interface ListedTemplate {
  readonly template: FoundTemplate;
  /** Templates of the same kind and name with lower precedence. */
  readonly hides: readonly FoundTemplate[];
}

/** A template's name: it is a file name and appears on command lines. */
const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export function isTemplateName(name: string): boolean {
  return namePattern.test(name);
}

export const kindFolders: Readonly<Record<TemplateKind, string>> = {
  prompt: 'prompts',
  config: 'configs',
  workflow: 'workflows',
};

const extensions: Readonly<Record<TemplateKind, readonly string[]>> = {
  prompt: ['.md'],
  config: [''],
  workflow: ['.yaml', '.yml'],
};

/** Every template by kind and name, each with those it hides. */
export function listTemplates(world: World, places: readonly TemplatePlace[]): readonly ListedTemplate[] {
  const all = withPacks(world, places);
  return templateKinds.flatMap((kind) => {
    const found = all.flatMap((place) => templatesIn(world, place, kind));
    const byName = [...Map.groupBy(found, ({ name }) => name)].sort(([a], [b]) => (a < b ? -1 : 1));
    return byName.map(([, [template, ...hides]]) => ({ template: template as FoundTemplate, hides }));
  });
}

/** Fails with `not-found`, or with `usage` when a project has a template with the name of a user's. */
export function findTemplate(
  world: World,
  places: readonly TemplatePlace[],
  kind: TemplateKind,
  name: string,
): Result<FoundTemplate> {
  if (!isTemplateName(name)) {
    const brief = name.length > 80 ? `${name.slice(0, 80)}…` : name;
    return fail(
      'usage',
      `${JSON.stringify(brief)} is not a valid template name.`,
      'A name has 1 to 64 letters, digits, "-", "_" or ".", and starts with a letter or digit.',
    );
  }
  const all = withPacks(world, places);
  const templates = all.flatMap((place) => templatesIn(world, place, kind));
  // An alias never replaces a template with that real name, wherever that is.
  const firstOf = (some: readonly FoundTemplate[]) =>
    some.find((template) => template.name === name) ?? byAlias(world, some, name);
  const found = firstOf(templates);
  const replaced = found?.place.origin === 'project' ? firstOf(templates.filter(isNotOfProject)) : undefined;
  if (found !== undefined && replaced !== undefined) return refuseReplaced(name, found, replaced);
  if (found !== undefined) return leadsOut(world, found) ? refuseLink(found) : ok(found);
  const known = templates.map((template) => template.name);
  return notFound(kind, name, known, all);
}

function isNotOfProject({ place }: FoundTemplate): boolean {
  return place.origin !== 'project';
}

function refuseReplaced(name: string, { kind, path, place }: FoundTemplate, other: FoundTemplate): Result<never> {
  const second = `${originTexts[other.place.origin]} (${other.path})`;
  const message = `The project has a ${kind} template "${name}" (${path}), and so has ${second}.`;
  const next = `Use the path instead of the name, or rename the one in ${place.folder}.`;
  return fail('usage', message, next);
}

const originTexts: Readonly<Record<TemplatePlace['origin'], string>> = {
  project: 'the project',
  environment: 'CLAUDE_CODE_AGENT_TEMPLATES',
  user: 'the user',
  shipped: 'the program',
};

function notFound(
  kind: TemplateKind,
  name: string,
  known: readonly string[],
  places: readonly TemplatePlace[],
): Result<never> {
  const looked = places.map(({ folder }) => join(folder, kindFolders[kind])).join(', ');
  return fail(
    'not-found',
    `There is no ${kind} template "${name}"${hint(name, known) || '.'}`,
    advise(`Looked in ${looked}. See`, ['template', 'list']),
  );
}

/** A template that replaces a config by its name replaces it under its aliases too. */
function byAlias(world: World, templates: readonly FoundTemplate[], name: string): FoundTemplate | undefined {
  const isAlso = ({ kind, path }: FoundTemplate): boolean => kind === 'config' && aliasesOf(world, path).includes(name);
  const meant = new Set(templates.filter(isAlso).map((template) => template.name));
  return templates.find((template) => meant.has(template.name));
}

const aliasBytesMax = 1024 * 1024;
const withAliases = schema((z) => z.object({ aliases: z.array(z.string()) }));

/** The aliases of a config template; an unreadable config.yaml has none, and its faults are reported on use. */
export function aliasesOf(world: World, folder: string): readonly string[] {
  const read = readTextFile(world, join(folder, 'config.yaml'), aliasBytesMax);
  if (!read.ok) return [];
  const yaml = readYaml({ text: read.text, file: folder });
  const parsed = withAliases().safeParse(yaml.ok ? yaml.value.value : null);
  return parsed.success ? parsed.data.aliases : [];
}

/** Packs come right after the user's own templates, by name. */
function withPacks(world: World, places: readonly TemplatePlace[]): readonly TemplatePlace[] {
  return places.flatMap((place) => {
    if (place.origin !== 'user') return [place];
    const folder = packsFolder(place.folder);
    const packs = namesIn(world, folder).filter(
      (name) => isTemplateName(name) && kindAt(world, join(folder, name)) === 'folder',
    );
    return [place, ...packs.map((pack) => ({ folder: join(folder, pack), origin: 'user' as const, pack }))];
  });
}

/** Those of one kind, in the order of their extensions, so that the first of two with one name counts. */
export function templatesIn(world: World, place: TemplatePlace, kind: TemplateKind): FoundTemplate[] {
  const folder = join(place.folder, kindFolders[kind]);
  const names = namesIn(world, folder);
  const wanted = kind === 'config' ? 'folder' : 'file';
  return extensions[kind].flatMap((extension) =>
    names
      .filter((file) => file.endsWith(extension) && isTemplateName(file.slice(0, file.length - extension.length)))
      .map((file) => ({ kind, name: file.slice(0, file.length - extension.length), path: join(folder, file), place }))
      .filter(({ path }) => kindAt(world, path) === wanted),
  );
}

/** Missing and unreadable folders contain no templates. */
function namesIn({ files }: World, folder: string): string[] {
  const names = tryPath(() => files.list(folder));
  return names.ok ? names.value : [];
}

function kindAt({ files }: World, path: string): string | null {
  const info = tryPath(() => files.info(path));
  return info.ok ? (info.value?.kind ?? null) : null;
}

/** A symlink in a project or pack must not lead out of it, because the text becomes part of a prompt. */
function leadsOut({ files }: World, { path, place }: FoundTemplate): boolean {
  if (place.origin !== 'project' && place.pack === undefined) return false;
  const isInside = tryPath(() => files.realPath(path)?.startsWith(`${files.realPath(place.folder)}${sep}`) === true);
  return !isInside.ok || !isInside.value;
}

function refuseLink({ kind, name, path, place }: FoundTemplate): Result<never> {
  return fail(
    'usage',
    `The ${kind} template "${name}" is a symlink out of ${place.folder}.`,
    `Replace ${path} with a copy of its target.`,
  );
}
