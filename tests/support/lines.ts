/** Splits a stream on LF only: Bun's readline also splits on U+2028, which may stand inside a JSON string. */
import type { Readable } from 'node:stream';

/** Takes a text in pieces, and calls `onLine` for every whole line of it. */
export function lineSplitter(onLine: (line: string) => void): (chunk: string) => void {
  let parts: string[] = [];
  return (chunk) => {
    let start = 0;
    for (let end = chunk.indexOf('\n'); end !== -1; end = chunk.indexOf('\n', start)) {
      parts.push(chunk.slice(start, end));
      start = end + 1;
      onLine(parts.join(''));
      parts = [];
    }
    parts.push(chunk.slice(start));
  };
}

/** Calls `onLine` for every whole line of a stream of UTF-8. */
export function onLines(stream: Readable, onLine: (line: string) => void): void {
  stream.setEncoding('utf8');
  stream.on('data', lineSplitter(onLine));
}
