/** Attempts on other hosts: slots, lost hosts and late cost reports. */

import { linesOf } from '../claude/conversation.ts';
import { finalUsage } from '../claude/final-usage.ts';
import { parseLine } from '../claude/messages.ts';
import { emptyStream, foldMessage } from '../claude/stream.ts';
import { adviceText } from '../core/advice.ts';
import { defined } from '../core/defined.ts';
import { type GroupEvent, type SlotLease, thisMachine } from '../core/event.ts';
import { noUsage, type PriceTable, type SessionId, type Usage, type Workspace } from '../core/group.ts';
import type { Decision, FleetView, SlotWish } from '../core/plan/decision.ts';
import { unsatisfiableRequirements } from '../core/plan/placement.ts';
import type { FleetStanding } from '../core/progress.ts';
import type { Attempt, LostAttempt, SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import type { Fleet, FleetOptions } from '../fleet/fleet.ts';
import type { RemoteAttempt } from '../fleet/remote-attempt.ts';
import { type GroupPaths, type SessionPaths, sessionPaths } from '../store/paths.ts';
import type { World } from '../system/world.ts';
import type { Worker } from '../worker/attempt/worker.ts';
import { earlierThan } from '../worker/attempt/worker-options.ts';
import { type Fact, isRefusedLogin } from '../worker/facts.ts';
import type { HostedCommand } from '../worker/host.ts';

export type OpenFleet = (told: Pick<FleetOptions, 'onChange' | 'onLost'>) => Fleet;

export interface RemoteAttemptsOptions {
  readonly openFleet?: OpenFleet | null;
  readonly paths: GroupPaths;
  readonly state: () => GroupState;
  readonly workers: ReadonlyMap<SessionId, { readonly worker: Worker }>;
  readonly enqueue: (fact: Fact) => void;
}

export class RemoteAttempts {
  /** As in SchedulingContext. */
  readonly sight: (() => FleetView | null) | undefined;
  readonly #world: World;
  readonly #options: RemoteAttemptsOptions;
  readonly #fleet: Fleet | null;
  /** Worktrees that are not logged yet, by attempt. */
  readonly #workspaces = new Map<string, Workspace>();
  /** Attempts that have or had a slot, by id. */
  readonly #placed = new Map<string, Attempt>();

  #checkedVersion = -1;
  readonly #reported = new Set<string>();

  constructor(world: World, options: RemoteAttemptsOptions) {
    this.#world = world;
    this.#options = options;
    const { openFleet, enqueue } = options;
    const onChange = (): void => enqueue({ kind: 'placed' });
    const onLost = (sessionId: SessionId, attemptId: string, host: string): void => {
      const knownUsd = options.workers.get(sessionId)?.worker.stream.costUsd ?? 0;
      enqueue({ kind: 'host-lost', sessionId, attemptId, host, knownUsd });
    };
    const fleet = openFleet ? openFleet({ onChange, onLost }) : null;
    this.#fleet = fleet;
    this.sight = openFleet === undefined ? undefined : () => fleet?.view ?? null;
  }

  /** Requests unfinished attempts and late reports from the hosts that ran sessions of this group. */
  begin(): void {
    const { state } = this.#options;
    const hosts = new Set<string>();
    for (const record of state().sessions.values()) {
      if (record.host !== undefined && record.host !== thisMachine) hosts.add(record.host);
      for (const lost of record.lost ?? []) this.#awaitLate(record, lost);
    }
    for (const host of hosts) this.#fleet?.hello(host);
  }

  /** Requests the slots that the logged decisions need, and releases unused ones. */
  want(decisions: readonly Decision[]): void {
    this.#fleet?.want(decisions.filter((decision): decision is SlotWish => decision.do === 'wish'));
  }

  get fleetStatus(): FleetStanding | undefined {
    return this.#options.state().group.config.where === 'local' ? undefined : this.#fleet?.standing;
  }

  /** `isRecalled`: an earlier runner started the attempt. */
  attempt(sessionId: SessionId, attempt: Attempt, place: SlotLease, isRecalled = false): RemoteAttempt {
    const fleet = this.#fleet;
    this.#placed.set(attempt.id, attempt);
    if (fleet === null) throw new Error(`Internal error: ${place.host} cannot be reached without a fleet`);
    const { paths, state } = this.#options;
    const { definition } = state().sessions.get(sessionId) as SessionRecord;
    const input = {
      sessionId,
      attemptId: attempt.id,
      paths: sessionPaths(paths, sessionId),
      place,
      number: attempt.number,
      offset: attempt.offset,
      definition,
      waits: state().group.config.onLost === 'wait',
      workspace: () => this.#workspaces.get(attempt.id) ?? state().sessions.get(sessionId)?.workspace,
    };
    return isRecalled ? fleet.recall(input) : fleet.attempt(input);
  }

  /** Excludes hosts that refused a login from placement. Call this before the facts are logged. */
  recordRefusedLogins(facts: readonly Fact[]): void {
    for (const fact of facts) {
      if (fact.kind !== 'ended' || !isRefusedLogin(fact.outcome)) continue;
      const place = this.#placed.get(fact.attemptId)?.place;
      if (place !== undefined) this.#fleet?.refuseLogin(place, fact.outcome.message);
    }
  }

  /** Requirements that no host satisfies, each reported once. Empty until the hosts are known. */
  newUnsatisfiable(): string[] {
    const { state } = this.#options;
    const view = this.#fleet?.view;
    if (view === undefined || this.#checkedVersion === state().definitionsVersion || view.describe({}).isUnknown)
      return [];
    this.#checkedVersion = state().definitionsVersion;
    const lacks = [...unsatisfiableRequirements(state(), view.describe)].filter(
      ([needs]) => !this.#reported.has(needs),
    );
    for (const [needs] of lacks) this.#reported.add(needs);
    return lacks.map(([, { message, advice }]) => `${message} ${adviceText(advice)}`);
  }

  noteWorkspace(attemptId: string, workspace: Workspace): void {
    this.#workspaces.set(attemptId, workspace);
  }

  /** Runs a command on the host of the session's attempt; undefined for this host. */
  runnerOf(sessionId: SessionId): ((command: string, timeoutMs: number) => HostedCommand) | undefined {
    const session = this.#options.state().sessions.get(sessionId)?.state;
    if (session?.status !== 'running' || session.attempt.place === undefined) return undefined;
    const { attempt } = session;
    const place = session.attempt.place;
    return (command, timeoutMs) => this.attempt(sessionId, attempt, place).run(command, timeoutMs);
  }

  /** Releases slots once the outcome of their attempts is logged. */
  tell(event: GroupEvent): void {
    const fleet = this.#fleet;
    if (fleet === null) return;
    switch (event.type) {
      case 'session_starting':
        if (event.attempt.place !== undefined) fleet.take(event.sessionId);
        return;
      case 'session_completed':
      case 'session_failed':
      case 'session_paused': {
        const { sessionId, attemptId } = event;
        const placed = this.#placed.get(attemptId);
        if (placed === undefined) return;
        fleet.over(placed);
        this.#placed.delete(attemptId);
        this.#workspaces.delete(attemptId);
        const record = this.#options.state().sessions.get(sessionId);
        const lost = record?.lost?.find(({ attempt }) => attempt.id === attemptId);
        if (record !== undefined && lost !== undefined) this.#awaitLate(record, lost);
        return;
      }
      case 'session_booked': {
        const place = this.#placed.get(event.attemptId)?.place;
        this.#placed.delete(event.attemptId);
        if (place !== undefined) fleet.booked(place);
        return;
      }
    }
  }

  #awaitLate(record: SessionRecord, { attempt }: LostAttempt): void {
    const { place, id: attemptId, offset } = attempt;
    if (place === undefined) return;
    this.#placed.set(attemptId, attempt);
    const { definition } = record;
    const { id: sessionId } = definition;
    const paths = sessionPaths(this.#options.paths, sessionId);
    const onEnd = (path: string): void => {
      const { config } = this.#options.state().group;
      const usage = lateUsage(this.#world, { record, attempt, paths, path, prices: config.prices ?? {} });
      this.#options.enqueue({ kind: 'booked', sessionId, attemptId, usage });
    };
    const onForgotten = (): void => {
      const lost = this.#options
        .state()
        .sessions.get(sessionId)
        ?.lost?.find((one) => one.attempt.id === attemptId);
      const { heldUsd, ...spent } = lost?.usage ?? noUsage;
      const usage = heldUsd === undefined ? spent : { ...spent, estimated: true as const };
      this.#options.enqueue({ kind: 'booked', sessionId, attemptId, usage });
    };
    this.#fleet?.awaitLate({ attemptId, place, paths, offset, onEnd, onForgotten });
  }

  /** Releases unused slots; running attempts continue. */
  async close(): Promise<void> {
    await this.#fleet?.close();
  }
}

export interface LateInput {
  readonly record: SessionRecord;
  readonly attempt: Attempt;
  readonly paths: SessionPaths;
  /** File with all its output. */
  readonly path: string;
  readonly prices: PriceTable;
}

/** By what it printed. */
export function lateUsage(world: World, { record, attempt, paths, path, prices }: LateInput): Usage {
  // The attempt's baseline is computed from what was recorded before it, not from today's totals.
  const earlier = earlierThan(attempt, world, paths, record);
  const stream = emptyStream(prices, earlier && { findBase: earlier.findBase });
  for (const line of linesOf(world, [path])) foldMessage(stream, parseLine(line));
  const { identified: hasBegun, reservedUsd } = attempt;
  const durationMs = record.lost?.find((one) => one.attempt.id === attempt.id)?.usage.durationMs ?? 0;
  const files = { kept: () => [], isBlank: () => false };
  const startedAtMs = Date.parse(attempt.startedAt);
  return finalUsage({ stream, hasBegun, startedAtMs, ...files, ...defined({ reservedUsd }) }, durationMs);
}
