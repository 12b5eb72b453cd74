/**
 * `group run` as a process of its own, and what it took: peak memory, CPU, syncs, time. The first two are read from
 * /proc and are 0 where there is none.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { noteTried } from '../../tests/support/tried.ts';
import type { DiskCounts } from './counted-main.ts';
import { atMost, type Figure, formatBytes, formatMs, measured, median } from './figures.ts';
import type { BenchGroup } from './group-on-disk.ts';
import { countedProgram } from './installed.ts';

export interface RunnerFigures {
  readonly peakBytes: number;
  /** Of the runner alone, without what it started. */
  readonly cpuMs: number;
  readonly wallMs: number;
  readonly counts: DiskCounts;
}

const lookMs = 20;
/** Ticks of /proc/PID/stat a second; the same on every Linux that is still in use. */
const ticksPerSecond = 100;

/** Runs the group to its end; throws when it does not complete. */
export async function measureRun(
  group: BenchGroup,
  env: Readonly<Record<string, string>>,
  concurrent: number,
): Promise<RunnerFigures> {
  const countsFile = join(group.folder, 'counts.json');
  const options = ['--concurrent', String(concurrent), '--min-free-memory', '1', '--output', 'quiet'];
  const program = countedProgram();
  noteTried(group.env.CLAUDE_CODE_AGENT_HOME ?? '', env.CLAUDE_CODE_AGENT_CLAUDE ?? '');
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

export interface RunnerTargets {
  readonly peakBytes?: number;
  readonly cpuMsEach?: number;
  readonly syncsEach?: number;
}

/** What runs of the same group took. */
export function runnerRows(runs: readonly RunnerFigures[], sessions: number, targets: RunnerTargets = {}): Figure[] {
  const of = (read: (run: RunnerFigures) => number) => runs.map(read);
  const each = (read: (counts: DiskCounts) => number) => of(({ counts }) => read(counts) / sessions);
  const row = (
    what: string,
    values: readonly number[],
    format: (value: number) => string,
    limit?: number,
    note?: string,
  ): Figure => ({
    ...measured(what, values, format),
    ...(limit === undefined ? {} : { target: atMost(median(values), limit, format) }),
    ...(note === undefined ? {} : { note }),
  });
  const appends = median(each((counts) => counts.appends)).toFixed(1);
  const replaces = median(each((counts) => counts.replaces)).toFixed(1);
  const writes = `${appends} appends, ${replaces} files replaced`;
  const cpuEach = of(({ cpuMs }) => cpuMs / sessions);
  return [
    row(
      'runner’s peak memory',
      of(({ peakBytes }) => peakBytes),
      formatBytes,
      targets.peakBytes,
    ),
    row('runner’s CPU a session', cpuEach, formatMs, targets.cpuMsEach, 'user and system, without what it starts'),
    row(
      'fsyncs a session',
      each((counts) => counts.syncs),
      (count) => count.toFixed(1),
      targets.syncsEach,
      writes,
    ),
    row(
      'wall time of the run',
      of(({ wallMs }) => wallMs),
      formatMs,
    ),
  ];
}
