/** The kind of a file descriptor, determined without loading `process.stdout`. */
import { fstatSync, readFileSync } from 'node:fs';
import type { OwnCommand } from './own-program.ts';
import { helperMark, noteChild } from './processes/program.ts';

/** The device number of /dev/null and similar on Linux, to which programs without a terminal are often connected. */
const memoryDevices = 1;

/** Whether it can be a terminal: false when it certainly is none. */
export function mayBeTerminal(fd: number): boolean {
  try {
    const stats = fstatSync(fd);
    return stats.isCharacterDevice() && !(process.platform === 'linux' && stats.rdev >> 8 === memoryDevices);
  } catch {
    return true;
  }
}

/** Whether output goes to a regular file. */
export function isRegularFile(fd: number): boolean {
  try {
    return fstatSync(fd).isFile();
  } catch {
    return false;
  }
}

/** True when SIGHUP is ignored. Known on Linux only; elsewhere false. */
export function ignoresHangup(): boolean {
  try {
    const ignored = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
    // SIGHUP is signal 1, the lowest bit.
    return (BigInt(`0x${ignored}`) & 1n) === 1n;
  } catch {
    return false;
  }
}

// Programs outside attempts: one that uses the terminal for a while (editor, claude), or a detached one.

export interface ForegroundOptions {
  readonly words: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface ForegroundProcess {
  /** Its exit code; null when a signal ended it. */
  readonly exited: Promise<number | null>;
  /** Sends SIGHUP, like a closing terminal: an editor then saves its buffers. */
  hangUp(): void;
  /** Asks it to exit, or (`isPatient` false) kills it. */
  end(isPatient: boolean): void;
}

export function runInForeground({ words, cwd, env }: ForegroundOptions): ForegroundProcess {
  const child = Bun.spawn([...words], {
    cwd,
    env: { ...env, [helperMark]: '1' },
    stdio: ['inherit', 'inherit', 'inherit'],
  });
  noteChild(child);
  return {
    exited: child.exited.then(() => child.exitCode),
    hangUp: () => child.kill('SIGHUP'),
    end: (isPatient) => child.kill(isPatient ? 'SIGTERM' : 'SIGKILL'),
  };
}

/** Disables alternate screen (without moving the cursor), mouse, bracketed paste, enhanced keys and colours. */
const modesOff = ['[?1047l', '[?1000l', '[?1002l', '[?1003l', '[?1006l', '[?2004l', '[<u', '[0m', '[?25h']
  .map((sequence) => `\u001b${sequence}`)
  .join('');

/** Records the terminal's settings; the returned function restores them after a program was killed in it. */
export function keepTerminal(): () => void {
  const stty = (...args: string[]) => Bun.spawnSync(['stty', ...args], { stdio: ['inherit', 'pipe', 'ignore'] });
  let settings = '';
  try {
    settings = stty('-g').stdout.toString().trim();
  } catch {}
  return () => {
    process.stdout.write(modesOff);
    if (settings !== '') stty(settings);
  };
}

// A process without a waiting parent: it outlives this one and has no terminal.

export interface DetachedCommand {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Throws the system's error when it cannot be started. */
export function spawnDetached({ program, args: first }: OwnCommand, { args, cwd, env }: DetachedCommand): void {
  const stdio = ['ignore', 'ignore', 'ignore'] as const;
  const child = Bun.spawn([program, ...first, ...args], {
    cwd,
    env: { ...env, [helperMark]: '1' },
    stdio: [...stdio],
    detached: true,
  });
  noteChild(child);
  child.unref();
}
