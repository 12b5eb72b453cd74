/** Hints that something in a folder, or in a file, changed. The callers' own slow look is the truth. */
import { watch } from 'node:fs';

/**
 * A rename makes several events and a busy worker hundreds a second; after the first they are told as one, for ever
 * longer stretches while it goes on. Each stretch is closed with a hint, also one without events: Bun drops an event
 * that comes within two milliseconds of another of its kind, and what it would have told of came after the first hint.
 */
const firstGatherMs = 4;
const lastGatherMs = 32;

/**
 * A watch on a file goes deaf when the file is replaced, one on its folder does not. Without a watch (inotify used up,
 * nothing there, network disk) there are simply no hints, so nothing here throws.
 */
export function watchPath(path: string, onChange: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stopWatching = (): void => {};
  const end = (): void => {
    clearTimeout(timer);
    stopWatching();
    stopWatching = () => {};
  };
  let isMissed = false;
  const tell = (gatherMs = firstGatherMs): void => {
    isMissed = false;
    timer = setTimeout(() => {
      if (isMissed) return tell(Math.min(2 * gatherMs, lastGatherMs));
      timer = undefined;
      onChange();
    }, gatherMs);
    onChange();
  };
  // The first event after a quiet time is told at once, for somebody may wait for it; what follows is gathered, and
  // later events do not prolong that: under constant change hints still come.
  const gather = (): void => {
    if (timer === undefined) tell();
    else isMissed = true;
  };
  try {
    const watcher = watch(path, { persistent: false }, gather);
    stopWatching = () => watcher.close();
    watcher.on('error', end);
  } catch {
    return end;
  }
  return end;
}
