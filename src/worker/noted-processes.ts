/**
 * The processes of an attempt in a file beside its transcript, written before its worker is told to end. Should the
 * runner be killed before they have ended, the next one could not find them: a tool that wiped its environment has no
 * mark, and no tree holds it any more once claude is gone.
 */
import type { ProcessIdentity } from '../core/event.ts';
import { aProcess } from '../store/event-shape.ts';
import { fields, isText, listOf, parseJson } from '../store/shape.ts';
import type { World } from '../system/world.ts';
import type { AttemptSubject } from './host.ts';

export interface Note {
  readonly attemptId: string;
  readonly processes: readonly ProcessIdentity[];
}

export interface Whose extends Pick<AttemptSubject, 'attemptId' | 'paths'> {
  /**
   * Takes an attempt of which all that was below its worker is gone, to look for what else bears its mark; absent =
   * that is looked for at once.
   */
  readonly searchLater?: (attemptId: string) => void;
}

const isNote = fields({
  attemptId: isText,
  processes: listOf(aProcess),
});

/** False when it was not noted: the worker is all there is, which the log knows, or the disk takes no more. */
export function noteProcesses(
  { files }: World,
  { attemptId, paths }: Whose,
  processes: readonly ProcessIdentity[],
): boolean {
  if (processes.length < 2 || files.entryKind(paths.folder) !== 'folder') return false;
  try {
    files.writeAtomic(paths.processes, `${JSON.stringify({ attemptId, processes } satisfies Note)}\n`);
    return true;
  } catch {
    return false;
  }
}

/** What was noted last for this attempt; one of them that has ended since is told by its start time. */
export function notedProcesses(world: World, { attemptId, paths }: Whose): readonly ProcessIdentity[] {
  const note = readNote(world, paths.processes);
  return note?.attemptId === attemptId ? note.processes : [];
}

/** Null when there is none, or none that can be read. */
export function readNote({ files }: World, path: string): Note | null {
  try {
    // Its worker could put a FIFO there, which nobody writes to.
    const note = parseJson(files.readText(path) ?? '');
    return isNote(note) ? (note as Note) : null;
  } catch {
    return null;
  }
}
