/** `template update`: fetches installed packs again and prints which commits changed. */
import type { Command } from '@commander-js/extra-typings';
import { type UpdatedPack, updatePacks } from '../../../app/template/packs.ts';
import { advise, commandText } from '../../../core/advice.ts';
import { describeFailure, fail, ok, publicFailure } from '../../../core/failure.ts';
import type { PackNote } from '../../../template/pack.ts';
import { plural } from '../../../view/format.ts';
import { safeJson } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { printPowers } from './add.ts';

const example = `
Example:
  $ claude-code-agent template update
  $ claude-code-agent template update team --ref v3`;

export function define(command: Command, context: Context): void {
  command
    .description('Fetches a template pack again from where it came from, or all packs. Changes made by hand are lost.')
    .argument('[name]', 'name of the pack; all of them when it is left out')
    .option('--ref <ref>', 'from now on this branch, tag or full commit id')
    .option('--json', 'one JSON document: an array with one object per pack')
    .addHelpText('after', example)
    .action((name, given) => context.run(() => update(context, name, given)));
}

interface Given {
  readonly ref?: string | undefined;
  readonly json?: true | undefined;
}

async function update(context: Context, name: string | undefined, { ref, json }: Given): Promise<Work> {
  if (name === undefined && ref !== undefined) {
    const next = advise('Name the pack', ['template', 'update', 'NAME', '--ref', 'REF']);
    return fail('usage', '--ref is meant for one pack.', next);
  }
  const outcomes = await updatePacks(context, name, ref);
  if (!outcomes.ok) return outcomes;
  if (json === true) context.stdout.line(safeJson(outcomes.value.map(plain), 2));
  else show(context, outcomes.value);
  for (const outcome of outcomes.value) if (outcome.status === 'updated') printPowers(context, outcome.powers);
  return verdict(outcomes.value);
}

function show(context: Context, outcomes: readonly UpdatedPack[]): void {
  if (outcomes.length === 0) {
    context.stderr.line(`There are no template packs. Add one with: ${commandText(['template', 'add', 'SOURCE'])}`);
  }
  for (const outcome of outcomes) {
    const { name, status } = outcome;
    // The verdict prints failures on stderr.
    if (status === 'unchanged') context.stdout.line(`${name}: up to date (${commitOf(outcome.note)})`);
    if (status === 'updated') {
      context.stdout.line(`${name}: updated, ${commitOf(outcome.from)} -> ${commitOf(outcome.note)}`);
    }
  }
}

function commitOf({ ref, commit }: PackNote): string {
  return `${ref === undefined ? '' : `${ref} `}${commit.slice(0, 10)}`;
}

function plain(outcome: UpdatedPack): object {
  if (outcome.status === 'failed') return { ...outcome, problem: publicFailure(outcome.problem) };
  if (outcome.status !== 'updated') return outcome;
  const { name, status, from, note, templates } = outcome;
  return { name, status, from: { ref: from.ref, commit: from.commit }, note, templates };
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
