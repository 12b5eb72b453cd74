/** What the folders of a workflow's projects say about themselves. */
import type { Checked } from '../../store/yaml-text.ts';
import type { World } from '../../system/world.ts';
import { type ProjectFile, projectFileFor } from './project-file.ts';
import type { Repository } from './work-settings.ts';

/** A command that a project's own file brings. */
export interface ProjectCommand {
  /** Absolute path of the file. */
  readonly file: string;
  readonly key: 'accept' | 'setup';
  readonly command: string;
}

/** What the projects' folders say about themselves, each looked up once. */
export class ProjectShelf {
  readonly #world: World;
  readonly #repositoryOf: ((folder: string) => string | null) | undefined;
  readonly #files = new Map<string, Checked<ProjectFile | null>>();
  readonly #repositories = new Map<string, string | null>();
  readonly #commands = new Map<string, ProjectCommand>();

  /** Without `repositoryOf` nothing is looked up. */
  constructor(world: World, repositoryOf: ((folder: string) => string | null) | undefined) {
    this.#world = world;
    this.#repositoryOf = repositoryOf;
  }

  repositoryOf(folder: string): Repository {
    if (this.#repositoryOf === undefined) return undefined;
    const known = this.#repositories.get(folder);
    if (known !== undefined) return known;
    const found = this.#repositoryOf(folder);
    this.#repositories.set(folder, found);
    return found;
  }

  fileFor(folder: string): Checked<ProjectFile | null> {
    if (this.#repositoryOf === undefined) return { ok: true, value: null };
    const file = this.#files.get(folder) ?? projectFileFor(this.#world, folder);
    this.#files.set(folder, file);
    return file;
  }

  /** Remembers that a session is going to run it. */
  use(command: ProjectCommand): void {
    this.#commands.set(JSON.stringify([command.file, command.key]), command);
  }

  /** Those that sessions are going to run. */
  get commands(): readonly ProjectCommand[] {
    return [...this.#commands.values()];
  }
}
