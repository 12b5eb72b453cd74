/**
 * The agent of a machine: takes wishes for its free slots, does what signed orders say, tells of it, and renews its
 * leases. It may be killed at any moment: what it needs to go on lies on the disk, and the guard watches meanwhile.
 */

import { join } from 'node:path';
import { defined } from '../../core/defined.ts';
import { errorText, fail, publicFailure } from '../../core/failure.ts';
import type { GroupId } from '../../core/group.ts';
import { isGroupId, isSessionId } from '../../core/id.ts';
import { parseJson } from '../../store/json.ts';
import { groupPaths, groupsFolder } from '../../store/paths.ts';
import type { Files, World } from '../../system/world.ts';
import type { Entry, Lease, SlotLeases } from '../engine.ts';
import { hostLabel, toGroupStream, toHostStream } from '../engine.ts';
import type { FleetPaths } from '../fleet-files.ts';
import { isDrained, isLoginRefused, registerHost } from '../registry.ts';
import { Verifier } from '../seal.ts';
import {
  type HostAbilities,
  type HostChecks,
  type HostEntry,
  packed,
  type SlotCommand,
  type ToGroup,
  type ToHost,
  toHost,
  wireVersion,
} from '../wire.ts';
import { OrderedAttempt } from './attempt.ts';
import type { AgentContext } from './context.ts';
import { Fence } from './guard.ts';
import { readLeases, uptimeMs, writeLeases } from './lease-file.ts';
import { Slot, type SlotRecord } from './slot.ts';

const takeMs = 1_000;
const renewals = 6;
const offeredMs = 30_000;
const readAgainMs = 200;
const checkMs = 10 * 60_000;
const sweepMs = 24 * 60 * 60_000;

type SlotMessage = Extract<ToHost, { kind: 'slot' }>;

interface Held {
  readonly slot: Slot;
  attempt: OrderedAttempt | null;
}

/** `refusal`: why nothing can be started here now. */
export interface AgentAbilities {
  readonly abilities: HostAbilities;
  readonly refusal?: string;
}

export interface AgentOptions {
  readonly abilities: () => Promise<AgentAbilities>;
  /** What `doctor --hosts` is told besides; it takes a few seconds. */
  readonly checks: () => Promise<HostChecks>;
  readonly startGuard: () => void;
}

export class Agent {
  readonly #world: World;
  readonly #context: AgentContext;
  readonly #options: AgentOptions;
  readonly #leases: SlotLeases;
  readonly #verifier: Verifier;
  readonly #fence: Fence;
  readonly #labels: readonly string[];
  #isDrained = false;
  #isLoginRefused = false;
  readonly #held = new Map<string, Held>();
  /** Slots that are free again, and the engine has not answered that it knows. */
  readonly #given = new Set<Lease>();
  readonly #timers = new Set<() => void>();
  #able: AgentAbilities | null = null;
  #checks: HostChecks | null = null;
  #startedAtMs = 0;
  #taking: Promise<void> | null = null;
  #isClosed = false;

  constructor(context: Omit<AgentContext, 'noteLeases'>, options: AgentOptions) {
    this.#world = context.world;
    this.#context = { ...context, noteLeases: () => this.#noteLeases() };
    this.#options = options;
    const { config, engine } = context;
    this.#leases = engine.leases(config.leaseMs);
    this.#verifier = new Verifier(config.runnerKeys);
    this.#fence = new Fence(context.world, context.paths, context.tell);
    this.#labels = [...config.labels, hostLabel(config.name)];
  }

  async run(): Promise<void> {
    const { engine } = this.#context;
    this.#watchGuard();
    this.#recall();
    engine.onConnect(() => {
      for (const { attempt } of this.#held.values()) attempt?.sendAgain();
    });
    await engine.onWish(() => void this.#take());
    this.#sweep();
    await this.#renew();
    for (const { slot, attempt } of this.#held.values()) {
      attempt?.resume().catch((error) => this.#tellError(slot, error));
    }
    this.#every(takeMs, () => this.#take());
    const renewMs = Math.floor(this.#context.config.leaseMs / renewals);
    this.#every(renewMs, () => this.#renew());
    this.#every(renewMs, () => this.#lookAtClaude(), 0);
    this.#every(checkMs, () => this.#checkSelf(), 0);
    this.#every(sweepMs, async () => this.#sweep());
    await this.#listen();
  }

  #sweep(): void {
    const inUse = [...this.#held.values()].map(({ slot }) => slot.paths.folder);
    sweep(this.#world, this.#context.paths, new Set(inUse));
  }

  /** Lets go of everything: what runs works on, and is ended by the guard unless an agent comes back. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const cancel of this.#timers) cancel();
    for (const { attempt } of this.#held.values()) attempt?.close();
    // A wish that is just being taken is given back, or it would be lost until its lease is over.
    await this.#taking;
    this.#context.engine.close();
  }

  #every(ms: number, action: () => Promise<void>, firstMs = ms): void {
    const cancel = this.#world.clock.after(firstMs, () => {
      this.#timers.delete(cancel);
      action()
        .catch((error) => this.#context.tell(`The agent had a problem: ${errorText(error)}`))
        .finally(() => {
          if (!this.#isClosed) this.#every(ms, action);
        });
    });
    this.#timers.add(cancel);
  }

  #tellError({ record }: Slot, error: unknown): void {
    this.#context.tell(`Session ${record.sessionId} could not be gone on with: ${errorText(error)}`);
  }

  #watchGuard(): void {
    if (!this.#context.isGuarded()) this.#options.startGuard();
    this.#every(takeMs, async () => {
      if (this.#context.isGuarded()) return;
      this.#options.startGuard();
      // Until it looks, somebody has to.
      this.#fence.look();
    });
  }

  #recall(): void {
    const known = new Map(readLeases(this.#world, this.#context.paths).map((lease) => [lease.token, lease.renewedAt]));
    // Of a lease of which nothing is known here nothing runs either, or the guard has it.
    for (const slot of Slot.recall(this.#world, this.#context.paths, (token) => known.get(token) ?? 0)) {
      const attempt = slot.record.order === undefined ? null : new OrderedAttempt(this.#context, slot);
      this.#held.set(slot.record.token, { slot, attempt });
    }
  }

  #noteLeases(): void {
    const { leaseMs } = this.#context.config;
    const leases = [...this.#held.values()].flatMap(({ slot }) => {
      const { record, name: folder, renewedAt } = slot;
      if (record.order === undefined || record.isOver === true || record.order.waits === true) return [];
      const { token, groupId, sessionId, order } = record;
      return [{ attemptId: order.attemptId, token, groupId, sessionId, folder, leaseMs, renewedAt }];
    });
    writeLeases(this.#world, this.#context.paths, leases);
  }

  async #renew(): Promise<void> {
    const held = [...this.#held.values()]
      .filter(({ slot }) => !slot.isLost)
      .map((one) => ({ ...one, lease: one.slot.record }));
    const leases = held.map(({ lease }) => lease);
    const sentAt = uptimeMs(this.#world.files);
    const renewed = await this.#leases.renew(leases);
    if (this.#isClosed) return;
    if (renewed.ok) {
      for (const { slot, lease } of held) slot.renewedAt = renewed.value.has(lease) ? -1 : sentAt;
      this.#noteLeases();
      for (const { slot, attempt } of held) {
        if (!slot.isLost || !this.#held.has(slot.record.token)) continue;
        this.#context.tell(`The lease of session ${slot.record.sessionId} is over.`);
        if (attempt === null) this.#free(slot).catch((error) => this.#tellError(slot, error));
      }
    }
    await this.#register();
  }

  /** It may be replaced at any time; leases are renewed while a new one is tried. */
  async #lookAtClaude(): Promise<void> {
    const before = this.#able;
    const able = await this.#options.abilities();
    if (this.#isClosed) return;
    this.#able = able;
    if (JSON.stringify(able) === JSON.stringify(before)) return;
    if (able.refusal !== undefined) this.#context.tell(`This machine takes nothing: ${able.refusal}`);
    await this.#register();
  }

  async #checkSelf(): Promise<void> {
    this.#checks = await this.#options.checks();
    if (!this.#isClosed) await this.#register();
  }

  async #register(): Promise<void> {
    const { engine, config } = this.#context;
    if (this.#able === null) return;
    const { abilities, refusal } = this.#able;
    const now = await engine.nowMs();
    if (!now.ok || this.#isClosed) return;
    this.#startedAtMs ||= now.value;
    await registerHost(engine, {
      name: config.name,
      labels: config.labels,
      slots: config.slots,
      used: this.#used,
      abilities,
      leaseMs: config.leaseMs,
      since: this.#startedAtMs,
      seenAt: now.value,
      isDrained: this.#isDrained,
      isGuarded: this.#context.isGuarded(),
      ...burdenOf(this.#world.files, this.#context.paths),
      home: this.#context.home,
      ...defined({ refusal, login: config.login }),
      ...(this.#checks === null ? {} : { checks: this.#checks }),
    });
  }

  /** What is only kept takes no slot. */
  get #used(): number {
    return [...this.#held.values()].filter(({ attempt }) => attempt?.isKept !== true).length;
  }

  #take(): Promise<void> {
    this.#taking ??= this.#takeAll()
      .catch((error) => this.#context.tell(`No wish could be taken: ${errorText(error)}`))
      .finally(() => {
        this.#taking = null;
      });
    return this.#taking;
  }

  async #takeAll(): Promise<void> {
    this.#giveBackUnordered();
    await this.#completeGiven();
    await this.#askWhatIsSaid();
    while (!this.#isClosed && this.#canTake() && (await this.#takeOne()));
  }

  /** Whether it is drained, and its login refused. Without an answer it is as it was, but for a login. */
  async #askWhatIsSaid(): Promise<void> {
    const { engine, config } = this.#context;
    const drained = await isDrained(engine, config.name);
    if (drained.ok) this.#isDrained = drained.value;
    this.#isLoginRefused = await isLoginRefused(engine, config.name, this.#able?.abilities);
  }

  #canTake(): boolean {
    const { isGuarded, config, paths } = this.#context;
    const isAble = this.#able !== null && this.#able.refusal === undefined && !isFull(this.#world.files, paths);
    return isAble && !this.#isDrained && !this.#isLoginRefused && isGuarded() && this.#used < config.slots;
  }

  async #takeOne(): Promise<boolean> {
    const { config, engine } = this.#context;
    const token = `${config.name}:${this.#used + 1}:${this.#world.random.uuid()}`;
    const sentAt = uptimeMs(this.#world.files);
    const taken = await this.#leases.take(this.#labels, token);
    if (!taken.ok || taken.value === null) return false;
    if (this.#isClosed) {
      await this.#leases.complete(taken.value);
      return false;
    }
    const { labelSet, job, wish } = taken.value;
    const { groupId, sessionId } = wish;
    const takenAt = this.#world.clock.now();
    const record: SlotRecord = { token, labelSet, job, groupId, sessionId, takenAt, lastN: 0 };
    const abilities = this.#able?.abilities;
    if (wish.wire !== wireVersion || abilities === undefined || !Slot.isPossible(record)) {
      await this.#leases.complete(record);
      return true;
    }
    const slot = await this.#noteSlot(record, sentAt);
    this.#held.set(token, { slot, attempt: null });
    const offer: ToGroup = { kind: 'offer', host: config.name, token, job, sessionId, abilities };
    const offered = await engine.send(toGroupStream(groupId), [packed(offer)]);
    // It may have come all the same: then the order finds no slot, and is answered.
    if (!offered.ok) await this.#free(slot);
    return offered.ok;
  }

  /** When it cannot be written down, nobody has to wait until the lease is over. */
  async #noteSlot(record: SlotRecord, sentAt: number): Promise<Slot> {
    try {
      return Slot.take(this.#world, this.#context.paths, record, sentAt);
    } catch (error) {
      await this.#leases.complete(record);
      throw error;
    }
  }

  #giveBackUnordered(): void {
    const now = this.#world.clock.now();
    for (const { slot, attempt } of this.#held.values()) {
      const isLate = attempt === null && Math.abs(now - slot.record.takenAt) >= offeredMs;
      if (isLate) this.#free(slot).catch((error) => this.#tellError(slot, error));
    }
  }

  async #free(slot: Slot): Promise<void> {
    this.#forget(slot);
    this.#given.add(slot.record);
    await this.#completeGiven();
    void this.#take();
  }

  /** What is not heard is said again: a wish that nobody holds any more would stay where it is. */
  async #completeGiven(): Promise<void> {
    for (const lease of this.#given) if ((await this.#leases.complete(lease)).ok) this.#given.delete(lease);
  }

  #forget(slot: Slot): void {
    this.#held.get(slot.record.token)?.attempt?.close();
    this.#held.delete(slot.record.token);
    this.#noteLeases();
    slot.remove();
  }

  async #listen(): Promise<void> {
    const { engine, config } = this.#context;
    const stream = toHostStream(config.name);
    let followed: string[] = [];
    for (let after = '0'; !this.#isClosed; ) {
      const read = await engine.read(stream, after);
      if (this.#isClosed) return;
      if (!read.ok) {
        await this.#pause();
        continue;
      }
      for (const entry of read.value) {
        try {
          await this.#hear(entry);
        } catch (error) {
          this.#context.tell(`A message could not be followed: ${errorText(error)}`);
        }
        after = entry.id;
      }
      followed.push(...read.value.map(({ id }) => id));
      // What is not answered may still be there.
      if (followed.length > 0 && (await engine.drop(stream, followed)).ok) followed = [];
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => this.#timers.add(this.#world.clock.after(readAgainMs, resolve)));
  }

  async #hear({ bytes }: Entry): Promise<void> {
    const heard = believed(bytes, toHostStream(this.#context.config.name), this.#verifier);
    if (typeof heard === 'string') this.#context.tell(`A message was refused: ${heard}.`);
    else if (heard.kind === 'hello') await this.#greet(heard);
    else this.#obey(heard);
  }

  async #greet({ groupId, asker }: Extract<ToHost, { kind: 'hello' }>): Promise<void> {
    const { config } = this.#context;
    const own = [...this.#held.values()].filter(({ slot }) => slot.record.groupId === groupId);
    const attempts = own.flatMap(({ slot: { record } }) => {
      if (record.order === undefined) return [];
      const { token, sessionId, order, lastN, process } = record;
      const acknowledged = this.#held.get(token)?.attempt?.acknowledged ?? 0;
      const isOver = record.isOver === true;
      const known = defined({ process });
      return [{ token, attemptId: order.attemptId, sessionId, isOver, lastN, acknowledged, ...known }];
    });
    const here: ToGroup = { kind: 'here', host: config.name, asker, attempts };
    await this.#answer(groupId, here);
    for (const { attempt } of own) attempt?.sendAgain();
  }

  async #answer(groupId: string, message: ToGroup): Promise<void> {
    const { engine } = this.#context;
    while (!(await engine.send(toGroupStream(groupId), [packed(message)])).ok && !this.#isClosed) await this.#pause();
  }

  #obey({ token, groupId, n, command }: SlotMessage): void {
    const held = this.#held.get(token);
    if (held === undefined || held.slot.record.groupId !== groupId) {
      if (command.do === 'order') this.#answerStranger(token, groupId, command.order.attemptId);
      return;
    }
    const { slot } = held;
    // A repetition, by whoever it may be.
    if (n <= slot.record.lastN) return;
    if (command.do === 'order') {
      this.#order(held, n, command.order);
      return;
    }
    // To hear it twice does no harm, and nothing comes as often.
    if (command.do !== 'acknowledge') slot.hear(n);
    if (command.do === 'release') this.#release(held).catch((error) => this.#tellError(slot, error));
    else held.attempt?.command(command);
  }

  #order(held: Held, n: number, order: Extract<SlotCommand, { do: 'order' }>['order']): void {
    const { slot } = held;
    const { groupId, sessionId } = slot.record;
    const isOther = order.groupId !== groupId || order.sessionId !== sessionId;
    if (held.attempt !== null || isOther || slot.knows(order.attemptId)) {
      slot.note({ lastN: n });
      this.#context.tell(
        `An order for session ${order.sessionId} was refused: it was done before, or its slot is another's.`,
      );
      return;
    }
    slot.note({ lastN: n, order });
    const attempt = new OrderedAttempt(this.#context, slot);
    held.attempt = attempt;
    // The guard knows of it before anything of it begins.
    this.#noteLeases();
    void attempt.begin().catch((error) => this.#tellError(slot, error));
  }

  /** After an outage the slot was given back, so the runner need not wait until a lease is over that nobody renews. */
  #answerStranger(token: string, groupId: string, attemptId: string): void {
    const { config, tell } = this.#context;
    tell(`An order for group ${groupId} was refused: it names no slot that this machine holds.`);
    const news = { say: 'refused', failure: publicFailure(noSlot) } as const;
    void this.#answer(groupId, { kind: 'attempt', host: config.name, token, attemptId, n: 1, news });
  }

  async #release({ slot, attempt }: Held): Promise<void> {
    if (attempt !== null && !attempt.isOver) await attempt.end();
    await this.#free(slot);
  }
}

const noSlot = fail('other-host', 'The machine has given the slot back before the order came.', '').failure;

// What a machine takes for the word of a runner.

/** `bytes` as they were unsealed, null = they could not be. A text is the end of a sentence that says why not. */
export function believed(bytes: Uint8Array | null, stream: string, verifier: Verifier): ToHost | string {
  if (bytes === null) return 'it is not sealed with the key of the fleet';
  const text = verifier.verify(stream, bytes);
  if (text === null) return 'no runner that this machine accepts has signed it';
  const message = toHost.safeParse(parseJson(text));
  return message.success ? message.data : 'this version does not understand it';
}

// How busy and how full this machine is.

const diskBytesMin = 500_000_000;

/** It would take one wish after another, and could start none of them. */
export function isFull(files: Files, { folder }: FleetPaths): boolean {
  return files.freeBytes(folder) < diskBytesMin;
}

export function burdenOf(files: Files, paths: FleetPaths): Pick<HostEntry, 'isFull' | 'freeDiskBytes' | 'load'> {
  const load = Number.parseFloat(files.readText('/proc/loadavg') ?? '');
  return {
    ...(isFull(files, paths) ? { isFull: true } : {}),
    freeDiskBytes: files.freeBytes(paths.folder),
    ...(Number.isFinite(load) ? { load } : {}),
  };
}

// What sessions of others left on this machine, removed when none of them came back for long.

const keptMs = 14 * 24 * 60 * 60_000;

/** `inUse`: folders of sessions that hold a slot. Their worktrees are kept so long for a next attempt. */
export function sweep({ files, clock }: World, fleet: FleetPaths, inUse: ReadonlySet<string>): void {
  for (const groupId of files.list(groupsFolder(fleet.work))) {
    if (!isGroupId(groupId)) continue;
    const group = groupPaths(fleet.work, groupId as GroupId);
    const isKept = (folder: string): boolean => {
      const orderedAtMs = files.info(join(folder, 'order.json'))?.mtimeMs ?? 0;
      return inUse.has(folder) || Math.abs(clock.now() - orderedAtMs) < keptMs;
    };
    const folders = files
      .list(group.sessions)
      .filter(isSessionId)
      .map((name) => `${group.sessions}/${name}`);
    const kept = folders.filter(isKept);
    for (const folder of folders) if (!kept.includes(folder)) files.remove(folder);
    if (kept.length === 0) removeGroup(files, fleet, groupId as GroupId);
  }
}

export function removeGroup(files: Files, fleet: FleetPaths, groupId: GroupId): void {
  for (const name of files.list(fleet.repositories)) {
    if (name.endsWith(`-${groupId}`)) files.remove(join(fleet.repositories, name));
  }
  files.remove(groupPaths(fleet.work, groupId).folder);
}
