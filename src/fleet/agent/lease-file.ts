/** Files shared by agent and guard: which attempts may run until when, and that the guard is running. */
import { parseOwn } from '../../store/json.ts';
import type { Files, World } from '../../system/world.ts';
import type { FleetPaths } from '../fleet-files.ts';

export interface AttemptLease {
  readonly attemptId: string;
  readonly groupId: string;
  readonly sessionId: string;
  readonly folder: string;
  readonly token: string;
  readonly leaseMs: number;
  /** Uptime at the last renewal that Redis confirmed; 0 = none since boot; -1 = the lease has expired. */
  readonly renewedAt: number;
}

interface LeaseFile {
  /** Uptimes of another boot are meaningless, and none of its processes is alive. */
  readonly bootId: string;
  readonly leases: readonly AttemptLease[];
}

/** Not synced: after a power cut none of its attempts is running. */
export function writeLeases({ files, machine }: World, { leases: path }: FleetPaths, leases: readonly AttemptLease[]) {
  files.writeAtomic(path, `${JSON.stringify({ bootId: machine.bootId, leases } satisfies LeaseFile)}\n`);
}

export function readLeases({ files, machine }: World, { leases: path }: FleetPaths): readonly AttemptLease[] {
  const found = parseOwn<LeaseFile>(files.readText(path));
  return found?.bootId === machine.bootId ? found.leases : [];
}

/** At that uptime no process of the attempt may be alive. */
export function isOver({ renewedAt, leaseMs }: Pick<AttemptLease, 'renewedAt' | 'leaseMs'>, uptime: number): boolean {
  return renewedAt < 0 || uptime - renewedAt >= leaseMs;
}

export function noteGuard(world: World, { guard }: FleetPaths): void {
  const uptime = uptimeMs(world.files);
  const { bootId, self } = world.machine;
  world.files.writeAtomic(guard, `${JSON.stringify({ pid: self.pid, bootId, uptime })}\n`);
}

/** A guard that has not checked for this long does not count as alive. */
const guardSilentMs = 5_000;

export function isGuarded(world: World, { guard }: FleetPaths): boolean {
  const found = parseOwn<{ readonly bootId: string; readonly uptime: number }>(world.files.readText(guard));
  if (found?.bootId !== world.machine.bootId) return false;
  return uptimeMs(world.files) - found.uptime <= guardSilentMs;
}

// Time since the host's boot. It includes sleep, and cannot be set.

/** Milliseconds. Throws on other systems: a host of a fleet runs Linux. */
export function uptimeMs(files: Pick<Files, 'readText'>): number {
  const seconds = Number(files.readText('/proc/uptime')?.split(' ')[0]);
  if (!Number.isFinite(seconds)) throw new Error('The system does not tell in /proc/uptime since when it runs');
  return Math.round(seconds * 1_000);
}
