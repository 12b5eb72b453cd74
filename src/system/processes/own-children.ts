/** Children that this process has started and of whose end it has not been told: nobody else is given their pids. */

/** Start times, by pid; empty when nobody asked for it. */
const living = new Map<number, string>();

/** To be called in the breath in which the process was started, while it cannot have been waited for. */
export function noteChild(
  { pid, exited }: { readonly pid: number; readonly exited: Promise<unknown> },
  startTime = '',
): void {
  living.set(pid, startTime);
  const end = () => living.delete(pid);
  exited.then(end, end);
}

/** It is there, even if it has ended: a zombie of ours. */
export function isOwnChild(pid: number, startTime: string): boolean {
  return living.get(pid) === startTime;
}

/** Whether Bun waits for it. */
export function isStartedHere(pid: number): boolean {
  return living.has(pid);
}
