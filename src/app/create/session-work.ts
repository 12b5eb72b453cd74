/** Where a session works and how its work is checked: what is asked for, and what the project's own file says. */

import { fail, ok, type Result } from '../../core/failure.ts';
import type { SessionDefinition } from '../../core/group.ts';
import { quoted } from '../../core/id.ts';
import { findRepository } from '../../git/git.ts';
import { problemsFailure } from '../../store/yaml-text.ts';
import type { World } from '../../system/world.ts';
import { type ProjectCommand, type ProjectFile, projectFileFor } from '../../template/workflow/project-file.ts';
import { type GivenWork, type WorkSettings, workFaults, workSettings } from '../../template/workflow/work-settings.ts';
import { briefPath } from '../path-argument.ts';
import type { Place } from '../place.ts';

/** Files whose commands are told; nobody reads more at once. */
const filesShownMax = 20;

export interface SessionWork {
  readonly settings: WorkSettings;
  /** Sentences about commands that the user did not type. */
  readonly notes: readonly string[];
}

/**
 * What is asked for and the project's own file come to; of a session that is edited (`kept`) what is not asked for
 * stays. Reads only. Fails with `usage`.
 */
export function workOf(
  { world }: Place,
  projectPath: string,
  asked: GivenWork,
  kept?: SessionDefinition,
): Result<SessionWork> {
  const isSame = kept?.projectPath === projectPath;
  const file = isSame ? ok(null) : projectFileFor(world, projectPath);
  if (!file.ok) return problemsFailure('The project file', file.problems);
  const repository = findRepository(world.files, projectPath)?.repository ?? null;
  const ofProject = file.value;
  const own = { ...(kept === undefined ? {} : keptWork(world, kept, isSame)), ...withoutAbsent(asked) };
  const settings = workSettings([own, ...(ofProject === null ? [] : [ofProject.work])], repository);
  const [fault] = workFaults({ ...asked, isolate: own.isolate }, settings, repository);
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

/** What it has; in another project without what the file of its old one had brought. */
function keptWork(world: World, kept: SessionDefinition, isSame: boolean): GivenWork {
  const { isolate, accept, acceptRetries, acceptTimeoutMs, setup, setupTimeoutMs, expectChanges, noCommit } = kept;
  const commands = { isolate, accept, acceptRetries, acceptTimeoutMs, setup, setupTimeoutMs };
  const has = withoutAbsent({ ...commands, expectChanges, ...(noCommit === true ? { commit: false } : {}) });
  const file = isSame ? ok(null) : projectFileFor(world, kept.projectPath);
  const brought = new Map<string, unknown>(file.ok ? Object.entries(file.value?.work ?? {}) : []);
  return Object.fromEntries(Object.entries(has).filter(([key, value]) => value !== brought.get(key)));
}

function withoutAbsent(given: GivenWork): GivenWork {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function optionOf(key: keyof GivenWork, own: GivenWork): string {
  const name = key.replace(/Ms$/, '').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return own[key] === false ? `--no-${name}` : `--${name}`;
}

function commandsOf(ofProject: ProjectFile | null, own: GivenWork, settings: WorkSettings): ProjectCommand[] {
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
