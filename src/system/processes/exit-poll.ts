/** How we learn that a process ended that is not our child: by looking, with one timer for all of them. */
import type { ProcessIdentity } from '../../core/event.ts';
import { errorCode } from '../system-error.ts';

/** Adopted workers run for minutes; their files are followed separately and tell the news first. */
const pollMs = 200;

export interface ExitPoll {
  /** Calls `action` once after the process was found to have ended; never synchronously. */
  watch(identity: ProcessIdentity, action: () => void): void;
}

/** `living` says which of the given processes still live. */
export function createExitPoll(living: (identities: readonly ProcessIdentity[]) => Set<ProcessIdentity>): ExitPoll {
  const watched = new Map<ProcessIdentity, () => void>();
  let timer: ReturnType<typeof setInterval> | undefined;

  const look = (): void => {
    let alive: ReturnType<typeof living>;
    try {
      alive = living([...watched.keys()]);
    } catch (error) {
      // The table of open files may be full: who lives is seen at the next look.
      if (errorCode(error) === '') throw error;
      return;
    }
    const ended = [...watched].filter(([identity]) => !alive.has(identity));
    for (const [identity] of ended) watched.delete(identity);
    if (watched.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
    for (const [, action] of ended) action();
  };

  return {
    watch(identity, action) {
      // A copy as the key: two who follow the same process are both told.
      watched.set({ ...identity }, action);
      if (timer !== undefined) return;
      timer = setInterval(look, pollMs);
      timer.unref();
    },
  };
}
