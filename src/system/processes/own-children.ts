/** Children that this process has started and Bun reaps. No other code may reap these: Bun would fail with ECHILD. */

/** Set for programs outside attempts, such as git or an editor; processes that they leave running are not ended. */
export const helperMark = 'CLAUDE_CODE_AGENT_HELPER';

/** Start times, by pid; empty when nothing needs it. */
const living = new Map<number, string>();

/** Call in the same turn as the spawn, before Bun can have reaped the child. */
export function noteChild(
  { pid, exited }: { readonly pid: number; readonly exited: Promise<unknown> },
  startTime = '',
): void {
  living.set(pid, startTime);
  const end = () => living.delete(pid);
  exited.then(end, end);
}

/** It exists, even if it has ended: then it is a zombie of ours. */
export function isOwnChild(pid: number, startTime: string): boolean {
  return living.get(pid) === startTime;
}

export function isStartedHere(pid: number): boolean {
  return living.has(pid);
}
