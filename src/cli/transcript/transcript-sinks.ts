/** The forms in which a transcript is printed: byte for byte, for people, and as JSON. */
import type { SessionId } from '../../core/group.ts';
import type { TranscriptEntry } from '../../core/transcript.ts';
import { plainStyle } from '../../view/format.ts';
import { safeJson, spelledControls } from '../../view/terminal-text.ts';
import { type Line, wholeLine, wrapLine } from '../../view/transcript/line.ts';
import type { Output } from '../output.ts';
import { TranscriptRenderer } from './transcript.ts';

/** What becomes of the lines of a transcript and of the attempts between them. Nothing is written before `flush`. */
export interface TranscriptSink {
  entry(entry: TranscriptEntry): void;
  /** A line without its line end. */
  line(line: Uint8Array): void;
  /** Half a line whose worker is gone; the next attempt begins on a line of its own. */
  torn(line: Uint8Array): void;
  /** Where it is there, it gets the bytes as they come, and `line` is not called. */
  readonly chunk?: (bytes: Uint8Array) => void;
  flush(): void;
  /** Nothing follows. */
  end(): void;
}

/** The lines as they are, those that match where a pattern is given. */
export function rawSink(stdout: Output, grep: RegExp | undefined): TranscriptSink {
  const decoder = new TextDecoder();
  let held: Uint8Array[] = [];
  let isTorn = false;
  const isShown = stdout.isTerminal || stdout.isWorkflowLog;
  const print = (line: Uint8Array, end: string): void => {
    const needsText = grep !== undefined || isShown;
    const text = needsText ? decoder.decode(line) : '';
    if (grep !== undefined && !grep.test(text)) return;
    // JSON spells most control characters itself; what a hostile or damaged line holds must not reach a terminal.
    held.push(Buffer.from(isTorn ? '\n' : ''));
    held.push(isShown ? Buffer.from(spelledControls(text)) : line, Buffer.from(end));
    isTorn = end === '';
  };
  return {
    entry: () => {},
    line: (line) => print(line, '\n'),
    torn: (line) => print(line, isShown ? '\n' : ''),
    ...(grep === undefined && !isShown ? { chunk: (bytes: Uint8Array) => held.push(bytes) } : {}),
    flush() {
      const bytes = Buffer.concat(held);
      if (isShown) stdout.write(bytes.toString());
      else stdout.bytes(bytes);
      held = [];
    },
    end: () => {},
  };
}

/** Lines for people, broken where a terminal is too narrow for them. */
export function readableSink(stdout: Output, grep: RegExp | undefined): TranscriptSink {
  const decoder = new TextDecoder();
  const renderer = new TranscriptRenderer(stdout.style, true);
  let held: string[] = [];
  const print = (line: Line): void => {
    const whole = wholeLine(line);
    // Colours are ours and not part of what is looked for.
    if (grep !== undefined && !grep.test(Bun.stripANSI(whole))) return;
    held.push(...(stdout.isTerminal ? wrapLine(line, stdout.columns) : [whole]));
  };
  const show = (entry: TranscriptEntry): void => {
    for (const line of renderer.show(entry)) print(line);
  };
  const read = (line: Uint8Array): void => {
    for (const entry of renderer.read(decoder.decode(line))) show(entry);
  };
  return {
    entry: show,
    line: read,
    torn: (line) => {
      for (const entry of renderer.read(decoder.decode(line))) show(asTorn(entry));
    },
    flush() {
      if (held.length > 0) stdout.write(`${held.join('\n')}\n`);
      held = [];
    },
    end: () => {},
  };
}

/** One JSON document with the entries, those of which a line matches where a pattern is given. */
export function jsonSink(
  stdout: Output,
  grep: RegExp | undefined,
  session: { readonly groupId: string; readonly sessionId: SessionId },
): TranscriptSink {
  const decoder = new TextDecoder();
  const renderer = new TranscriptRenderer(plainStyle, true);
  const { groupId, sessionId } = session;
  let held = `{"groupId":${safeJson(groupId)},"sessionId":${safeJson(sessionId)},"entries":[`;
  let separator = '\n';
  const print = (entry: TranscriptEntry): void => {
    const lines = renderer.show(entry).map(wholeLine);
    if (grep !== undefined && !lines.some((line) => grep.test(line))) return;
    held += `${separator}${safeJson(entry)}`;
    separator = ',\n';
  };
  const read = (line: Uint8Array): void => {
    for (const entry of renderer.read(decoder.decode(line))) print(entry);
  };
  return {
    entry: print,
    line: read,
    torn: (line) => {
      for (const entry of renderer.read(decoder.decode(line))) print(asTorn(entry));
    },
    flush() {
      stdout.write(held);
      held = '';
    },
    end() {
      held += '\n]}\n';
    },
  };
}

/** A worker that is killed in the middle of a line has not printed nonsense. */
function asTorn(entry: TranscriptEntry): TranscriptEntry {
  return entry.kind === 'unreadable' ? { ...entry, torn: true } : entry;
}
