/** A quiet line on the terminal while something takes long: what is done, and for how many seconds. */
import { formatDuration } from '../view/format.ts';
import { safeLine } from '../view/terminal-text.ts';
import type { Place } from './place.ts';

/** What takes less than this is not worth a line. */
const quietMs = 1_000;
const everyMs = 1_000;
const columnsMax = 200;

/**
 * Does the work, and shows on standard error what is being done once it takes longer than a second; without a terminal
 * nothing. The work may say how far it has come. What is written meanwhile stands above the line.
 */
export async function whileBusy<T>(
  { notes, world }: Pick<Place, 'notes' | 'world'>,
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
