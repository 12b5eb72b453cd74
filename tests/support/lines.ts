/** Splits a stream on LF only: Bun's readline also splits on U+2028, which JSON strings may contain. */
import type { Readable } from 'node:stream';

/** Accepts text in pieces, and calls `onLine` for every complete line. */
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

/** Calls `onLine` for every complete line of a UTF-8 stream. */
export function onLines(stream: Readable, onLine: (line: string) => void): void {
  stream.setEncoding('utf8');
  stream.on('data', lineSplitter(onLine));
}
