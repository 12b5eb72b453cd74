/**
 * What only some sessions need is not loaded before the first one starts, but soon after. It cannot be left to the
 * session that needs it: by then the program may have been updated, and its new files do not go with the old ones.
 */

/** Milliseconds after the begin of a run; the first sessions are starting then. */
export const restMs = 50;

/** Never fails: what cannot be loaded is asked for again, and told, where it is needed. */
export async function preloadModules(): Promise<void> {
  await Promise.allSettled([
    import('../context/handover/note.ts'),
    import('../git/commit.ts'),
    import('../git/diff.ts'),
    import('../git/leftover-files.ts'),
    import('../template/config-template.ts'),
    import('../worker/prepare/handover.ts'),
    import('../worker/prepare/worktree-place.ts'),
    import('p-queue'),
  ]);
}
