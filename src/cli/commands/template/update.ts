/** `template update`: fetches installed packs again and says what changed. */

import type { Command } from '@commander-js/extra-typings';
import { fetchPack, installPack, packSource, packsOf, sayPowers, shortCommit } from '../../../control/pack-fetch.ts';
import { advise, commandText } from '../../../core/advice.ts';
import { describeFailure, type Failure, fail, ok, publicFailure, type Result } from '../../../core/failure.ts';
import { plural } from '../../../report/format.ts';
import { safeJson, safeLine } from '../../../report/terminal-text.ts';
import { systemFailure } from '../../../store/system-failure.ts';
import { findPack, handEdits, type InstalledPack, listPacks, withPacks } from '../../../template/pack/pack.ts';
import { changesBetween, type PackChange, type PackNote } from '../../../template/pack/pack-note.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent template update
  $ claude-code-agent template update team --ref v3`;

export function define(command: Command, context: Context): void {
  command
    .description('Fetches a template pack again from where it came from, or all packs, and says what changed.')
    .argument('[name]', 'name of the pack; all of them when it is left out')
    .option('--ref <ref>', 'from now on this branch, tag or full commit id')
    .option('--force', 'also when files of the pack were changed by hand: these changes are lost')
    .option('--json', 'one JSON document: an array with one object per pack')
    .addHelpText('after', example)
    .action((name, given) => context.run(() => update(context, name, given)));
}

interface Given {
  readonly ref?: string | undefined;
  readonly force?: true | undefined;
  readonly json?: true | undefined;
}

type Outcome = { readonly name: string } & (
  | { readonly status: 'unchanged'; readonly note: PackNote }
  | {
      readonly status: 'updated';
      readonly from: PackNote;
      readonly note: PackNote;
      readonly changes: readonly PackChange[];
    }
  | { readonly status: 'failed'; readonly problem: Failure }
);

async function update(context: Context, name: string | undefined, given: Given): Promise<Work> {
  if (name === undefined && given.ref !== undefined) {
    return fail(
      'usage',
      '--ref is meant for one pack.',
      advise('Name the pack', ['template', 'update', 'NAME', '--ref', 'REF']),
    );
  }
  const packs = packsOf(context);
  if (!packs.ok) return packs;
  const outcomes = await withPacks<Outcome[]>(context.world, packs.value, async () => {
    const chosen = name === undefined ? ok(listPacks(context.world, packs.value)) : one(context, packs.value, name);
    if (!chosen.ok) return chosen;
    const done: Outcome[] = [];
    for (const pack of chosen.value) done.push(await updateOne(context, packs.value, pack, given));
    return ok(done);
  });
  if (!outcomes.ok) return outcomes;
  if (given.json === true) context.stdout.line(safeJson(outcomes.value.map(plain), 2));
  else show(context, outcomes.value);
  return verdict(outcomes.value);
}

function one(context: Context, packs: string, name: string): Result<InstalledPack[]> {
  const found = findPack(context.world, packs, name);
  return found.ok ? ok([found.value]) : found;
}

async function updateOne(context: Context, packs: string, pack: InstalledPack, given: Given): Promise<Outcome> {
  const { name } = pack;
  try {
    const updated = await tryUpdate(context, packs, pack, given);
    return updated.ok ? updated.value : { name, status: 'failed', problem: updated.failure };
  } catch (error) {
    // The other packs have their turn all the same.
    return { name, status: 'failed', problem: systemFailure(pack.folder, error) };
  }
}

async function tryUpdate(
  context: Context,
  packs: string,
  pack: InstalledPack,
  { ref, force }: Given,
): Promise<Result<Outcome>> {
  const { name, note } = pack;
  if (note === null) {
    const next = advise('Add it again from its source', ['template', 'remove', name], ['template', 'add', 'SOURCE']);
    return fail('corrupt-file', 'Its pack.json is missing or cannot be read, so nobody knows its source.', next);
  }
  const edits = handEdits(context.world, pack) ?? [];
  if (edits.length > 0 && force !== true) {
    const files = edits.map(({ kind, path }) => `${path} (${kind})`).join(', ');
    const next = 'Save what you need, then give --force to go back to what the source has.';
    return fail('usage', `Files were changed by hand: ${files.slice(0, 500)}.`, next);
  }
  const source = packSource(context, note.source, ref ?? note.ref);
  if (!source.ok) return source;
  const fetched = await fetchPack(context, packs, source.value);
  if (!fetched.ok) return fetched;
  const installed = installPack(context, packs, name, fetched.value);
  if (!installed.ok) return installed;
  const changes = changesBetween(note.files, installed.value.files);
  const same = note.files.filter(({ path }) => !changes.some((change) => change.path === path));
  sayPowers(context, fetched.value, new Set(same.map(({ path }) => path)));
  const isSame = changes.length === 0 && edits.length === 0 && note.commit === installed.value.commit;
  return ok(
    isSame && note.ref === installed.value.ref
      ? { name, status: 'unchanged', note: installed.value }
      : { name, status: 'updated', from: note, note: installed.value, changes },
  );
}

function show(context: Context, outcomes: readonly Outcome[]): void {
  if (outcomes.length === 0) {
    context.stderr.line(`There are no template packs. Add one with: ${commandText(['template', 'add', 'SOURCE'])}`);
  }
  for (const outcome of outcomes) for (const line of describe(outcome)) context.stdout.line(line);
}

function describe(outcome: Outcome): string[] {
  switch (outcome.status) {
    case 'failed':
      // Told on stderr.
      return [];
    case 'unchanged':
      return [`${outcome.name}: up to date${at(outcome.note)}`];
    case 'updated': {
      const { name, from, note, changes } = outcome;
      const before = from.commit === note.commit ? '' : ` ${shortCommit(from.commit)} ->`;
      const amount = changes.length === 0 ? 'no template changed' : `${plural(changes.length, 'file')} changed`;
      const head = `${name}: updated,${before} ${shortCommit(note.commit)}`.trimEnd().replace(/,$/, '');
      return [`${head}, ${amount}`, ...changes.map(({ kind, path }) => `  ${kind.padEnd(7)} ${safeLine(path, 400)}`)];
    }
  }
}

function at({ ref, commit }: PackNote): string {
  return commit === undefined ? '' : ` (${ref === undefined ? '' : `${ref} `}${shortCommit(commit)})`;
}

function plain(outcome: Outcome): object {
  if (outcome.status === 'failed') return { ...outcome, problem: publicFailure(outcome.problem) };
  if (outcome.status !== 'updated') return outcome;
  const { name, status, from, note, changes } = outcome;
  return { name, status, from: { ref: from.ref, commit: from.commit, digest: from.digest }, note, changes };
}

function verdict(outcomes: readonly Outcome[]): Work {
  const failed = outcomes.flatMap((outcome) => (outcome.status === 'failed' ? [outcome] : []));
  const [first] = failed;
  if (first === undefined) return ok(exitCode.done);
  const { reason, message } = first.problem;
  const stays = { ...first.problem, message: `Pack ${first.name} stays as it is: ${message}` };
  if (failed.length === 1) return { ok: false, failure: stays };
  const all = failed.map(({ name, problem }) => `${name}: ${describeFailure(problem)}`);
  return fail(reason, `${plural(failed.length, 'pack')} stay as they are: ${all.join(' ')}`, '');
}
