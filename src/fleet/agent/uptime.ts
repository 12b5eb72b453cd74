/** Time since the machine was started. It goes on while the machine sleeps, and nobody sets it. */
import type { Files } from '../../system/world.ts';

/** Milliseconds. Throws where the system does not tell: a machine of a fleet runs Linux. */
export function uptimeMs(files: Pick<Files, 'readText'>): number {
  const seconds = Number(files.readText('/proc/uptime')?.split(' ')[0]);
  if (!Number.isFinite(seconds)) throw new Error('The system does not tell in /proc/uptime since when it runs');
  return Math.round(seconds * 1_000);
}
