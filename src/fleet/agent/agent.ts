/**
 * The agent of a host: executes signed orders for its slots, reports on them, and renews their leases. It can be killed
 * at any moment: its state is on disk, and the guard watches meanwhile.
 */

import { join } from 'node:path';
import { defined } from '../../core/defined.ts';
import type { SlotLease } from '../../core/event.ts';
import { errorText, type Failure, fail, publicFailure } from '../../core/failure.ts';
import type { GroupId } from '../../core/group.ts';
import { isGroupId, isSessionId } from '../../core/id.ts';
import { parseJson } from '../../store/json.ts';
import { groupPaths, groupsFolder } from '../../store/paths.ts';
import type { Files, World } from '../../system/world.ts';
import type { FleetPaths } from '../fleet-files.ts';
import type { Entry, SlotLeases } from '../redis.ts';
import { follow, toGroupStream, toHostStream } from '../redis.ts';
import { heartbeatMs, registerHost } from '../registry.ts';
import { Verifier } from '../seal.ts';
import { type HostAbilities, type HostEntry, type Order, packed, type ToGroup, type ToHost, toHost } from '../wire.ts';
import { OrderedAttempt } from './attempt.ts';
import { Fence, readLeases, uptimeMs, writeLeases } from './guard.ts';
import type { AgentContext, OuterContext } from './prepare.ts';
import { forgetWork, keptMs, tidyRepositories } from './prepare.ts';
import { Slot, type SlotRecord } from './slot.ts';

const takeMs = 1_000;
const readAgainMs = 200;
const checkMs = 10 * 60_000;
const sweepMs = 24 * 60 * 60_000;

type SlotMessage = Extract<ToHost, { kind: 'slot' }>;

interface Held {
  readonly slot: Slot;
  readonly attempt: OrderedAttempt;
}

/** `refusal`: why nothing can be started here now. */
export interface AgentAbilities {
  readonly abilities: HostAbilities;
  readonly refusal?: string;
}

export interface AgentOptions {
  readonly abilities: () => Promise<AgentAbilities>;
  /** Why sessions here may not be able to log in; takes a few seconds. */
  readonly checkLogin: () => Promise<string | undefined>;
  readonly startGuard: () => void;
}

export class Agent {
  readonly #world: World;
  readonly #context: AgentContext;
  readonly #options: AgentOptions;
  readonly #leases: SlotLeases;
  readonly #verifier: Verifier;
  readonly #fence: Fence;
  readonly #held = new Map<string, Held>();
  readonly #timers = new Set<() => void>();
  #able: AgentAbilities | null = null;
  #loginWarning: string | undefined;
  #startedAtMs = 0;
  #isClosed = false;

  constructor(context: OuterContext, options: AgentOptions) {
    this.#world = context.world;
    const isDiskFull = () => diskOf(context.world.files, context.paths).isFull === true;
    this.#context = { ...context, isDiskFull, noteLeases: () => this.#tryToNoteLeases() };
    this.#options = options;
    const { config, engine } = context;
    this.#leases = engine.leases(config.leaseMs);
    this.#verifier = new Verifier(config.runnerKeys);
    this.#fence = new Fence(context.world, context.paths, context.tell);
  }

  async run(): Promise<void> {
    const { engine } = this.#context;
    this.#watchGuard();
    this.#recall();
    engine.onConnect(() => {
      for (const { attempt } of this.#held.values()) attempt.sendAgain();
    });
    this.#sweep();
    await this.#renew();
    for (const { slot, attempt } of this.#held.values()) {
      attempt.resume().catch((error) => this.#tellError(slot, error));
    }
    const renewMs = heartbeatMs(this.#context.config.leaseMs);
    this.#every(renewMs, () => this.#renew());
    this.#every(renewMs, () => this.#lookAtClaude(), 0);
    this.#every(checkMs, () => this.#checkLogin(), 0);
    this.#every(sweepMs, async () => this.#sweep());
    await this.#listen();
  }

  #sweep(): void {
    const inUse = [...this.#held.values()].map(({ slot }) => slot.paths.folder);
    sweep(this.#world, this.#context.paths, new Set(inUse));
    void tidyRepositories(this.#context.git, this.#context.paths);
  }

  /** Detaches from everything: running attempts continue, and the guard ends them unless an agent returns. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const cancel of this.#timers) cancel();
    for (const { attempt } of this.#held.values()) attempt.close();
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
    this.#context.tell(`Session ${record.sessionId} could not be continued: ${errorText(error)}`);
  }

  #watchGuard(): void {
    if (!this.#context.isGuarded()) this.#options.startGuard();
    this.#every(takeMs, async () => {
      if (this.#context.isGuarded()) return;
      this.#options.startGuard();
      // Until the new guard checks, the agent does.
      this.#fence.look();
    });
  }

  #recall(): void {
    const known = new Map(readLeases(this.#world, this.#context.paths).map((lease) => [lease.token, lease.renewedAt]));
    // An unknown lease has no processes here, or the guard handles it.
    for (const slot of Slot.recall(this.#world, this.#context.paths, (token) => known.get(token) ?? 0)) {
      this.#held.set(slot.record.token, { slot, attempt: new OrderedAttempt(this.#context, slot) });
    }
  }

  /** On a full disk the guard ends what runs, and everything else must continue. */
  #tryToNoteLeases(): void {
    try {
      this.#noteLeases();
    } catch (error) {
      this.#context.tell(`The leases cannot be noted: ${errorText(error)}`);
    }
  }

  #noteLeases(): void {
    const { leaseMs } = this.#context.config;
    const leases = [...this.#held.values()].flatMap(({ slot }) => {
      const { record, name: folder, renewedAt } = slot;
      if (record.end !== undefined || record.order.waits === true) return [];
      const { token, groupId, sessionId, order } = record;
      return [{ attemptId: order.attemptId, token, groupId, sessionId, folder, leaseMs, renewedAt }];
    });
    writeLeases(this.#world, this.#context.paths, leases);
  }

  async #renew(): Promise<void> {
    const held = [...this.#held.values()]
      .filter(({ slot, attempt }) => !slot.isLost && !attempt.isKept)
      .map((one) => ({ ...one, lease: this.#leaseOf(one.slot) }));
    const leases = held.map(({ lease }) => lease);
    const sentAt = uptimeMs(this.#world.files);
    const renewed = await this.#leases.renew(leases);
    if (this.#isClosed) return;
    if (renewed.ok) {
      for (const { slot, lease } of held) slot.renewedAt = renewed.value.has(lease) ? -1 : sentAt;
      this.#tryToNoteLeases();
      for (const { slot } of held) {
        if (!slot.isLost || !this.#held.has(slot.record.token)) continue;
        this.#context.tell(`The lease of session ${slot.record.sessionId} is over.`);
      }
    }
    await this.#register();
  }

  /** It may be replaced at any time; leases are renewed while a new one is checked. */
  async #lookAtClaude(): Promise<void> {
    const before = this.#able;
    const able = await this.#options.abilities();
    if (this.#isClosed) return;
    this.#able = able;
    if (JSON.stringify(able) === JSON.stringify(before)) return;
    if (able.refusal !== undefined) this.#context.tell(`This host takes nothing: ${able.refusal}`);
    await this.#register();
  }

  async #checkLogin(): Promise<void> {
    this.#loginWarning = await this.#options.checkLogin();
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
      isGuarded: this.#context.isGuarded(),
      ...diskOf(this.#world.files, this.#context.paths),
      home: this.#context.home,
      ...defined({ refusal, login: config.login, loginWarning: this.#loginWarning, codeUrl: config.codeUrl }),
    });
  }

  /** Slots without a running attempt do not count. */
  get #used(): number {
    return [...this.#held.values()].filter(({ attempt }) => !attempt.isKept).length;
  }

  #leaseOf({ record: { token } }: Slot): SlotLease {
    return { host: this.#context.config.name, token };
  }

  async #free(slot: Slot): Promise<void> {
    this.#forget(slot);
    void forgetWork(this.#context.git, this.#context.paths, slot.record.order);
    // If the engine does not answer, it is free when its lease ends.
    await this.#leases.free(this.#leaseOf(slot));
  }

  #forget(slot: Slot): void {
    this.#held.get(slot.record.token)?.attempt.close();
    this.#held.delete(slot.record.token);
    this.#tryToNoteLeases();
    slot.remove();
  }

  #listen(): Promise<void> {
    const { engine, config } = this.#context;
    const pause = () => this.#pause();
    const hear = (entry: Entry) =>
      this.#hear(entry).catch((error) => this.#context.tell(`A message could not be handled: ${errorText(error)}`));
    return follow(engine, toHostStream(config.name), { hear, pause, isClosed: () => this.#isClosed });
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => this.#timers.add(this.#world.clock.after(readAgainMs, resolve)));
  }

  async #hear({ bytes }: Entry): Promise<void> {
    const heard = believed(bytes, toHostStream(this.#context.config.name), this.#verifier);
    if (typeof heard === 'string') this.#context.tell(`A message was refused: ${heard}.`);
    else if (heard.kind === 'hello') await this.#greet(heard);
    else await this.#obey(heard);
  }

  async #greet({ groupId, asker }: Extract<ToHost, { kind: 'hello' }>): Promise<void> {
    const { config } = this.#context;
    const own = [...this.#held.values()].filter(({ slot }) => slot.record.groupId === groupId);
    const attempts = own.map(({ slot: { record } }) => {
      const { token, process } = record;
      return { token, ...defined({ process }) };
    });
    const here: ToGroup = { kind: 'here', host: config.name, asker, attempts };
    await this.#answer(groupId, here);
    for (const { attempt } of own) attempt.sendAgain();
  }

  async #answer(groupId: string, message: ToGroup): Promise<void> {
    const { engine } = this.#context;
    while (!(await engine.send(toGroupStream(groupId), [packed(message)])).ok && !this.#isClosed) await this.#pause();
  }

  async #obey(message: SlotMessage): Promise<void> {
    const { token, groupId, command } = message;
    const held = this.#held.get(token);
    if (held === undefined) {
      if (command.do === 'order') await this.#order(message, command.order);
      return;
    }
    const { slot, attempt } = held;
    // For another session, or executed before.
    if (slot.record.groupId !== groupId || command.do === 'order') return;
    if (command.do === 'release') this.#release(held).catch((error) => this.#tellError(slot, error));
    else attempt.command(command);
  }

  /** The runner has taken the slot; from now on its lease is renewed here. */
  async #order({ token, groupId }: SlotMessage, order: Order): Promise<void> {
    const { world, paths, config, tell } = this.#context;
    const record: SlotRecord = { token, groupId, sessionId: order.sessionId, order };
    const slot = order.groupId === groupId ? Slot.of(world, paths, record) : null;
    if (slot === null || slot.knows(order.attemptId)) {
      tell(`An order for session ${order.sessionId} was refused: it was done before, or is for another group.`);
      return;
    }
    const lease = { host: config.name, token };
    const sentAt = uptimeMs(world.files);
    const lost = await this.#leases.renew([lease]);
    if (this.#isClosed) return;
    if (!lost.ok || lost.value.size > 0) {
      tell(`An order for group ${groupId} was refused: it names no slot that this host holds.`);
      this.#refuse(record, noSlot);
      return;
    }
    slot.renewedAt = sentAt;
    const attempt = new OrderedAttempt(this.#context, slot);
    try {
      slot.keep();
      this.#held.set(token, { slot, attempt });
      // The guard knows of it before anything of it starts.
      this.#noteLeases();
    } catch (error) {
      this.#held.delete(token);
      tell(`An order for session ${order.sessionId} was refused: ${errorText(error)}`);
      this.#refuse(record, fail('other-host', `The host cannot save the order: ${errorText(error)}.`, '').failure);
      return;
    }
    void attempt.begin().catch((error) => this.#tellError(slot, error));
  }

  #refuse({ token, groupId, order: { attemptId } }: SlotRecord, failure: Failure): void {
    const news = { say: 'refused', failure: publicFailure(failure) } as const;
    void this.#answer(groupId, { kind: 'attempt', host: this.#context.config.name, token, attemptId, news });
  }

  async #release({ slot, attempt }: Held): Promise<void> {
    if (!attempt.isOver) await attempt.end();
    await this.#free(slot);
  }
}

const noSlot = fail('other-host', 'The lease of the slot expired before the order arrived.', '').failure;

// Which messages a host accepts from a runner.

/** `bytes` as unsealed, null = unsealing failed. A text is the end of a sentence with the reason for a refusal. */
export function believed(bytes: Uint8Array | null, stream: string, verifier: Verifier): ToHost | string {
  if (bytes === null) return 'it is not sealed with the key of the fleet';
  const text = verifier.verify(stream, bytes);
  if (text === null) return 'no runner that this host accepts has signed it';
  const message = toHost.safeParse(parseJson(text));
  return message.success ? message.data : 'this version does not understand it';
}

const diskBytesMin = 500_000_000;

export function diskOf(files: Files, { folder }: FleetPaths): Pick<HostEntry, 'isFull' | 'freeDiskBytes'> {
  const freeDiskBytes = files.freeBytes(folder);
  return { freeDiskBytes, ...(freeDiskBytes < diskBytesMin ? { isFull: true } : {}) };
}

// Removes files of other users' sessions on this host that have not returned for long.

/** `inUse`: folders of sessions with a slot. Worktrees of others are kept this long for a next attempt. */
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
    if (kept.length === 0) files.remove(group.folder);
  }
}
