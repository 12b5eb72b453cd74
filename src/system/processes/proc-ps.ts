/** The process table where there is no /proc (macOS), from the output of ps(1). */
import { errorText } from '../../core/failure.ts';
import type { ProcEntry, ProcTable } from './proc-stat.ts';

/** Runs a system program and returns what it printed; '' when it found nothing. */
export type Ask = (program: string, args: readonly string[]) => string;

/**
 * The process group stands for the session: macOS prints 0 for every session, and a shell that starts its children in
 * sessions of their own also makes them leaders of groups with the same number.
 */
const columns = 'pid=,ppid=,pgid=,stat=,lstart=';

export function createPsTable(ask: Ask = askSystem): ProcTable {
  return {
    find: (pids) => (pids.length === 0 ? [] : parsePs(ask('ps', ['-o', columns, '-p', pids.join(',')]))),
    all: () => parsePs(ask('ps', ['-ax', '-o', columns])),
    marked: (name, value) => parseMarked(ask('ps', ['-axEww', '-o', 'pid=,command=']), `${name}=${value}`),
    // A second run of ps would describe another moment.
    children: () => null,
    valuesOf: () => [],
    bootId: () => ask('sysctl', ['-n', 'kern.bootsessionuuid']).trim(),
  };
}

/** Lines of `pid ppid group state start`, where the start is five words such as `Sun Nov  2 01:03:00 2025`. */
export function parsePs(text: string): ProcEntry[] {
  return text.split('\n').flatMap((line) => {
    const match = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S.*?)\s*$/.exec(line);
    if (match === null) return [];
    const [pid, parent, session] = match.slice(1, 4).map(Number) as [number, number, number];
    const [state, start] = match.slice(4) as [string, string];
    const startTime = start.replace(/\s+/g, ' ');
    const halted = state.startsWith('T') ? ({ halted: true } as const) : {};
    return [{ pid, parent, session, startTime, zombie: state.startsWith('Z'), ...halted }];
  });
}

/** Lines of a pid, the command and, as far as the system shows it, the environment behind it, all blank-separated. */
export function parseMarked(text: string, mark: string): number[] {
  return text.split('\n').flatMap((line) => {
    const match = /^\s*(\d+)\s(.*)$/.exec(line);
    const isMarked = match !== null && ` ${match[2]} `.includes(` ${mark} `);
    return isMarked ? [Number(match[1])] : [];
  });
}

function askSystem(program: string, args: readonly string[]): string {
  try {
    // Start times are printed as local time in the user's language; both are pinned, or they would not compare.
    const env = { PATH: '/bin:/usr/bin:/sbin:/usr/sbin', LC_ALL: 'C', TZ: 'UTC' };
    return Bun.spawnSync([program, ...args], { env, stdin: 'ignore', stderr: 'ignore' }).stdout.toString();
  } catch (error) {
    throw new Error(`Cannot ask ${program} for the processes of this machine: ${errorText(error)}.`);
  }
}
