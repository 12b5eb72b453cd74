/** What a group is doing now, seen from another process: the state of the log, and progress.json of the runner. */

import { parseLine } from '../../claude/messages.ts';
import type { EarlierSpending } from '../../claude/spending.ts';
import { emptyStream, foldMessage, usageOf } from '../../claude/stream.ts';
import { defined } from '../../core/defined.ts';
import type { GroupEvent } from '../../core/event.ts';
import { ok, type Result } from '../../core/failure.ts';
import {
  addUsage,
  type GroupId,
  roundUsd,
  type SessionDefinition,
  type SessionId,
  type Tokens,
  type Usage,
} from '../../core/group.ts';
import { LineSplitter } from '../../core/line-splitter.ts';
import { loggedContext, seenByRunner, type Verdicts, type WaitReason } from '../../core/plan/decision.ts';
import { kindOf, type Sample } from '../../core/plan/preview.ts';
import { aboutToStart, verdictsAtRest, verdictsOf } from '../../core/plan/verdicts.ts';
import {
  type FleetStanding,
  type GroupProgress,
  groupProgress,
  type LiveSession,
  type SessionProgress,
} from '../../core/progress.ts';
import type { Attempt, SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { readLog } from '../../store/event-log.ts';
import { foldLog, listGroups, loadGroup } from '../../store/group-store.ts';
import { parseOwn } from '../../store/json.ts';
import { type GroupPaths, groupPaths, sessionPaths } from '../../store/paths.ts';
import { type GroupMeta, groupMeta, type SessionSummary } from '../../store/snapshots.ts';
import type { World } from '../../system/world.ts';
import type { ReportModel } from '../../view/html/model.ts';
import type { LiveView } from '../../view/reporter.ts';
import { conditionOf } from '../../view/wording.ts';
import { earlierThan } from '../../worker/attempt/worker-options.ts';
import type { AppContext } from '../app-context.ts';
import { isRun } from '../live-runner.ts';
import { tryPath } from '../path-argument.ts';
import { type GroupReference, type LoadedGroup, loadWithRunner } from '../resolve.ts';

export interface ProgressView {
  readonly live: LiveView;
  readonly verdicts: Verdicts;
  readonly fleet?: FleetStanding;
}

export interface GroupStanding extends ProgressView {
  readonly isInterrupted: boolean;
  /** The time up to which durations count, ms since 1970: now, or the last event of an interrupted run. */
  readonly atMs: number;
}

export function readStanding(world: World, group: Pick<LoadedGroup, 'paths' | 'state' | 'hadRunner'>): GroupStanding {
  const { state, paths, hadRunner } = group;
  const nowMs = world.clock.now();
  if (state.status !== 'running') return { ...withoutRunner(state), isInterrupted: false, atMs: nowMs };
  // Check again, because a run may have started meanwhile.
  if (hadRunner || isRun(world, paths)) {
    return { ...readGroupProgress(world, paths.progress, state), isInterrupted: false, atMs: nowMs };
  }
  return {
    ...withoutRunner(state, attemptUsages(world, paths, state)),
    isInterrupted: true,
    atMs: Date.parse(state.updatedAt),
  };
}

export function withoutRunner(state: GroupState, usages: ReadonlyMap<SessionId, Usage> = new Map()): ProgressView {
  return { live: new Map([...usages].map(([id, usage]) => [id, { usage }])), verdicts: verdictsAtRest(state) };
}

/** The contents of progress.json, as far as they agree with the log. */
export function readGroupProgress({ files, clock }: World, progressFile: string, state: GroupState): ProgressView {
  const live = new Map<SessionId, LiveSession>();
  const reported = new Map<SessionId, WaitReason>();
  const nowMs = clock.now();
  const logged = verdictsOf(state, loggedContext(state, nowMs));
  const read = tryPath(() => files.readText(progressFile));
  const progress = read.ok ? parseOwn<GroupProgress>(read.value) : null;
  if (progress?.groupId !== state.group.id) return { live, verdicts: logged };
  for (const session of progress.sessions) {
    const record = state.sessions.get(session.id);
    if (record === undefined) continue;
    const { reason, status } = session;
    if (status === 'running' && record.state.status === 'running') {
      live.set(session.id, liveSession(session, record, nowMs));
    } else if (reason !== undefined) reported.set(session.id, verdictIn({ ...session, reason }));
  }
  const verdicts = reportedVerdicts(reported, logged, progress.seq === state.lastSeq);
  return { live, verdicts, ...defined({ fleet: progress.fleet }) };
}

/** If the log is newer than progress.json, keep only the reasons that the runner alone can know. */
function reportedVerdicts(reported: ReadonlyMap<SessionId, WaitReason>, logged: Verdicts, isFresh: boolean): Verdicts {
  return (record) => {
    const { status } = record.state;
    if (status === 'running' || status === 'completed') return null;
    const reason = reported.get(record.definition.id);
    if (reason !== undefined && isFresh) return reason;
    const found = logged(record);
    return reason !== undefined && found === aboutToStart && seenByRunner.has(reason.reason) ? reason : found;
  };
}

function verdictIn({
  reason,
  message = '',
  why = message,
  retryAt,
  on,
  waitsFor,
}: SessionProgress & { readonly reason: string }): WaitReason {
  const until = retryAt === undefined ? undefined : Date.parse(retryAt);
  return { reason, message: why, ...defined({ until, on: on ?? waitsFor }) };
}

/** progress.json counts all attempts; subtracts the usage of those that have ended. */
function liveSession(session: SessionProgress, { usage, state }: SessionRecord, nowMs: number): LiveSession {
  const attempt = state.status === 'running' ? state.attempt : undefined;
  // During acceptance, the usage of the attempt is already logged.
  const startedAt = attempt === undefined || attempt.accepting !== undefined ? nowMs : Date.parse(attempt.startedAt);
  const { currentTool, lastText, retry, denied, silentMs, tasks, slot, estimated, cost, tokens } = session;
  const since = (name: keyof Tokens): number => Math.max(0, tokens[name] - usage.tokens[name]);
  return {
    ...defined({ currentTool, lastText, retry, denied, silentMs, tasks, slot }),
    usage: {
      costUsd: Math.max(0, roundUsd(cost - usage.costUsd)),
      tokens: {
        input: since('input'),
        output: since('output'),
        cacheRead: since('cacheRead'),
        cacheCreation: since('cacheCreation'),
      },
      durationMs: Math.max(0, nowMs - startedAt),
      turns: 0,
      ...defined({ estimated }),
      models: {},
    },
  };
}

/** The state of a worker or an attached terminal without a runner. `elsewhere`: it was started on another host. */
export function leftWorker(
  { processes, machine }: World,
  { process, place }: Pick<Attempt, 'process' | 'place'>,
): 'alive' | 'ended' | { readonly elsewhere: string } {
  if (place !== undefined) return { elsewhere: `on the host ${place.host} of the fleet` };
  if (process === undefined) return 'ended';
  if (processes.isAlive(process)) return 'alive';
  return process.host === machine.self.host ? 'ended' : { elsewhere: `on the host ${process.host}` };
}

export function progressOf(
  world: World,
  group: Pick<LoadedGroup, 'paths' | 'state' | 'hadRunner'>,
  { live, atMs, verdicts } = readStanding(world, group),
): GroupProgress {
  return groupProgress(group.state, live, atMs, verdicts);
}

export function readHistory(
  world: World,
  { groupId, paths }: GroupReference,
): Result<{ readonly events: readonly GroupEvent[]; readonly state: GroupState }> {
  const events = readLog(world, paths.events);
  if (!events.ok) return events;
  const state = foldLog(paths.events, groupId, events.value);
  return state.ok ? ok({ events: events.value, state: state.value }) : state;
}

export interface PresentGroup {
  readonly meta: GroupMeta;
  /** For display: `interrupted` if its runner is gone, and the condition of a running group. */
  readonly status: string;
}

/** Snapshots lag behind the log and do not contain the cost of running sessions. */
export function presentGroup({ world }: Pick<AppContext, 'world'>, root: string, meta: GroupMeta): PresentGroup {
  if (meta.status !== 'running') return { meta, status: meta.status };
  const loaded = loadWithRunner(world, { root, groupId: meta.id, paths: groupPaths(root, meta.id) });
  if (!loaded.ok) return { meta, status: meta.status };
  const { state } = loaded.value;
  const { live, isInterrupted } = readStanding(world, loaded.value);
  const condition = conditionOf(state, world.clock.now());
  const running = condition === null ? state.status : `${state.status} (${condition})`;
  return {
    meta: presentMeta(state, live),
    status: isInterrupted ? 'interrupted' : running,
  };
}

type LiveUsages = ReadonlyMap<SessionId, Pick<LiveSession, 'usage'>>;

export function presentUsage(state: GroupState, live: LiveUsages): Usage {
  return [...live.values()].reduce((sum, now) => addUsage(sum, now.usage), state.usage);
}

export function presentMeta(state: GroupState, live: LiveUsages): GroupMeta {
  const meta = groupMeta(state);
  const usage = presentUsage(state, live);
  const sessions = meta.sessions.map((session): SessionSummary => {
    const now = live.get(session.id)?.usage;
    const record = state.sessions.get(session.id);
    if (now === undefined || record === undefined) return session;
    const { costUsd, estimated } = addUsage(record.usage, now);
    return { ...session, cost: costUsd, ...(estimated ? { estimated: true } : {}) };
  });
  const { costUsd, estimated, tokens } = usage;
  return { ...meta, cost: costUsd, ...(estimated ? { estimated: true } : {}), tokens, sessions };
}

/** The log of the running set-up command, or null: the event log has only finished set-ups. Needs a live runner. */
export function runningSetup({ files }: World, paths: GroupPaths, record: SessionRecord): string | null {
  const { definition, state, workspace } = record;
  if (definition.setup === undefined || state.status !== 'running' || workspace === undefined) return null;
  const { process, accepting } = state.attempt;
  if (process !== undefined || accepting !== undefined) return null;
  const { setupLog, setupDone } = sessionPaths(paths, definition.id);
  return files.info(setupLog) !== null && files.info(setupDone) === null ? setupLog : null;
}

export function acceptanceLog(paths: GroupPaths, { id, accept }: SessionDefinition): string | undefined {
  return accept === undefined ? undefined : sessionPaths(paths, id).acceptLog;
}

/** How many groups are read for a forecast, newest first: older ones used other prices and models. */
const groupsMax = 50;
const samplesMax = 5_000;

/** Completed sessions of the newest groups and of `own`, for forecasts. Skips rehearsals and damaged groups. */
export function readSamples(world: World, root: string, own: GroupState): Sample[] {
  const samples = [...samplesByGroup(world, root, own.group.id)].flat();
  return own.run?.rehearsal ? samples : [...samples, ...samplesOf(own)];
}

/** One group at a time, so that the caller can yield in between. */
export function* samplesByGroup(world: World, root: string, except: GroupId): Generator<readonly Sample[]> {
  let read = 0;
  let taken = 0;
  for (const listing of listGroups(world, root)) {
    if (read === groupsMax || taken >= samplesMax) return;
    if (listing.id === except || !('meta' in listing)) continue;
    if (!listing.meta.sessions.some(({ status }) => status === 'completed')) continue;
    read += 1;
    const state = loadGroup(world, root, listing.id);
    if (!state.ok || state.value.run?.rehearsal) continue;
    const samples = samplesOf(state.value);
    taken += samples.length;
    yield samples;
  }
}

export function samplesOf(state: GroupState): Sample[] {
  return [...state.sessions.values()].flatMap(({ definition, usage, state: session, inherited }) =>
    session.status === 'completed' && inherited === undefined
      ? [{ ...kindOf(definition, state), costUsd: usage.costUsd, durationMs: usage.durationMs }]
      : [],
  );
}

// Usage of running attempts so far, read from their transcripts, so that it is available without a runner.

const chunkBytes = 1024 * 1024;

/** One entry for each running session, except during acceptance. Times grow only with `hasRunner`. */
export function attemptUsages(world: World, paths: GroupPaths, state: GroupState, hasRunner = false) {
  return usageReader(world, paths)(state, hasRunner);
}

export type UsageReader = (state: GroupState, hasRunner?: boolean) => Map<SessionId, Usage>;

/** For repeated calls: reads only what was added to a transcript. */
export function usageReader(world: World, groupFiles: GroupPaths): UsageReader {
  let readings = new Map<string, Reading>();
  return (state, hasRunner = false) => {
    const usages = new Map<SessionId, Usage>();
    const before = readings;
    readings = new Map();
    for (const id of state.running) {
      const record = state.sessions.get(id);
      const session = record?.state;
      if (record === undefined || session?.status !== 'running' || session.attempt.accepting !== undefined) continue;
      const { attempt } = session;
      const paths = sessionPaths(groupFiles, id);
      const reading =
        before.get(attempt.id) ?? startReading(attempt.offset, state, earlierThan(attempt, world, paths, record));
      readings.set(attempt.id, reading);
      // Skip an unreadable transcript; the other sessions are still counted.
      tryPath(() => reading.readOn(world, paths.transcript));
      usages.set(id, usageOf(reading.stream, durationOf(world, paths.transcript, attempt, hasRunner)));
    }
    return usages;
  };
}

/** Whole milliseconds. Without a live process or a runner, the attempt counts until its last output. */
function durationOf(world: World, transcript: string, { process, startedAt }: Attempt, hasRunner: boolean): number {
  const { clock, files, processes } = world;
  const isWatched = hasRunner && process !== undefined && processes.isAlive(process);
  const untilMs = isWatched ? clock.now() : (files.info(transcript)?.mtimeMs ?? 0);
  return Math.max(0, Math.round(untilMs - Date.parse(startedAt)));
}

type Reading = ReturnType<typeof startReading>;

function startReading(from: number, { group }: GroupState, earlier: EarlierSpending | undefined) {
  const stream = emptyStream(group.config.prices, earlier);
  const splitter = new LineSplitter();
  let offset = from;
  const readOn = ({ files }: World, transcript: string): void => {
    for (;;) {
      const chunk = files.readBytes(transcript, offset, chunkBytes);
      if (chunk.length === 0) return;
      offset += chunk.length;
      for (const line of splitter.push(chunk)) foldMessage(stream, parseLine(line));
    }
  };
  return { stream, readOn };
}

// Loads the data of a report.

/** Reads the log once, so that state and report match even while the group runs. */
export async function loadReport(
  world: World,
  group: GroupReference,
): Promise<Result<{ readonly state: GroupState; readonly model: ReportModel }>> {
  const history = readHistory(world, group);
  if (!history.ok) return history;
  const { events, state } = history.value;
  const { reportModel } = await import('../../view/html/model.ts');
  const { paths } = group;
  const hasRunner = isRun(world, paths);
  const live = attemptUsages(world, paths, state, hasRunner);
  const reported = hasRunner ? { verdicts: readGroupProgress(world, paths.progress, state).verdicts } : {};
  return ok({
    state,
    model: reportModel(state, events, world.clock.now(), { live, hasRunner, ...reported }),
  });
}
