/** Hints that something in a folder changed. The callers' own slow look is the truth. */
import { watch } from 'node:fs';

/** A rename makes several events and a busy worker hundreds a second; they are told as one. */
const gatherMs = 30;

/**
 * Watches the folder itself, not its files: a watch on a file goes deaf when the file is replaced. Without a watch
 * (inotify used up, folder missing, network disk) there are simply no hints, so nothing here throws.
 */
export function watchFolder(folder: string, onChange: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stopWatching = (): void => {};
  const end = (): void => {
    clearTimeout(timer);
    stopWatching();
    stopWatching = () => {};
  };
  // The first event starts the wait and later ones do not prolong it: under constant change hints still come.
  const gather = (): void => {
    timer ??= setTimeout(() => {
      timer = undefined;
      onChange();
    }, gatherMs);
  };
  try {
    const watcher = watch(folder, { persistent: false }, gather);
    stopWatching = () => watcher.close();
    watcher.on('error', end);
  } catch {
    return end;
  }
  return end;
}
