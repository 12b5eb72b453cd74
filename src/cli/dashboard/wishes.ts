/** Carries out what a key asked for: the same requests that the commands send, without waiting in front of a screen. */

import { liveRunner } from '../../control/live-runner.ts';
import { pauseAndTell, type ToldPause } from '../../control/pause-group.ts';
import { askRunner } from '../../control/request.ts';
import type { GroupReference } from '../../control/resolve.ts';
import { LogReader } from '../../control/watch/log-reader.ts';
import { errorText, type Failure, type Result } from '../../core/failure.ts';
import type { SessionId } from '../../core/group.ts';
import { sessionLabel } from '../../core/id.ts';
import type { GroupState } from '../../core/state.ts';
import type { GroupStatus } from '../../core/status.ts';
import type { Wish } from '../../report/dashboard/keys.ts';
import { type Notice, reasoned } from '../../report/dashboard/view.ts';
import { formatClock, plural } from '../../report/format.ts';
import { titleOf, withCommands } from '../../report/wording.ts';
import type { RequestBody } from '../../store/requests.ts';
import { delay } from '../../world/clock.ts';
import type { World } from '../../world/world.ts';
import { type Context, programName } from '../context.ts';
import { startDetached } from '../detach.ts';

/** Wishes that concern the group and not the screen. */
export type GroupWish = Extract<
  Wish,
  { do: 'pause-session' | 'resume-session' | 'retry-session' | 'say' | 'pause-group' | 'resume-group' }
>;

type SaidWish = Extract<GroupWish, { do: 'say' }>;
type MarkedWish = Extract<GroupWish, { readonly sessionIds: unknown }>;
/** About one session. */
type SessionWish = SaidWish | { readonly do: MarkedWish['do']; readonly sessionId: SessionId };

function eachOf(wish: SaidWish | MarkedWish): readonly SessionWish[] {
  return 'sessionId' in wish ? [wish] : wish.sessionIds.map((sessionId) => ({ do: wish.do, sessionId }));
}

/** What is said at once, while the answer is waited for. */
export function asking(state: GroupState, wish: GroupWish): Notice {
  if (wish.do === 'pause-group') return { text: 'Pausing the group…' };
  if (wish.do === 'resume-group') {
    return { text: state.status === 'created' ? 'Starting the group…' : 'Letting the group go on…' };
  }
  const [first, ...others] = eachOf(wish);
  const about =
    others.length > 0 || first === undefined ? plural(others.length + 1, 'session') : titleOf(state, first.sessionId);
  return { text: `Asking the runner about ${about}…` };
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
  const { world } = context;
  try {
    if (wish.do === 'pause-group') return paused(await pauseAndTell(context, group, wish.mode));
    if (wish.do === 'resume-group') return await resumeGroup(context, group, state, tell);
    const [first, ...others] = eachOf(wish);
    if (first === undefined) return { text: 'No session is marked.', tone: 'warn' };
    if (others.length === 0) return await askAboutSession(world, group, state, first);
    return await askAboutSessions(world, group, state, [first, ...others]);
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
    const answer = await askRunner(world, group, runId, { kind: 'thaw' });
    if (answer === 'runner-gone') return runnerGone;
    return answer.ok ? { text: 'It goes on where it stood.', tone: 'good' } : refused(answer.failure);
  }
  if (runId !== null) return { text: 'Another runner has taken it over already.', tone: 'warn' };
  const started = await startDetached(context, group, {
    config: {},
    output: undefined,
    rehearse: state.run?.rehearsal,
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
  world: World,
  group: GroupReference,
  state: GroupState,
  wish: SessionWish,
): Promise<Notice> {
  const runId = liveRunner(world, group);
  if (runId === null) return { text: withoutRunner(state, wish), tone: 'warn' };
  // As it stood when the key was pressed: the state goes on while the answer is waited for.
  const text = granted(state, wish);
  const answer = await askRunner(world, group, runId, bodyOf(wish));
  if (answer === 'runner-gone') return runnerGone;
  return answer.ok ? { text, tone: 'good' } : refused(answer.failure);
}

const manyGranted: Readonly<Record<SessionWish['do'], string>> = {
  'pause-session': 'are being paused, or held back; p lets them go on',
  'resume-session': 'go on as soon as nothing else keeps them',
  'retry-session': 'are tried again as soon as there are slots',
  say: 'are told',
};

/** The same for several; what is refused is told by its first reason. */
async function askAboutSessions(
  world: World,
  group: GroupReference,
  state: GroupState,
  wishes: readonly [SessionWish, ...SessionWish[]],
): Promise<Notice> {
  const notices = await Promise.all(wishes.map((wish) => askAboutSession(world, group, state, wish)));
  const done = notices.filter(({ tone }) => tone === 'good').length;
  const refusal = notices.find(({ tone }) => tone !== 'good');
  const text = `${done} of ${wishes.length} sessions ${manyGranted[wishes[0].do]}.`;
  return refusal === undefined
    ? { text: text.replace(/ of \d+/, ''), tone: 'good' }
    : { text: done === 0 ? refusal.text : `${text} ${refusal.text}`, tone: 'warn' };
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

function bodyOf(wish: SessionWish): RequestBody {
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
