/**
 * Follows the file a worker writes its stream to. File events are hints; a slow look at the file is the truth, so a
 * missed event delays a line but never loses one.
 */
import type { World } from '../world/world.ts';
import { LineSplitter } from './line-splitter.ts';

/** Looks at first follow each other closely: what is written while the watch is being set up gives no hint. */
const firstPollMs = 16;
const pollMs = 500;
const chunkBytes = 1024 * 1024;

export interface TranscriptFollower {
  /** Reads to the present end of the file. */
  drain(): void;
  /** Reads to the end, hands over a last half line too, and stops following. Goes on following when it throws. */
  finish(): void;
  /** Stops following. */
  close(): void;
  /** Lines too long to be read. */
  droppedLines(): number;
}

/**
 * Calls `onLine` for each line of `path` from byte `offset` on, in order, and `onCaughtUp` when it has come to the
 * present end.
 */
export function followTranscript(
  world: World,
  path: string,
  offset: number,
  onLine: (line: string) => void,
  onCaughtUp: () => void = () => {},
): TranscriptFollower {
  const splitter = new LineSplitter();
  let position = offset;
  let open = true;
  let cancelPoll = () => {};

  const readWith = (read: () => Uint8Array) => {
    for (let isMore = true; isMore; ) {
      const chunk = read();
      position += chunk.length;
      for (const line of splitter.push(chunk)) onLine(line);
      // Fewer bytes than asked for: that was the end. Of what is written from now on there will be a hint.
      isMore = chunk.length === chunkBytes;
    }
    onCaughtUp();
  };
  const drain = () => readWith(() => world.files.readBytes(path, position, chunkBytes));
  const look = () =>
    readWith(() => {
      try {
        return world.files.readBytes(path, position, chunkBytes);
      } catch {
        // A disk that does not answer now may do so at the next look; `finish` reports it if it does not.
        return new Uint8Array(0);
      }
    });
  /** Asked at each hint and twice a second of every worker, most of which have said nothing since. */
  const hasMore = () => {
    try {
      return (world.files.info(path)?.size ?? 0) > position;
    } catch {
      return true;
    }
  };
  const hear = () => {
    if (open && hasMore()) look();
  };
  const poll = (nextMs: number) => {
    hear();
    // Handling a line may have closed us.
    if (open) cancelPoll = world.clock.after(nextMs, () => poll(Math.min(2 * nextMs, pollMs)));
  };
  // The file itself, for what else is written beside it concerns nobody here.
  const unwatch = world.files.watch(path, hear);
  cancelPoll = world.clock.after(0, () => poll(firstPollMs));

  const close = () => {
    open = false;
    cancelPoll();
    unwatch();
  };
  return {
    drain,
    close,
    droppedLines: () => splitter.dropped,
    finish: () => {
      if (!open) return;
      drain();
      close();
      const rest = splitter.rest();
      if (rest !== null) onLine(rest);
    },
  };
}
