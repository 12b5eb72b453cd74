/** `template add`: copies a pack of templates from a git repository or a folder. */

import type { Command } from '@commander-js/extra-typings';
import {
  type FetchedPack,
  fetchPack,
  installPack,
  type PackSource,
  packSource,
  packsOf,
  sayPowers,
  shortCommit,
} from '../../../app/template/pack-fetch.ts';
import { advise } from '../../../core/advice.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import { nameOfSource } from '../../../git/source.ts';
import { packNamed, withPacks } from '../../../template/pack/pack.ts';
import type { PackNote } from '../../../template/pack/pack-note.ts';
import { isTemplateName } from '../../../template/places.ts';
import { plural } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent template add https://git.example.org/team/templates.git
  $ claude-code-agent template add git@git.example.org:team/templates.git --ref v2 --name team
  $ claude-code-agent template add ../team-templates`;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Copies a pack of templates from a git repository or a folder. A pack has prompts/, configs/ or workflows/ at ' +
        'its top, in templates/ or in .claude-code-agent/templates/. Templates steer what sessions do: read a pack ' +
        'of somebody else before you use it.',
    )
    .argument('<source>', 'URL of a git repository, or path of a repository or folder')
    .option('--ref <ref>', 'branch, tag or full commit id')
    .option('--name <name>', 'name of the pack (default: the last word of the source)')
    .option('--json', 'one JSON document: the contents of pack.json')
    .addHelpText('after', example)
    .action((source, given) => context.run(() => add(context, source, given)));
}

interface Given {
  readonly ref?: string | undefined;
  readonly name?: string | undefined;
  readonly json?: true | undefined;
}

interface Added {
  readonly note: PackNote;
  readonly fetched: FetchedPack;
}

async function add(context: Context, typed: string, { ref, name: givenName, json }: Given): Promise<Work> {
  const packs = packsOf(context);
  if (!packs.ok) return packs;
  const source = packSource(context, typed, ref);
  if (!source.ok) return source;
  const name = packName(source.value, givenName);
  if (!name.ok) return name;
  const place = async (): Promise<Result<Added>> => {
    const free = checkFree(context, packs.value, name.value, source.value);
    if (!free.ok) return free;
    const fetched = await fetchPack(context, packs.value, source.value);
    if (!fetched.ok) return fetched;
    const note = installPack(context, packs.value, name.value, fetched.value);
    return note.ok ? ok({ note: note.value, fetched: fetched.value }) : note;
  };
  const added = await withPacks(context.world, packs.value, place, { make: true });
  if (!added.ok) return added;
  const { note, fetched } = added.value;
  const { leftOut } = fetched.pack;
  if (json === true) context.stdout.line(safeJson(note, 2));
  else for (const line of describe(note)) context.stdout.line(line);
  sayPowers(context, fetched);
  if (leftOut.length > 0) {
    context.stderr.line(safeLine(`Left out, because they are no templates: ${leftOut.join(', ')}.`, 1000));
  }
  if (source.value.login !== undefined) {
    context.stderr.line('The password in the URL was not stored; let git know it before you update the pack.');
  }
  return ok(exitCode.done);
}

function packName(source: PackSource, given: string | undefined): Result<string> {
  const name = given ?? nameOfSource(source.source);
  if (isTemplateName(name)) return ok(name);
  const rule = 'a letter or digit, then letters, digits, "-", "_" or ".", 64 at most';
  const what =
    given === undefined ? 'The source gives the pack no name that can be used' : 'That is no name for a pack';
  return fail('usage', `${what}: ${JSON.stringify(name.slice(0, 100))}.`, `Give one with --name: ${rule}.`);
}

function checkFree(context: Context, packs: string, name: string, { source, ref }: PackSource): Result<void> {
  const other = packNamed(context.world, packs, name);
  if (other === undefined) return ok(undefined);
  if (other.note === null || other.note.source !== source) {
    const from = other.note === null ? '' : ` from ${other.note.source}`;
    const remove = ['template', 'remove', other.name];
    const next = advise('Give this one another name with --name, or take that one away with', remove);
    return fail('duplicate', `There is a template pack ${other.name}${from} already.`, next);
  }
  const update = [
    'template',
    'update',
    other.name,
    ...(ref === undefined || ref === other.note.ref ? [] : ['--ref', ref]),
  ];
  return fail('duplicate', `The template pack ${other.name} is installed from there already.`, advise('Use', update));
}

function describe(note: PackNote): string[] {
  const commit = note.commit === undefined ? '' : ` (${note.ref ?? 'commit'} ${shortCommit(note.commit)})`;
  const head = `Added pack ${note.name} with ${plural(note.files.length, 'file')} from ${note.source}${commit}:`;
  return [safeLine(head, 400), ...templatesIn(note).map((template) => `  ${safeLine(template, 200)}`)];
}

/** `prompts/x`, `configs/y`: what can be named in commands. */
function templatesIn({ files }: PackNote): string[] {
  return [
    ...new Set(
      files.map(({ path }) =>
        path
          .split('/')
          .slice(0, 2)
          .join('/')
          .replace(/\.(?:md|ya?ml)$/, ''),
      ),
    ),
  ];
}
