/** Named pipes, through which any runner sends a worker its prompt and its control requests. */
import { closeSync, constants, fstatSync, openSync, rmSync, writeSync } from 'node:fs';
import { createClock } from './clock.ts';
import { makeFifo } from './libc.ts';
import { errorCode } from './system-error.ts';
import type { Clock, Fifos, FifoWriter } from './world.ts';

const mode = 0o600;

/** A pipe holds 64 KiB, so a long line takes several rounds; a busy reader is retried less and less often. */
const firstRetryMs = 2;
const lastRetryMs = 100;

/** `clock` schedules the next try after a full pipe. */
export function createFifos(clock: Pick<Clock, 'after'> = createClock()): Fifos {
  return { create, openWriter: (path) => openWriter(path, clock) };
}

function create(path: string): void {
  try {
    makeFifo(path, mode);
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
    rmSync(path, { force: true });
    makeFifo(path, mode);
  }
}

function openWriter(path: string, clock: Pick<Clock, 'after'>): FifoWriter | null {
  const fd = openWithoutWaiting(path);
  if (fd === null) return null;
  // A regular file in its place would swallow every request unread.
  if (fstatSync(fd).isFIFO()) return new QueuedWriter(fd, clock);
  closeSync(fd);
  return null;
}

function openWithoutWaiting(path: string): number | null {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  } catch (error) {
    // ENXIO: no process reads. ELOOP: the path is a symlink, which may lead to another file.
    if (['ENXIO', 'ENOENT', 'ENOTDIR', 'ELOOP'].includes(errorCode(error))) return null;
    throw error;
  }
}

class QueuedWriter implements FifoWriter {
  readonly #fd: number;
  readonly #clock: Pick<Clock, 'after'>;
  #queue: Uint8Array[] = [];
  #retryMs = firstRetryMs;
  #cancelRetry: (() => void) | null = null;
  #closed = false;

  constructor(fd: number, clock: Pick<Clock, 'after'>) {
    this.#fd = fd;
    this.#clock = clock;
  }

  writeLine(line: string): void {
    if (this.#closed) return;
    this.#queue.push(Buffer.from(`${line}\n`));
    if (this.#cancelRetry === null) this.#flush();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#drop();
    closeSync(this.#fd);
  }

  #flush(): void {
    this.#cancelRetry = null;
    for (let bytes = this.#queue[0]; bytes !== undefined; bytes = this.#queue[0]) {
      const written = this.#write(bytes);
      if (written === null) return;
      if (written === 0) {
        this.#retryLater();
        return;
      }
      this.#retryMs = firstRetryMs;
      if (written === bytes.length) this.#queue.shift();
      else this.#queue[0] = bytes.subarray(written);
    }
  }

  /** Bytes that the pipe took; null when the reader is gone and the queue was dropped. */
  #write(bytes: Uint8Array): number | null {
    try {
      return writeSync(this.#fd, bytes);
    } catch (error) {
      const code = errorCode(error);
      if (code === 'EAGAIN' || code === 'EINTR') return 0;
      if (code !== 'EPIPE') throw error;
      // The end of the reader is detected and reported where its process is followed.
      this.#drop();
      return null;
    }
  }

  #retryLater(): void {
    this.#cancelRetry = this.#clock.after(this.#retryMs, () => this.#flush());
    this.#retryMs = Math.min(this.#retryMs * 2, lastRetryMs);
  }

  #drop(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = null;
    this.#queue = [];
  }
}
