/**
 * app/faber/: what the commands of FABER share. This file: the project they are in, the run they mean, who asks.
 */

import { join, resolve } from 'node:path';
import { readGitHead } from '../../context/faber/git-head.ts';
import type { JsonObject } from '../../context/faber/json-text.ts';
import {
  activeRunPath,
  type FaberProject,
  findProject,
  isRunId,
  listRuns,
  readActiveRun,
  runsPath,
  statePath,
} from '../../context/faber/project.ts';
import { inProgress, type Who } from '../../context/faber/state.ts';
import { loadState } from '../../context/faber/state-file.ts';
import { loadWorkflowConfig, type WorkflowConfig } from '../../context/faber/workflow-config.ts';
import { advise } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { type Failure, fail, ok, type Result } from '../../core/failure.ts';
import { ignoredFiles } from '../../git/worktrees/worktree.ts';
import { platform } from '../../system/machine.ts';
import { safeLine } from '../../view/terminal-text.ts';
import { folderNamed, lookAt } from '../path-argument.ts';
import type { Place } from '../place.ts';

/** The project of `--project`, else of the folder the user is in. Fails with `usage` when that is no folder. */
export function projectHere(place: Place, given: string | undefined): Result<FaberProject> {
  const { files } = place.world;
  const named = folderNamed(place, given, 'project', 'Give the folder of the project with --project.');
  if (!named.ok) return named;
  const folder = named.value;
  const found = findProject(files, folder);
  // Without git a model that went into a subfolder would be lost; claude says where it was started.
  const started = given === undefined ? place.env.CLAUDE_PROJECT_DIR : undefined;
  const isPlain = found.root === folder && lookAt(files, resolve(folder, '.fractary')).ok === false;
  return ok(started && isPlain && folder.startsWith(`${started}/`) ? findProject(files, started) : found);
}

const sessionId = /^[A-Za-z0-9][\w-]{0,127}$/;

/** Who asks: inside of claude, its session. */
export function whoAsks(place: Place, project: FaberProject): Who {
  const { env, world } = place;
  const id = env.CLAUDE_CODE_SESSION_ID ?? '';
  const commit = readGitHead(world.files, project.top)?.commit;
  return {
    ...(sessionId.test(id) ? { sessionId: id } : {}),
    host: world.machine.host,
    platform,
    cwd: project.root,
    ...defined({ gitCommit: commit }),
    nowMs: world.clock.now(),
  };
}

export interface FoundRun {
  readonly runId: string;
  readonly state: JsonObject;
}

/**
 * The run of `--run-id`, else the active one, else the only one in progress. Null when there is none to speak of; fails
 * with `ambiguous`, `usage`, `not-found` or `corrupt-file`.
 */
export function runHere(place: Place, project: FaberProject, given: string | undefined): Result<FoundRun | null> {
  const { files } = place.world;
  const load = (runId: string): Result<FoundRun> => {
    const state = loadState(files, project, runId);
    return state.ok ? ok({ runId, state: state.value }) : state;
  };
  if (given !== undefined) {
    const runId = runNamed(place, project, given);
    return runId.ok ? load(runId.value) : runId;
  }
  const active = readActiveRun(files, project);
  if (active.kind === 'run') {
    const named = load(active.runId);
    // The name came with a checkout to which its run was never committed. Any other run is not what was meant.
    return !named.ok && named.failure.reason === 'not-found' ? ok(null) : named;
  }
  if (active.kind === 'unusable') {
    return fail('corrupt-file', `${activeRunPath} ${active.trouble}.`, 'Write the id of a run there, or use --run-id.');
  }
  const open = runsInProgress(place, project);
  if (open.length <= 1) return ok(open[0] ?? null);
  const ids = open.map(({ runId }) => runId).join(', ');
  return fail('ambiguous', `Several runs are in progress here: ${ids}.`, 'Name one with --run-id.');
}

/** A sentence for an active run that has no folder here, such as one that was never committed; null when it has one. */
export function danglingRun({ world }: Place, project: FaberProject): string | null {
  const active = readActiveRun(world.files, project);
  if (active.kind !== 'run' || lookAt(world.files, join(project.root, statePath(active.runId))).ok) return null;
  return safeLine(`${activeRunPath} names the run ${active.runId}, which is not in ${project.root}/${runsPath}.`, 600);
}

/** What a command says that needs a run where there is none. */
export function noRunHere(place: Place, project: FaberProject): Failure {
  const dangling = danglingRun(place, project);
  const message = `No FABER run is active in this project.${dangling === null ? '' : ` ${dangling}`}`;
  const next = advise('Begin one with', ['faber', 'start', '--work-id', 'ID']);
  return fail('not-found', message, next).failure;
}

/** Passes the run on unless it carries another work item than the one it must. Fails with `illegal-transition`. */
export function ofWorkItem(run: FoundRun, workId: string | undefined): Result<FoundRun> {
  const { runId, state } = run;
  const carried = state.work_id ?? undefined;
  if (workId === undefined || String(carried) === workId) return ok(run);
  const whose = carried === undefined ? 'of no work item' : `of the work item ${safeLine(String(carried), 100)}`;
  const message = `The run ${runId} is ${whose}, not of ${safeLine(workId, 100)}.`;
  const next = advise('Name the right one with --run-id, or see', ['faber', 'status']);
  return fail('illegal-transition', message, next);
}

/** The id that begins with what was typed. Fails with `usage`, `not-found` or `ambiguous`. */
export function runNamed(place: Place, project: FaberProject, typed: string): Result<string> {
  if (!isRunId(typed)) {
    const next = 'It has letters, digits, "-", "_" and ".", 200 at most.';
    return fail('usage', `That cannot be the id of a run: ${JSON.stringify(typed.slice(0, 100))}.`, next);
  }
  const runs = listRuns(place.world.files, project);
  if (runs.includes(typed)) return ok(typed);
  const found = runs.filter((runId) => runId.startsWith(typed));
  if (found.length === 1) return ok(found[0] as string);
  const next = advise('List them with', ['faber', 'status']);
  if (found.length > 1)
    return fail('ambiguous', `${found.length} runs begin with ${typed}: ${found.join(', ')}.`, next);
  return fail('not-found', `There is no run ${typed} in ${project.root}/${runsPath}.`, next);
}

function runsInProgress(place: Place, project: FaberProject): FoundRun[] {
  return listRuns(place.world.files, project).flatMap((runId) => {
    const state = loadState(place.world.files, project, runId);
    return state.ok && state.value.status === inProgress ? [{ runId, state: state.value }] : [];
  });
}

/** Fails with all problems of the file when it has any. */
export function soundConfig(place: Place, project: FaberProject, name: string): Result<WorkflowConfig> {
  const config = loadWorkflowConfig(place.world.files, project, name);
  if (!config.ok || config.value.problems.length === 0) return config;
  const { problems, file } = config.value;
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
  return fail('corrupt-file', `${file} has ${count}:\n${problems.join('\n')}`, 'Mend them.');
}

/** Says when git would not carry the run to another machine. */
export async function warnOfIgnored(place: Place, project: FaberProject, runId: string): Promise<void> {
  const paths = [activeRunPath, statePath(runId)];
  // Outside of a repository there is nothing to warn of.
  const ignored = await ignoredFiles(place, project.root, paths);
  if (!ignored.ok || ignored.value.length === 0) return;
  const which = ignored.value.join(' and ');
  place.notes.line(
    safeLine(
      `WARNING: git ignores ${which}; without it the run cannot go on on another machine. Mend .gitignore.`,
      600,
    ),
  );
}
