/**
 * The engine as one process sees it. A call travels there and back over a link that may be cut in either direction:
 * then it fails, and took effect or not, at once or when the link is whole again.
 */

import type { SlotLease } from '../../../../src/core/event.ts';
import { fail, ok, type Result } from '../../../../src/core/failure.ts';
import type { Entry, FleetEngine, SlotLeases } from '../../../../src/fleet/redis.ts';
import { blobOf, isBlob } from '../../../../src/fleet/redis.ts';
import { Seal } from '../../../../src/fleet/seal.ts';
import type { Blob } from '../../../../src/fleet/wire.ts';
import type { World } from '../../../../src/system/world.ts';
import type { Seeded } from '../seeded.ts';
import type { Owner } from '../virtual-clock.ts';
import type { Link, VirtualEngine } from './virtual-engine.ts';

const silentMs = 3_000;
const blockMs = 1_000;
const reconnectMs = 500;

export interface ClientOptions {
  readonly world: World;
  readonly owner: Owner;
  readonly link: Link;
  readonly luck: Seeded;
  readonly sealingKey: string;
}

const noAnswer = fail('timeout', 'The engine does not answer.', 'Wait until it does.');

export class EngineClient implements FleetEngine {
  readonly seal: Seal;
  readonly #engine: VirtualEngine;
  readonly #options: ClientOptions;
  readonly #onConnect: (() => void)[] = [];
  /** When the last message on each connection arrives, and when it is answered. */
  readonly #lanes = new Map<string, { arrivesMs: number; answeredMs: number }>();
  readonly #pending = new Set<() => void>();
  #isConnected = false;
  #isClosed = false;
  readonly #lose = (): void => {
    const { owner, luck } = this.#options;
    this.#later(luck.int(1, 50), 'has lost its connection', owner, () => {
      for (const failed of [...this.#pending]) failed();
      this.#drop();
    });
  };

  constructor(engine: VirtualEngine, options: ClientOptions) {
    this.#engine = engine;
    this.#options = options;
    this.seal = new Seal(options.sealingKey, options.world.random);
    engine.clients.add(this.#lose);
    this.#connectLater();
  }

  #later(ms: number, label: string, owner: Owner | null, action: () => void): void {
    this.#engine.timeline.schedule(ms, label, owner, () => {
      if (!this.#isClosed || owner === null) action();
    });
  }

  #connectLater(): void {
    const { luck, owner, link } = this.#options;
    this.#later(luck.delay(30, reconnectMs), 'connects', owner, () => {
      if (!link.up || !link.down || this.#engine.isDown) {
        this.#connectLater();
        return;
      }
      this.#isConnected = true;
      for (const action of this.#onConnect) action();
    });
  }

  #drop(): void {
    if (!this.#isConnected) return;
    this.#isConnected = false;
    this.#connectLater();
  }

  /** The engine executes `question`, whatever happens to the answer. `lane`: a connection, which keeps the order. */
  #ask<T>(question: () => T, lane = 'main'): Promise<Result<T>> {
    const { luck, owner } = this.#options;
    const { promise, resolve } = Promise.withResolvers<Result<T>>();
    // A dead process sends nothing any more.
    if (!owner.alive) return promise;
    if (this.#isClosed || (!this.#isConnected && luck.chance(0.8))) {
      this.#later(luck.int(1, reconnectMs), 'has no connection', owner, () => resolve(noAnswer));
      return promise;
    }
    const times = this.#lane(lane);
    times.arrivesMs = Math.max(times.arrivesMs, this.#engine.timeline.nowMs + luck.delay(4, 900));
    const state = { isOver: false };
    const failed = (): void => {
      this.#pending.delete(failed);
      if (state.isOver) return;
      state.isOver = true;
      this.#drop();
      resolve(noAnswer);
    };
    this.#pending.add(failed);
    this.#later(silentMs + luck.int(0, 200), 'has no answer', owner, failed);
    this.#arrive(times.arrivesMs - this.#engine.timeline.nowMs, () => {
      const answer = question();
      this.#answer(lane, () => {
        this.#pending.delete(failed);
        if (state.isOver) return;
        state.isOver = true;
        resolve(ok(answer));
      });
    });
    return promise;
  }

  #lane(name: string): { arrivesMs: number; answeredMs: number } {
    const known = this.#lanes.get(name) ?? { arrivesMs: 0, answeredMs: 0 };
    this.#lanes.set(name, known);
    return known;
  }

  /** A message in transit when the link is cut is lost, or arrives when the link is whole again. */
  #arrive(ms: number, action: () => void, run = this.#engine.runId, tries = 0): void {
    const { luck, link } = this.#options;
    this.#later(ms, 'the engine is asked', null, () => {
      // Its connection has ended with the engine.
      if (this.#engine.isDown || this.#engine.runId !== run) return;
      if (link.up) action();
      else if (tries < 200 && luck.chance(0.98)) this.#arrive(luck.int(100, 1_500), action, run, tries + 1);
    });
  }

  #answer(lane: string, action: () => void): void {
    const { luck, link, owner } = this.#options;
    const times = this.#lane(lane);
    const { runId } = this.#engine;
    const { nowMs } = this.#engine.timeline;
    times.answeredMs = Math.max(times.answeredMs, nowMs + luck.delay(4, 900));
    this.#later(times.answeredMs - nowMs, 'the engine answers', owner, () => {
      if (link.down && !this.#engine.isDown && this.#engine.runId === runId) action();
    });
  }

  onConnect(action: () => void): void {
    this.#onConnect.push(action);
  }

  send(stream: string, messages: readonly Uint8Array[]): Promise<Result<string[]>> {
    const sealed = messages.map((message) => this.seal.seal(stream, message));
    return this.#ask(() => this.#engine.append(stream, sealed));
  }

  async read(stream: string, after: string): Promise<Result<Entry[]>> {
    const { owner } = this.#options;
    if (this.#isClosed) return ok([]);
    const engine = this.#engine;
    const { promise, resolve } = Promise.withResolvers<Result<Entry[]>>();
    if (!owner.alive) return promise;
    const state = { isOver: false };
    const end = (result: Result<Entry[]>): void => {
      if (state.isOver) return;
      state.isOver = true;
      resolve(result);
    };
    this.#later(silentMs, 'has read nothing', owner, () => end(noAnswer));
    const answer = (): void => {
      const found = engine.after(stream, Number(after));
      this.#answer(stream, () =>
        end(ok(found.map(({ id, bytes }) => ({ id: String(id), bytes: this.seal.open(stream, bytes) })))),
      );
    };
    this.#arrive(this.#options.luck.delay(4, 900), () => {
      if (engine.after(stream, Number(after)).length > 0) return answer();
      const waiting = engine.waiters.get(stream) ?? new Set();
      engine.waiters.set(stream, waiting);
      const tell = (): void => {
        if (waiting.delete(waiter)) answer();
      };
      const waiter = { after: Number(after), tell };
      waiting.add(waiter);
      this.#later(blockMs, 'nothing has come', null, tell);
    });
    return promise;
  }

  drop(stream: string, ids: readonly string[]): Promise<Result<void>> {
    if (ids.length === 0) return Promise.resolve(ok(undefined));
    return this.#ask(() => this.#engine.remove(stream, ids));
  }

  putBlob(id: string, bytes: Uint8Array): Promise<Result<Blob>> {
    const blob = blobOf(id, bytes);
    if (!blob.ok) return Promise.resolve(blob);
    const sealed = this.seal.seal(id, bytes);
    return this.#ask(() => {
      this.#engine.putBlob(id, sealed);
      return blob.value;
    });
  }

  async getBlob(blob: Blob): Promise<Result<Uint8Array>> {
    const { id } = blob;
    const got = await this.#ask(() => this.#engine.blob(id));
    if (!got.ok) return got;
    const opened = got.value === null ? null : this.seal.open(id, got.value);
    if (opened !== null && isBlob(blob, opened)) return ok(opened);
    return fail('gone', 'What was sent is not there any more.', 'Retry the session.');
  }

  async dropBlob({ id }: Blob): Promise<void> {
    await this.#ask(() => this.#engine.dropBlob(id));
  }

  setField(key: string, field: string, value: Uint8Array): Promise<Result<void>> {
    return this.#ask(() => this.#engine.setField(key, field, value));
  }

  fields(key: string): Promise<Result<Readonly<Record<string, Uint8Array>>>> {
    return this.#ask(() => Object.fromEntries(this.#engine.fields.get(key) ?? []));
  }

  members(): Promise<Result<readonly string[]>> {
    return this.#ask(() => []);
  }

  nowMs(): Promise<Result<number>> {
    return this.#ask(() => Date.UTC(2026, 0, 1) + Math.floor(this.#engine.timeline.nowMs));
  }

  leases(leaseMs: number): SlotLeases {
    const engine = this.#engine;
    return {
      take: (lease, slots) => this.#ask(() => engine.take(lease, slots, leaseMs)),
      renew: (leases) => {
        if (leases.length === 0) return Promise.resolve(ok(new Set<SlotLease>()));
        return this.#ask(() => new Set(leases.filter((lease) => !engine.renew(lease, leaseMs))));
      },
      free: (lease) => this.#ask(() => engine.free(lease)),
      look: (leases) => this.#ask(() => leases.map((lease) => engine.leftOf(lease))),
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#engine.clients.delete(this.#lose);
  }
}
