/**
 * A copy of a group's state in which events are tried before they are written: what `reduce` throws it throws here, and
 * nothing of the state itself has changed. Only what the events touch is copied, so that trying costs as little as
 * reducing, however large the group is.
 */
import type { SessionRecord } from './session-state.ts';
import type { GroupState } from './state.ts';

/** `reduce` may do to the draft what it does to a state. */
export function draftOf(state: GroupState): GroupState {
  return {
    ...state,
    sessions: new DraftMap(state.sessions, copyRecord),
    running: new Set(state.running),
    failed: new Set(state.failed),
    takenOver: new Set(state.takenOver),
    counts: { ...state.counts },
    endedMs: new DraftMap(state.endedMs),
    bases: new DraftMap(state.bases),
  };
}

function copyRecord(record: SessionRecord): SessionRecord {
  const { state, messages, claudeSessionIds, warnings } = record;
  return {
    ...record,
    ...(record.takenOver === undefined ? {} : { takenOver: { ...record.takenOver } }),
    state: state.status === 'running' ? { ...state, attempt: { ...state.attempt } } : state,
    messages: [...messages],
    claudeSessionIds: [...claudeSessionIds],
    warnings: [...warnings],
  };
}

/** Reads through to another map, copies what is asked for, and keeps all changes to itself. */
class DraftMap<K, V> extends Map<K, V> {
  /** Null once all of it was copied. */
  #base: ReadonlyMap<K, V> | null;
  readonly #copy: (value: V) => V;
  readonly #removed = new Set<K>();

  constructor(base: ReadonlyMap<K, V>, copy: (value: V) => V = (value) => value) {
    super();
    this.#base = base;
    this.#copy = copy;
  }

  override get(key: K): V | undefined {
    const value = this.#inBase(key);
    if (value !== undefined) super.set(key, this.#copy(value));
    return super.get(key);
  }

  override has(key: K): boolean {
    return super.has(key) || this.#inBase(key) !== undefined;
  }

  override delete(key: K): boolean {
    const had = this.has(key);
    this.#removed.add(key);
    super.delete(key);
    return had;
  }

  override get size(): number {
    this.#takeAll();
    return super.size;
  }

  override entries(): MapIterator<[K, V]> {
    this.#takeAll();
    return super.entries();
  }

  override keys(): MapIterator<K> {
    this.#takeAll();
    return super.keys();
  }

  override values(): MapIterator<V> {
    this.#takeAll();
    return super.values();
  }

  override [Symbol.iterator](): MapIterator<[K, V]> {
    return this.entries();
  }

  override forEach(action: (value: V, key: K, map: Map<K, V>) => void): void {
    for (const [key, value] of this.entries()) action(value, key, this);
  }

  /** What stands there still as it was. */
  #inBase(key: K): V | undefined {
    return super.has(key) || this.#removed.has(key) ? undefined : this.#base?.get(key);
  }

  #takeAll(): void {
    for (const key of this.#base?.keys() ?? []) this.get(key);
    this.#base = null;
  }
}
