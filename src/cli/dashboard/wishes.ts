/** Carries out what a key asked for: the same requests that the commands send, without waiting in front of a screen. */

import { liveRunner } from '../../control/live-runner.ts';
import { pauseAndTell, type ToldPause } from '../../control/pause-group.ts';
import type { GroupReference } from '../../control/resolve.ts';
import { startDetached } from '../../control/run/detach.ts';
import { submit } from '../../control/submit.ts';
import { LogReader } from '../../control/watch/log-reader.ts';
import { errorText, type Failure, type Result } from '../../core/failure.ts';
import { sessionLabel } from '../../core/id.ts';
import { type GroupState, isRehearsal } from '../../core/state.ts';
import type { GroupStatus } from '../../core/status.ts';
import type { Wish } from '../../report/dashboard/keys.ts';
import { type Notice, reasoned } from '../../report/dashboard/view.ts';
import { formatClock } from '../../report/format.ts';
import { titleOf, withCommands } from '../../report/wording.ts';
import type { Command } from '../../runner/request-answers.ts';
import { delay } from '../../world/clock.ts';
import type { World } from '../../world/world.ts';
import { type Context, programName } from '../context.ts';

/** Wishes that concern the group and not the screen. */
export type GroupWish = Extract<
  Wish,
  { do: 'pause-session' | 'resume-session' | 'retry-session' | 'say' | 'pause-group' | 'resume-group' }
>;

type SessionWish = Exclude<GroupWish, { do: 'pause-group' | 'resume-group' }>;

/** What is said at once, while the answer is waited for. */
export function asking(state: GroupState, wish: GroupWish): Notice {
  if (wish.do === 'pause-group') return { text: 'Pausing the group…' };
  if (wish.do === 'resume-group') {
    return { text: state.status === 'created' ? 'Starting the group…' : 'Letting the group go on…' };
  }
  return { text: `Asking the runner about ${titleOf(state, wish.sessionId)}…` };
}

/**
 * What came of the wish, in one sentence; `tell` gets what is known before that. Never fails: what the system refuses
 * is such a sentence too.
 */
export async function grant(
  context: Context,
  group: GroupReference,
  state: GroupState,
  wish: GroupWish,
  tell: (notice: Notice) => void,
): Promise<Notice> {
  try {
    if (wish.do === 'pause-group') return paused(await pauseAndTell(context, group, wish.mode));
    if (wish.do === 'resume-group') return await resumeGroup(context, group, state, tell);
    return await askAboutSession(context, group, state, wish);
  } catch (error) {
    return { text: `The system refused it: ${errorText(error)}.`, tone: 'bad' };
  }
}

function refused({ message, next }: Failure): Notice {
  return { text: `${message} ${next}`.trim(), tone: 'bad' };
}

function paused(told: Result<ToldPause>): Notice {
  if (!told.ok) return refused(told.failure);
  const { outcome, warnings } = told.value;
  switch (outcome.kind) {
    case 'unchanged':
      return { text: `The group is ${outcome.status}; there is nothing to pause.`, tone: 'warn' };
    case 'frozen':
      return { text: `Frozen; at ${formatClock(outcome.until)} it becomes a pause. P lets it go on.`, tone: 'warn' };
    case 'runner-gone':
      return { text: 'The runner is gone; nobody can wait for the running sessions.', tone: 'bad' };
    case 'settled': {
      const text = [`The group is ${outcome.status}.`, ...warnings].join(' ');
      return { text, tone: warnings.length === 0 ? 'good' : 'warn' };
    }
  }
}

/** Thaws a frozen group; one that nobody runs gets a runner of its own, which does not end with this dashboard. */
async function resumeGroup(
  context: Context,
  group: GroupReference,
  state: GroupState,
  tell: (notice: Notice) => void,
): Promise<Notice> {
  const { world } = context;
  const before = state.status;
  const runId = liveRunner(world, group);
  if (runId !== null && state.frozenUntil !== undefined) {
    const thawed = await submit(context, group, { kind: 'thaw' });
    if (!thawed.ok) return refused(thawed.failure);
    return thawed.value === 'thawed' ? { text: 'It goes on where it stood.', tone: 'good' } : runnerGone;
  }
  if (runId !== null) return { text: 'Another runner has taken it over already.', tone: 'warn' };
  const started = await startDetached(context, group, {
    config: {},
    rehearse: isRehearsal(state) || undefined,
    // As `group resume` does; a run that was only interrupted goes on as it was.
    retryFailed: state.status === 'paused' || state.status === 'failed',
  });
  if (!started.ok) return refused(started.failure);
  if (started.value.kind === 'refused') {
    const said = started.value.said.join(' ');
    const text = said.startsWith(`${programName}: `) ? said.slice(programName.length + 2) : said;
    return { text, tone: 'bad' };
  }
  const { pid } = started.value;
  tell({ text: `It has a runner of its own now (pid ${pid})…` });
  return becameOf(before, await soonAfter(world, group), pid);
}

/** A missing login or a used up budget shows within this time, milliseconds. */
const firstMomentMs = 4_000;
const lookMs = 250;

/** The group a moment later, or as soon as it does not run any more; null when its log is gone. */
async function soonAfter(world: World, group: GroupReference): Promise<GroupState | null> {
  const log = new LogReader(world, group.paths.events);
  const untilMs = world.clock.now() + firstMomentMs;
  log.read();
  while (log.state?.status === 'running' && !log.isBroken && world.clock.now() < untilMs) {
    await delay(world.clock, lookMs);
    log.read();
  }
  return log.state;
}

/** What became of a group that was `before` when it got a runner of its own. */
export function becameOf(before: GroupStatus, state: GroupState | null, pid: number): Notice {
  if (state === null) return { text: 'The log of the group is gone.', tone: 'bad' };
  switch (state.status) {
    case 'running': {
      const what = before === 'created' ? 'It runs' : 'It goes on';
      return { text: `${what}, with a runner of its own (pid ${pid}).`, tone: 'good' };
    }
    case 'paused':
    case 'failed': {
      const text = `It stopped at once. ${withCommands(state, reasoned(state.reason, state.message))}`;
      return { text, tone: state.status === 'failed' ? 'bad' : 'warn' };
    }
    default:
      return { text: `The group is ${state.status}.`, tone: 'good' };
  }
}

const runnerGone: Notice = { text: 'The runner is gone. P lets the group go on.', tone: 'bad' };

async function askAboutSession(
  context: Context,
  group: GroupReference,
  state: GroupState,
  wish: SessionWish,
): Promise<Notice> {
  const { world } = context;
  if (liveRunner(world, group) === null) return { text: withoutRunner(state, wish), tone: 'warn' };
  // As it stood when the key was pressed: the state goes on while the answer is waited for.
  const text = granted(state, wish);
  // A pause takes a while; that it was agreed to is said at once.
  return new Promise((resolve, reject) => {
    const accepted = (): void => resolve({ text, tone: 'good' });
    submit(context, group, commandOf(wish), { accepted }).then((done) => {
      if (!done.ok) resolve(refused(done.failure));
      else if (typeof done.value === 'object' && 'by' in done.value && done.value.by === 'log') resolve(runnerGone);
      else accepted();
    }, reject);
  });
}

/** What comes of the wish, in one sentence. */
export function granted(state: GroupState, { do: wanted, sessionId }: SessionWish): string {
  const title = titleOf(state, sessionId);
  const status = state.sessions.get(sessionId)?.state.status;
  switch (wanted) {
    case 'pause-session':
      if (status === 'running') return `${title} is being paused.`;
      return `${title} is held back; p lets it ${status === 'pending' ? 'start' : 'go on'}.`;
    case 'resume-session':
      return `${title} ${status === 'pending' ? 'starts' : 'goes on'} as soon as nothing else keeps it.`;
    case 'retry-session':
      return `${title} is tried again as soon as there is a slot.`;
    case 'say':
      return `${title} is told.`;
  }
}

function commandOf(wish: SessionWish): Command {
  const { sessionId } = wish;
  return wish.do === 'say' ? { kind: 'say', sessionId, text: wish.text } : { kind: wish.do, sessionId };
}

/** Then the command itself becomes the runner, and runs this session alone. */
function withoutRunner(state: GroupState, wish: SessionWish): string {
  const words = { 'pause-session': 'pause', 'resume-session': 'resume', 'retry-session': 'retry', say: 'say' } as const;
  const name = state.sessions.get(wish.sessionId)?.definition.name;
  const reference = `${state.group.id}/${sessionLabel(wish.sessionId, name)}`;
  const text = wish.do === 'say' ? ' TEXT' : '';
  const command = `${programName} session ${words[wish.do]} ${reference}${text}`;
  return `Nobody runs the group. P lets it go on; for this session alone, in another terminal: ${command}`;
}
