/** `template update`: fetches installed packs again and says what changed. */

import type { Command } from '@commander-js/extra-typings';
import { shortCommit } from '../../../app/template/pack-fetch.ts';
import { type HowToUpdate, type UpdatedPack, updatePacks } from '../../../app/template/update-packs.ts';
import { advise, commandText } from '../../../core/advice.ts';
import { describeFailure, fail, ok, publicFailure } from '../../../core/failure.ts';
import type { PackNote } from '../../../template/pack/pack-note.ts';
import { plural } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
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

interface Given extends HowToUpdate {
  readonly json?: true | undefined;
}

async function update(context: Context, name: string | undefined, given: Given): Promise<Work> {
  if (name === undefined && given.ref !== undefined) {
    return fail(
      'usage',
      '--ref is meant for one pack.',
      advise('Name the pack', ['template', 'update', 'NAME', '--ref', 'REF']),
    );
  }
  const outcomes = await updatePacks(context, name, given);
  if (!outcomes.ok) return outcomes;
  if (given.json === true) context.stdout.line(safeJson(outcomes.value.map(plain), 2));
  else show(context, outcomes.value);
  return verdict(outcomes.value);
}

function show(context: Context, outcomes: readonly UpdatedPack[]): void {
  if (outcomes.length === 0) {
    context.stderr.line(`There are no template packs. Add one with: ${commandText(['template', 'add', 'SOURCE'])}`);
  }
  for (const outcome of outcomes) for (const line of describe(outcome)) context.stdout.line(line);
}

function describe(outcome: UpdatedPack): string[] {
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

function plain(outcome: UpdatedPack): object {
  if (outcome.status === 'failed') return { ...outcome, problem: publicFailure(outcome.problem) };
  if (outcome.status !== 'updated') return outcome;
  const { name, status, from, note, changes } = outcome;
  return { name, status, from: { ref: from.ref, commit: from.commit, digest: from.digest }, note, changes };
}

function verdict(outcomes: readonly UpdatedPack[]): Work {
  const failed = outcomes.flatMap((outcome) => (outcome.status === 'failed' ? [outcome] : []));
  const [first] = failed;
  if (first === undefined) return ok(exitCode.done);
  const { reason, message } = first.problem;
  const stays = { ...first.problem, message: `Pack ${first.name} stays as it is: ${message}` };
  if (failed.length === 1) return { ok: false, failure: stays };
  const all = failed.map(({ name, problem }) => `${name}: ${describeFailure(problem)}`);
  return fail(reason, `${plural(failed.length, 'pack')} stay as they are: ${all.join(' ')}`, '');
}
