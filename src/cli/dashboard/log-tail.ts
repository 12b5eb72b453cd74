/** The last lines of a session's transcript as people read them, kept up to date by looking at the file. */
import { colourStyle } from '../../report/format.ts';
import { LineSplitter } from '../../runner/line-splitter.ts';
import type { World } from '../../world/world.ts';
import { TranscriptRenderer } from '../transcript.ts';

/** How far from its end a transcript is read, bytes. */
const tailBytes = 256 * 1024;
const linesMax = 1_000;
const newline = 0x0a;

export interface LogTail {
  /** Harmless, styled by `colourStyle`. */
  readonly lines: readonly string[];
  /** Reads what was added; true when there are other lines now. */
  refresh(): boolean;
}

export function tailLog(world: World, path: string): LogTail {
  let lines: string[] = [];
  let renderer = new TranscriptRenderer(colourStyle);
  let splitter = new LineSplitter();
  let offset = 0;
  const startAt = (from: number): void => {
    lines = [];
    renderer = new TranscriptRenderer(colourStyle);
    splitter = new LineSplitter();
    offset = from;
    if (from === 0) return;
    // The line in whose middle this may be is left out.
    const bytes = world.files.readBytes(path, from, tailBytes);
    const end = bytes.indexOf(newline);
    offset += end === -1 ? bytes.length : end + 1;
  };
  return {
    get lines() {
      return lines;
    },
    refresh() {
      const size = world.files.info(path)?.size ?? 0;
      if (size === offset) return false;
      if (size < offset || size - offset > tailBytes) startAt(Math.max(0, size - tailBytes));
      const bytes = world.files.readBytes(path, offset, Math.max(0, size - offset));
      offset += bytes.length;
      const added = splitter.push(bytes).flatMap((line) => renderer.render(line));
      lines = [...lines, ...added].slice(-linesMax);
      return added.length > 0;
    },
  };
}
