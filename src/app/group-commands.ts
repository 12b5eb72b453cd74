/**
 * Commands on a group and its sessions, such as pause and retry. Without a runner, this process carries a command out;
 * otherwise it sends the command to the runner. Both use the checks and events of runner/request-answers.ts.
 */

import { defined } from '../core/defined.ts';
import type { EventBody, GroupEvent } from '../core/event.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import type { GroupId, SessionId } from '../core/group.ts';
import { decide } from '../core/plan/schedule.ts';
import type { SessionRecord, SessionState } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import type { GroupStatus } from '../core/status.ts';
import { recoverAttachments } from '../runner/attach.ts';
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
import {
  awaitAnswer,
  type PauseRequestMode,
  type RequestAnswer,
  type RequestBody,
  sendRequest,
} from '../store/requests.ts';
import { systemFailure } from '../store/system-failure.ts';
import { delay, waitUntil } from '../system/clock.ts';
import type { World } from '../system/world.ts';
import type { AppContext } from './app-context.ts';
import { foreignWorker, stopRehearsal } from './leftovers.ts';
import { liveRunner, shortRunPrefix } from './live-runner.ts';
import type { GroupReference } from './resolve.ts';
import { awaitRelease, awaitState } from './watch/follow-group.ts';
import { attemptUsages } from './watch/live-view.ts';

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
  /** Runs before the command, if the command is possible. Not called with a live runner. */
  readonly before?: (writer: GroupWriter) => Promise<Result<void>>;
  /** Runs after the command, with the lock still held. Not called with a live runner. */
  readonly after?: (writer: GroupWriter) => Promise<Result<void>>;
  /** Called when the live runner has accepted the command, before its outcome is awaited. */
  readonly accepted?: () => void;
  /** Receives the events that a long command logs without a runner. */
  readonly tell?: EventListener;
  /** Id of the run that was ended for this command. */
  readonly gone?: string;
}

/** Fails if the command is not possible now. `survivor` in the failure: a runner that takes no requests. */
export async function submit<C extends Command>(
  context: Pick<AppContext, 'world' | 'notes'>,
  group: GroupReference,
  command: C,
  options: SubmitOptions = {},
): Promise<Result<RequestOutcome<C['kind']>, OpenFailure>> {
  const { world } = context;
  const typed: Command = command;
  // The compiler cannot relate the handler to the kind here, because the kind is generic.
  const handler: RequestHandler<never> | undefined = Object.hasOwn(handlers, command.kind)
    ? handlers[command.kind as never]
    : undefined;
  const submission: Submission = { command, handler, ...options };
  let { gone } = options;
  const viaRunner = (runId: string, command: RequestBody) => {
    gone = runId;
    return submitToRunner(world, group, runId, { ...submission, command });
  };
  const submitted = await changeGroup<unknown>(context, group, {
    direct: (writer) => carryOut(world, writer, { ...submission, ...defined({ gone }) }),
    ...(typed.kind === 'archive' ? {} : { viaRunner: (runId) => viaRunner(runId, typed) }),
  });
  return submitted as Result<RequestOutcome<C['kind']>, OpenFailure>;
}

interface Submission extends SubmitOptions {
  readonly command: Command;
  readonly handler: RequestHandler<never> | undefined;
}

async function carryOut(world: World, writer: GroupWriter, submission: Submission): Promise<Result<unknown>> {
  const { command, handler, before, after, tell = () => {}, gone } = submission;
  if (handler !== undefined) return handler.direct(world, writer, command as never, { tell, gone });
  const checked = effectOf(world, writer, command);
  if (!checked.ok) return checked;
  const ready = await before?.(writer);
  if (ready?.ok === false) return ready;
  const recorded = recordCommand(world, writer, command);
  if (!recorded.ok) return recorded;
  const done = await after?.(writer);
  return done?.ok === false ? done : ok({ by: 'log', ...sessionIn(recorded.value) } satisfies Done);
}

async function submitToRunner(
  world: World,
  group: GroupReference,
  runId: string,
  { command, handler, accepted }: Submission & { readonly command: RequestBody },
): Promise<Result<unknown, OpenFailure> | 'runner-gone'> {
  // Refuse at once what the runner would refuse.
  const checked = checkCommand(world, group, command);
  if (!checked.ok) return checked;
  const answer = await requestFromRunner(world, group, runId, command);
  if (answer === 'runner-gone' || !answer.ok) return answer;
  accepted?.();
  if (handler !== undefined) return handler.answered(world, group, runId, answer.value, command as never);
  return ok({ by: 'runner', ...sessionIn(answer.value) } satisfies Done);
}

/** `survivor` in the failure: a runner that takes no requests. `runner-gone`: the runner will not answer. */
async function requestFromRunner(
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
    // On a full disk a runner can only be reached by signals.
    const survivor = world.locks.holder(group.paths.lock)?.identity;
    return { ok: false, failure: { ...systemFailure(group.paths.requests, error), ...defined({ survivor }) } };
  }
  const answer = await awaitAnswer(world, group.paths, { id }, sinceSize);
  if (answer === 'runner-gone') return answer;
  return answer.done ? ok(answer) : fail('usage', answer.message, '');
}

/** Checks whether the command is possible now. Changes nothing. Accepts the command if the log cannot be read. */
export function checkCommand(world: World, { root, groupId, paths }: GroupReference, command: Command): Result<void> {
  const state = loadGroup(world, root, groupId);
  const effect = state.ok ? effectOf(world, { state: state.value, paths }, command) : ok(undefined);
  return effect.ok ? ok(undefined) : effect;
}

function sessionIn({ sessionId }: { readonly sessionId?: SessionId }): Pick<Done, 'sessionId'> {
  return defined({ sessionId });
}

/** Concurrent commands wait for each other; each holds the lock for a few milliseconds. */
const patienceMs = 20_000;
const pollMs = 15;

export interface Change<T> {
  readonly direct: (writer: GroupWriter) => Result<T> | Promise<Result<T>>;
  /** Uses the live runner; `runner-gone` = try again from the start. If absent, a live runner makes the change fail. */
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
        // An error without a path is a write to an open file, which can only be the log.
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
      // The answer of a newer runner is in a log that this version cannot read.
      const log = readLog(world, group.paths.events);
      if (!log.ok && log.failure.reason === 'newer-version') return log;
      const answer = await change.viaRunner(runner);
      if (answer !== 'runner-gone') return answer;
      // Waiting for the runner may have taken longer than the deadline.
      deadline = world.clock.now() + patienceMs;
    }
    if (world.clock.now() > deadline) return opened;
    await delay(world.clock, pollMs);
  }
}

export async function waitForShortCommands(world: World, group: Pick<GroupReference, 'paths'>): Promise<void> {
  const isFree = () => !world.locks.holder(group.paths.lock)?.runId.startsWith(shortRunPrefix);
  await waitUntil(world.clock, patienceMs, pollMs, isFree);
}

/** Outcomes of the commands that do more than log an event. */
interface Special {
  readonly pause: PauseOutcome;
  readonly thaw: 'thawed' | 'needs-runner';
  readonly 'pause-session': SessionState;
  /** The state of the session once it no longer runs and is reserved for the attached terminal. */
  readonly 'attach-session': SessionState;
  readonly say: 'now' | 'next-attempt';
}

export type EventListener = (event: GroupEvent, state: GroupState) => void;

interface RequestHandler<K extends keyof Special> {
  /** Called with the lock held. `gone`: the run that ended without answering the request. */
  direct(
    world: World,
    writer: GroupWriter,
    command: CommandOf<K>,
    about: { readonly tell: EventListener; readonly gone: string | undefined },
  ): Result<Special[K]> | Promise<Result<Special[K]>>;
  /** Called when the live runner has carried it out. `runner-gone` = try again from the start. */
  answered(
    world: World,
    group: GroupReference,
    runId: string,
    answer: RequestAnswer,
    command: CommandOf<K>,
  ): Result<Special[K]> | 'runner-gone' | Promise<Result<Special[K]> | 'runner-gone'>;
}

export type PauseOutcome =
  /** Nothing to do: the group already had this status. */
  | { readonly kind: 'unchanged'; readonly status: GroupStatus }
  /** The group no longer runs. `had`: what ran it until now; `start` = a run that was about to begin. */
  | { readonly kind: 'settled'; readonly status: GroupStatus; readonly had: 'runner' | 'workers' | 'start' }
  /** All processes are suspended. `until`: when the group is paused instead (ISO 8601). */
  | { readonly kind: 'frozen'; readonly until: string }
  /** Sessions run without a runner. Nothing was done. */
  | { readonly kind: 'runner-gone' };

export function endedStartText(id: GroupId): string {
  return `Ended the run of ${id} before it began; nothing was started.`;
}

/** Fails as the answer of a runner would. Changes nothing. */
function effectOf(
  world: World,
  { state, paths }: Pick<Asked, 'state' | 'paths'>,
  command: Command,
): Result<RequestEffect> {
  const used = () => attemptUsages(world, paths, state).values();
  return commandEvents(world, { state, paths, used }, command);
}

function recordCommand(world: World, writer: GroupWriter, command: Command): Result<RequestEffect> {
  const effect = effectOf(world, writer, command);
  if (effect.ok) writer.record(effect.value.events);
  return effect;
}

/** Pauses one session, or reserves it for an attached terminal. */
function restHandler(kind: 'pause-session' | 'attach-session') {
  return {
    async direct(world: World, writer: GroupWriter, command: CommandOf<typeof kind>): Promise<Result<SessionState>> {
      const { sessionId } = command;
      const checked = effectOf(world, writer, command);
      if (!checked.ok) return checked;
      const isRunning = writer.state.sessions.get(sessionId)?.state.status === 'running';
      if (isRunning) {
        const foreign = foreignWorker(world, writer, [sessionId]);
        if (foreign) return foreign;
        await stopSession(world, writer, sessionId, 'user');
      }
      // Stopping the session has paused it already; only an attachment still has to be recorded.
      const recorded = isRunning && kind === 'pause-session' ? ok(null) : recordCommand(world, writer, command);
      return recorded.ok ? ok(stateOf(writer.state, sessionId)) : recorded;
    },
    async answered(
      world: World,
      group: GroupReference,
      runId: string,
      { seq }: RequestAnswer,
      { sessionId }: CommandOf<typeof kind>,
    ): Promise<Result<SessionState> | 'runner-gone'> {
      const ended = await awaitState(world, group, runId, (state) => {
        const now = state.lastSeq >= seq ? stateOf(state, sessionId) : undefined;
        return now === undefined || now.status === 'running' ? null : now;
      });
      return ended === 'runner-gone' ? ended : ok(ended);
    },
  };
}

function stateOf(state: GroupState, sessionId: SessionId): SessionState {
  // Another process removed the session in the meantime. It counts as never started.
  return state.sessions.get(sessionId)?.state ?? { status: 'pending' };
}

/** Without a runner, this process stops the workers that still run. A drain leaves them running. */
const pauseHandler: RequestHandler<'pause'> = {
  direct(world, writer, { mode }, { tell, gone }) {
    const { status, run } = writer.state;
    const hadStart = gone !== undefined && run?.id !== gone;
    if (status !== 'running')
      return ok(hadStart ? { kind: 'settled', status, had: 'start' } : { kind: 'unchanged', status });
    if (mode === 'drain' && writer.state.running.size > 0) return ok({ kind: 'runner-gone' });
    return stopLeftWorkers(world, writer, tell);
  },
  answered: (world, group, runId, { seq }, { mode }) => pauseOutcome(world, group, runId, seq, mode),
};

async function stopLeftWorkers(world: World, writer: GroupWriter, tell: EventListener): Promise<Result<PauseOutcome>> {
  const foreign = foreignWorker(world, writer);
  if (foreign) return foreign;
  writer.record([{ type: 'group_pausing', reason: 'user' }]);
  await stopGroup(world, writer, 'user');
  await stopRehearsal(world, writer.paths);
  // Sessions may have completed while they were being stopped, so the scheduler decides the status of the group.
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

async function pauseOutcome(
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

/** When the freeze that event `seq` answered ends. Null if the group was being paused already. */
function frozenBefore(world: World, group: GroupReference, seq: number): string | null {
  const log = readLog(world, group.paths.events);
  const events = log.ok ? log.value : [];
  const last = events.findLast(
    (event) => event.seq <= seq && (event.type === 'group_frozen' || event.type === 'group_pausing'),
  );
  return last?.type === 'group_frozen' ? last.until : null;
}

type SayOutcome = Special['say'];

const sayHandler: RequestHandler<'say'> = {
  direct: sayDirectly,
  answered(world, { root, groupId }, _runId, _answer, { sessionId, text }) {
    const state = loadGroup(world, root, groupId);
    const record = state.ok ? state.value.sessions.get(sessionId) : undefined;
    return ok(record === undefined ? 'now' : sayOutcomeOf(record, text));
  },
};

/** The message was sent now unless the log keeps it for the next attempt. */
function sayOutcomeOf({ state, messages }: SessionRecord, text: string): SayOutcome {
  const isListening = state.status === 'running' && state.attempt.stopping === undefined;
  return messages.includes(text) && !isListening ? 'next-attempt' : 'now';
}

/** Without a runner, the message waits for the next attempt. */
async function sayDirectly(world: World, writer: GroupWriter, command: CommandOf<'say'>): Promise<Result<SayOutcome>> {
  const { sessionId } = command;
  const checked = effectOf(world, writer, command);
  if (!checked.ok) return checked;
  if (writer.state.sessions.get(sessionId)?.state.status === 'running') {
    const foreign = foreignWorker(world, writer, [sessionId]);
    if (foreign) return foreign;
    await stopSession(world, writer, sessionId, 'user');
  }
  const recorded = recordCommand(world, writer, command);
  return recorded.ok ? ok('next-attempt') : recorded;
}

const handlers: { readonly [K in keyof Special]: RequestHandler<K> } = {
  pause: pauseHandler,
  thaw: {
    // The runner that resumes the group ends the freeze first.
    direct: () => ok('needs-runner'),
    answered: () => ok('thawed'),
  },
  'pause-session': restHandler('pause-session'),
  'attach-session': restHandler('attach-session'),
  say: sayHandler,
};
