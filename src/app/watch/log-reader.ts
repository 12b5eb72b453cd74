/** Reads new events of a log on demand, and keeps the state. */
import type { GroupEvent } from '../../core/event.ts';
import { reduce } from '../../core/reduce.ts';
import { type GroupState, initialState } from '../../core/state.ts';
import { type LogPosition, logStart, scanLog } from '../../store/event-log.ts';
import type { World } from '../../system/world.ts';

export class LogReader {
  readonly #world: World;
  readonly #path: string;
  #position: LogPosition = logStart;
  #state: GroupState | null = null;
  #isBroken = false;

  constructor(world: World, path: string) {
    this.#world = world;
    this.#path = path;
  }

  get state(): GroupState | null {
    return this.#state;
  }

  /** True once the log is gone or damaged. It is not read again. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** Events since the last call; all events if the writer withdrew some that it could not make durable. */
  read(): readonly GroupEvent[] {
    const info = this.#isBroken ? null : this.#world.files.info(this.#path);
    // The first events of a log are never withdrawn.
    if (info === null || (info.size === 0 && this.#state !== null)) {
      this.#isBroken = true;
      return [];
    }
    if (info.size < this.#position.offset) {
      this.#position = logStart;
      this.#state = null;
    }
    if (info.size === this.#position.offset) return [];
    const bytes = this.#world.files.readBytes(this.#path, this.#position.offset, Number.MAX_SAFE_INTEGER);
    const { events, position, trouble } = scanLog(bytes, this.#position);
    this.#position = position;
    this.#isBroken = trouble !== undefined;
    for (const event of events) this.#state = this.#state === null ? initialState(event) : reduce(this.#state, event);
    return events;
  }
}
