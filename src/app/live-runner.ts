/** Who holds a group: a runner, or a command that changes it and is gone soon. */
import type { ProcessIdentity } from '../core/event.ts';
import type { GroupId } from '../core/group.ts';
import type { GroupPaths } from '../store/paths.ts';
import type { World } from '../system/world.ts';
import { formatDuration } from '../view/format.ts';
import { safeLine } from '../view/terminal-text.ts';
import type { AppContext } from './app-context.ts';

/** Run ids that begin so belong to short commands: they answer no requests and are gone soon. */
export const shortRunPrefix = 'command-';

/** The run id of the runner that holds the group; null when it is free or only a short command holds it. */
export function liveRunner(world: World, group: { readonly paths: Pick<GroupPaths, 'lock'> }): string | null {
  const holder = world.locks.holder(group.paths.lock);
  return holder === null || holder.runId.startsWith(shortRunPrefix) ? null : holder.runId;
}

/** The group's runner if a signal, such as that of Ctrl-Z, halted it. Its sessions then work on unobserved. */
export function suspendedRunner(world: World, { lock }: Pick<GroupPaths, 'lock'>): ProcessIdentity | null {
  const holder = world.locks.holder(lock)?.identity ?? null;
  return holder !== null && world.processes.isHalted(holder) ? holder : null;
}

export function suspendedSentence(
  id: GroupId,
  { pid }: ProcessIdentity,
): { readonly message: string; readonly advice: string } {
  return {
    message: `The runner of ${id} (process ${pid}) is halted: its sessions work on, and nothing else is started.`,
    advice: `Resume it with: kill -CONT ${pid}`,
  };
}

export function isRun(world: World, paths: Pick<GroupPaths, 'lock'>): boolean {
  return liveRunner(world, { paths }) !== null;
}

// A quiet line on the terminal while something takes long: what is done, and for how many seconds.

const quietMs = 1_000;
const everyMs = 1_000;
const columnsMax = 200;

/** Shows on a terminal what is being done once it takes longer than a second. The work may report progress. */
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
