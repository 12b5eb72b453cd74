/**
 * The content of a run's state.json, as functions from one state to the next. Other tools write that file too, so every
 * other field stays, and a field of an unexpected form counts as missing.
 */
import { defined } from '../../core/defined.ts';
import { foreignText } from '../../core/text.ts';
import { isObject, type JsonObject } from '../../store/json.ts';
import { findJsonFault, type JsonPath, offsetOf } from '../../store/json-positions.ts';

export interface Actor {
  /** claude's id of the session; a user at a terminal has none. */
  readonly sessionId?: string;
  readonly host: string;
  readonly platform?: string;
  readonly cwd: string;
  readonly gitCommit?: string;
  readonly nowMs: number;
}

export interface Begun {
  readonly state: JsonObject;
  readonly sessionId: string;
  /** A new record was created: the session or the machine has changed. */
  readonly isNew: boolean;
}

export const inProgress = 'in_progress';
export const phasesDefault: readonly string[] = ['frame', 'architect', 'build', 'evaluate', 'release'];

const finishedWords: ReadonlySet<unknown> = new Set(['completed', 'complete', 'done', 'finished', 'success']);

/** Version of the state's form, required by FABER's schema. */
const workflowVersion = '2.1';

/** Where a run is worked on. */
export interface RunPlace {
  readonly path: string;
  readonly branch?: string;
}

/** A new run. The caller checks `runId` and `workId`. */
export function newState(run: {
  readonly runId: string;
  readonly workId: string;
  readonly workflowId: string;
  readonly phases: readonly string[];
  readonly place?: RunPlace;
  readonly nowMs: number;
}): JsonObject {
  const at = isoTime(run.nowMs);
  return {
    run_id: run.runId,
    workflow_id: run.workflowId,
    work_id: run.workId,
    target: run.workId,
    workflow_version: workflowVersion,
    status: inProgress,
    started_at: at,
    updated_at: at,
    current_phase: run.phases[0] ?? 'none',
    phases: Object.fromEntries(run.phases.map((phase) => [phase, { status: 'pending' }])),
    artifacts: {},
    ...defined({ worktree: run.place }),
    sessions: { total_sessions: 0, session_history: [] },
    context_metadata: { reload_count: 0, artifacts_in_context: [] },
  };
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z');
}

/** Names of the finished phases in order; phases may be an object by name or a list. */
export function phasesCompleted(state: JsonObject): string[] {
  return phaseEntries(state.phases)
    .filter(([, phase]) => finishedWords.has(isObject(phase) ? phase.status : phase))
    .map(([name]) => name);
}

function phaseEntries(phases: unknown): [string, unknown][] {
  if (!Array.isArray(phases)) return Object.entries(objectOf(phases));
  return phases.flatMap((phase) => {
    const name = phaseName(phase);
    return name === undefined ? [] : [[name, phase] as [string, unknown]];
  });
}

function phaseName(phase: unknown): string | undefined {
  const { id, name, phase: word } = objectOf(phase);
  return nonEmptyText(id) ?? nonEmptyText(name) ?? nonEmptyText(word);
}

/** Records a finished phase; after the last of `order` the run is completed. */
export function finishPhase(
  state: JsonObject,
  phase: string,
  order: readonly string[],
  { nowMs, sessionId }: Pick<Actor, 'nowMs' | 'sessionId'>,
): JsonObject {
  const at = isoTime(nowMs);
  const mark = { status: 'completed', completed_at: at, ...defined({ session_id: sessionId }) };
  const phases = Array.isArray(state.phases)
    ? markInList(state.phases, phase, mark)
    : { ...objectOf(state.phases), [phase]: { ...objectOf(objectOf(state.phases)[phase]), ...mark } };
  const done = new Set(phasesCompleted({ phases }));
  const next = order.find((name) => !done.has(name));
  const completed = next === undefined ? { status: 'completed', completed_at: at } : {};
  const changed = { ...state, phases, current_phase: next ?? 'none', updated_at: at, ...completed };
  if (!isLive(changed)) return changed;
  return withRecord(changed, { ...currentSession(changed).record, phases_completed: phasesCompleted(changed) });
}

function markInList(phases: readonly unknown[], name: string, mark: JsonObject): unknown[] {
  const index = phases.findIndex((phase) => phaseName(phase) === name);
  if (index < 0) return [...phases, { id: name, ...mark }];
  return phases.with(index, { ...objectOf(phases[index]), ...mark });
}

export function nextPhase(state: JsonObject, order: readonly string[]): string | undefined {
  const done = new Set(phasesCompleted(state));
  return order.find((name) => !done.has(name));
}

/** The current session and its record, which may have ended: then it is in the history. */
export function currentSession(state: JsonObject): { readonly id?: string; readonly record: JsonObject | null } {
  const sessions = objectOf(state.sessions);
  const id = nonEmptyText(sessions.current_session_id);
  if (id === undefined) return { record: null };
  const live = objectOf(sessions.current_session);
  if (live.session_id === id) return { id, record: live };
  const ended = historyOf(state).findLast((one) => objectOf(one).session_id === id);
  return { id, record: isObject(ended) ? ended : null };
}

/** The current session may go on: before a compaction its end is only noted. */
export function isSessionOpen(state: JsonObject): boolean {
  return isLive(state) || isCompactionDue(state);
}

/** The end of the current session is not recorded yet. */
function isLive(state: JsonObject): boolean {
  const sessions = objectOf(state.sessions);
  const id = nonEmptyText(sessions.current_session_id);
  return id !== undefined && objectOf(sessions.current_session).session_id === id;
}

/**
 * The calling session becomes the current one. A new record is made exactly when claude's session id or the machine
 * differs from the current one, or when its conversation was just compacted: that one has the same id, the next `part`,
 * and its predecessor in `resumed_from`. A caller without an id continues the current session of this machine.
 */
export function beginSession(before: JsonObject, who: Actor, { isCompacted = false } = {}): Begun {
  const state = isCompacted ? endForCompaction(before, who) : before;
  const current = currentSession(state);
  const isSame =
    current.id !== undefined && isHere(current.record, who) && (who.sessionId ?? current.id) === current.id;
  if (isSame && !isCompacted) {
    // An end recorded before, perhaps for a compaction that failed, stays until the record ends again.
    const kept = current.record === null ? freshRecord(current.id, who) : reopened(current.record);
    return { state: withRecord(state, kept), sessionId: current.id, isNew: false };
  }
  const sessionId = who.sessionId ?? (isSame ? current.id : inventedId(who));
  const earlier = isCompacted ? lastRecord(state, sessionId, who) : null;
  const resumed = earlier === null ? {} : { part: partOf(earlier) + 1, resumed_from: sessionId };
  const left = isLive(state) ? intoHistory(state, current.record ?? {}) : state;
  const count = Math.max(Number(objectOf(left.sessions).total_sessions) || 0, historyOf(left).length);
  const record = { ...freshRecord(sessionId, who), ...resumed };
  return { state: withRecord(withSessions(left, { total_sessions: count + 1 }), record), sessionId, isNew: true };
}

/** Counts the records of one conversation from 1: each compaction starts another. */
export function partOf(record: JsonObject | null): number {
  const part = Number(record?.part);
  return Number.isSafeInteger(part) && part > 1 ? part : 1;
}

/** Records of other tools may lack the machine: then it is this one. */
function isHere(record: JsonObject | null, { host }: Pick<Actor, 'host'>): boolean {
  const { hostname } = objectOf(record?.environment);
  return hostname === undefined || hostname === host;
}

function lastRecord(state: JsonObject, sessionId: string, who: Pick<Actor, 'host'>): JsonObject | null {
  const { id, record } = currentSession(state);
  if (id === sessionId && record !== null && isHere(record, who)) return record;
  const history = historyOf(state).map(objectOf);
  return history.findLast((one) => one.session_id === sessionId && isHere(one, who)) ?? null;
}

function reopened({ ended_at: _, end_reason: __, ...kept }: JsonObject): JsonObject {
  return kept;
}

const historyOf = (state: JsonObject) => listOf(objectOf(state.sessions).session_history);

/** claude's ids of every session with a record. */
export function sessionIds(state: JsonObject): string[] {
  const ids = historyOf(state).map((record) => objectOf(record).session_id);
  return [currentSession(state).id, ...ids].flatMap((id) => nonEmptyText(id) ?? []);
}

function withSessions(state: JsonObject, changed: JsonObject): JsonObject {
  return { ...state, sessions: { ...objectOf(state.sessions), ...changed } };
}

function freshRecord(sessionId: string, who: Actor): JsonObject {
  return {
    session_id: sessionId,
    started_at: isoTime(who.nowMs),
    phases_completed: [],
    environment: {
      hostname: who.host,
      ...defined({ platform: who.platform }),
      cwd: who.cwd,
      ...defined({ git_commit: who.gitCommit }),
    },
    artifacts_loaded: [],
  };
}

/** An id for callers without claude's: the time, and enough of a digest that two machines do not collide. */
function inventedId({ nowMs, host, cwd }: Actor): string {
  const digest = new Bun.CryptoHasher('sha256').update(`${nowMs} ${host} ${cwd}`).digest('hex');
  return `claude-session-${stamp(nowMs)}-${digest.slice(0, 6)}`;
}

/** `20260105-143022`, UTC. */
export function stamp(ms: number): string {
  return new Date(ms).toISOString().replace(/[-:]/g, '').replace('T', '-').slice(0, 15);
}

function withRecord(state: JsonObject, record: JsonObject): JsonObject {
  return withSessions(state, {
    current_session_id: record.session_id,
    total_sessions: Math.max(Number(objectOf(state.sessions).total_sessions) || 0, 1),
    current_session: record,
    session_history: historyOf(state),
  });
}

/** Puts a session's record into the history once, in its latest form. */
function intoHistory(state: JsonObject, record: JsonObject): JsonObject {
  const history = historyOf(state);
  const index = history.findLastIndex((one) => isSameRecord(objectOf(one), record));
  return withSessions(state, { session_history: index < 0 ? [...history, record] : history.with(index, record) });
}

function isSameRecord(one: JsonObject, other: JsonObject): boolean {
  const key = ({ session_id, started_at, ...record }: JsonObject) =>
    JSON.stringify([session_id, started_at, partOf(record), objectOf(record.environment).hostname]);
  return key(one) === key(other);
}

/** The session ended: its record goes to the history. `ended` is false without such a session here. */
export function endSession(
  state: JsonObject,
  who: Pick<Actor, 'sessionId' | 'host'>,
  { atMs, reason }: { readonly atMs: number; readonly reason: string },
): { readonly state: JsonObject; readonly ended: string | null } {
  const record = openRecord(state, who);
  if (record === null) return { state, ended: null };
  const at = isoTime(atMs);
  const done = {
    ...reopened(record),
    ended_at: at,
    end_reason: reason,
    phases_completed: phasesCompleted(state),
    artifacts_loaded: listOf(record.artifacts_loaded),
  };
  const isCurrent = currentSession(state).id === record.session_id;
  const { current_session: live, ...sessions } = objectOf(intoHistory(state, done).sessions);
  return {
    state: { ...state, updated_at: at, sessions: isCurrent ? sessions : { ...sessions, current_session: live } },
    ended: foreignText(record.session_id),
  };
}

/** The record of the session that can still end: of one that is not current, if its end is unknown. */
function openRecord(state: JsonObject, { sessionId, host }: Pick<Actor, 'sessionId' | 'host'>): JsonObject | null {
  const { id, record } = currentSession(state);
  if (sessionId === undefined || sessionId === id) return isHere(record, { host }) ? record : null;
  const last = lastRecord(state, sessionId, { host });
  return last === null || (hasEnded(last) && last.end_reason !== compaction) ? null : last;
}

const hasEnded = ({ ended_at }: JsonObject): boolean => (ended_at ?? null) !== null;

/**
 * Before a compaction. If it fails, the session continues, and its next end takes the place of this one. A session
 * without a record, because the run started later, gets one.
 */
export function noteCompaction(state: JsonObject, who: Actor): JsonObject {
  const known = openRecord(state, who) === null ? beginSession(state, who).state : state;
  return endSession(known, who, { atMs: who.nowMs, reason: compaction }).state;
}

const compaction = 'compaction';

/** The compaction happened: the end was recorded before it, otherwise it is now. */
function endForCompaction(state: JsonObject, who: Actor): JsonObject {
  const record = openRecord(state, who);
  if (record === null || hasEnded(record)) return state;
  return endSession(state, who, { atMs: who.nowMs, reason: compaction }).state;
}

/** The current session was ended for a compaction by a user's PreCompact hook. */
export function isCompactionDue(state: JsonObject): boolean {
  return !isLive(state) && currentSession(state).record?.end_reason === compaction;
}

export interface LoadedArtifact {
  readonly id: string;
  readonly source: string;
  readonly sizeBytes: number;
}

/** Loaded artifacts are recorded in the session's record and in `context_metadata`. */
export function recordLoads(
  state: JsonObject,
  loaded: readonly LoadedArtifact[],
  load: { readonly trigger: string; readonly sessionId: string; readonly nowMs: number },
): JsonObject {
  const at = isoTime(load.nowMs);
  const metadata = objectOf(state.context_metadata);
  const ids = new Set(loaded.map(({ id }) => id));
  const others = listOf(metadata.artifacts_in_context).filter((one) => !ids.has(String(objectOf(one).artifact_id)));
  const entries = loaded.map(({ id, source, sizeBytes }) => ({
    artifact_id: id,
    loaded_at: at,
    load_trigger: load.trigger.replace(/:.*/, ''),
    source,
    size_bytes: sizeBytes,
    session_id: load.sessionId,
  }));
  const { record } = currentSession(state);
  const known = listOf(record?.artifacts_loaded);
  const artifacts_loaded = [...new Set([...known, ...ids])];
  const withLoads = record === null ? state : withRecord(state, { ...record, artifacts_loaded });
  return {
    ...withLoads,
    updated_at: at,
    context_metadata: {
      ...metadata,
      last_artifact_reload: at,
      reload_count: (Number(metadata.reload_count) || 0) + 1,
      artifacts_in_context: [...others, ...entries],
    },
  };
}

/** When the artifact was last loaded into this session, milliseconds since 1970; null if never. */
export function lastLoadMs(state: JsonObject, artifactId: string, sessionId: string): number | null {
  const entry = listOf(objectOf(state.context_metadata).artifacts_in_context)
    .map(objectOf)
    .findLast((one) => one.artifact_id === artifactId && (one.session_id ?? sessionId) === sessionId);
  const ms = Date.parse(nonEmptyText(entry?.loaded_at) ?? '');
  return Number.isNaN(ms) ? null : ms;
}

// JSON written by people, with the positions of problems, and accessors of its content.

export type ReadJson =
  | {
      readonly ok: true;
      readonly value: unknown;
      /** `line:column` of the start of the value at `path`, or of its nearest existing parent. */
      placeOf(path: JsonPath): string;
    }
  /** `trouble` is `line:column: problem`. */
  | { readonly ok: false; readonly trouble: string };

/** Parses, or names the position of the first fault. */
export function readJson(content: string): ReadJson {
  const text = content.replace(/^\ufeff/, '');
  const fault = findJsonFault(text);
  if (fault !== null) return { ok: false, trouble: `${placeAt(text, fault.offset)}: ${fault.message}` };
  return { ok: true, value: JSON.parse(text), placeOf: (path) => placeAt(text, offsetOf(text, path)) };
}

/** The object, or an empty one for any other value. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A field of the object itself, never an inherited one. */
export function fieldOf(value: unknown, name: string | number): unknown {
  if (Array.isArray(value)) return typeof name === 'number' ? value[name] : undefined;
  return isObject(value) && Object.hasOwn(value, name) ? value[String(name)] : undefined;
}

export function nonEmptyText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function placeAt(text: string, offset: number): string {
  const lines = text.slice(0, offset).split('\n');
  return `${lines.length}:${(lines.at(-1) ?? '').length + 1}`;
}
