/** Carries out what a key asked for: the same requests that the commands send, without waiting in front of a screen. */

import { type Command, submit } from '../../app/group-commands.ts';
import { answerItem } from '../../app/inbox.ts';
import { liveRunner } from '../../app/live-runner.ts';
import { type PauseReport, pauseAndNotify } from '../../app/pause-group.ts';
import { type GroupReference, loadWithRunner } from '../../app/resolve.ts';
import { startDetached } from '../../app/run/detach.ts';
import { commandText } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { describeFailure, errorText, type Failure, type Result } from '../../core/failure.ts';
import type { SessionId } from '../../core/group.ts';
import { groupAdvice, sessionReference } from '../../core/plan/advice.ts';
import { programName } from '../../core/program-name.ts';
import { type GroupState, isRehearsal } from '../../core/state.ts';
import type { GroupStatus } from '../../core/status.ts';
import { delay } from '../../system/clock.ts';
import type { World } from '../../system/world.ts';
import type { KeyCommand } from '../../tui/dashboard/actions.ts';
import { type Notice, reasoned } from '../../tui/dashboard/view.ts';
import { formatClock, plural } from '../../view/format.ts';
import { titleOf, withAdvice } from '../../view/wording.ts';
import type { Context } from '../context.ts';

export type GroupCommand = Extract<
  KeyCommand,
  { do: 'pause-session' | 'resume-session' | 'retry-session' | 'say' | 'answer' | 'pause-group' | 'resume-group' }
>;

type AnswerCommand = Extract<GroupCommand, { do: 'answer' }>;
type SaidCommand = Extract<GroupCommand, { do: 'say' }>;
type MarkedCommand = Extract<GroupCommand, { readonly sessionIds: unknown }>;
type SessionCommand = SaidCommand | { readonly do: MarkedCommand['do']; readonly sessionId: SessionId };

function eachOf(command: SaidCommand | MarkedCommand): readonly SessionCommand[] {
  return 'sessionId' in command ? [command] : command.sessionIds.map((sessionId) => ({ do: command.do, sessionId }));
}

export function requestText(state: GroupState, command: GroupCommand): Notice {
  if (command.do === 'pause-group') return { text: 'Pausing the group…' };
  if (command.do === 'answer') return { text: 'Sending the answer…' };
  if (command.do === 'resume-group') {
    return { text: state.status === 'created' ? 'Starting the group…' : 'Resuming the group…' };
  }
  const [first, ...others] = eachOf(command);
  const about =
    others.length > 0 || first === undefined ? plural(others.length + 1, 'session') : titleOf(state, first.sessionId);
  return { text: `Asking the runner about ${about}…` };
}

/** The result of the command in one sentence; `tell` gets earlier notices. Never fails. */
export async function grant(
  context: Context,
  group: GroupReference,
  state: GroupState,
  command: GroupCommand,
  tell: (notice: Notice) => void,
): Promise<Notice> {
  try {
    if (command.do === 'pause-group') return paused(await pauseAndNotify(context, group, command.mode));
    if (command.do === 'resume-group') return await resumeGroup(context, group, state, tell);
    if (command.do === 'retry-session' && liveRunner(context.world, group) === null)
      return await retryWithRunner(context, group, state, command, tell);
    if (command.do === 'answer') return await answer(context, command);
    const [first, ...others] = eachOf(command);
    if (first === undefined) return { text: 'No session is marked.', tone: 'warn' };
    if (others.length === 0) return await askAboutSession(context, group, state, first);
    return await askAboutSessions(context, group, state, [first, ...others]);
  } catch (error) {
    return { text: `The operating system refused it: ${errorText(error)}.`, tone: 'bad' };
  }
}

/** A number is an option of a question. */
async function answer(context: Context, { item, text, note }: AnswerCommand): Promise<Notice> {
  const isOption = /^\d+(?:[ ,]+\d+)*$/.test(text);
  const given = isOption ? { options: text.split(/[ ,]+/).map(Number) } : { text, ...defined({ note }) };
  const done = await answerItem(context, item, given);
  if (!done.ok) return refused(done.failure);
  return { text: done.value.by === 'runner' ? 'Answered.' : 'Answered. Press P to resume the group.', tone: 'good' };
}

function refused(failure: Failure): Notice {
  return { text: describeFailure(failure), tone: 'bad' };
}

function paused(told: Result<PauseReport>): Notice {
  if (!told.ok) return refused(told.failure);
  const { outcome, warnings } = told.value;
  switch (outcome.kind) {
    case 'unchanged':
      return { text: `The group is ${outcome.status}; nothing to pause.`, tone: 'warn' };
    case 'frozen':
      return { text: `Frozen until ${formatClock(outcome.until)}, then paused. Press P to continue.`, tone: 'warn' };
    case 'runner-gone':
      return { text: 'The runner is gone. Press P to resume the group.', tone: 'bad' };
    case 'settled': {
      const done =
        outcome.had === 'start' ? 'The run was stopped before it started.' : `The group is ${outcome.status}.`;
      const text = [done, ...warnings].join(' ');
      return { text, tone: warnings.length === 0 ? 'good' : 'warn' };
    }
  }
}

/** Thaws a frozen group. A group without a runner gets a runner of its own, which outlives this dashboard. */
async function resumeGroup(
  context: Context,
  group: GroupReference,
  state: GroupState,
  tell: (notice: Notice) => void,
  // As `group resume` does. An interrupted run is resumed without retries.
  retryFailed = state.status === 'paused' || state.status === 'failed',
): Promise<Notice> {
  const { world } = context;
  const before = state.status;
  const runId = liveRunner(world, group);
  if (runId !== null && state.frozenUntil !== undefined) {
    const thawed = await submit(context, group, { kind: 'thaw' });
    if (!thawed.ok) return refused(thawed.failure);
    return thawed.value === 'thawed' ? { text: 'Continuing.', tone: 'good' } : runnerGone;
  }
  if (runId !== null) return { text: 'Another runner has already adopted it.', tone: 'warn' };
  const started = await startDetached(context, group, {
    config: {},
    rehearse: isRehearsal(state) || undefined,
    retryFailed,
  });
  if (!started.ok) return refused(started.failure);
  if (started.value.kind === 'refused') {
    const said = started.value.lines.join(' ');
    const head = `${programName}: `;
    const text = said.startsWith(head) ? said.slice(head.length) : said;
    return { text, tone: 'bad' };
  }
  const { pid } = started.value;
  tell({ text: `Started a runner (pid ${pid})…` });
  return becameOf(before, await soonAfter(world, group), pid);
}

/** The group gets a runner of its own, which tries these sessions again and leaves other failed ones as they are. */
async function retryWithRunner(
  context: Context,
  group: GroupReference,
  state: GroupState,
  { sessionIds }: MarkedCommand,
  tell: (notice: Notice) => void,
): Promise<Notice> {
  for (const sessionId of sessionIds) {
    const asked = await submit(context, group, { kind: 'retry-session', sessionId });
    if (!asked.ok) return refused(asked.failure);
  }
  return resumeGroup(context, group, state, tell, false);
}

/** A missing login or a used up budget shows within this time, milliseconds. */
const firstMomentMs = 4_000;
const lookMs = 250;

/** The group a moment later, or as soon as it does not run any more; null when its log is gone. */
async function soonAfter(world: World, group: GroupReference): Promise<GroupState | null> {
  const untilMs = world.clock.now() + firstMomentMs;
  for (;;) {
    const loaded = loadWithRunner(world, group);
    if (!loaded.ok) return null;
    const { state } = loaded.value;
    if (state.status !== 'running' || world.clock.now() >= untilMs) return state;
    await delay(world.clock, lookMs);
  }
}

export function becameOf(before: GroupStatus, state: GroupState | null, pid: number): Notice {
  if (state === null) return { text: 'The log of the group is gone.', tone: 'bad' };
  switch (state.status) {
    case 'running': {
      const what = before === 'created' ? 'It runs' : 'It continues';
      return { text: `${what}, with its own runner (pid ${pid}).`, tone: 'good' };
    }
    case 'paused':
    case 'failed': {
      const text = withAdvice(`It stopped at once. ${reasoned(state.reason, state.message)}`, groupAdvice(state));
      return { text, tone: state.status === 'failed' ? 'bad' : 'warn' };
    }
    default:
      return { text: `The group is ${state.status}.`, tone: 'good' };
  }
}

const runnerGone: Notice = { text: 'The runner is gone. Press P to resume the group.', tone: 'bad' };

async function askAboutSession(
  context: Context,
  group: GroupReference,
  state: GroupState,
  command: SessionCommand,
): Promise<Notice> {
  const { world } = context;
  if (liveRunner(world, group) === null) return { text: withoutRunner(state, command), tone: 'warn' };
  // From the state at the key press: it changes while the runner answers.
  const text = granted(state, command);
  // A pause takes a while, so its acceptance is reported at once.
  return new Promise((resolve, reject) => {
    const accepted = (): void => resolve({ text, tone: 'good' });
    submit(context, group, commandOf(command), { accepted }).then((done) => {
      if (!done.ok) resolve(refused(done.failure));
      else if (typeof done.value === 'object' && 'by' in done.value && done.value.by === 'log') resolve(runnerGone);
      else accepted();
    }, reject);
  });
}

const manyGranted: Readonly<Record<SessionCommand['do'], string>> = {
  'pause-session': 'are being paused or held back; press p to resume',
  'resume-session': 'continue when they are ready',
  'retry-session': 'are retried when slots are free',
  say: 'get the message',
};

async function askAboutSessions(
  context: Context,
  group: GroupReference,
  state: GroupState,
  commands: readonly [SessionCommand, ...SessionCommand[]],
): Promise<Notice> {
  const notices = await Promise.all(commands.map((command) => askAboutSession(context, group, state, command)));
  const done = notices.filter(({ tone }) => tone === 'good').length;
  const refusal = notices.find(({ tone }) => tone !== 'good');
  const text = `${done} of ${commands.length} sessions ${manyGranted[commands[0].do]}.`;
  return refusal === undefined
    ? { text: text.replace(/ of \d+/, ''), tone: 'good' }
    : { text: done === 0 ? refusal.text : `${text} ${refusal.text}`, tone: 'warn' };
}

export function granted(state: GroupState, { do: wanted, sessionId }: SessionCommand): string {
  const title = titleOf(state, sessionId);
  const status = state.sessions.get(sessionId)?.state.status;
  switch (wanted) {
    case 'pause-session':
      if (status === 'running') return `${title} is being paused.`;
      return `${title} is held back; press p to ${status === 'pending' ? 'start' : 'resume'} it.`;
    case 'resume-session':
      return `${title} ${status === 'pending' ? 'starts' : 'continues'} when it is ready.`;
    case 'retry-session':
      return `${title} is retried when a slot is free.`;
    case 'say':
      return `Message sent to ${title}.`;
  }
}

function commandOf(command: SessionCommand): Command {
  const { sessionId } = command;
  return command.do === 'say' ? { kind: 'say', sessionId, text: command.text } : { kind: command.do, sessionId };
}

/** Then the command itself becomes the runner, and runs this session alone. */
function withoutRunner(state: GroupState, command: SessionCommand): string {
  const words = { 'pause-session': 'pause', 'resume-session': 'resume', 'retry-session': 'retry', say: 'say' } as const;
  const record = state.sessions.get(command.sessionId);
  const reference = record === undefined ? `${state.group.id}/${command.sessionId}` : sessionReference(state, record);
  const line = commandText(['session', words[command.do], reference, ...(command.do === 'say' ? ['TEXT'] : [])]);
  return `The group has no runner. Press P to resume it, or only this session in another terminal: ${line}`;
}
