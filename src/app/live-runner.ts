/** Finds the process that holds a group: a runner, or a short command. */
import type { ProcessIdentity } from '../core/event.ts';
import type { GroupId } from '../core/group.ts';
import type { GroupPaths } from '../store/paths.ts';
import type { World } from '../system/world.ts';
import { formatDuration } from '../view/format.ts';
import { safeLine } from '../view/terminal-text.ts';
import type { AppContext } from './app-context.ts';

/** Prefix of the run ids of short commands, which answer no requests. */
export const shortRunPrefix = 'command-';

/** The run id of the live runner; null if there is none, or only a short command. */
export function liveRunner(world: World, group: { readonly paths: Pick<GroupPaths, 'lock'> }): string | null {
  const holder = world.locks.holder(group.paths.lock);
  return holder === null || holder.runId.startsWith(shortRunPrefix) ? null : holder.runId;
}

/** The runner of the group if a signal such as Ctrl-Z has suspended it. Its sessions continue unobserved. */
export function suspendedRunner(world: World, { lock }: Pick<GroupPaths, 'lock'>): ProcessIdentity | null {
  const holder = world.locks.holder(lock)?.identity ?? null;
  return holder !== null && world.processes.isHalted(holder) ? holder : null;
}

export function suspendedSentence(
  id: GroupId,
  { pid }: ProcessIdentity,
): { readonly message: string; readonly advice: string } {
  return {
    message: `The runner of ${id} (process ${pid}) is suspended: its sessions continue, and nothing else is started.`,
    advice: `Resume it with: kill -CONT ${pid}`,
  };
}

export function isRun(world: World, paths: Pick<GroupPaths, 'lock'>): boolean {
  return liveRunner(world, { paths }) !== null;
}

const quietMs = 1_000;
const everyMs = 1_000;
const columnsMax = 200;

/** Shows a progress line with the elapsed time if the work takes longer than a second. */
export async function whileBusy<T>(
  { notes, world }: Pick<AppContext, 'notes' | 'world'>,
  what: string,
  work: (say: (what: string) => void) => Promise<T>,
): Promise<T> {
  let text = what;
  let shownMs = quietMs;
  const show = (): void => {
    notes.passing(`${safeLine(text, columnsMax)} (${formatDuration(shownMs)})`);
    shownMs += everyMs;
    cancel = world.clock.after(everyMs, show);
  };
  let cancel = world.clock.after(quietMs, show);
  try {
    return await work((now) => {
      text = now;
    });
  } finally {
    cancel();
    notes.passing(null);
  }
}
