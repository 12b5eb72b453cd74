/** Processes of another container (pid namespace) of this machine. */
import type { ProcessIdentity } from './event.ts';

/** Its pid says nothing here, though it is of this boot of this machine. */
export function isOutOfSight(process: ProcessIdentity, self: ProcessIdentity): boolean {
  const [theirs, ours] = [process.pidNamespace, self.pidNamespace];
  return process.bootId === self.bootId && theirs !== undefined && ours !== undefined && theirs !== ours;
}
