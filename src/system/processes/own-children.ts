/** Children that this process has started and Bun waits for. Nothing else may wait for these: Bun fails with ECHILD. */

/** Set for programs that are not part of an attempt, such as git or an editor; what they leave running is not ended. */
export const helperMark = 'CLAUDE_CODE_AGENT_HELPER';

/** Start times, by pid; empty when nothing needs it. */
const living = new Map<number, string>();

/** To be called in the same turn as the spawn, before Bun can have waited for the child. */
export function noteChild(
  { pid, exited }: { readonly pid: number; readonly exited: Promise<unknown> },
  startTime = '',
): void {
  living.set(pid, startTime);
  const end = () => living.delete(pid);
  exited.then(end, end);
}

/** It is there, even if it has ended: then it is a zombie of ours. */
export function isOwnChild(pid: number, startTime: string): boolean {
  return living.get(pid) === startTime;
}

export function isStartedHere(pid: number): boolean {
  return living.has(pid);
}
