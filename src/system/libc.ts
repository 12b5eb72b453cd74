/** C library calls that neither node nor Bun offers: flock(2), mkfifo(3), and on Linux the adoption of orphans. */
import { dlopen, read } from 'bun:ffi';
import { systemError } from './system-error.ts';

/** glibc first, then musl (Alpine) under the names its loader knows. */
const linuxNames = ['libc.so.6', 'libc.musl-x86_64.so.1', 'libc.musl-aarch64.so.1', 'libc.so'];

interface Libc {
  /** 0 on success, otherwise the errno. */
  flock(fd: number, operation: number): number;
  mkfifo(path: string, mode: number): number;
  /** Null on other systems. */
  readonly linux: LinuxCalls | null;
}

interface LinuxCalls {
  prctl(option: number, first: bigint, second: bigint, third: bigint, fourth: bigint): number;
  waitpid(pid: number, status: null, options: number): number;
}

const linuxSymbols = {
  prctl: { args: ['i32', 'u64', 'u64', 'u64', 'u64'], returns: 'i32' },
  waitpid: { args: ['i32', 'ptr', 'i32'], returns: 'i32' },
} as const;

/** PR_SET_CHILD_SUBREAPER of prctl(2). */
const childSubreaper = 36;
/** WNOHANG of waitpid(2). */
const doNotWait = 1;

/** Operations of flock(2), the same numbers on Linux and macOS. */
export const lockShared = 1;
export const lockExclusive = 2;
const lockNonBlocking = 4;

function open(): Libc {
  const isMac = process.platform === 'darwin';
  const errnoSymbol = isMac ? '__error' : '__errno_location';
  const names = isMac ? ['libSystem.B.dylib'] : linuxNames;
  let cause: unknown;
  for (const name of names) {
    try {
      const { symbols } = dlopen(name, {
        flock: { args: ['i32', 'i32'], returns: 'i32' },
        mkfifo: { args: ['cstring', 'u32'], returns: 'i32' },
        [errnoSymbol]: { args: [], returns: 'ptr' },
      } as const);
      const location = symbols[errnoSymbol] as unknown as () => Parameters<typeof read.i32>[0];
      const errno = (result: number): number => (result === 0 ? 0 : read.i32(location(), 0));
      return {
        flock: (fd, operation) => errno(symbols.flock(fd, operation)),
        mkfifo: (path, mode) => errno(symbols.mkfifo(Buffer.from(`${path}\0`), mode)),
        linux: isMac ? null : dlopen(name, linuxSymbols).symbols,
      };
    } catch (error) {
      cause = error;
    }
  }
  throw new Error(`No C library can be opened; tried ${names.join(', ')}.`, { cause });
}

let opened: Libc | undefined;

function libc(): Libc {
  opened ??= open();
  return opened;
}

/** Tries a flock(2) without waiting; false when another open file holds it. Throws other errors. */
export function tryFlock(fd: number, operation: number, path: string): boolean {
  const errno = libc().flock(fd, operation | lockNonBlocking);
  if (errno === 0) return true;
  const error = systemError(errno, 'flock', path);
  const { code } = error as Error & { code: string };
  if (code === 'EAGAIN' || code === 'EWOULDBLOCK') return false;
  throw error;
}

export function makeFifo(path: string, mode: number): void {
  const errno = libc().mkfifo(path, mode);
  if (errno !== 0) throw systemError(errno, 'mkfifo', path);
}

/**
 * From now on descendants that lose their parent become children of this process; false on other systems. See
 * PR_SET_CHILD_SUBREAPER in prctl(2).
 */
export function becomeSubreaper(): boolean {
  return libc().linux?.prctl(childSubreaper, 1n, 0n, 0n, 0n) === 0;
}

/** Reaps, without blocking, one child that has ended. Not for children of Bun, which reaps them itself. */
export function waitForEnded(pid: number): void {
  libc().linux?.waitpid(pid, null, doNotWait);
}
