/** `group why`: explains why sessions are not running, by the rules of the scheduler, or what they are doing. */
import type { Command } from '@commander-js/extra-typings';
import { suspendedRunner, suspendedSentence } from '../../../app/live-runner.ts';
import { type LoadedGroup, loadReferredGroup, sessionOf } from '../../../app/resolve.ts';
import {
  acceptanceLog,
  type GroupStanding,
  leftWorker,
  readStanding,
  runningSetup,
} from '../../../app/watch/live-view.ts';
import { advise } from '../../../core/advice.ts';
import { defined } from '../../../core/defined.ts';
import type { SessionId } from '../../../core/group.ts';
import { openItems } from '../../../core/item.ts';
import { runCommand, sessionReference } from '../../../core/plan/advice.ts';
import { slotReason, slotSentence } from '../../../core/plan/command-slot.ts';
import { runnerGone, waitsForAnswer } from '../../../core/plan/verdicts.ts';
import { deniedSentence, type LiveSession, silenceSentence } from '../../../core/progress.ts';
import type { Attempt, SessionRecord } from '../../../core/session-state.ts';
import type { GroupState } from '../../../core/state.ts';
import { isDiskFull } from '../../../store/system-failure.ts';
import { formatClock, formatTable, titled } from '../../../view/format.ts';
import { safeLine } from '../../../view/terminal-text.ts';
import {
  acceptanceSentence,
  retrySentence,
  sessionTitle,
  setupSentence,
  statusTone,
  withAdvice,
  withLocalTimes,
} from '../../../view/wording.ts';
import { type Context, need } from '../../context.ts';

const example = `
Example:
  $ claude-code-agent group why auth-refactor
  $ claude-code-agent group why auth-refactor web
  $ claude-code-agent group why auth-refactor --json | jq -r '.sessions[] | select(.reason == "blocked") | .id'`;

const sentenceColumnsMax = 1_000;

export function define(command: Command, context: Context): void {
  command
    .description('Explain why sessions are not running, with a reason code and a next step for each.')
    .argument('<group>', 'id, unique prefix or slug')
    .argument('[session]', 'id, unique prefix, number or name (default: all)')
    .option('--json', 'one JSON document')
    .addHelpText('after', example)
    .action((reference, wanted, { json }) =>
      context.run(() => {
        const group = need(loadReferredGroup(context, reference));
        // Also accept `<group>/<session>` for the session.
        const only =
          wanted === undefined ? undefined : need(sessionOf(group, wanted.slice(wanted.indexOf('/') + 1))).sessionId;
        const answers = answersFor(context, group);
        const { state, groupId } = group;
        if (json) {
          const sessions = answers.filter(({ id }) => only === undefined || id === only);
          context.stdout.json({ groupId, status: state.status, sessions });
          return;
        }
        const shown = answers.filter(({ id, status }) => (only === undefined ? status !== 'completed' : id === only));
        const halted = suspendedRunner(context.world, group.paths);
        if (halted !== null) {
          const { message, advice } = suspendedSentence(groupId, halted);
          context.stdout.line(`${message} ${advice}`);
          context.stdout.line('');
        }
        context.stdout.lines(lines(context, group, shown));
      }),
    );
}

interface Answer {
  readonly id: SessionId;
  readonly name?: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

function lines(context: Context, { state }: LoadedGroup, answers: readonly Answer[]): string[] {
  if (answers.length === 0) {
    const { size } = state.sessions;
    return [size === 0 ? 'The group has no sessions.' : `All sessions are completed (${size}).`];
  }
  const nowMs = context.world.clock.now();
  const shown = answers.map((answer) => ({ ...answer, message: withLocalTimes(answer.message, nowMs) }));
  const shared = sharedSentences(shown);
  const columns = titled(['SESSION', 'STATUS', 'REASON', 'WHY']);
  const rows = shown.map(({ id, name, status, reason, message }) => [
    sessionTitle(id, name),
    { text: status, tone: statusTone(status) },
    reason,
    shared.has(message) ? '' : safeLine(message, sentenceColumnsMax),
  ]);
  const heads = [...shared].map(([message, reason]) => `${reason}: ${safeLine(message, sentenceColumnsMax)}`);
  return [...heads, ...(heads.length > 0 ? [''] : []), ...formatTable(columns, rows, context.stdout.style)];
}

/** Shorter messages are repeated in each row. */
const sharedLengthMin = 40;

/** A message that several sessions share is printed once above the table, with the reason code of their rows. */
function sharedSentences(answers: readonly Answer[]): ReadonlyMap<string, string> {
  const shared = new Map<string, string>();
  for (const [reason, alike = []] of Map.groupBy(answers, (answer) => answer.reason)) {
    const messages = new Set(alike.map(({ message }) => message));
    const [message = ''] = messages;
    if (alike.length > 1 && messages.size === 1 && message.length >= sharedLengthMin) shared.set(message, reason);
  }
  return shared;
}

function answersFor(context: Context, group: LoadedGroup): Answer[] {
  const { state } = group;
  const standing = readStanding(context.world, group);
  return [...state.sessions.values()].map((record): Answer => {
    const { id, name } = record.definition;
    const head = { id, ...defined({ name }), status: record.state.status };
    if (record.state.status === 'running') {
      return { ...head, ...whatItDoes(context, group, standing, record, record.state.attempt) };
    }
    if (isAttachmentGone(context, state, standing, record)) return { ...head, ...attachmentGone(state) };
    const why = standing.verdicts(record);
    return why === null
      ? { ...head, reason: 'completed', message: 'It is completed.' }
      : { ...head, reason: why.reason, message: withAdvice(why.message, why.advice) };
  });
}

type Reason = Pick<Answer, 'reason' | 'message'>;

/** The `session attach` command was killed. The next runner counts the cost of the attached conversation. */
function isAttachmentGone(
  { world }: Context,
  { status }: GroupState,
  { isInterrupted }: GroupStanding,
  { takenOver }: SessionRecord,
): boolean {
  return takenOver !== undefined && (isInterrupted || status !== 'running') && leftWorker(world, takenOver) === 'ended';
}

function attachmentGone(state: GroupState): Reason {
  const message = 'The attached terminal is gone. Its cost is counted when the group continues.';
  return { reason: 'attached', message: withAdvice(message, advise('Continue with', runCommand(state))) };
}

function whatItDoes(
  { world }: Context,
  group: LoadedGroup,
  { isInterrupted, live }: GroupStanding,
  record: SessionRecord,
  attempt: Attempt,
): Reason {
  const { stopping, identified } = attempt;
  if (isInterrupted) {
    const { reason, message, advice } = runnerGone(group.state);
    return { reason, message: withAdvice(`${whatIsLeft(world, group.state, attempt)} ${message}`, advice) };
  }
  if (stopping !== undefined) return { reason: 'stopping', message: `It is being stopped (${stopping}).` };
  const { frozenUntil } = group.state;
  if (frozenUntil !== undefined) {
    return { reason: 'frozen', message: `It is frozen until ${formatClock(frozenUntil)}.` };
  }
  if (isDiskFull(world, group.root)) {
    const message = `The disk of ${group.root} is full. Suspended until space is available.`;
    const free = advise('Free some space, for example with', ['group', 'prune', '--older-than', '30d']);
    return { reason: 'disk', message: withAdvice(message, free) };
  }
  const now = live.get(record.definition.id);
  if (now?.slot !== undefined) return { reason: slotReason, message: slotSentence(group.state, now.slot) };
  if (attempt.accepting !== undefined) {
    return { reason: 'accepting', message: acceptanceSentence(acceptanceLog(group.paths, record.definition)) };
  }
  const [item] = openItems(record);
  if (item !== undefined) {
    const { reason, message, advice } = waitsForAnswer(group.state, item);
    return { reason, message: withAdvice(message, advice) };
  }
  const setupLog = runningSetup(world, group.paths, record);
  if (setupLog !== null) return { reason: 'preparing', message: setupSentence(setupLog) };
  return {
    reason: identified ? 'working' : 'preparing',
    message: activity(group.state, record, now, identified),
  };
}

function whatIsLeft(world: Context['world'], { frozenUntil }: GroupState, attempt: Attempt): string {
  const left = leftWorker(world, attempt);
  if (left === 'ended') return 'Its process has ended.';
  if (left !== 'alive') return `It was started ${left.elsewhere}; its state is unknown here.`;
  const doing = frozenUntil === undefined ? 'is still running without a runner' : 'is suspended';
  return `It ${doing} (process ${attempt.process?.pid}).`;
}

function activity(state: GroupState, record: SessionRecord, now: LiveSession | undefined, identified: boolean): string {
  if (now?.silentMs !== undefined) return silenceSentence(record.host ?? '', now.silentMs);
  const doing = doingNow(now, identified);
  if (now?.denied === undefined) return doing;
  const allow = advise('Allow it with', ['session', 'allow', sessionReference(state, record)]);
  return withAdvice(`${doing.replace(/(?<![.!?…])$/, '.')} ${deniedSentence(now.denied)}`, allow);
}

function doingNow(now: LiveSession | undefined, identified: boolean): string {
  if (now?.retry !== undefined) return retrySentence(now.retry);
  if (now?.currentTool !== undefined) return `It is using a tool: ${now.currentTool}`;
  if (now?.lastText !== undefined) return `Last message: ${now.lastText}`;
  return identified ? 'Waiting for the model.' : 'claude is starting.';
}
