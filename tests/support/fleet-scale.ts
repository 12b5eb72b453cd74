/**
 * Many short sessions on several machines, with a runner that is killed again and again: how often each was started,
 * what all of it cost, and what is left running.
 */
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { attemptMark } from '../../src/claude/launch/environment.ts';
import { launcher } from './cli.ts';
import { type FleetGround, openGround } from './fleet-ground.ts';
import { noteTried } from './tried.ts';

export const tinyClaude = join(import.meta.dir, '../../bench/support/tiny-claude.sh');
const lookMs = 20;
/** Ticks of /proc/PID/stat a second; the same on every Linux that is still in use. */
const ticksPerSecond = 100;

export interface ScaleShape {
  readonly sessions: number;
  readonly machines: number;
  /** Of each machine. */
  readonly slots: number;
  /** How long each session works. */
  readonly seconds: number;
  /** How often the runner is killed, evenly spread over the sessions. */
  readonly kills: number;
}

/** Milliseconds of a process, and of the ones that it has started and waited for. */
export interface Cpu {
  readonly own: number;
  readonly started: number;
}

export interface ScaleResult {
  readonly wallMs: number;
  /** How often a claude was told the task of each session, by the claudes themselves. */
  readonly starts: ReadonlyMap<string, number>;
  readonly kills: number;
  readonly runner: Cpu;
  readonly agents: Cpu;
  readonly redis: Cpu;
  readonly ground: FleetGround;
}

/** The ground is the caller's to close. Throws when the group does not complete. */
export async function runAtScale(shape: ScaleShape): Promise<ScaleResult> {
  const names = Array.from({ length: shape.sessions }, (_, index) => `s${index + 1}`);
  const machines = Array.from({ length: shape.machines }, (_, index) => [`m${index + 1}`, { slots: shape.slots }]);
  const env = { ANTHROPIC_API_KEY: 'test-key', BENCH_STEP_SECONDS: String(shape.seconds) };
  const ground = await openGround(
    names.map((name) => ({ name })),
    {
      machines: Object.fromEntries(machines),
      claude: (folder) => countingClaude(folder),
      env,
      leaseMs: 60_000,
      config: { where: 'fleet', maxConcurrentSessions: shape.sessions },
    },
  );
  try {
    return { ...(await runToEnd(ground, shape)), ground };
  } catch (error) {
    await ground.close();
    throw error;
  }
}

/** The smallest claude, which makes a file in its folder and notes in another one when it is told its task. */
function countingClaude(folder: string): string {
  const program = join(folder, 'claude');
  const text = `#!/bin/sh
case $1 in
--version | --help | auth) exec '${tinyClaude}' "$@" ;;
esac
echo made >made.txt
BENCH_PROMPTED='${startsFile(folder)}'
export BENCH_PROMPTED
exec '${tinyClaude}' "$@"
`;
  writeFileSync(program, text);
  chmodSync(program, 0o755);
  return program;
}

const startsFile = (folder: string): string => join(folder, 'starts');

async function runToEnd(ground: FleetGround, shape: ScaleShape): Promise<Omit<ScaleResult, 'ground'>> {
  const { group, machines, server } = ground;
  const { folder } = group;
  const claude = join(folder, 'claude');
  const begin = performance.now();
  const runner = { own: 0, started: 0 };
  let kills = 0;
  let done = doneIn(group.paths.events);
  for (;;) {
    const child = startRunner(ground, claude);
    let seen: Cpu = { own: 0, started: 0 };
    while (child.exitCode === null && child.signalCode === null) {
      await Bun.sleep(lookMs);
      seen = cpuOf(child.pid) ?? seen;
      done = doneIn(group.paths.events);
      const isDue = kills < shape.kills && done >= ((kills + 1) * shape.sessions) / (shape.kills + 1);
      if (!isDue) continue;
      child.kill('SIGKILL');
      await child.exited;
      kills += 1;
    }
    runner.own += seen.own;
    runner.started += seen.started;
    if (child.signalCode === 'SIGKILL') continue;
    if (child.exitCode === 0) break;
    const wrong = group.events().filter(({ type }) => /failed|lost|paused/.test(type));
    const said = readFileSync(join(folder, 'runner.stderr'), 'utf8');
    throw new Error(
      `group run ended with ${child.exitCode}: ${said}\n${wrong.map((one) => JSON.stringify(one)).join('\n')}`,
    );
  }
  const wallMs = performance.now() - begin;
  const agents = Object.values(machines).map(({ pid }) => cpuOf(pid));
  const starts = new Map<string, number>();
  for (const line of readFileSync(startsFile(folder), 'utf8').trim().split('\n')) {
    const id = /\d{3,}-[0-9a-f-]{36}/.exec(line)?.[0] ?? line;
    starts.set(id, (starts.get(id) ?? 0) + 1);
  }
  return { wallMs, kills, starts, runner, agents: sum(agents), redis: sum([cpuOf(server.pid)]) };
}

/** `group run` as a process of its own. */
export function startRunner({ group }: FleetGround, claude: string): Bun.Subprocess {
  const { folder, root, groupId } = group;
  noteTried(root, claude);
  return Bun.spawn([launcher, 'group', 'run', groupId, '--min-free-memory', '1', '--output', 'quiet'], {
    env: {
      ...{ PATH: process.env.PATH ?? '', HOME: folder, LANG: 'C.UTF-8', CLAUDE_CODE_AGENT_HOME: root },
      ...{ CLAUDE_CODE_AGENT_CLAUDE: claude, ANTHROPIC_API_KEY: 'test-key' },
    },
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: Bun.file(join(folder, 'runner.stderr')),
  });
}

/** Read anew each time only as far as it has grown. */
const counted = new Map<string, { offset: number; done: number }>();
function doneIn(path: string): number {
  if (!existsSync(path)) return 0;
  const known = counted.get(path) ?? { offset: 0, done: 0 };
  const bytes = readFileSync(path).subarray(known.offset);
  const whole = bytes.subarray(0, bytes.lastIndexOf(10) + 1);
  const done = known.done + whole.toString().split('"session_completed"').length - 1;
  counted.set(path, { offset: known.offset + whole.length, done });
  return done;
}

export function sum(all: readonly (Cpu | null)[]): Cpu {
  const of = (read: (cpu: Cpu) => number) => all.reduce((total, cpu) => total + (cpu === null ? 0 : read(cpu)), 0);
  return { own: of(({ own }) => own), started: of(({ started }) => started) };
}

/** Null when the process is gone. */
export function cpuOf(pid: number): Cpu | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // After the name, which may hold anything: state is the third field, the times are 14 to 17.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const ms = (first: number) => ((Number(fields[first]) + Number(fields[first + 1])) / ticksPerSecond) * 1000;
    return { own: ms(11), started: ms(13) };
  } catch {
    return null;
  }
}

/** Pids of what runs still of any attempt of the group. */
export function leftOf({ group }: FleetGround): number[] {
  const attempts = group.events().flatMap((event) => (event.type === 'session_starting' ? [event.attempt.id] : []));
  return attempts.flatMap((id) => group.world.processes.findMarked(attemptMark, id).map(({ pid }) => pid));
}
