/** The two calls that neither node nor Bun offers, taken from the C library: flock(2) and mkfifo(3). */
import { dlopen, read } from 'bun:ffi';
import { linuxNames } from './libc-names.ts';
import { systemError } from './system-error.ts';

interface Libc {
  /** 0 when done, else the errno. */
  flock(fd: number, operation: number): number;
  mkfifo(path: string, mode: number): number;
}

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
      };
    } catch (error) {
      cause = error;
    }
  }
  throw new Error(`No C library can be opened; tried ${names.join(', ')}.`, { cause });
}

let opened: Libc | undefined;

/** Opened on first use: most short commands need neither call. */
function libc(): Libc {
  opened ??= open();
  return opened;
}

/** Tries a flock(2) without waiting; false when another open file holds it. Other trouble is thrown. */
export function tryFlock(fd: number, operation: number, path: string): boolean {
  const errno = libc().flock(fd, operation | lockNonBlocking);
  if (errno === 0) return true;
  const error = systemError(errno, 'flock', path);
  const { code } = error as Error & { code: string };
  if (code === 'EAGAIN' || code === 'EWOULDBLOCK') return false;
  throw error;
}

/** Makes a FIFO; throws the system's error. */
export function makeFifo(path: string, mode: number): void {
  const errno = libc().mkfifo(path, mode);
  if (errno !== 0) throw systemError(errno, 'mkfifo', path);
}
