/**
 * The guard of a host that works for others: a process of its own that ends whatever has no lease any more, and does
 * nothing else, so that it does so also when the agent is gone, hangs, or the host has slept.
 */
import { join } from 'node:path';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { GroupId, SessionId } from '../../core/group.ts';
import { isGroupId, isSessionId } from '../../core/id.ts';
import { groupPaths, sessionPaths } from '../../store/paths.ts';
import type { World } from '../../system/world.ts';
import { LocalAttempt } from '../../worker/local-attempt.ts';
import { type FleetPaths, fleetPaths } from '../fleet-files.ts';
import { type AttemptLease, isOver, noteGuard, readLeases, uptimeMs } from './lease-file.ts';

const lookMs = 500;
const againMs = 2_000;

export interface GuardOptions {
  readonly root: string;
  readonly onSignal: (action: () => void) => void;
  readonly tell: (line: string) => void;
}

export async function serveGuard(world: World, { root, onSignal, tell }: GuardOptions): Promise<Result<void>> {
  const paths = fleetPaths(root);
  world.files.makeFolder(paths.folder);
  const holder = { identity: world.machine.self, runId: world.random.uuid() };
  const lock = world.locks.tryLock(paths.guardLock, holder);
  if (lock === null) return fail('busy', 'A guard runs on this host already.', 'One is enough: leave it.');
  const fence = new Fence(world, paths, tell);
  const ended = Promise.withResolvers<void>();
  let cancel = (): void => {};
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
    } catch (error) {
      tell(`The guard could not look: ${String(error)}`);
    }
  };
  onSignal(ended.resolve);
  look();
  await ended.promise;
  cancel();
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
      void this.#end(lease);
    }
  }

  async #end(lease: AttemptLease): Promise<void> {
    const { attemptId, groupId, sessionId } = lease;
    try {
      if (!isGroupId(groupId) || !isSessionId(sessionId)) return;
      this.#note(lease);
      const paths = sessionPaths(groupPaths(this.#paths.work, groupId as GroupId), sessionId as SessionId);
      const subject = { attemptId, sessionId: sessionId as SessionId, paths };
      if (!(await new LocalAttempt(this.#world, subject).endNow()))
        this.#tell(`Something of attempt ${attemptId} would not end.`);
    } catch (error) {
      this.#tell(`Attempt ${attemptId} could not be ended: ${String(error)}`);
    }
    // Again until the agent has taken note: one that was halted just before it started something goes on then.
    this.#world.clock.after(againMs, () => this.#ended.delete(attemptId));
  }

  /** Synced before anything is ended, so that a death of this process and the host does not hide why. */
  #note({ folder }: AttemptLease): void {
    const note = fencedNote(this.#paths, folder);
    const { files } = this.#world;
    // Without its folder there is nobody left who wants to know.
    if (files.entryKind(note) === null && files.entryKind(join(this.#paths.slots, folder)) === 'folder')
      files.writeAtomic(note, '', { durable: true });
  }
}
