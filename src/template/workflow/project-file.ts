/**
 * `.claude-code-agent/project.yaml`: what a project says about sessions that work in it. It is read when a session is
 * added and never again, so that nobody who writes to the project later decides what is run.
 */

import { join } from 'node:path';
import type { z } from 'zod';
import { isolationModes } from '../../core/group.ts';
import { durationMs } from '../../core/values.ts';
import { schema } from '../../store/schema.ts';
import { type Checked, checkYaml, type Problem, readYaml, yamlBytesMax } from '../../store/yaml-text.ts';
import type { World } from '../../system/world.ts';
import { upToRepository } from '../places.ts';
import { readTextFile, systemCode } from '../text-file.ts';
import { shellCommand } from './command-text.ts';
import { onlyKnown, Problems } from './problems.ts';
import { command, duration, type GivenWork, type Repository } from './work-settings.ts';

const projectFileName = join('.claude-code-agent', 'project.yaml');

const projectSchema = schema((z) =>
  z.strictObject({
    isolate: z.enum(isolationModes).optional(),
    accept: command().optional(),
    acceptTimeout: duration().optional(),
    setup: command().optional(),
    setupTimeout: duration().optional(),
  }),
);

export const projectKeys: readonly (keyof z.output<ReturnType<typeof projectSchema>>)[] = [
  'isolate',
  'accept',
  'acceptTimeout',
  'setup',
  'setupTimeout',
];

export interface ProjectFile {
  /** Absolute path of the file. */
  readonly path: string;
  readonly work: GivenWork;
}

/** What the project file nearest to this folder of a project says; null when there is none. Never throws. */
export function projectFileFor(world: World, folder: string): Checked<ProjectFile | null> {
  for (const place of upToRepository(world, folder)) {
    const path = join(place, projectFileName);
    try {
      if (world.files.entryKind(path) === null) continue;
    } catch (error) {
      return { ok: false, problems: [wholeFile(path, `cannot be read (${systemCode(error)})`)] };
    }
    return loadProjectFile(world, path);
  }
  return { ok: true, value: null };
}

/** Whether a path is the name of such a file. */
export function isProjectFile(path: string): boolean {
  return path.endsWith(`/${projectFileName}`);
}

/** Reads and checks the file; every problem at once. Never throws for what stands in it. */
export function loadProjectFile(world: World, path: string): Checked<ProjectFile> {
  const read = readTextFile(world, path, yamlBytesMax);
  if (!read.ok) return { ok: false, problems: [wholeFile(path, read.trouble)] };
  const { text } = read;
  const yaml = readYaml({ text, file: path });
  if (!yaml.ok) return yaml;
  const value = yaml.value.value ?? {};
  const problems = new Problems(yaml.value, text, path);
  // YAML also knows sets and dates.
  if (Object.getPrototypeOf(value) !== Object.prototype) {
    const keys = projectKeys.join(', ');
    return { ok: false, problems: [yaml.value.problemAt([], `a project file is a map with any of ${keys}`)] };
  }
  const known = onlyKnown(value as Readonly<Record<string, unknown>>, [], 'the project file', projectKeys, problems);
  const checked = checkYaml({ ...yaml.value, value: known }, projectSchema(), 'the project file');
  if (!checked.ok) problems.add(...checked.problems);
  const commandOf = (key: 'accept' | 'setup'): string | false | undefined => {
    const given = checked.ok ? checked.value[key] : undefined;
    if (typeof given !== 'string') return given;
    const found = shellCommand(given);
    if (found.ok) return found.command;
    problems.at([key], `${key}: ${found.problem}`);
    return undefined;
  };
  const commands = { accept: commandOf('accept'), setup: commandOf('setup') };
  if (!checked.ok || problems.size > 0) return { ok: false, problems: problems.all };
  const { isolate, acceptTimeout, setupTimeout } = checked.value;
  return {
    ok: true,
    value: {
      path,
      work: { isolate, ...commands, acceptTimeoutMs: millis(acceptTimeout), setupTimeoutMs: millis(setupTimeout) },
    },
  };
}

function millis(text: string | undefined): number | undefined {
  return text === undefined ? undefined : (durationMs(text) ?? undefined);
}

function wholeFile(file: string, message: string): Problem {
  return { file, line: 1, column: 1, message };
}

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
