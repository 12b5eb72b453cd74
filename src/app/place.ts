/**
 * app/: what one can know and ask of groups, values in and values out; no command line, no output, no exit codes.
 * This file: what every question is asked with.
 */
import type { Result } from '../core/failure.ts';
import type { World } from '../system/world.ts';

/** Where what is worth a word meanwhile goes; nothing of it is part of an answer. */
export interface Notes {
  line(text: string): void;
  /** A line that the next one replaces; null takes it away. */
  passing(text: string | null): void;
}

export interface Place {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder that relative paths are meant from. Throws when it was removed. */
  readonly cwd: string;
  /** The folder of this package. */
  readonly packageRoot: string;
  readonly world: World;
  readonly notes: Notes;
  /** Folder of all data; fails when the environment names none. */
  root(): Result<string>;
}
