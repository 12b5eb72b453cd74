/**
 * The current activity of sessions and their reasons for waiting: shown to reporters and written to progress.json,
 * never logged.
 */
import { defined } from '../core/defined.ts';
import type { SessionId } from '../core/group.ts';
import type { Verdicts, WaitReason } from '../core/plan/decision.ts';
import { readySessions } from '../core/plan/plan.ts';
import {
  type FleetStanding,
  type GroupProgress,
  groupProgress,
  type LiveSession,
  silenceSentence,
} from '../core/progress.ts';
import type { SessionRecord } from '../core/session-state.ts';
import type { GroupWriter } from '../store/group-writer.ts';
import type { World } from '../system/world.ts';
import type { Reporter } from '../view/reporter.ts';
import type { CommandSlots } from '../worker/attempt/command-slots.ts';
import type { ActiveWorker } from '../worker/attempt/worker.ts';
import { liveNow } from '../worker/attempt/worker.ts';

/** Shortest time between two updates of activity: a tenth of a second, longer for large groups. */
const showMs = 100;
/** No warning for a Redis that restarts within this time. */
const redisPatienceMs = 5_000;

export interface LiveBoardOptions {
  readonly writer: GroupWriter;
  readonly reporter: Reporter;
  readonly workers: ReadonlyMap<SessionId, ActiveWorker>;
  readonly slots: CommandSlots;
  readonly verdicts: Verdicts;
  readonly fleetStatus: () => FleetStanding | undefined;
}

export class LiveBoard {
  readonly live = new Map<SessionId, LiveSession>();
  readonly #world: World;
  readonly #options: LiveBoardOptions;
  readonly #changed = new Set<SessionId>();
  /** The reported reason codes of waiting sessions. */
  readonly #reasons = new Map<SessionId, string>();
  /** Hosts that no longer report, with the milliseconds since the last report. */
  #silent: ReadonlyMap<string, number> = new Map();
  #isRedisSilent = false;
  /** The last report as JSON. */
  #reportedStanding: string | undefined;
  #cancel: (() => void) | null = null;
  #isClosed = false;

  constructor(world: World, options: LiveBoardOptions) {
    this.#world = world;
    this.#options = options;
    options.slots.onChange = this.note;
  }

  readonly note = (sessionId: SessionId): void => {
    this.#changed.add(sessionId);
    this.show();
  };

  /** Shows the activity of running sessions, at most every `showMs`. */
  show(): void {
    if (this.#cancel || this.#isClosed) return;
    const delay = Math.min(2_000, showMs * Math.max(1, this.#options.writer.state.sessions.size / 200));
    this.#cancel = this.#world.clock.after(delay, () => {
      this.#cancel = null;
      this.showNow();
    });
  }

  showNow(): void {
    const { writer, reporter, workers, slots } = this.#options;
    const now = this.#world.clock.now();
    for (const sessionId of this.#changed) {
      const live = liveNow(workers.get(sessionId), slots.waitOf(sessionId), now);
      const silentMs = this.#silentMs(sessionId);
      if (live === null) {
        this.live.delete(sessionId);
        continue;
      }
      this.live.set(sessionId, { ...live, ...defined({ silentMs }) });
      reporter.progress(sessionId, writer.state, this.live);
    }
    this.#changed.clear();
    this.#writeProgress();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
    this.#reportVerdicts();
    this.#writeProgress();
  }

  /** The session has changed, so its reason for waiting is reported again. */
  forget(sessionId: SessionId): void {
    this.#reasons.delete(sessionId);
  }

  /** Without an event, only the wait reasons of ready sessions can have changed. */
  look(): void {
    this.#checkHosts();
    const { writer, verdicts } = this.#options;
    const { sessions } = writer.state;
    const isOther = (id: SessionId) => verdicts(sessions.get(id) as SessionRecord)?.reason !== this.#reasons.get(id);
    if (readySessions(writer.state).some(isOther)) this.show();
  }

  #checkHosts(): void {
    const now = this.#options.fleetStatus();
    const standing = now && JSON.stringify(now);
    if (standing === this.#reportedStanding) return;
    this.#reportedStanding = standing;
    this.#checkRedis(now);
    this.#checkSilentHosts(now);
    this.show();
  }

  #checkRedis({ redisSilentMs = 0 }: Partial<FleetStanding> = {}): void {
    const { reporter, writer } = this.#options;
    const isSilent = redisSilentMs >= redisPatienceMs;
    if (isSilent === this.#isRedisSilent || (this.#isRedisSilent && redisSilentMs > 0)) return;
    this.#isRedisSilent = isSilent;
    const message = isSilent
      ? `Redis has not answered for ${Math.round(redisSilentMs / 1_000)} s. Hosts end sessions whose lease expires.`
      : 'Redis is available again.';
    reporter.warning?.(message, writer.state);
  }

  #checkSilentHosts(fleetStatus: FleetStanding | undefined): void {
    const { reporter, writer } = this.#options;
    const before = this.#silent;
    this.#silent = new Map(Object.entries(fleetStatus?.silent ?? {}));
    const isOther = (host: string) => this.#silent.has(host) || before.has(host);
    const hosts = new Set<string>();
    for (const id of writer.state.running) {
      const host = this.#hostOf(id);
      if (host === undefined || !isOther(host)) continue;
      hosts.add(host);
      this.#changed.add(id);
    }
    for (const host of hosts) {
      const silentMs = this.#silent.get(host);
      if (silentMs !== undefined && !before.has(host)) {
        const isAwaited = writer.state.group.config.onLost === 'wait';
        const elsewhere = 'When its lease expires, its sessions continue on other hosts.';
        const then = isAwaited ? 'Its sessions wait until it is back.' : elsewhere;
        reporter.warning?.(`${silenceSentence(host, silentMs)} ${then}`, writer.state);
      } else if (silentMs === undefined) reporter.warning?.(`Host ${host} is connected again.`, writer.state);
    }
  }

  #hostOf(id: SessionId): string | undefined {
    const state = this.#options.writer.state.sessions.get(id)?.state;
    return state?.status === 'running' ? state.attempt.place?.host : undefined;
  }

  #silentMs(id: SessionId): number | undefined {
    const host = this.#hostOf(id);
    return host === undefined ? undefined : this.#silent.get(host);
  }

  /** Building it is expensive in a large group, so it is built only when it is written. */
  #writeProgress(): void {
    this.#options.writer.progress(() => this.#progress());
  }

  #progress(): GroupProgress {
    const { state } = this.#options.writer;
    const found = this.#reportVerdicts();
    const verdicts = ({ definition }: SessionRecord): WaitReason | null => found.get(definition.id) ?? null;
    const fleet = this.#options.fleetStatus();
    const progress = groupProgress(state, this.live, this.#world.clock.now(), verdicts);
    return fleet === undefined ? progress : { ...progress, fleet };
  }

  /** Reports changed verdicts; returns all of them. */
  #reportVerdicts(): ReadonlyMap<SessionId, WaitReason> {
    const { reporter, verdicts, writer } = this.#options;
    const found = new Map<SessionId, WaitReason>();
    const others: SessionId[] = [];
    for (const [id, record] of writer.state.sessions) {
      const why = verdicts(record);
      if (why !== null) found.set(id, why);
      if (why === null) this.#reasons.delete(id);
      else if (this.#reasons.get(id) !== why.reason) {
        others.push(id);
        this.#reasons.set(id, why.reason);
      }
    }
    if (others.length > 0) reporter.resting?.(others, writer.state, verdicts);
    return found;
  }
}
