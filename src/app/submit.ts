/**
 * Everything one can ask of a group and its sessions. With the lock free it is done here, else the live runner is
 * asked; on both ways it is checked by the same function and comes to the same events (runner/request-answers.ts).
 */

import { userMessage } from '../claude/control.ts';
import { defined } from '../core/defined.ts';
import type { EventBody, GroupEvent } from '../core/event.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import type { GroupId, SessionId } from '../core/group.ts';
import { decide } from '../core/plan/schedule.ts';
import type { SessionRecord, SessionState } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import type { GroupStatus } from '../core/status.ts';
import { recoverAttachments } from '../runner/attach/recover.ts';
import {
  type Asked,
  type Command,
  type CommandOf,
  commandEvents,
  type RequestEffect,
} from '../runner/request-answers.ts';
import { stopGroup, stopSession } from '../runner/stop-group.ts';
import { readLog } from '../store/event-log.ts';
import { loadGroup } from '../store/group-store.ts';
import { type GroupWriter, type OpenFailure, openGroupWriter } from '../store/group-writer.ts';
import { sessionPaths } from '../store/paths.ts';
import {
  awaitAnswer,
  type PauseRequestMode,
  type RequestAnswer,
  type RequestBody,
  sendRequest,
} from '../store/requests.ts';
import { systemFailure } from '../store/system-failure.ts';
import { delay } from '../system/clock.ts';
import type { World } from '../system/world.ts';
import { hasOutput } from '../worker/adopt.ts';
import type { AppContext } from './app-context.ts';
import { foreignWorker, stopRehearsal } from './leftovers.ts';
import { liveRunner, shortRunPrefix } from './live-runner.ts';
import type { GroupReference } from './resolve.ts';
import { attemptUsages } from './watch/attempt-usage.ts';
import { awaitRelease, awaitState } from './watch/follow-group.ts';

export type { CommandOf } from '../runner/request-answers.ts';

export type { PauseRequestMode } from '../store/requests.ts';

export type { Command };

type Kind = Command['kind'];

export interface Done {
  readonly by: 'runner' | 'log';
  readonly sessionId?: SessionId;
}

export type RequestOutcome<K extends Kind> = K extends keyof Special ? Special[K] : Done;

export interface SubmitOptions {
  /** What has to go first, once it is known that the command can be carried out; not through a live runner. */
  readonly before?: (writer: GroupWriter) => Promise<Result<void>>;
  /** What goes along, with the lock still held; not through a live runner. */
  readonly after?: (writer: GroupWriter) => Promise<Result<void>>;
  /** Called when the live runner has agreed, before what comes of it is waited for. */
  readonly accepted?: () => void;
  /** Is told what is logged without a runner when that takes its time. */
  readonly tell?: EventListener;
  /** A run that was ended for this. */
  readonly gone?: string;
}

/** Fails with a sentence when it cannot be done now; `survivor`: a runner that cannot be asked is in the way. */
export async function submit<C extends Command>(
  place: Pick<AppContext, 'world' | 'notes'>,
  group: GroupReference,
  command: C,
  options: SubmitOptions = {},
): Promise<Result<RequestOutcome<C['kind']>, OpenFailure>> {
  const { world } = place;
  const asked: Command = command;
  // The table gives each kind the way of that kind, which the compiler does not see for a kind that it does not know.
  const way: RequestHandler<never> | undefined = Object.hasOwn(ways, command.kind)
    ? ways[command.kind as never]
    : undefined;
  const work: Work = { command, way, ...options };
  let { gone } = options;
  const viaRunner = (runId: string, command: RequestBody) => {
    gone = runId;
    return askFor(world, group, runId, { ...work, command });
  };
  const submitted = await changeGroup<unknown>(place, group, {
    direct: (writer) => carryOut(world, writer, { ...work, ...defined({ gone }) }),
    ...(asked.kind === 'archive' ? {} : { viaRunner: (runId) => viaRunner(runId, asked) }),
  });
  return submitted as Result<RequestOutcome<C['kind']>, OpenFailure>;
}

interface Work extends SubmitOptions {
  readonly command: Command;
  readonly way: RequestHandler<never> | undefined;
}

async function carryOut(world: World, writer: GroupWriter, work: Work): Promise<Result<unknown>> {
  const { command, way, before, after, tell = () => {}, gone } = work;
  if (way !== undefined) return way.direct(world, writer, command as never, { tell, gone });
  const possible = meaningOf(world, writer, command);
  if (!possible.ok) return possible;
  const ready = await before?.(writer);
  if (ready?.ok === false) return ready;
  const recorded = recordCommand(world, writer, command);
  if (!recorded.ok) return recorded;
  const done = await after?.(writer);
  return done?.ok === false ? done : ok({ by: 'log', ...aboutOf(recorded.value) } satisfies Done);
}

async function askFor(
  world: World,
  group: GroupReference,
  runId: string,
  { command, way, accepted }: Work & { readonly command: RequestBody },
): Promise<Result<unknown, OpenFailure> | 'runner-gone'> {
  // A refusal that is found here needs no answer of the runner.
  const possible = checkCommand(world, group, command);
  if (!possible.ok) return possible;
  const answer = await askRunner(world, group, runId, command);
  if (answer === 'runner-gone' || !answer.ok) return answer;
  accepted?.();
  if (way !== undefined) return way.answered(world, group, runId, answer.value, command as never);
  return ok({ by: 'runner', ...aboutOf(answer.value) } satisfies Done);
}

/** Returns the answer. `survivor`: a runner that takes no requests; `runner-gone`: it will not answer. */
async function askRunner(
  world: World,
  group: GroupReference,
  runId: string,
  body: RequestBody,
): Promise<Result<RequestAnswer, OpenFailure> | 'runner-gone'> {
  const id = world.random.uuid();
  const sinceSize = world.files.info(group.paths.events)?.size ?? 0;
  try {
    sendRequest(world, group.paths, { id, runId, at: new Date(world.clock.now()).toISOString(), ...body });
  } catch (error) {
    // On a full disk a runner hears signals, and nothing else.
    const survivor = world.locks.holder(group.paths.lock)?.identity;
    return { ok: false, failure: { ...systemFailure(group.paths.requests, error), ...defined({ survivor }) } };
  }
  const answer = await awaitAnswer(world, group.paths, { id }, sinceSize);
  if (answer === 'runner-gone') return answer;
  return answer.done ? ok(answer) : fail('usage', answer.message, '');
}

/** Whether it could be done as the group is now; a log that cannot be read rules nothing out. Changes nothing. */
export function checkCommand(world: World, { root, groupId, paths }: GroupReference, command: Command): Result<void> {
  const state = loadGroup(world, root, groupId);
  const meaning = state.ok ? meaningOf(world, { state: state.value, paths }, command) : ok(undefined);
  return meaning.ok ? ok(undefined) : meaning;
}

function aboutOf({ sessionId }: { readonly sessionId?: SessionId }): Pick<Done, 'sessionId'> {
  return defined({ sessionId });
}

/** Many commands at once queue up behind each other; each takes a few milliseconds. */
const patienceMs = 20_000;
const pollMs = 15;

export interface Change<T> {
  readonly direct: (writer: GroupWriter) => Result<T> | Promise<Result<T>>;
  /** Acts through the live runner; `runner-gone` = try again from the start. Absent = a live runner is in the way. */
  readonly viaRunner?: (runId: string) => Promise<Result<T, OpenFailure> | 'runner-gone'>;
}

export async function changeGroup<T>(
  { world }: Pick<AppContext, 'world'>,
  group: GroupReference,
  change: Change<T>,
): Promise<Result<T, OpenFailure>> {
  let deadline = world.clock.now() + patienceMs;
  for (;;) {
    const runId = `${shortRunPrefix}${world.random.uuid()}`;
    const opened = openGroupWriter(world, group.root, group.groupId, runId);
    if (opened.ok) {
      try {
        await recoverAttachments(world, opened.value);
        const changed = await change.direct(opened.value);
        return changed;
      } catch (error) {
        // The system says what it refused, but for a write into an open file: the log.
        if ((error as { path?: unknown }).path !== undefined) throw error;
        return { ok: false, failure: systemFailure(group.paths.events, error) };
      } finally {
        opened.value.close();
      }
    }
    if (opened.failure.reason !== 'busy' || opened.failure.survivor !== undefined) return opened;
    const runner = liveRunner(world, group);
    if (runner !== null) {
      if (change.viaRunner === undefined) return opened;
      // What a newer runner answers stands in a log that cannot be read.
      const log = readLog(world, group.paths.events);
      if (!log.ok && log.failure.reason === 'newer-version') return log;
      const answer = await change.viaRunner(runner);
      if (answer !== 'runner-gone') return answer;
      // The runner may have been waited for much longer than a short command.
      deadline = world.clock.now() + patienceMs;
    }
    if (world.clock.now() > deadline) return opened;
    await delay(world.clock, pollMs);
  }
}

/** Waits until no short command holds the group any more, for a command that will take the lock itself. */
export async function waitForShortCommands(world: World, group: Pick<GroupReference, 'paths'>): Promise<void> {
  const deadline = world.clock.now() + patienceMs;
  while (world.locks.holder(group.paths.lock)?.runId.startsWith(shortRunPrefix) && world.clock.now() < deadline) {
    await delay(world.clock, pollMs);
  }
}

// The commands that do more than the log records of them.

/** The answers of these commands, by kind. */
interface Special {
  readonly pause: PauseOutcome;
  readonly thaw: 'thawed' | 'needs-runner';
  readonly 'pause-session': SessionState;
  /** How the session stands when it is kept for the person and runs no more. */
  readonly 'attach-session': SessionState;
  readonly say: 'now' | 'next-attempt';
}

export type EventListener = (event: GroupEvent, state: GroupState) => void;

interface RequestHandler<K extends keyof Special> {
  /** With the lock held. `gone`: the run that was asked for it first, and has ended without an answer. */
  direct(
    world: World,
    writer: GroupWriter,
    command: CommandOf<K>,
    about: { readonly tell: EventListener; readonly gone: string | undefined },
  ): Result<Special[K]> | Promise<Result<Special[K]>>;
  /** The live runner has done it; `runner-gone` = try again from the start. */
  answered(
    world: World,
    group: GroupReference,
    runId: string,
    answer: RequestAnswer,
    command: CommandOf<K>,
  ): Result<Special[K]> | 'runner-gone' | Promise<Result<Special[K]> | 'runner-gone'>;
}

// What came of pausing a group.

export type PauseOutcome =
  /** Nothing to do: the group already had this status. */
  | { readonly kind: 'unchanged'; readonly status: GroupStatus }
  /** It is not running any more. `had`: who ran it until now; `start` = a run that was about to begin. */
  | { readonly kind: 'settled'; readonly status: GroupStatus; readonly had: 'runner' | 'workers' | 'start' }
  /** Everything is halted where it stood; ISO 8601, when that becomes a pause. */
  | { readonly kind: 'frozen'; readonly until: string }
  /** No runner waits for the sessions that still run. Nothing was done. */
  | { readonly kind: 'runner-gone' };

/** What is said of a group whose run was ended before it began. */
export function endedStartText(id: GroupId): string {
  return `Ended the run of ${id} before it began; nothing was started.`;
}

// Records what a command means for a group without a runner.

/** Fails as the answer of a runner would. Changes nothing. */
function meaningOf(
  world: World,
  { state, paths }: Pick<Asked, 'state' | 'paths'>,
  command: Command,
): Result<RequestEffect> {
  const used = () => attemptUsages(world, paths, state).values();
  return commandEvents(world, { state, paths, used }, command);
}

function recordCommand(world: World, writer: GroupWriter, command: Command): Result<RequestEffect> {
  const meaning = meaningOf(world, writer, command);
  if (meaning.ok) writer.record(meaning.value.events);
  return meaning;
}

// Pausing one session, or keeping it for a person: by the runner, or by stopping what a dead runner has left of it.

function restWay(kind: 'pause-session' | 'attach-session') {
  return {
    async direct(world: World, writer: GroupWriter, command: CommandOf<typeof kind>): Promise<Result<SessionState>> {
      const { sessionId } = command;
      const possible = meaningOf(world, writer, command);
      if (!possible.ok) return possible;
      const isRunning = writer.state.sessions.get(sessionId)?.state.status === 'running';
      if (isRunning) {
        const foreign = foreignWorker(world, writer, [sessionId]);
        if (foreign) return foreign;
        await stopSession(world, writer, sessionId, 'user');
      }
      // A session that was stopped is paused already; one that is kept for a person is so only by this.
      const recorded = isRunning && kind === 'pause-session' ? ok(null) : recordCommand(world, writer, command);
      return recorded.ok ? ok(stateOf(writer.state, sessionId)) : recorded;
    },
    answered(
      world: World,
      group: GroupReference,
      runId: string,
      { seq }: RequestAnswer,
      command: CommandOf<typeof kind>,
    ) {
      return untilItRests(world, group, runId, seq, command.sessionId);
    },
  };
}

/** How it stands when it runs no more, after event `seq`. */
async function untilItRests(
  world: World,
  group: GroupReference,
  runId: string,
  seq: number,
  sessionId: SessionId,
): Promise<Result<SessionState> | 'runner-gone'> {
  const ended = await awaitState(world, group, runId, (state) => {
    const now = state.lastSeq >= seq ? stateOf(state, sessionId) : undefined;
    return now === undefined || now.status === 'running' ? null : now;
  });
  return ended === 'runner-gone' ? ended : ok(ended);
}

function stateOf(state: GroupState, sessionId: SessionId): SessionState {
  // Another process removed the session in the meantime. It counts as never started.
  return state.sessions.get(sessionId)?.state ?? { status: 'pending' };
}

// Pausing a whole group: by its runner, or by stopping what a runner that died has left.

/** Workers of a runner that died are stopped by this process, or, for `drain`, left as they are. */
const pauseGroupWay: RequestHandler<'pause'> = {
  direct(world, writer, { mode }, { tell, gone }) {
    const { status, run } = writer.state;
    const hadStart = gone !== undefined && run?.id !== gone;
    if (status !== 'running')
      return ok(hadStart ? { kind: 'settled', status, had: 'start' } : { kind: 'unchanged', status });
    if (mode === 'drain' && writer.state.running.size > 0) return ok({ kind: 'runner-gone' });
    return stopLeftWorkers(world, writer, tell);
  },
  answered: (world, group, runId, { seq }, { mode }) => outcomeOf(world, group, runId, seq, mode),
};

async function stopLeftWorkers(world: World, writer: GroupWriter, tell: EventListener): Promise<Result<PauseOutcome>> {
  const foreign = foreignWorker(world, writer);
  if (foreign) return foreign;
  writer.record([{ type: 'group_pausing', reason: 'user' }]);
  await stopGroup(world, writer, 'user');
  await stopRehearsal(world, writer.paths);
  // Sessions may have finished while they were being stopped, so the end is decided like that of a run.
  for (const decision of decide(writer.state, { preparingMax: 0 })) {
    if (decision.do !== 'settle') continue;
    const end: EventBody =
      decision.status === 'completed'
        ? { type: 'group_completed' }
        : { type: 'group_paused', reason: decision.reason, message: decision.message };
    for (const event of writer.record([end])) tell(event, writer.state);
  }
  return ok({ kind: 'settled', status: writer.state.status, had: 'workers' });
}

async function outcomeOf(
  world: World,
  group: GroupReference,
  runId: string,
  seq: number,
  mode: PauseRequestMode,
): Promise<Result<PauseOutcome> | 'runner-gone'> {
  const until = mode === 'freeze' ? frozenBefore(world, group, seq) : null;
  if (until !== null) return ok({ kind: 'frozen', until });
  const status = await awaitState(world, group, runId, (state) =>
    state.lastSeq >= seq && state.status !== 'running' ? state.status : null,
  );
  if (status === 'runner-gone') return status;
  await awaitRelease(world, group, runId);
  return ok({ kind: 'settled', status, had: 'runner' });
}

/** Until when the request that was answered by event `seq` froze the group; null when it was being paused already. */
function frozenBefore(world: World, group: GroupReference, seq: number): string | null {
  const log = readLog(world, group.paths.events);
  const events = log.ok ? log.value : [];
  const last = events.findLast(
    (event) => event.seq <= seq && (event.type === 'group_frozen' || event.type === 'group_pausing'),
  );
  return last?.type === 'group_frozen' ? last.until : null;
}

// Telling a session something: through its runner, or into the pipe of a worker that a runner has left behind.

/** What a pipe takes at once from a writer who does not stay: half of what it holds. */
const lineBytesMax = 32 * 1024;

type Heard = Special['say'];

const sayWay: RequestHandler<'say'> = {
  direct: sayDirectly,
  answered(world, { root, groupId }, _runId, _answer, { sessionId, text }) {
    const state = loadGroup(world, root, groupId);
    const record = state.ok ? state.value.sessions.get(sessionId) : undefined;
    return ok(record === undefined ? 'now' : heard(record, text));
  },
};

/** The log tells whether it was kept for the next attempt; a session that is just starting hears it now. */
function heard({ state, messages }: SessionRecord, text: string): Heard {
  const isListening = state.status === 'running' && state.attempt.stopping === undefined;
  return messages.includes(text) && !isListening ? 'next-attempt' : 'now';
}

/** The group has no runner. An orphaned worker receives the message through its FIFO, which outlives the runner. */
async function sayDirectly(world: World, writer: GroupWriter, command: CommandOf<'say'>): Promise<Result<Heard>> {
  const { sessionId, text } = command;
  const possible = meaningOf(world, writer, command);
  if (!possible.ok) return possible;
  const record: SessionRecord | undefined = writer.state.sessions.get(sessionId);
  // One that its dead runner was stopping is not to begin another turn; it is told when it goes on.
  if (record?.state.status === 'running' && record.state.attempt.stopping === undefined) {
    const foreign = foreignWorker(world, writer, [sessionId]);
    if (foreign) return foreign;
    const { attempt } = record.state;
    const { process } = attempt;
    const { fifo: path, transcript } = sessionPaths(writer.paths, sessionId);
    // One of several threads that a killed worker has left may still hold the other end for a moment.
    const isAlive = process !== undefined && world.processes.isAlive(process);
    // A worker that its runner did not live to tell its task would take this for it.
    const fifo = isAlive && hasOutput(world, attempt, transcript) ? world.fifos.openWriter(path) : null;
    if (fifo !== null) {
      try {
        const line = userMessage(text, attempt.id, record.told?.length ?? 0);
        if (Buffer.byteLength(line) > lineBytesMax) return tooLong();
        writer.record(possible.value.events);
        fifo.writeLine(line);
        return ok('now');
      } finally {
        fifo.close();
      }
    }
    // The worker ended without a runner. How it ended decides whether the session is retried or starts over.
    await stopSession(world, writer, sessionId, 'user');
  }
  const recorded = recordCommand(world, writer, command);
  return recorded.ok ? ok('next-attempt') : recorded;
}

function tooLong(): Result<never> {
  const message = 'The message is longer than 32 KiB, and no runner is there to hand it over.';
  return fail('usage', message, 'Put the material into a file of the project and name its path instead.');
}

const ways: { readonly [K in keyof Special]: RequestHandler<K> } = {
  pause: pauseGroupWay,
  thaw: {
    // The runner that resumes the group ends the freeze first.
    direct: () => ok('needs-runner'),
    answered: () => ok('thawed'),
  },
  'pause-session': restWay('pause-session'),
  'attach-session': restWay('attach-session'),
  say: sayWay,
};
