/**
 * Sessions without a worktree take turns in each repository. Within a group `decide` orders them. Between groups a
 * small file per repository, next to the groups, names the group that works there.
 */
import { join } from 'node:path';
import type { ProcessIdentity } from '../core/event.ts';
import type { GroupId } from '../core/group.ts';
import type { Decision, OtherGroups } from '../core/plan/decision.ts';
import { checkoutsInUse } from '../core/plan/isolation.ts';
import type { GroupState } from '../core/state.ts';
import { loadGroup } from '../store/group-store.ts';
import { parseOwn } from '../store/json.ts';
import type { World } from '../system/world.ts';

interface Claim {
  readonly groupId: GroupId;
  readonly runner: ProcessIdentity;
}

/** How long a result is reused: without a live runner, the other group's whole log must be read. */
const reuseMs = 1_000;

/** Which other group of this data root uses a checkout. Read only. */
export function otherGroups(world: World, root: string, groupId: GroupId): OtherGroups {
  const seen = new Map<string, { readonly atMs: number; readonly holder: GroupId | undefined }>();
  return {
    workingIn(repository) {
      const nowMs = world.clock.now();
      const before = seen.get(repository);
      if (before !== undefined && Math.abs(nowMs - before.atMs) < reuseMs) return before.holder;
      const holder = claimHolder(world, root, repository);
      const other = holder === groupId ? undefined : holder;
      seen.set(repository, { atMs: nowMs, holder: other });
      return other;
    },
  };
}

export type Checkouts = ReturnType<typeof openCheckouts>;

/**
 * `root`: data root. `isNested`: a session of another group started this run. Waiting for that session's checkout would
 * be a deadlock.
 */
export function openCheckouts(world: World, root: string, groupId: GroupId, runId: string, isNested = false) {
  const { files, locks, machine } = world;
  const claimed = new Set<string>();
  const others = isNested ? { workingIn: () => undefined } : otherGroups(world, root, groupId);
  let isNew = true;

  const claim = (repository: string): boolean => {
    if (claimed.has(repository)) return true;
    const folder = checkoutsFolder(root);
    files.makeFolder(folder);
    const lock = locks.tryLock(join(folder, 'lock'), { identity: machine.self, runId });
    if (lock === null) return false;
    try {
      const holder = claimHolder(world, root, repository);
      if (holder !== undefined && holder !== groupId) return false;
      const own: Claim = { groupId, runner: machine.self };
      files.writeAtomic(claimPath(root, repository), `${JSON.stringify(own)}\n`);
    } finally {
      lock.release();
    }
    claimed.add(repository);
    return true;
  };

  const releaseUnused = (state: GroupState): void => {
    const used = checkoutsInUse(state);
    if (isNew) for (const repository of used) claim(repository);
    isNew = false;
    for (const repository of claimed) {
      if (used.has(repository)) continue;
      claimed.delete(repository);
      files.remove(claimPath(root, repository));
    }
  };

  return {
    others,
    /**
     * Removes starts in checkouts that another group has claimed. Also releases unused checkouts, so call it at every
     * step.
     */
    claimed(state: GroupState, decisions: readonly Decision[]): readonly Decision[] {
      releaseUnused(state);
      if (state.group.config.shareCheckouts || isNested) return decisions;
      return decisions.filter((decision) => {
        if (decision.do !== 'start' || decision.isolated) return true;
        const repository = state.sessions.get(decision.sessionId)?.definition.repository;
        return repository === undefined || claim(repository);
      });
    },
  };
}

/** The group that uses the repository's checkouts. It has a live runner, or live workers without one. */
function claimHolder(world: World, root: string, repository: string): GroupId | undefined {
  const claim = parseOwn<Claim>(world.files.readText(claimPath(root, repository)));
  if (claim === null) return undefined;
  if (world.processes.isAlive(claim.runner)) return claim.groupId;
  const group = loadGroup(world, root, claim.groupId);
  if (!group.ok) return undefined;
  const works = [...group.value.running].some((id) => {
    const record = group.value.sessions.get(id);
    if (record?.state.status !== 'running' || record.isolated === true) return false;
    const { process } = record.state.attempt;
    if (record.definition.repository !== repository || process === undefined) return false;
    return world.processes.isAlive(process);
  });
  return works ? claim.groupId : undefined;
}

function checkoutsFolder(root: string): string {
  return join(root, 'checkouts');
}

function claimPath(root: string, repository: string): string {
  const digest = new Bun.CryptoHasher('sha256').update(repository).digest('hex').slice(0, 32);
  return join(checkoutsFolder(root), `${digest}.json`);
}
