/** The least that a slot of a host holds. */
import type { Order } from '../../../src/fleet/wire.ts';
import { groupId, sid } from '../core-events.ts';

const blob = { id: 'blob', pieces: 1, size: 1, digest: 'a'.repeat(64) };
const commit = 'a'.repeat(40);
const work = { repository: 'a', head: commit, snapshot: commit, branch: 'main', settings: [] };
const order: Order = {
  ...{ attemptId: 'attempt', attempt: 1, groupId, sessionId: sid(1), args: [], cwd: 'worktree', untrusted: false },
  ...{ files: blob, work },
};
export const slotOrder = { groupId, sessionId: sid(1), order };
