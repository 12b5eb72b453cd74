/** What agent and guard tell each other by files: which attempts may run until when, and that the guard runs. */
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
  /** Uptime at which the last renewal was sent that Redis has answered; 0 = none since boot; -1 = the lease is over. */
  readonly renewedAt: number;
}

interface LeaseFile {
  /** Uptimes of another boot mean nothing, and nothing of it lives. */
  readonly bootId: string;
  readonly leases: readonly AttemptLease[];
}

/** Not synced: after a power cut nothing runs that it could speak of. */
export function writeLeases({ files, machine }: World, { leases: path }: FleetPaths, leases: readonly AttemptLease[]) {
  files.writeAtomic(path, `${JSON.stringify({ bootId: machine.bootId, leases } satisfies LeaseFile)}\n`);
}

export function readLeases({ files, machine }: World, { leases: path }: FleetPaths): readonly AttemptLease[] {
  const found = parseOwn<LeaseFile>(files.readText(path));
  return found?.bootId === machine.bootId ? found.leases : [];
}

/** At that uptime nothing of the attempt may live any more. */
export function isOver({ renewedAt, leaseMs }: Pick<AttemptLease, 'renewedAt' | 'leaseMs'>, uptime: number): boolean {
  return renewedAt < 0 || uptime - renewedAt >= leaseMs;
}

export function noteGuard(world: World, { guard }: FleetPaths): void {
  const uptime = uptimeMs(world.files);
  const { bootId, self } = world.machine;
  world.files.writeAtomic(guard, `${JSON.stringify({ pid: self.pid, bootId, uptime })}\n`);
}

/** One that has not looked for so long does not count as living. */
const guardSilentMs = 5_000;

export function isGuarded(world: World, { guard }: FleetPaths): boolean {
  const found = parseOwn<{ readonly bootId: string; readonly uptime: number }>(world.files.readText(guard));
  if (found?.bootId !== world.machine.bootId) return false;
  return uptimeMs(world.files) - found.uptime <= guardSilentMs;
}

// Time since the host was started. It goes on while the host sleeps, and cannot be set.

/** Milliseconds. Throws where the system does not tell: a host of a fleet runs Linux. */
export function uptimeMs(files: Pick<Files, 'readText'>): number {
  const seconds = Number(files.readText('/proc/uptime')?.split(' ')[0]);
  if (!Number.isFinite(seconds)) throw new Error('The system does not tell in /proc/uptime since when it runs');
  return Math.round(seconds * 1_000);
}
