/**
 * The guard of a host: a separate process that ends everything without a lease, even when the agent is dead or hanging,
 * or the host has slept. It restarts a killed agent. A shell next to it starts the next guard.
 */
import { join } from 'node:path';
import { interruptRequest } from '../../claude/control.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { GroupId, SessionId } from '../../core/group.ts';
import { isGroupId, isSessionId } from '../../core/id.ts';
import { parseOwn } from '../../store/json.ts';
import { groupPaths, type SessionPaths, sessionPaths } from '../../store/paths.ts';
import { delay } from '../../system/clock.ts';
import type { Files, World } from '../../system/world.ts';
import { LocalAttempt } from '../../worker/local-attempt.ts';
import { type FleetPaths, fleetPaths } from '../fleet-files.ts';

const lookMs = 500;
const againMs = 2_000;
/** claude answers an interrupt within moments, or never. */
const interruptMs = 1_500;
const lateMs = 3_000;
/** An agent that exits by itself empties its lock; a killed one leaves its name there. */
const agentGoneMs = 2_000;

export interface GuardOptions {
  readonly root: string;
  /** Absent where another program restarts the agent. */
  readonly startAgent?: () => void;
  /** Starts a shell in its own session that runs the script, with CCA_NEXT_GUARD as the command that starts a guard. */
  readonly startShell: (script: string, variables: Readonly<Record<string, string>>) => void;
  readonly onSignal: (action: () => void) => void;
  readonly tell: (line: string) => void;
}

/**
 * Starts the next guard when this one's file is outdated, and ends when the file is gone or belongs to another guard.
 * The commands are variables, so that killing agents and guards by their command line spares the shell.
 */
const nextGuard = `last=
while sleep 2; do
  now=$(cat "$CCA_GUARD_FILE" 2>/dev/null)
  case $now in *"\\"pid\\":$CCA_GUARD_PID,"*) ;; *) exit 0 ;; esac
  if [ "$now" = "$last" ]; then eval "$CCA_NEXT_GUARD"; [ $? = 4 ] || exit 0; fi
  last=$now
done`;

export async function serveGuard(world: World, options: GuardOptions): Promise<Result<void>> {
  const { root, onSignal, tell, startAgent, startShell } = options;
  const paths = fleetPaths(root);
  world.files.makeFolder(paths.folder);
  const holder = { identity: world.machine.self, runId: world.random.uuid() };
  const lock = world.locks.tryLock(paths.guardLock, holder);
  if (lock === null) return fail('busy', 'A guard runs on this host already.', 'One is enough: leave it.');
  const fence = new Fence(world, paths, tell);
  const ended = Promise.withResolvers<void>();
  let cancel = (): void => {};
  let agentGoneAt: number | null = null;
  const lookForAgent = (): void => {
    const isKilled =
      (world.files.readText(paths.agentLock) ?? '') !== '' && world.locks.holder(paths.agentLock) === null;
    const uptime = uptimeMs(world.files);
    agentGoneAt = isKilled ? (agentGoneAt ?? uptime) : null;
    if (agentGoneAt === null || uptime - agentGoneAt < agentGoneMs) return;
    agentGoneAt = null;
    startAgent?.();
  };
  const look = (): void => {
    cancel = world.clock.after(lookMs, look);
    try {
      // The host has left its fleet, and nothing is left to watch.
      if (world.files.entryKind(paths.host) === null && readLeases(world, paths).length === 0) {
        ended.resolve();
        return;
      }
      fence.look();
      noteGuard(world, paths);
      if (startAgent !== undefined) lookForAgent();
    } catch (error) {
      tell(`The guard failed: ${String(error)}`);
    }
  };
  onSignal(ended.resolve);
  look();
  startShell(nextGuard, { CCA_GUARD_FILE: paths.guard, CCA_GUARD_PID: String(world.machine.self.pid) });
  await ended.promise;
  cancel();
  world.files.remove(paths.guard);
  lock.release();
  return ok(undefined);
}

export function fencedNote(paths: FleetPaths, folder: string): string {
  return join(paths.slots, folder, 'fenced');
}

export class Fence {
  readonly #world: World;
  readonly #paths: FleetPaths;
  readonly #tell: (line: string) => void;
  readonly #ended = new Set<string>();

  constructor(world: World, paths: FleetPaths, tell: (line: string) => void) {
    this.#world = world;
    this.#paths = paths;
    this.#tell = tell;
  }

  look(): void {
    const uptime = uptimeMs(this.#world.files);
    for (const lease of readLeases(this.#world, this.#paths)) {
      if (!isOver(lease, uptime) || this.#ended.has(lease.attemptId)) continue;
      this.#ended.add(lease.attemptId);
      // A host that slept may be late, and the session may run elsewhere.
      void this.end(lease, isOver(lease, uptime - lateMs));
    }
  }

  /** `isLate`: at once. */
  async end(lease: AttemptLease, isLate = false): Promise<void> {
    const { attemptId, groupId, sessionId } = lease;
    try {
      if (!isGroupId(groupId) || !isSessionId(sessionId)) return;
      this.#note(lease);
      const paths = sessionPaths(groupPaths(this.#paths.work, groupId as GroupId), sessionId as SessionId);
      const subject = { attemptId, sessionId: sessionId as SessionId, paths };
      if (!isLate) await this.#interrupt(attemptId, paths);
      if (!(await new LocalAttempt(this.#world, subject).endNow()))
        this.#tell(`Some processes of attempt ${attemptId} could not be ended.`);
    } catch (error) {
      this.#tell(`Attempt ${attemptId} could not be ended: ${String(error)}`);
    }
    // Repeated until the agent has recorded it: one that was halted just before a start would start it afterwards.
    this.#world.clock.after(againMs, () => this.#ended.delete(attemptId));
  }

  /** claude stops its turn and reports its cost, which a signal would prevent. */
  async #interrupt(attemptId: string, { fifo }: SessionPaths): Promise<void> {
    const { fifos, clock } = this.#world;
    const writer = fifos.openWriter(fifo);
    writer?.writeLine(interruptRequest(attemptId));
    if (writer !== null) await delay(clock, interruptMs);
    writer?.close();
  }

  /** Synced before anything is ended, so that the reason survives a death of this process and the host. */
  #note({ folder }: AttemptLease): void {
    const note = fencedNote(this.#paths, folder);
    const { files } = this.#world;
    // Without its folder nothing reads the record.
    if (files.entryKind(note) !== null || files.entryKind(join(this.#paths.slots, folder)) !== 'folder') return;
    try {
      files.writeAtomic(note, '', { durable: true });
    } catch (error) {
      // A full disk must not prevent the end.
      this.#tell(`Why an attempt is ended cannot be noted: ${String(error)}`);
    }
  }
}

// Files shared by agent and guard: which attempts may run until when, and that the guard is running.

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
