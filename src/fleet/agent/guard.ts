/**
 * The guard of a host: a process of its own that ends whatever has no lease any more, also when the agent is gone or
 * hangs, or the host has slept. It starts an agent again that was killed. A shell beside it starts the next guard.
 */
import { join } from 'node:path';
import { interruptRequest } from '../../claude/control.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { GroupId, SessionId } from '../../core/group.ts';
import { isGroupId, isSessionId } from '../../core/id.ts';
import { groupPaths, type SessionPaths, sessionPaths } from '../../store/paths.ts';
import { delay } from '../../system/clock.ts';
import type { World } from '../../system/world.ts';
import { LocalAttempt } from '../../worker/local-attempt.ts';
import { type FleetPaths, fleetPaths } from '../fleet-files.ts';
import { type AttemptLease, isOver, noteGuard, readLeases, uptimeMs } from './lease-file.ts';

const lookMs = 500;
const againMs = 2_000;
/** claude answers an interrupt within moments, or it would not. */
const interruptMs = 1_500;
const lateMs = 3_000;
/** An agent that ends by itself empties its lock; one that was killed leaves its name there. */
const agentGoneMs = 2_000;

export interface GuardOptions {
  readonly root: string;
  /** Absent where something else starts an agent again. */
  readonly startAgent?: () => void;
  /** Starts a shell in a session of its own that runs the script, with CCA_NEXT_GUARD for what starts a guard. */
  readonly startShell: (script: string, variables: Readonly<Record<string, string>>) => void;
  readonly onSignal: (action: () => void) => void;
  readonly tell: (line: string) => void;
}

/**
 * Starts the next guard when the file of this one stands still, and ends when it is gone or of another one. The
 * commands are variables, so that whatever kills agents and guards by the words of their commands spares the shell.
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
      tell(`The guard could not look: ${String(error)}`);
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
      // A host that slept may be late, and the session may go on elsewhere by now.
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
        this.#tell(`Something of attempt ${attemptId} would not end.`);
    } catch (error) {
      this.#tell(`Attempt ${attemptId} could not be ended: ${String(error)}`);
    }
    // Again until the agent has taken note: one that was halted just before it started something goes on then.
    this.#world.clock.after(againMs, () => this.#ended.delete(attemptId));
  }

  /** claude stops its turn and reports what it has cost, which a signal would keep it from. */
  async #interrupt(attemptId: string, { fifo }: SessionPaths): Promise<void> {
    const { fifos, clock } = this.#world;
    const writer = fifos.openWriter(fifo);
    writer?.writeLine(interruptRequest(attemptId));
    if (writer !== null) await delay(clock, interruptMs);
    writer?.close();
  }

  /** Synced before anything is ended, so that a death of this process and the host does not hide why. */
  #note({ folder }: AttemptLease): void {
    const note = fencedNote(this.#paths, folder);
    const { files } = this.#world;
    // Without its folder nothing reads the note.
    if (files.entryKind(note) !== null || files.entryKind(join(this.#paths.slots, folder)) !== 'folder') return;
    try {
      files.writeAtomic(note, '', { durable: true });
    } catch (error) {
      // A disk that is full must not keep it from being ended.
      this.#tell(`Why an attempt is ended cannot be noted: ${String(error)}`);
    }
  }
}
