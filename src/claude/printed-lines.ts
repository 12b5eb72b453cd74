/** What claude printed, from a transcript of any size, a part at a time. */
import { LineSplitter } from '../core/line-splitter.ts';
import type { World } from '../system/world.ts';
import { parseLine } from './messages.ts';

const chunkBytes = 1024 * 1024;

/** Whole lines of what stands in the transcript from byte `from` to byte `to`; throws the system's error. */
export function* printedLines({ files }: World, transcript: string, from: number, to: number): Generator<string> {
  const splitter = new LineSplitter();
  for (let at = from; at < to; ) {
    const chunk = files.readBytes(transcript, at, Math.min(chunkBytes, to - at));
    if (chunk.length === 0) return;
    at += chunk.length;
    yield* splitter.push(chunk);
  }
}

/** Ids of the model's messages in the first `size` bytes; throws the system's error. */
export function printedMessages(world: World, transcript: string, size: number): ReadonlySet<string> {
  const ids = new Set<string>();
  for (const line of printedLines(world, transcript, 0, size)) {
    const message = line.includes('"type":"assistant"') ? parseLine(line) : undefined;
    if (message?.kind === 'assistant') ids.add(message.messageId);
  }
  return ids;
}
