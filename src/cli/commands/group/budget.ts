/** `group budget`: what is spent, reserved and left, by session and by model; raises the cap. */

import type { Command } from '@commander-js/extra-typings';
import { changeGroup } from '../../../control/change-group.ts';
import { askRunner, whileWaiting } from '../../../control/request.ts';
import { type LoadedGroup, loadReferredGroup, sessionOf } from '../../../control/resolve.ts';
import { attemptUsages } from '../../../control/watch/attempt-usage.ts';
import { advise, commandText } from '../../../core/advice.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import type { SessionId } from '../../../core/group.ts';
import { resumeCommand, runCommand } from '../../../core/plan/advice.ts';
import type { GroupState } from '../../../core/state.ts';
import { nextGroupStatus } from '../../../core/status.ts';
import { type BudgetReport, budgetLines, budgetReport } from '../../../report/budget.ts';
import { formatMoney } from '../../../report/format.ts';
import { safeJson } from '../../../report/terminal-text.ts';
import { titleOf } from '../../../report/wording.ts';
import { wishEvents } from '../../../runner/request-answers.ts';
import type { GroupWriter } from '../../../store/group-writer.ts';
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
    .option('--book <session>', 'what is held for the session after a power cut is spent')
    .option('--free <session>', 'what is held for the session after a power cut is not spent')
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
    return fail('usage', 'Money that is held is either spent or not.', 'Give --book or --free.');
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
    const raised = await raise(context, group.value, raiseTo);
    if (!raised.ok) return raised;
    sayRaised(context, group.value, raiseTo);
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
  const { world } = context;
  const { sessionId } = session.value;
  const wish = { kind: 'settle-cost', sessionId, isSpent } as const;
  return changeGroup<SessionId>(context, group, {
    direct(writer) {
      const granted = wishEvents(world, writer, wish);
      if (!granted.ok) return granted;
      writer.record(granted.value.events);
      return ok(sessionId);
    },
    async viaRunner(runId) {
      const answer = await askRunner(world, group, runId, wish);
      if (answer === 'runner-gone' || !answer.ok) return answer;
      return ok(sessionId);
    },
  });
}

function reportOf({ world }: Context, { paths, state }: Pick<LoadedGroup, 'paths' | 'state'>): BudgetReport {
  return budgetReport(state, attemptUsages(world, paths, state));
}

async function raise(context: Context, group: LoadedGroup, maxBudgetUsd: number): Promise<Result<void>> {
  // A mistake is told before anybody is asked; what may have changed meanwhile is checked again under the lock.
  const possible = checkRaise(group.state, reportOf(context, group), maxBudgetUsd);
  if (!possible.ok) return possible;
  return changeGroup<void>(context, group, {
    direct: (writer) => raiseDirectly(context, writer, maxBudgetUsd),
    async viaRunner(runId) {
      const asked = askRunner(context.world, group, runId, { kind: 'raise-budget', maxBudgetUsd });
      const answer = await whileWaiting(context, group, asked);
      if (answer === 'runner-gone' || !answer.ok) return answer;
      return ok(undefined);
    },
  });
}

function raiseDirectly(context: Context, writer: GroupWriter, maxBudgetUsd: number): Result<void> {
  const possible = checkRaise(writer.state, reportOf(context, writer), maxBudgetUsd);
  if (!possible.ok) return possible;
  writer.record([{ type: 'group_changed', config: { ...writer.state.group.config, maxBudgetUsd } }]);
  return ok(undefined);
}

function checkRaise(state: GroupState, { spentUsd, estimated }: BudgetReport, wantedUsd: number): Result<void> {
  const { id, config } = state.group;
  const wanted = formatMoney(wantedUsd);
  if (nextGroupStatus(state.status, 'group_changed') === null) {
    return fail('usage', `Group ${id} is ${state.status}; its budget stays as it is.`, 'Create a new group.');
  }
  if (wantedUsd <= spentUsd) {
    const spent = formatMoney(spentUsd, estimated);
    const message = `Group ${id} has spent ${spent} already, so it cannot be held to ${wanted}.`;
    return fail('usage', message, 'Give --raise-to an amount above that.');
  }
  if (config.maxBudgetUsd !== undefined && wantedUsd < config.maxBudgetUsd) {
    const message = `The cap of group ${id} is ${formatMoney(config.maxBudgetUsd)}, which is more than ${wanted}.`;
    return fail('usage', message, advise('Lower it with', runCommand(state, '--max-budget-usd', String(wantedUsd))));
  }
  return ok(undefined);
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
  const next = state.status === 'paused' || state.status === 'failed';
  const goOn = next ? ` Go on: ${commandText(resumeCommand(state))}` : '';
  stderr.line(`The cap of ${groupId} is ${formatMoney(raiseTo)} now.${goOn}`);
}
