/**
 * `group run` as a process of its own, and what it took: peak memory, CPU, syncs, time. The first two are read from
 * /proc and are 0 where there is none.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isolatedBunFlags } from '../../src/world/own-program.ts';
import type { DiskCounts } from './counting-world.ts';
import { type Figure, formatBytes, formatMs } from './figures.ts';
import type { BenchGroup } from './group-on-disk.ts';

export interface RunnerFigures {
  readonly peakBytes: number;
  /** Of the runner alone, without what it started. */
  readonly cpuMs: number;
  readonly wallMs: number;
  readonly counts: DiskCounts;
}

const lookMs = 100;
/** Ticks of /proc/PID/stat a second; the same on every Linux that is still in use. */
const ticksPerSecond = 100;
/** As the launcher starts src/main.ts. */
const program = [process.execPath, ...isolatedBunFlags, join(import.meta.dir, 'counted-main.ts')];

/** Runs the group to its end; throws when it does not complete. */
export async function measureRun(
  group: BenchGroup,
  env: Readonly<Record<string, string>>,
  concurrent: number,
): Promise<RunnerFigures> {
  const countsFile = join(group.folder, 'counts.json');
  const options = ['--concurrent', String(concurrent), '--min-free-memory', '1', '--output', 'quiet'];
  const begin = performance.now();
  const child = Bun.spawn([...program, 'group', 'run', group.groupId, ...options], {
    env: { ...group.env, ...env, BENCH_COUNTS: countsFile },
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  });
  let seen = { peakBytes: 0, cpuMs: 0 };
  const look = setInterval(() => {
    seen = lookAt(child.pid) ?? seen;
  }, lookMs);
  const stderr = await new Response(child.stderr).text();
  await child.exited;
  clearInterval(look);
  const wallMs = performance.now() - begin;
  if (child.exitCode !== 0) throw new Error(`group run ended with ${child.exitCode}: ${stderr}`);
  return { ...seen, wallMs, counts: JSON.parse(readFileSync(countsFile, 'utf8')) as DiskCounts };
}

/** Peak memory and CPU so far; null when the process is gone or there is no /proc. */
function lookAt(pid: number): { peakBytes: number; cpuMs: number } | null {
  try {
    const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // After the name, which may hold anything: state is the third field, user and system time are 14 and 15.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (peak === null) return null;
    const ticks = Number(fields[11]) + Number(fields[12]);
    return { peakBytes: Number(peak[1]) * 1024, cpuMs: (ticks / ticksPerSecond) * 1000 };
  } catch {
    return null;
  }
}

export function runnerRows(figures: RunnerFigures, sessions: number, peakTarget?: string): Figure[] {
  const { peakBytes, cpuMs, wallMs, counts } = figures;
  const each = (count: number) => (count / sessions).toFixed(1);
  return [
    {
      what: 'runner’s peak memory',
      value: formatBytes(peakBytes),
      ...(peakTarget === undefined ? {} : { beside: peakTarget }),
    },
    { what: 'runner’s CPU a session', value: formatMs(cpuMs / sessions), beside: `${formatMs(cpuMs)} in all` },
    {
      what: 'fsyncs a session',
      value: each(counts.syncs),
      beside: `${each(counts.appends)} appends, ${each(counts.replaces)} files replaced`,
    },
    { what: 'wall time', value: formatMs(wallMs), beside: `${formatMs(wallMs / sessions)} a session` },
  ];
}
