/** `group budget`: what is spent, reserved and left, by session and by model; raises the cap. */

import type { Command } from '@commander-js/extra-typings';
import { whileWaiting } from '../../../app/request.ts';
import { type LoadedGroup, loadReferredGroup, sessionOf } from '../../../app/resolve.ts';
import { submit } from '../../../app/submit.ts';
import { attemptUsages } from '../../../app/watch/attempt-usage.ts';
import { commandText } from '../../../core/advice.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import type { SessionId } from '../../../core/group.ts';
import { resumeCommand } from '../../../core/plan/advice.ts';
import { type BudgetReport, budgetLines, budgetReport } from '../../../view/budget.ts';
import { formatMoney } from '../../../view/format.ts';
import { safeJson } from '../../../view/terminal-text.ts';
import { titleOf } from '../../../view/wording.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { parseMoney } from '../../options/option-values.ts';

const example = `
Example:
  $ claude-code-agent group budget auth-refactor
  $ claude-code-agent group budget auth-refactor --raise-to 20 && claude-code-agent group resume auth-refactor
  $ claude-code-agent group budget auth-refactor --free 002
  $ claude-code-agent group budget auth-refactor --json | jq .leftUsd`;

export function define(command: Command, context: Context): void {
  command
    .description(`Shows what a group has spent, what running sessions have reserved, and what is left.
Figures marked with "~" are estimates: a lower bound until claude says what it charged, but for money
that is held or was booked: of that, the highest it can be.`)
    .argument('<group>', 'id, unique prefix or slug')
    .option('--raise-to <usd>', 'set the cap, while the group runs too', parseMoney)
    .option('--book <session>', 'what is held for the session is spent')
    .option('--free <session>', 'what is held for the session is not spent')
    .option('--json', 'one JSON document, amounts in US dollars')
    .addHelpText('after', example)
    .action((reference, options) => context.run(() => budget(context, reference, options)));
}

interface Options {
  readonly raiseTo?: number;
  readonly book?: string;
  readonly free?: string;
  readonly json?: true;
}

async function budget(context: Context, reference: string, { raiseTo, book, free, json }: Options): Promise<Work> {
  const group = loadReferredGroup(context, reference);
  if (!group.ok) return group;
  if (book !== undefined && free !== undefined) {
    return fail('usage', '--book and --free cannot be combined.', 'Give one of them.');
  }
  const settled = book ?? free;
  if (settled !== undefined) {
    const done = await settleHeld(context, group.value, settled, book !== undefined);
    if (!done.ok) return done;
    const after = loadReferredGroup(context, group.value.groupId);
    if (!after.ok) return after;
    saySettled(context, after.value, done.value, book !== undefined);
  }
  if (raiseTo !== undefined) {
    const raising = submit(context, group.value, { kind: 'edit-group', config: { maxBudgetUsd: raiseTo } });
    const raised = await whileWaiting(context, group.value, raising);
    if (!raised.ok) return raised;
    const after = loadReferredGroup(context, group.value.groupId);
    if (!after.ok) return after;
    sayRaised(context, after.value, raiseTo);
  }
  const now = raiseTo === undefined && settled === undefined ? group : loadReferredGroup(context, group.value.groupId);
  if (!now.ok) return now;
  const report = reportOf(context, now.value);
  if (json) context.stdout.line(safeJson(report, 2));
  else for (const line of budgetLines(report, context.stdout.style)) context.stdout.line(line);
  return ok(exitCode.done);
}

/** What is held for the session is money like any other from now on (`isSpent`), or free again; the session's id. */
async function settleHeld(
  context: Context,
  group: LoadedGroup,
  reference: string,
  isSpent: boolean,
): Promise<Result<SessionId>> {
  const session = sessionOf(group, reference);
  if (!session.ok) return session;
  const { sessionId } = session.value;
  const done = await submit(context, group, { kind: 'settle-cost', sessionId, isSpent });
  return done.ok ? ok(sessionId) : done;
}

function reportOf({ world }: Context, { paths, state }: Pick<LoadedGroup, 'paths' | 'state'>): BudgetReport {
  return budgetReport(state, attemptUsages(world, paths, state));
}

/** This and the next on stderr, so that stdout is the report alone. */
function saySettled({ stderr }: Context, { state }: LoadedGroup, sessionId: SessionId, isSpent: boolean): void {
  const title = titleOf(state, sessionId);
  // Where it is still short of money, the report and `group show` say what else helps.
  const next = (state.status === 'paused' || state.status === 'failed') && state.reason !== 'budget';
  const goOn = next ? ` Go on: ${commandText(resumeCommand(state))}` : '';
  stderr.line(`What was held for session ${title} is ${isSpent ? 'booked as spent' : 'free again'}.${goOn}`);
}

function sayRaised({ stderr }: Context, { groupId, state }: LoadedGroup, raiseTo: number): void {
  const isAtRest = state.status === 'paused' || state.status === 'failed';
  const goOn = `Go on: ${commandText(resumeCommand(state))}`;
  const next = state.reason === 'budget' ? (state.message ?? '') : goOn;
  stderr.line(`The cap of ${groupId} is ${formatMoney(raiseTo)} now.${isAtRest ? ` ${next}` : ''}`);
}
