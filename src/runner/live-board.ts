/** What running sessions do right now: shown to reporters and noted for others, never logged. */
import type { SessionId } from '../core/group.ts';
import { groupProgress, type LiveSession } from '../core/progress.ts';
import type { Reporter } from '../report/reporter.ts';
import type { GroupWriter } from '../store/group-writer.ts';
import type { World } from '../world/world.ts';
import type { ActiveWorker } from './attempt/blame.ts';
import type { CommandSlots } from './attempt/command-slots.ts';
import { liveNow } from './attempt/live.ts';

/** How often what running sessions do is shown at most; a tenth of a second, longer for large groups. */
const showMs = 100;

export interface LiveBoardOptions {
  readonly writer: GroupWriter;
  readonly reporter: Reporter;
  readonly workers: ReadonlyMap<SessionId, ActiveWorker>;
  readonly slots: CommandSlots;
}

export class LiveBoard {
  readonly live = new Map<SessionId, LiveSession>();
  readonly #world: World;
  readonly #options: LiveBoardOptions;
  readonly #changed = new Set<SessionId>();
  #cancel: (() => void) | null = null;
  #isClosed = false;

  constructor(world: World, options: LiveBoardOptions) {
    this.#world = world;
    this.#options = options;
    options.slots.onChange = this.note;
  }

  /** What the session does may look different now. */
  readonly note = (sessionId: SessionId): void => {
    this.#changed.add(sessionId);
    this.show();
  };

  /** Shows what running sessions do, coalesced: however much they print, at most every `showMs`. */
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
      if (live === null) {
        this.live.delete(sessionId);
        continue;
      }
      this.live.set(sessionId, live);
      reporter.progress(sessionId, writer.state, this.live);
    }
    this.#changed.clear();
    this.#noteProgress();
  }

  /** Nothing is shown any more; what is known now is noted. */
  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
    this.#noteProgress();
  }

  /** Put together when it is written: in a large group that is much less often than something happens. */
  #noteProgress(): void {
    const { writer } = this.#options;
    writer.progress(() => groupProgress(writer.state, this.live, this.#world.clock.now()));
  }
}
