/**
 * The engine of a fleet over virtual time: streams, slots and blobs, as Redis has them. How it is
 * asked is in engine-client.ts. After a restart the engine may have lost its last seconds.
 */
import type { SlotLease } from '../../../../src/core/event.ts';
import type { Seeded } from '../seeded.ts';
import type { Timeline } from '../virtual-clock.ts';

const blobMs = 3_600_000;
const rememberedMs = 150_000;

interface StoredEntry {
  readonly id: number;
  readonly bytes: Uint8Array;
  readonly atMs: number;
}

interface Waiter {
  readonly after: number;
  readonly tell: () => void;
}

/** Whether messages arrive, and whether answers do. */
export interface Link {
  up: boolean;
  down: boolean;
}

export class VirtualEngine {
  readonly timeline: Timeline;
  readonly luck: Seeded;
  readonly streams = new Map<string, StoredEntry[]>();
  /** By token. */
  readonly slots = new Map<string, { readonly host: string; readonly untilMs: number }>();
  readonly blobs = new Map<string, { readonly bytes: Uint8Array; readonly untilMs: number }>();
  readonly fields = new Map<string, Map<string, Uint8Array>>();
  readonly waiters = new Map<string, Set<Waiter>>();
  readonly clients = new Set<() => void>();
  isDown = false;
  /** Shows sealed content, for readers. */
  open: (stream: string, bytes: Uint8Array) => string = () => '';
  /** Something was lost, possibly a removal. */
  hasForgotten = false;
  #starts = 1;
  #lastId = 0;
  /** The undo of each change, newest last. */
  #undo: { readonly atMs: number; readonly take: () => void }[] = [];

  constructor(timeline: Timeline, luck: Seeded) {
    this.timeline = timeline;
    this.luck = luck;
  }

  get runId(): string {
    return `run${this.#starts}`;
  }

  /** All connections end with it. */
  stop(): void {
    this.isDown = true;
    for (const lose of this.clients) lose();
  }

  /** It restarts without what was done within the last `forgetsMs`. */
  restart(forgetsMs: number): void {
    this.isDown = false;
    this.#starts += 1;
    this.hasForgotten = true;
    const since = this.timeline.nowMs - forgetsMs;
    for (let last = this.#undo.at(-1); last !== undefined && last.atMs > since; last = this.#undo.at(-1)) {
      this.#undo.pop();
      last.take();
    }
    // A removed entry cannot be removed again.
    this.#undo = [];
  }

  #changed(take: () => void): void {
    const { nowMs } = this.timeline;
    this.#undo.push({ atMs: nowMs, take });
    if (this.#undo.length > 4_000) this.#undo = this.#undo.filter(({ atMs }) => atMs > nowMs - rememberedMs);
  }

  #set<K, V>(map: Map<K, V>, key: K, value: V): void {
    const [had, before] = [map.has(key), map.get(key) as V];
    map.set(key, value);
    this.#changed(() => (had ? map.set(key, before) : map.delete(key)));
  }

  #delete<K, V>(map: Map<K, V>, key: K): boolean {
    if (!map.has(key)) return false;
    const before = map.get(key) as V;
    map.delete(key);
    this.#changed(() => map.set(key, before));
    return true;
  }

  // Streams.

  append(stream: string, messages: readonly Uint8Array[]): string[] {
    const ids = messages.map(() => {
      this.#lastId += 1;
      return this.#lastId;
    });
    const added = messages.map((bytes, index) => ({ id: ids[index] as number, bytes, atMs: this.timeline.nowMs }));
    this.#set(this.streams, stream, [...(this.streams.get(stream) ?? []), ...added]);
    for (const waiter of [...(this.waiters.get(stream) ?? [])]) waiter.tell();
    return ids.map(String);
  }

  /** The content of the stream, for readers. */
  describe(stream: string): string {
    return (this.streams.get(stream) ?? [])
      .map(({ bytes, atMs }) => `${Math.round(atMs / 1_000)} s ${this.open(stream, bytes)}`)
      .join('; ');
  }

  after(stream: string, id: number): StoredEntry[] {
    return (this.streams.get(stream) ?? []).filter((entry) => entry.id > id);
  }

  remove(stream: string, ids: readonly string[]): void {
    const gone = new Set(ids.map(Number));
    const left = (this.streams.get(stream) ?? []).filter(({ id }) => !gone.has(id));
    if (left.length > 0) this.#set(this.streams, stream, left);
    else this.#delete(this.streams, stream);
  }

  // Slots.

  isHeld(token: string): boolean {
    return (this.slots.get(token)?.untilMs ?? 0) > this.timeline.nowMs;
  }

  take({ host, token }: SlotLease, slots: number, leaseMs: number): boolean {
    const held = [...this.slots].filter(([other, one]) => one.host === host && other !== token && this.isHeld(other));
    if (held.length >= slots) return false;
    this.#set(this.slots, token, { host, untilMs: this.timeline.nowMs + leaseMs });
    return true;
  }

  renew({ host, token }: SlotLease, leaseMs: number): boolean {
    if (!this.isHeld(token)) return false;
    this.#set(this.slots, token, { host, untilMs: this.timeline.nowMs + leaseMs });
    return true;
  }

  free({ token }: SlotLease): void {
    this.#delete(this.slots, token);
  }

  leftOf({ token }: SlotLease): number | null {
    return this.isHeld(token) ? (this.slots.get(token)?.untilMs ?? 0) - this.timeline.nowMs : null;
  }

  // Blobs and what is known by names.

  putBlob(id: string, bytes: Uint8Array): void {
    this.#set(this.blobs, id, { bytes, untilMs: this.timeline.nowMs + blobMs });
  }

  blob(id: string): Uint8Array | null {
    const found = this.blobs.get(id);
    return found === undefined || found.untilMs <= this.timeline.nowMs ? null : found.bytes;
  }

  dropBlob(id: string): void {
    this.#delete(this.blobs, id);
  }

  setField(key: string, field: string, value: Uint8Array): void {
    this.#set(this.fields, key, new Map(this.fields.get(key)).set(field, value));
  }

  /** Bytes in streams and blobs. */
  get usedBytes(): number {
    let sum = 0;
    for (const entries of this.streams.values()) for (const { bytes } of entries) sum += bytes.length;
    for (const { bytes } of this.blobs.values()) sum += bytes.length;
    return sum;
  }
}
