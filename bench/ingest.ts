/** How fast a transcript is taken in, against the least that any reader of JSON lines has to do. */
import { appendFileSync, closeSync, mkdtempSync, openSync, readSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseLine } from '../src/claude/messages.ts';
import { emptyStream, foldMessage } from '../src/claude/stream.ts';
import { createRealWorld } from '../src/system/real-world.ts';
import { TranscriptFollower } from '../src/worker/attempt/transcript-follower.ts';
import {
  atLeast,
  type Benchmark,
  type Effort,
  type Figure,
  formatBytes,
  formatRate,
  lacking,
  measured,
  median,
  missing,
  ratio,
} from './support/figures.ts';
import { StreamWriter, writeStream } from './support/stream-lines.ts';

const streamBytes = 220_000_000;
const quickStreamBytes = 22_000_000;
/** jq takes its time; its rate over a part of the stream is that over all of it. */
const jqBytes = 44_000_000;
const targetBytesPerMs = 200_000;
const bigChars = 9_800_000;
const bigLines = 8;
const chunkBytes = 1024 * 1024;

export const ingest: Benchmark = {
  about: ({ isQuick }) =>
    `A transcript of ${(isQuick ? quickStreamBytes : streamBytes) / 1e6} MB read by follower, parseLine and ` +
    'foldMessage; beside it JSON.parse of its lines alone, and `jq -c .` over a part of it.',
  async run(effort) {
    const folder = mkdtempSync(join(tmpdir(), 'cca-bench-'));
    try {
      return [...measureStream(folder, effort), ...measureBigLines(join(folder, 'big.jsonl'), effort)];
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

function measureStream(folder: string, { isQuick, rounds }: Effort): Figure[] {
  const path = join(folder, 'transcript.jsonl');
  const lines = writeStream(isQuick ? quickStreamBytes : streamBytes, (piece) => appendFileSync(path, piece));
  const part = join(folder, 'part.jsonl');
  writeStream(jqBytes, (piece) => appendFileSync(part, piece));
  const bytes = statSync(path).size;
  const partBytes = statSync(part).size;
  const absent = lacking(['jq']);
  const ours: Times[] = [];
  const bare: Times[] = [];
  const jq: number[] = [];
  // In turns, so that all meet the same other load.
  for (let round = 0; round < rounds; round += 1) {
    ours.push(measure(() => takeIn(path), lines));
    bare.push(measure(() => parseAll(path), lines));
    if (absent.length === 0) jq.push((timeOfJq(part) * bytes) / partBytes);
  }
  const wall = (times: readonly Times[]) => times.map(({ wallMs }) => wallMs);
  const cpuMs = (times: readonly Times[]) => median(times.map((time) => time.cpuMs));
  const format = (ms: number) => formatRate(bytes, ms);
  const row = (what: string, values: readonly number[], note: string): Figure => ({
    ...measured(what, values, format),
    ratio: values === oursWall ? '1' : `${ratio(median(oursWall), median(values))} the speed of ours`,
    note,
  });
  const oursWall = wall(ours);
  const size = `${formatBytes(bytes)} in ${lines} lines; ${format(cpuMs(ours))} by CPU time`;
  const target = atLeast(bytes / median(oursWall), targetBytesPerMs, '200 MB/s');
  return [
    { ...row('transcript taken in', oursWall, size), target },
    row('bare JSON.parse of its lines', wall(bare), `${format(cpuMs(bare))} by CPU time`),
    ...(absent.length > 0
      ? [missing('jq -c .', absent)]
      : [row('jq -c .', jq, `over ${formatBytes(partBytes)} of it`)]),
  ];
}

function measureBigLines(path: string, { rounds }: Effort): Figure[] {
  const line = new StreamWriter(2).bigResult(bigChars);
  for (let count = 0; count < bigLines; count += 1) appendFileSync(path, `${line}\n`);
  const bytes = statSync(path).size;
  const ours = Array.from({ length: rounds }, () => measure(() => takeIn(path), bigLines).wallMs);
  return [measured(`lines of ${formatBytes(bytes / bigLines)} taken in`, ours, (ms) => formatRate(bytes, ms))];
}

interface Times {
  readonly wallMs: number;
  readonly cpuMs: number;
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

function timeOfJq(path: string): number {
  const begin = performance.now();
  const { exitCode } = Bun.spawnSync(['jq', '-c', '.', path], { stdin: 'ignore', stdout: 'ignore', stderr: 'inherit' });
  if (exitCode !== 0) throw new Error(`jq ended with ${exitCode}`);
  return performance.now() - begin;
}

/** What a worker does with its lines; returns their number. */
function takeIn(path: string): number {
  const stream = emptyStream();
  const onLine = (line: string) => foldMessage(stream, parseLine(line));
  const follower = new TranscriptFollower(createRealWorld(), { path, offset: 0, onLine });
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
