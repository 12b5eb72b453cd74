/**
 * The processes of an attempt in a file beside its transcript, written when its worker is looked at and before it is
 * told to end. Should the runner be killed before they have ended, the next one could not find them: a tool that wiped
 * its environment has no mark, and no tree holds it any more once claude is gone.
 */
import type { ProcessIdentity } from '../core/event.ts';
import { fields, isNumber, isText, listOf, parseJson } from '../store/shape.ts';
import type { AppendFile, Files, World } from '../world/world.ts';
import type { WorkerOptions } from './worker-options.ts';

export interface Note {
  readonly attemptId: string;
  readonly processes: readonly ProcessIdentity[];
}

export type Whose = Pick<WorkerOptions, 'attemptId' | 'paths' | 'searchLater'>;

const isNote = fields({
  attemptId: isText,
  processes: listOf(fields({ pid: isNumber, startTime: isText, host: isText, bootId: isText })),
});

/** What one runner notes of an attempt. Kept open, for each look at a busy claude finds processes that are new. */
export class ProcessNotes {
  readonly #files: Files;
  readonly #whose: Whose;
  #file: AppendFile | null = null;

  constructor({ files }: World, whose: Whose) {
    this.#files = files;
    this.#whose = whose;
  }

  /** Adds a line; what was noted before stays. False when the disk takes no more. */
  add(processes: readonly ProcessIdentity[]): boolean {
    const { attemptId, paths } = this.#whose;
    try {
      const line = `${JSON.stringify({ attemptId, processes } satisfies Note)}\n`;
      if (this.#file !== null) this.#file.append(line);
      else {
        this.#file = this.#files.openAppend(paths.processes);
        // Half a line of an earlier runner is not to spoil this one.
        this.#file.append(this.#file.size === 0 ? line : `\n${line}`);
      }
      return true;
    } catch {
      return false;
    }
  }

  close(): void {
    this.#file?.close();
    this.#file = null;
  }
}

/** All that was noted for this attempt; those that have ended since are told by their start times. */
export function notedProcesses(world: World, { attemptId, paths }: Whose): readonly ProcessIdentity[] {
  const notes = readNotes(world, paths.processes).filter((note) => note.attemptId === attemptId);
  return notes.flatMap(({ processes }) => processes);
}

/** Those of all attempts, as far as they can be read: a runner that was killed may have left half a line. */
export function readNotes({ files }: World, path: string): Note[] {
  try {
    const lines = (files.readText(path) ?? '').split('\n').map(parseJson);
    return lines.filter(isNote) as Note[];
  } catch {
    return [];
  }
}
