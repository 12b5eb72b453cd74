/**
 * The hosts of a fleet for one run of one group: slot requests, granted slots, and the attempts there. The runner
 * decides, and is notified of every change.
 */
import { defined } from '../core/defined.ts';
import type { SlotLease } from '../core/event.ts';
import { fail } from '../core/failure.ts';
import type { SessionId } from '../core/group.ts';
import type { FleetView, Needs, SlotWish } from '../core/plan/decision.ts';
import type { FleetStanding } from '../core/progress.ts';
import type { Attempt } from '../core/session-state.ts';
import type { Git } from '../git/git.ts';
import type { World } from '../system/world.ts';
import type { FleetLink } from './engine-link.ts';
import { describeHosts, fittingHosts, KnownHosts, standingOf, withoutLogin } from './known-hosts.ts';
import { type Intake, type LateOptions, lateIntake, Mirror } from './mirror.ts';
import { placesHere, type RemoteSubject, type Sender, WorkCode } from './order.ts';
import type { SlotLeases } from './redis.ts';
import { heartbeatMs, type RegisteredHost, takesNew } from './registry.ts';
import { askAgainMs, RemoteAttempt } from './remote-attempt.ts';
import type { SlotCommand, ToGroup } from './wire.ts';

const tickMs = 1_000;
interface Watched {
  readonly attempt: RemoteAttempt;
  readonly clock: LossClock;
}

export interface FleetOptions {
  readonly groupId: string;
  readonly leaseMs: number;
  readonly git: Git;
  readonly packageRoot: string;
  /** Sessions that may work here at once while others could go elsewhere. */
  readonly localSlots: number;
  /** Something has changed. Contract: only enqueues. */
  readonly onChange: () => void;
  /** The attempt's host is lost; its worker learns it by `onExit`, after this. */
  readonly onLost: (sessionId: SessionId, attemptId: string, host: string) => void;
}

export type RemoteInput = Pick<
  RemoteSubject,
  'sessionId' | 'attemptId' | 'paths' | 'place' | 'number' | 'offset' | 'definition' | 'waits' | 'workspace'
>;

export class Fleet {
  readonly #world: World;
  readonly #link: FleetLink;
  readonly #asker: string;
  readonly #options: FleetOptions;
  readonly #code: WorkCode;
  readonly #placement: Placement;
  readonly #attempts = new Map<string, Watched>();
  readonly #late = new Map<string, LateOptions & { readonly intake: Intake }>();
  readonly #spokenTo = new Set<string>();
  readonly #timers = new Set<() => void>();
  readonly #hosts: KnownHosts;
  /** Counted, so that neither a clock jump nor a sleeping host makes a lease seem over. */
  #nowMs = 0;
  readonly #listMs: number;
  #isLooking = false;
  #isClosed = false;

  constructor(world: World, link: FleetLink, options: FleetOptions) {
    this.#world = world;
    this.#link = link;
    this.#asker = world.random.uuid();
    this.#options = options;
    // With a very short lease, hosts count as silent after five seconds, so the list must be read more often.
    this.#listMs = Math.max(1, Math.floor(heartbeatMs(options.leaseMs) / tickMs)) * tickMs;
    this.#hosts = new KnownHosts(link, () => this.#nowMs);
    this.#code = new WorkCode(options.git, (host) => this.#hosts.codeUrlOf(host));
    this.#placement = new Placement(link.slots, {
      newId: () => world.random.uuid(),
      nowMs: () => this.#nowMs,
      hosts: () => this.#hosts.all,
      onGranted: options.onChange,
    });
    link.listen((message) => this.#hear(message));
    // A host may not know yet that one of its slots is free.
    link.onConnect(() => {
      void this.#list();
      for (const host of this.#spokenTo) this.hello(host);
    });
    void this.#list();
    this.#everyTick();
  }

  get view(): FleetView {
    const { granted } = this.#placement;
    const isLong = (id: SessionId): boolean => this.#placement.isLong(id);
    const { all } = this.#hosts;
    const told = {
      describe: (needs: Needs) => describeHosts(all, needs),
      withoutLogin: (needs: Needs) => withoutLogin(all, needs),
    };
    return { granted, staleSlotRequests: { has: isLong }, localSlots: this.#options.localSlots, ...told };
  }

  get standing(): FleetStanding | undefined {
    const { all } = this.#hosts;
    return all === null ? undefined : { ...standingOf(all), ...defined({ redisSilentMs: this.#hosts.redisSilentMs }) };
  }

  /** The present slot requests. Other slots are freed. */
  want(wishes: readonly SlotWish[]): void {
    this.#placement.want(wishes);
  }

  /** The session's attempt has been decided for its slot, so no other session gets it. */
  take(sessionId: SessionId): void {
    this.#placement.granted.delete(sessionId);
  }

  /** The attempt in its slot; the same object for all callers. */
  attempt(input: RemoteInput, isRecalled = false): RemoteAttempt {
    const { token } = input.place;
    const known = this.#attempts.get(token)?.attempt;
    if (known !== undefined) return known;
    const { git, packageRoot, groupId } = this.#options;
    const { blobs } = this.#link;
    const subject: RemoteSubject = {
      ...{ ...input, git, packageRoot, groupId, blobs, code: this.#code },
      notReached: ({ message, next }) => {
        this.#hosts.avoid(input.place.host, message);
        return fail('other-host', message, next);
      },
    };
    const places = () => {
      const workspace = input.workspace();
      return workspace === undefined
        ? undefined
        : placesHere(this.#world.files, subject, workspace.path, workspace.folder);
    };
    const mirror = new Mirror(git, blobs, {
      ...input,
      places,
      fetch: (workspace, made) => this.#code.fetch(input.sessionId, workspace, input.place.host, made),
    });
    const attempt = new RemoteAttempt(subject, this.#senderFor(input.place), mirror, isRecalled);
    this.#attempts.set(token, { attempt, clock: new LossClock() });
    return attempt;
  }

  /** An attempt that an earlier runner started. */
  recall(input: RemoteInput): RemoteAttempt {
    return this.attempt(input, true);
  }

  over({ place }: Attempt): void {
    if (place === undefined) return;
    const watched = this.#attempts.get(place.token);
    this.#attempts.delete(place.token);
    // Late reports of a lost attempt go to its LateAttempt.
    if (watched === undefined || watched.attempt.isLost) return;
    this.#release(place);
  }

  /** Collects reports of a lost attempt when its host returns, until `booked`. */
  awaitLate(options: LateOptions): void {
    const { place } = options;
    if (this.#late.has(place.token)) return;
    const { say, later, hello } = this.#senderFor(place);
    const have = (printed: number, checkpoint: number) => say({ do: 'have', printed, checkpoint });
    const askAgain = () => later(askAgainMs, hello);
    const intake = lateIntake(this.#options.git, options, { have, askAgain });
    this.#late.set(place.token, { ...options, intake });
    this.hello(place.host);
  }

  booked({ token }: SlotLease): void {
    const late = this.#late.get(token);
    if (late === undefined) return;
    this.#late.delete(token);
    this.#release(late.place);
  }

  /** The host's login was refused, so it gets no more sessions. */
  refuseLogin({ host }: SlotLease, trouble: string): void {
    void this.#hosts.refuse(host, trouble);
  }

  hello(host: string): void {
    // A restarted engine may have lost the hello.
    this.#spokenTo.add(host);
    this.#link.send(host, { kind: 'hello', groupId: this.#options.groupId, asker: this.#asker });
  }

  #senderFor(place: SlotLease): Sender {
    return {
      say: (command) => this.#say(place, command),
      hello: () => this.hello(place.host),
      later: (ms, action) => this.#later(ms, action),
    };
  }

  #say(place: SlotLease, command: SlotCommand): void {
    const { token, host } = place;
    this.#spokenTo.add(host);
    if (command.do === 'order') this.#placement.ordered(place);
    this.#link.send(host, { kind: 'slot', token, groupId: this.#options.groupId, command });
  }

  #release(place: SlotLease): void {
    if (this.#placement.release(place)) this.#say(place, { do: 'release' });
  }

  #hear(message: ToGroup): void {
    if (message.kind === 'here') {
      this.#onHere(message);
      return;
    }
    const { token, news } = message;
    const watched = this.#attempts.get(token);
    // Reports of an attempt that is over are dropped.
    if (watched === undefined || watched.attempt.isLost) this.#late.get(token)?.intake.hear(news);
    else watched.attempt.hear(news);
  }

  #onHere({ host, asker, attempts }: Extract<ToGroup, { kind: 'here' }>): void {
    // The answer to an earlier runner may lack what it started afterwards.
    if (asker !== this.#asker) return;
    const there = new Map(attempts.map((one) => [one.token, one]));
    for (const [token, { attempt }] of this.#attempts) {
      if (attempt.subject.place.host === host) attempt.greeted(there.get(token) ?? null);
    }
    for (const token of there.keys()) {
      const late = this.#late.get(token);
      late?.intake.open();
      // Its end is logged, and the runner that logged it died before it could release the slot.
      if (late === undefined && !this.#attempts.has(token)) this.#release({ host, token });
    }
  }

  async #list(): Promise<void> {
    await this.#hosts.list();
    for (const late of this.#late.values()) if (this.#hosts.isForgotten(late.place.host)) late.onForgotten();
    if (!this.#isClosed) void this.#placement.place();
  }

  #later(ms: number, action: () => void): void {
    const cancel = this.#world.clock.after(ms, () => {
      this.#timers.delete(cancel);
      if (!this.#isClosed) action();
    });
    this.#timers.add(cancel);
  }

  #everyTick(): void {
    this.#later(tickMs, () => {
      this.#nowMs += tickMs;
      // Its session may now go to other hosts, too.
      if (this.#placement.tick()) this.#options.onChange();
      if (this.#nowMs % this.#listMs === 0 || this.#hosts.all === null) void this.#list();
      void this.#look();
      this.#everyTick();
    });
  }

  async #look(): Promise<void> {
    const watched = [...this.#attempts.values()].filter(({ attempt }) => attempt.isUnderWay);
    if (this.#isLooking || watched.length === 0) return;
    this.#isLooking = true;
    const seen = await this.#link.slots.look(watched.map(({ attempt }) => attempt.subject.place));
    this.#isLooking = false;
    if (this.#isClosed) return;
    for (const [index, { attempt, clock }] of watched.entries()) {
      if (!attempt.isUnderWay) continue;
      const { sessionId, attemptId, place, waits } = attempt.subject;
      if (!seen.ok) clock.notSeen();
      else if (clock.seen(this.#nowMs, seen.value[index] ?? null, this.#leaseMsOf(place)) && !waits) {
        this.#options.onLost(sessionId, attemptId, place.host);
        attempt.lose();
      }
    }
  }

  /** A host that joined before the fleet's lease became shorter uses the longer one. */
  #leaseMsOf({ host }: SlotLease): number {
    return Math.max(this.#options.leaseMs, this.#hosts.leaseMsOf(host));
  }

  /** Unused granted slots are returned; running attempts continue. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    await this.#placement.close();
    this.#isClosed = true;
    for (const cancel of this.#timers) cancel();
    await this.#link.close();
  }
}

// When a host counts as lost, by what is to be seen of the lease of a slot. By then its guard has ended what
// ran there: 13 seconds after the last renewal that was answered, at the latest.

/** A guard ends everything within 13 seconds; the rest allows for a late check and a forgotten renewal. */
export const fenceMs = 20_000;

export class LossClock {
  /** The last observed end of the lease. A restarted Redis may have forgotten its last renewal. */
  #endMs = 0;
  /** It may have been renewed since. */
  #isUnsure = true;
  /** When the lease was first missing. */
  #missingAtMs: number | null = null;

  notSeen(): void {
    if (this.#missingAtMs === null) this.#isUnsure = true;
  }

  /** True from the moment at which nothing can run there any more. `nowMs` never jumps forward. */
  seen(nowMs: number, leftMs: number | null, leaseMs: number): boolean {
    if (leftMs !== null) {
      this.#endMs = Math.max(this.#endMs, nowMs + leftMs);
      this.#isUnsure = false;
      this.#missingAtMs = null;
      return false;
    }
    this.#missingAtMs ??= nowMs;
    const renewedMs = this.#missingAtMs + (this.#isUnsure ? leaseMs : 0);
    return nowMs >= Math.max(renewedMs, this.#endMs) + fenceMs;
  }
}

// Slots of hosts for the sessions that request one: taken where one is free, kept until the host has its order,
// and returned when they are no longer wanted.

/** After this a session no longer waits for the host with its files, nor other sessions for it. */
const longWishMs = 5_000;

interface Wanted {
  readonly wish: SlotWish;
  readonly sinceMs: number;
  wasLong?: true;
}

interface Held {
  readonly lease: SlotLease;
  /** The host does not know of it yet, so the lease is renewed here. */
  isReserved: boolean;
}

export interface PlacementOptions {
  readonly newId: () => string;
  readonly nowMs: () => number;
  /** The last list of hosts; null = unknown yet. */
  readonly hosts: () => readonly RegisteredHost[] | null;
  readonly onGranted: () => void;
}

export class Placement {
  readonly granted = new Map<SessionId, SlotLease>();
  readonly #leases: SlotLeases;
  readonly #options: PlacementOptions;
  readonly #wanted = new Map<SessionId, Wanted>();
  readonly #held = new Map<string, Held>();
  readonly #freeing = new Set<Promise<unknown>>();
  #isPlacing = false;
  #isAsked = false;

  constructor(leases: SlotLeases, options: PlacementOptions) {
    this.#leases = leases;
    this.#options = options;
  }

  isLong(sessionId: SessionId): boolean {
    const wanted = this.#wanted.get(sessionId);
    return wanted !== undefined && this.#isLong(wanted);
  }

  #isLong({ sinceMs }: Wanted): boolean {
    return this.#options.nowMs() - sinceMs >= longWishMs;
  }

  /** The present slot requests, the most urgent first. */
  want(wishes: readonly SlotWish[]): void {
    for (const lease of this.granted.values()) this.release(lease);
    this.granted.clear();
    const before = new Map(this.#wanted);
    this.#wanted.clear();
    for (const wish of wishes) {
      const known = before.get(wish.sessionId);
      const isSame = JSON.stringify(known?.wish) === JSON.stringify(wish);
      this.#wanted.set(wish.sessionId, known && isSame ? known : { wish, sinceMs: this.#options.nowMs() });
    }
    void this.place();
  }

  /** Its host has received the order, and renews the lease itself. */
  ordered({ token }: SlotLease): void {
    const held = this.#held.get(token);
    if (held !== undefined) held.isReserved = false;
  }

  /** True when its host knows of it and must be told. */
  release({ token }: SlotLease): boolean {
    const held = this.#held.get(token);
    this.#held.delete(token);
    if (held?.isReserved !== true) return true;
    const freeing = this.#leases.free(held.lease).finally(() => this.#freeing.delete(freeing));
    this.#freeing.add(freeing);
    return false;
  }

  /** Call every second. True when a session's wait has just become long. */
  tick(): boolean {
    const reserved = [...this.#held.values()].filter(({ isReserved }) => isReserved);
    if (reserved.length > 0) void this.#leases.renew(reserved.map(({ lease }) => lease));
    const long = [...this.#wanted.values()].filter((wanted) => wanted.wasLong !== true && this.#isLong(wanted));
    for (const wanted of long) wanted.wasLong = true;
    void this.place();
    return long.length > 0;
  }

  /** Looks for free slots now. */
  async place(): Promise<void> {
    this.#isAsked = true;
    if (this.#isPlacing) return;
    this.#isPlacing = true;
    while (this.#isAsked) {
      this.#isAsked = false;
      await this.#placeAll();
    }
    this.#isPlacing = false;
  }

  async #placeAll(): Promise<void> {
    const hosts = this.#options.hosts() ?? [];
    const full = new Set<RegisteredHost>();
    for (const [sessionId, wanted] of [...this.#wanted]) {
      for (const host of this.#candidates(hosts, wanted)) {
        if (full.has(host)) continue;
        const lease = { host: host.name, token: `${host.name}:${this.#options.newId()}` };
        const taken = await this.#leases.take(lease, host.slots);
        // If it was taken nevertheless, it is free when its lease ends.
        if (!taken.ok) return;
        if (taken.value) {
          this.#grant(sessionId, wanted, lease);
          break;
        }
        full.add(host);
      }
    }
  }

  #grant(sessionId: SessionId, wanted: Wanted, lease: SlotLease): void {
    this.#held.set(lease.token, { lease, isReserved: true });
    if (this.#wanted.get(sessionId) !== wanted) {
      this.release(lease);
      return;
    }
    this.#wanted.delete(sessionId);
    this.granted.set(sessionId, lease);
    this.#options.onGranted();
  }

  /** The host with the most free slots first. A host with the session's files is asked alone for a while. */
  #candidates(hosts: readonly RegisteredHost[], wanted: Wanted): readonly RegisteredHost[] {
    const { needs, prefer } = wanted.wish;
    const open = fittingHosts(hosts, needs).filter(takesNew);
    const preferred = this.#isLong(wanted) ? [] : open.filter(({ name }) => name === prefer);
    const held = Map.groupBy(this.#held.values(), ({ lease }) => lease.host);
    // A host's own figures are some seconds old.
    const free = ({ name, slots, used }: RegisteredHost) => slots - Math.max(used, held.get(name)?.length ?? 0);
    return preferred.length > 0 ? preferred : open.toSorted((a, b) => free(b) - free(a));
  }

  /** Resolves within seconds, with every slot returned that was not ordered. */
  async close(): Promise<void> {
    this.want([]);
    await Promise.all(this.#freeing);
  }
}
