/** How fast a transcript is taken in, against the least that any reader of JSON lines has to do. */
import { appendFileSync, closeSync, mkdtempSync, openSync, readSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseLine } from '../src/claude/messages.ts';
import { emptyStream, foldMessage } from '../src/claude/stream.ts';
import { followTranscript } from '../src/runner/transcript-follower.ts';
import { createRealWorld } from '../src/world/real-world.ts';
import { type Benchmark, type Figure, formatBytes, formatMs, formatRate, median, ratio } from './support/figures.ts';
import { StreamWriter, writeStream } from './support/stream-lines.ts';

const streamBytes = 220_000_000;
const rounds = 5;
const bigChars = 9_800_000;
const bigLines = 8;
const chunkBytes = 1024 * 1024;

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
  const lines = writeStream(streamBytes, (piece) => appendFileSync(path, piece));
  const { ours, bare, bytes } = compare(path, lines);
  const size = `${formatBytes(bytes)} in ${lines} lines`;
  return [
    { what: 'transcript taken in', value: formatRate(bytes, ours.wallMs), beside: `target ≥ 200 MB/s; ${size}` },
    { what: 'the same by CPU time', value: formatRate(bytes, ours.cpuMs), beside: 'other load left out' },
    { what: 'bare JSON.parse of its lines', value: formatRate(bytes, bare.wallMs) },
    { what: 'ours against bare, by CPU time', value: ratio(bare.cpuMs, ours.cpuMs), beside: 'speed; 1 = the same' },
    { what: 'one line', value: formatMs(ours.wallMs / lines), beside: `of ${formatBytes(Math.round(bytes / lines))}` },
  ];
}

function measureBigLines(path: string): Figure[] {
  const line = new StreamWriter(2).bigResult(bigChars);
  for (let count = 0; count < bigLines; count += 1) appendFileSync(path, `${line}\n`);
  const { ours, bare, bytes } = compare(path, bigLines);
  const speed = `${ratio(bare.cpuMs, ours.cpuMs)} the speed of bare JSON.parse, by CPU time`;
  const what = `lines of ${formatBytes(bytes / bigLines)} taken in`;
  return [{ what, value: formatRate(bytes, ours.wallMs), beside: speed }];
}

interface Times {
  readonly wallMs: number;
  readonly cpuMs: number;
}

/** Medians of both ways to read a file, in turns so that both meet the same other load. */
function compare(path: string, lines: number): { ours: Times; bare: Times; bytes: number } {
  const ours: Times[] = [];
  const bare: Times[] = [];
  for (let round = 0; round < rounds; round += 1) {
    ours.push(measure(() => takeIn(path), lines));
    bare.push(measure(() => parseAll(path), lines));
  }
  return { ours: medianOf(ours), bare: medianOf(bare), bytes: statSync(path).size };
}

function measure(read: () => number, lines: number): Times {
  Bun.gc(true);
  const cpu = process.cpuUsage();
  const begin = performance.now();
  const found = read();
  const wallMs = performance.now() - begin;
  const { user, system } = process.cpuUsage(cpu);
  if (found !== lines) throw new Error(`${found} lines were read, not ${lines}`);
  return { wallMs, cpuMs: (user + system) / 1000 };
}

function medianOf(times: readonly Times[]): Times {
  return { wallMs: median(times.map(({ wallMs }) => wallMs)), cpuMs: median(times.map(({ cpuMs }) => cpuMs)) };
}

/** What a worker does with its lines; returns their number. */
function takeIn(path: string): number {
  const stream = emptyStream();
  const follower = followTranscript(createRealWorld(), path, dirname(path), 0, (line) => {
    foldMessage(stream, parseLine(line));
  });
  follower.finish();
  return stream.lines - stream.malformed;
}

/** The least there is to do: chunks of the file, their lines, JSON.parse. */
function parseAll(path: string): number {
  const fd = openSync(path, 'r');
  const chunk = Buffer.alloc(chunkBytes);
  let half: Buffer[] = [];
  let lines = 0;
  for (let got = readSync(fd, chunk); got > 0; got = readSync(fd, chunk)) {
    const bytes = chunk.subarray(0, got);
    let start = 0;
    for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, start)) {
      const piece = bytes.subarray(start, end);
      JSON.parse((half.length === 0 ? piece : Buffer.concat([...half, piece])).toString());
      half = [];
      lines += 1;
      start = end + 1;
    }
    if (start < got) half.push(Buffer.from(bytes.subarray(start)));
  }
  closeSync(fd);
  return lines;
}
