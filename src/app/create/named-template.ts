/** Finds and loads the templates that options and arguments name: by path, or by name and kind. */

import { extname, resolve } from 'node:path';
import { see } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { GroupDefinition } from '../../core/group.ts';
import { problemsFailure } from '../../store/yaml-text.ts';
import { type ConfigTemplate, loadConfigTemplate } from '../../template/config-template.ts';
import {
  type FoundTemplate,
  findTemplate,
  type TemplateKind,
  type TemplatePlace,
  templateKinds,
  templatePlaces,
  upToRepository,
} from '../../template/places.ts';
import { loadPromptTemplate, type PromptTemplate } from '../../template/prompt-template.ts';
import type { AppContext } from '../app-context.ts';
import { briefPath, lookAt } from '../path-argument.ts';
import { templateReference } from './new-group.ts';

/** `place` is absent for a template given by path. */
export type NamedTemplate = Omit<FoundTemplate, 'place'> & { readonly place?: TemplatePlace };

/** Template folders for these project folders, nearest first, up to the root of each repository. */
export function placesFor(
  { env, packageRoot, world }: AppContext,
  folders: readonly string[],
): readonly TemplatePlace[] {
  return templatePlaces({ env, packageRoot, projects: folders.flatMap((folder) => upToRepository(world, folder)) });
}

export function templateFolders(context: AppContext): readonly TemplatePlace[] {
  return placesFor(context, [context.cwd]);
}

/** Fails for an unknown name, and for a name of several kinds. `next`: how to name one of them. */
export function findNamed(
  context: AppContext,
  places: readonly TemplatePlace[],
  name: string,
  kinds: readonly TemplateKind[] = templateKinds,
  next?: string,
): Result<NamedTemplate> {
  if (name.includes('/')) return atPath(context, name, kinds);
  const results = kinds.map((one) => findTemplate(context.world, places, one, name));
  const found = results.flatMap((result) => (result.ok ? [result.value] : []));
  const [first, second] = found;
  if (first === undefined) return unknownName(name, results);
  if (second === undefined) return ok(first);
  const which = found.map((one) => `a ${one.kind} (${one.path})`).join(' and ');
  const how = next ?? `Give --kind ${first.kind} or --kind ${second.kind}.`;
  return fail('ambiguous', `"${name}" is ${which}.`, how);
}

/** Of the failures for each kind, prefers one with a suggestion. */
function unknownName(name: string, results: readonly Result<FoundTemplate>[]): Result<never> {
  const failures = results.flatMap((result) => (result.ok ? [] : [result.failure]));
  const usage = failures.find(({ reason }) => reason === 'usage');
  const hinted = failures.find(({ message }) => message.includes('did you mean'));
  const chosen = usage ?? hinted ?? (failures.length === 1 ? failures[0] : undefined);
  if (chosen !== undefined) return { ok: false, failure: chosen };
  return fail('not-found', `There is no template "${name}".`, see('template', 'list'));
}

function atPath(context: AppContext, typed: string, kinds: readonly TemplateKind[]): Result<NamedTemplate> {
  const path = resolve(context.cwd, typed);
  const kind = kindOfPath(context, path);
  if (!kind.ok) return kind;
  if (kinds.includes(kind.value)) return ok({ kind: kind.value, name: typed, path });
  const message = `${briefPath(path)} is a ${kind.value}, not a ${kinds.join(' or a ')}.`;
  return fail('usage', message, see('template', 'list'));
}

/** The kind of template that a file or folder can be. */
export function kindOfPath(context: AppContext, path: string): Result<TemplateKind> {
  const next = 'Give a .md file (a prompt), a folder (a config) or a .yaml file (a workflow).';
  const found = lookAt(context.world.files, path);
  if (!found.ok) return fail('usage', `${briefPath(path)} ${found.trouble}.`, next);
  if (found.value === 'folder') return ok('config');
  if (extname(path) === '.md') return ok('prompt');
  if (/^\.ya?ml$/.test(extname(path))) return ok('workflow');
  return fail('usage', `${briefPath(path)} is not a template.`, next);
}

/** The value that removes the default template of the group. */
export const noTemplate = 'none';

export interface TemplateOptions {
  /** A prompt or a config. */
  readonly template?: string | undefined;
  readonly configTemplate?: string | undefined;
}

interface ChosenTemplates {
  readonly prompt?: PromptTemplate;
  readonly promptReference?: string;
  readonly config?: ConfigTemplate;
}

/** Loads the named templates. Fails for unknown and ambiguous names, and with the problems of a template. */
export function chooseTemplates(
  context: AppContext,
  places: readonly TemplatePlace[],
  { template, configTemplate }: TemplateOptions,
): Result<ChosenTemplates> {
  const config = configTemplate === undefined ? ok({}) : choose(context, places, configTemplate, ['config']);
  if (!config.ok) return config;
  const isNamed = template !== undefined && template !== noTemplate;
  const named = isNamed ? choose(context, places, template, ['prompt', 'config']) : ok<ChosenTemplates>({});
  if (!named.ok) return named;
  if (configTemplate !== undefined && named.value.config !== undefined) {
    const message = `Both --template ${template} and --config-template ${configTemplate} are config templates.`;
    return fail('usage', message, 'Name one of them.');
  }
  return ok({ ...named.value, ...config.value });
}

function choose(
  context: AppContext,
  places: readonly TemplatePlace[],
  name: string,
  kinds: readonly TemplateKind[],
): Result<ChosenTemplates> {
  const next = 'Give the path of one, or name the config with --config-template.';
  const found = findNamed(context, places, name, kinds, next);
  if (!found.ok) return found;
  const { kind, path, place } = found.value;
  if (kind === 'config') {
    const config = loadConfigTemplate(context.world, path);
    return config.ok ? ok({ config: config.value }) : problemsFailure('The config template', config.problems);
  }
  const prompt = loadPromptTemplate(context.world, path);
  if (!prompt.ok) return problemsFailure('The prompt template', prompt.problems);
  return ok({ prompt: prompt.value, promptReference: place === undefined ? path : name });
}

/** Loads the text for CLAUDE.md. A name with "/" or ".md" is a path, else a prompt template. */
export function chooseClaudeMd(
  context: AppContext,
  places: readonly TemplatePlace[],
  given: string,
): Result<PromptTemplate> {
  const isPath = given.includes('/') || given.endsWith('.md');
  const found = isPath
    ? ok({ path: resolve(context.cwd, given) })
    : findTemplate(context.world, places, 'prompt', given);
  if (!found.ok) return found;
  const loaded = loadPromptTemplate(context.world, found.value.path);
  return loaded.ok ? ok(loaded.value) : problemsFailure('The text for CLAUDE.md', loaded.problems);
}

export interface GroupTemplates {
  readonly definition: Pick<GroupDefinition, 'template' | 'configTemplate'>;
  readonly configTemplates: readonly ConfigTemplate[];
}

/** Default templates of a group. The prompt is stored by name, because a project may have its own one of that name. */
export function groupTemplates(context: AppContext, given: TemplateOptions): Result<GroupTemplates> {
  const chosen = chooseTemplates(context, templateFolders(context), given);
  if (!chosen.ok) return chosen;
  const { promptReference, config } = chosen.value;
  const configTemplate = config && templateReference(config);
  return ok({
    definition: defined({ template: promptReference, configTemplate }),
    configTemplates: config === undefined ? [] : [config],
  });
}
