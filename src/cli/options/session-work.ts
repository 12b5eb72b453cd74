/** The options that say where a session works and how its work is checked, and what comes of them. */
import { type Command, Option } from '@commander-js/extra-typings';
import { briefPath } from '../../control/path-argument.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { type IsolationMode, isolationModes } from '../../core/group.ts';
import { quoted } from '../../core/id.ts';
import { findRepository } from '../../git/repository.ts';
import { problemsFailure } from '../../store/yaml-text.ts';
import { type ProjectFile, projectFileFor } from '../../template/workflow/project-file.ts';
import type { ProjectCommand } from '../../template/workflow/project-shelf.ts';
import { type WorkSettings, type WorkWish, workFaults, workSettings } from '../../template/workflow/work-settings.ts';
import type { Context } from '../context.ts';
import { parseAcceptRetries, parseCommand, parseDuration } from './option-values.ts';

/** Files whose commands are told; nobody reads more at once. */
const filesShownMax = 20;

/** As commander gives them; `--no-accept` makes `accept` false. */
export interface WorkOptions {
  readonly isolate?: IsolationMode | undefined;
  readonly accept?: string | boolean | undefined;
  readonly acceptRetries?: number | undefined;
  /** Milliseconds, like `setupTimeout`. */
  readonly acceptTimeout?: number | undefined;
  readonly setup?: string | boolean | undefined;
  readonly setupTimeout?: number | undefined;
  readonly expectChanges?: boolean | undefined;
  readonly commit?: boolean | undefined;
}

/** Adds the options to a command. */
export function withWorkOptions<Args extends unknown[], Given extends Record<string, unknown>>(
  command: Command<Args, Given>,
) {
  return command
    .addOption(
      new Option('--isolate <mode>', 'a git worktree of its own, or none (default: as the group needs it)').choices(
        isolationModes,
      ),
    )
    .option('--accept <command>', 'shell command that must succeed before the session is completed', parseCommand)
    .option('--no-accept', "without the accept command of the project's own file")
    .option('--accept-retries <n>', 'how often claude may mend what the command found (default: 1)', parseAcceptRetries)
    .option('--accept-timeout <time>', 'longest time of the accept command (default: 10m)', parseDuration)
    .option('--setup <command>', 'shell command that is run once in a new worktree', parseCommand)
    .option('--no-setup', "without the setup command of the project's own file")
    .option('--setup-timeout <time>', 'longest time of the setup command (default: 10m)', parseDuration)
    .option('--expect-changes', 'warn when the session changed no file')
    .option('--no-commit', 'leave uncommitted work of the worktree uncommitted');
}

export interface SessionWork {
  readonly settings: WorkSettings;
  /** Sentences about commands that the user did not type. */
  readonly notes: readonly string[];
}

/** What the options and the project's own file come to. Reads only. Fails with `usage`. */
export function workOf({ world }: Context, projectPath: string, given: WorkOptions): Result<SessionWork> {
  const file = projectFileFor(world, projectPath);
  if (!file.ok) return problemsFailure('The project file', file.problems);
  const repository = findRepository(world.files, projectPath)?.repository ?? null;
  const own = wishOf(given);
  const ofProject = file.value;
  const settings = workSettings([own, ...(ofProject === null ? [] : [ofProject.wish])], repository);
  const [fault] = workFaults(own, settings, repository);
  if (fault !== undefined) return fail('usage', `${optionOf(fault.key, own)} ${fault.problem}.`, 'Leave it out.');
  if (settings.isolate === 'worktree' && repository === null) {
    const wanted =
      own.isolate === undefined ? `${briefPath(ofProject?.path ?? '')} asks for a worktree, but the` : 'The';
    const next = 'Make it a repository with git init and a first commit, or give --isolate none.';
    return fail('usage', `${wanted} project ${briefPath(projectPath)} is in no git repository.`, next);
  }
  const notes = projectNotes(commandsOf(ofProject, own, settings), 'leave them out with --no-accept and --no-setup');
  return ok({ settings, notes });
}

function wishOf({ accept, setup, acceptTimeout, setupTimeout, commit, expectChanges, ...rest }: WorkOptions): WorkWish {
  const { isolate, acceptRetries } = rest;
  return {
    isolate,
    accept: accept === true ? undefined : accept,
    acceptRetries,
    acceptTimeoutMs: acceptTimeout,
    setup: setup === true ? undefined : setup,
    setupTimeoutMs: setupTimeout,
    expectChanges,
    // What --no-commit alone would turn off is on unless said.
    commit: commit === false ? false : undefined,
  };
}

function optionOf(key: keyof WorkWish, own: WorkWish): string {
  const name = key.replace(/Ms$/, '').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return own[key] === false ? `--no-${name}` : `--${name}`;
}

function commandsOf(ofProject: ProjectFile | null, own: WorkWish, settings: WorkSettings): ProjectCommand[] {
  if (ofProject === null) return [];
  return (['accept', 'setup'] as const).flatMap((key) => {
    const command = own[key] === undefined ? settings[key] : undefined;
    return command === undefined ? [] : [{ file: ofProject.path, key, command }];
  });
}

/** One sentence for each file of a project that brings commands: somebody else wrote what is going to be run here. */
export function projectNotes(commands: readonly ProjectCommand[], cure: string): string[] {
  const byFile = Map.groupBy(commands, ({ file }) => file);
  const notes = [...byFile].map(([file, own]) => {
    const what = own.map(({ key, command }) => `${key} ${quoted(command)}`).join(' and ');
    return `${briefPath(file)} brings ${what}; ${cure}.`;
  });
  const hidden = notes.length - filesShownMax;
  if (hidden <= 1) return notes;
  return [...notes.slice(0, filesShownMax), `${hidden} more project files bring commands.`];
}
