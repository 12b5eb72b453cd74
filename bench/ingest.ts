/** How fast a transcript is taken in, against the least that any reader of JSON lines has to do. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseLine } from '../src/claude/messages.ts';
import { emptyStream, foldMessage } from '../src/claude/stream.ts';
import { followTranscript } from '../src/runner/transcript-follower.ts';
import { createRealWorld } from '../src/world/real-world.ts';
import { type Benchmark, type Figure, formatBytes, formatMs, formatRate, median, ratio, timed } from './support/figures.ts';
import { makeStream, StreamWriter } from './support/stream-lines.ts';

const streamBytes = 220_000_000;
const rounds = 3;
const bigChars = 9_800_000;

export const ingest: Benchmark = {
  about: 'A transcript of 220 MB read by follower, parseLine and foldMessage; beside it JSON.parse of its lines alone.',
  async run() {
    const folder = mkdtempSync(join(tmpdir(), 'cca-bench-'));
    try {
      return [...measureStream(join(folder, 'transcript.jsonl')), ...measureBigLines(join(folder, 'big.jsonl'))];
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

function measureStream(path: string): Figure[] {
  const { text, lines } = makeStream(streamBytes);
  writeFileSync(path, text);
  const bytes = Buffer.byteLength(text);
  const ours: number[] = [];
  const bare: number[] = [];
  // In turns, so that both meet the same other load.
  for (let round = 0; round < rounds; round += 1) {
    ours.push(timed(() => expectLines(take(path), lines)));
    bare.push(timed(() => expectLines(parseAll(path), lines)));
  }
  const size = `${formatBytes(bytes)} in ${lines} lines`;
  return [
    { what: 'transcript taken in', value: formatRate(bytes, median(ours)), beside: `target ≥ 200 MB/s; ${size}` },
    { what: 'bare JSON.parse of its lines', value: formatRate(bytes, median(bare)) },
    { what: 'ours against bare', value: ratio(median(bare), median(ours)), beside: 'speed; 1 = the same' },
    { what: 'one line', value: formatMs(median(ours) / lines), beside: `${formatBytes(Math.round(bytes / lines))}` },
  ];
}

function measureBigLines(path: string): Figure[] {
  const count = 5;
  const line = new StreamWriter(2).bigResult(bigChars);
  writeFileSync(path, `${line}\n`.repeat(count));
  const bytes = (Buffer.byteLength(line) + 1) * count;
  const ours: number[] = [];
  const bare: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    ours.push(timed(() => expectLines(take(path), count)));
    bare.push(timed(() => expectLines(parseAll(path), count)));
  }
  return [
    {
      what: `lines of ${formatBytes(Buffer.byteLength(line))} taken in`,
      value: formatRate(bytes, median(ours)),
      beside: `${ratio(median(bare), median(ours))} the speed of bare JSON.parse`,
    },
  ];
}

/** What a worker does with its lines; returns their number. */
function take(path: string): number {
  const stream = emptyStream();
  const world = createRealWorld();
  const follower = followTranscript(world, path, join(path, '..'), 0, (line) => {
    foldMessage(stream, parseLine(line));
  });
  follower.finish();
  return stream.malformed === 0 ? stream.lines : -1;
}

/** The least there is to do: the file at once, its lines, JSON.parse. */
function parseAll(path: string): number {
  const bytes = readFileSync(path);
  let lines = 0;
  let start = 0;
  for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, start)) {
    JSON.parse(bytes.toString('utf8', start, end));
    lines += 1;
    start = end + 1;
  }
  return lines;
}

function expectLines(found: number, wanted: number): void {
  if (found !== wanted) throw new Error(`${found} lines were read, not ${wanted}`);
}
