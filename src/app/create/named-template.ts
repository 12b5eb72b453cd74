/** Resolves the argument of `template show` and `template render`: a name of any kind, or a path. */

import { extname, resolve } from 'node:path';
import { see } from '../../core/advice.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import {
  type FoundTemplate,
  findTemplate,
  type TemplateKind,
  type TemplatePlace,
  templateKinds,
  templatePlaces,
  upToRepository,
} from '../../template/places.ts';
import type { AppContext } from '../app-context.ts';
import { briefPath, lookAt } from '../path-argument.ts';

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

/** Fails for an unknown name, and for a name of several kinds without `kind`. */
export function findNamed(
  context: AppContext,
  places: readonly TemplatePlace[],
  name: string,
  kind: TemplateKind | undefined,
): Result<NamedTemplate> {
  if (name.includes('/')) return atPath(context, name);
  const kinds = kind === undefined ? templateKinds : [kind];
  const results = kinds.map((one) => findTemplate(context.world, places, one, name));
  const found = results.flatMap((result) => (result.ok ? [result.value] : []));
  const [first, second] = found;
  if (first === undefined) return unknownName(name, kind, results);
  if (second === undefined) return ok(first);
  const which = found.map((one) => `a ${one.kind} (${one.path})`).join(' and ');
  return fail('ambiguous', `"${name}" is ${which}.`, `Give --kind ${first.kind} or --kind ${second.kind}.`);
}

/** Of the failures for each kind, prefers one with a suggestion. */
function unknownName(
  name: string,
  kind: TemplateKind | undefined,
  results: readonly Result<FoundTemplate>[],
): Result<never> {
  const failures = results.flatMap((result) => (result.ok ? [] : [result.failure]));
  const usage = failures.find(({ reason }) => reason === 'usage');
  const hinted = failures.find(({ message }) => message.includes('did you mean'));
  const chosen = usage ?? hinted ?? (kind === undefined ? undefined : failures[0]);
  if (chosen !== undefined) return { ok: false, failure: chosen };
  return fail('not-found', `There is no template "${name}".`, see('template', 'list'));
}

function atPath(context: AppContext, typed: string): Result<NamedTemplate> {
  const path = resolve(context.cwd, typed);
  const kind = kindOfPath(context, path);
  return kind.ok ? ok({ kind: kind.value, name: typed, path }) : kind;
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
