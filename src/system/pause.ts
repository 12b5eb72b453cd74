/** A short wait that blocks the whole process: for programs that live for milliseconds, such as hooks. */

/** Waits `ms` milliseconds. Nothing else of this process goes on meanwhile. */
export function pauseBlocking(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
