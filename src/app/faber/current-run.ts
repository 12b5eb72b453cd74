/** What all FABER commands need: the current project, the current run, and the calling session. */

import { dirname, join, resolve } from 'node:path';
import { updateExclusively } from '../../context/exclusive-update.ts';
import { readGitHead } from '../../context/faber/git-head.ts';
import {
  activeRunPath,
  type FaberProject,
  findProject,
  listRuns,
  readActiveRun,
  statePath,
} from '../../context/faber/project.ts';
import { type Actor, inProgress } from '../../context/faber/state.ts';
import { belongsHere, elsewhere, loadState } from '../../context/faber/state-file.ts';
import { loadWorkflowConfig, type WorkflowConfig } from '../../context/faber/workflow-config.ts';
import { advise, shellWord } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { type Failure, fail, ok, type Result } from '../../core/failure.ts';
import { runOwn } from '../../git/run-git.ts';
import { ignoredFiles } from '../../git/worktrees/worktree.ts';
import type { JsonObject } from '../../store/json.ts';
import { platform } from '../../system/machine.ts';
import { safeLine } from '../../view/terminal-text.ts';
import type { AppContext } from '../app-context.ts';
import { folderNamed, lookAt } from '../path-argument.ts';

/** The project of `--project`, else of the current folder. */
export function currentProject(context: AppContext, given: string | undefined): Result<FaberProject> {
  const { files } = context.world;
  const named = folderNamed(context, given, 'project', 'Give the folder of the project with --project.');
  if (!named.ok) return named;
  const folder = named.value;
  const found = findProject(files, folder);
  // Without git, a model may be in a subfolder. CLAUDE_PROJECT_DIR is the folder in which claude started.
  const started = given === undefined ? context.env.CLAUDE_PROJECT_DIR : undefined;
  const isPlain = found.root === folder && lookAt(files, resolve(folder, '.fractary')).ok === false;
  return ok(started && isPlain && folder.startsWith(`${started}/`) ? findProject(files, started) : found);
}

const sessionId = /^[A-Za-z0-9][\w-]{0,127}$/;

/** The caller; inside claude, with its session id. */
export function currentActor(context: AppContext, project: FaberProject): Actor {
  const { env, world } = context;
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

/** The run of `--run-id`, else the active run, else the only run in progress; null if there is none. */
export function currentRun(
  context: AppContext,
  project: FaberProject,
  given: string | undefined,
): Result<FoundRun | null> {
  const { files } = context.world;
  const load = (runId: string): Result<FoundRun> => {
    const state = loadState(files, project, runId);
    return state.ok ? ok({ runId, state: state.value }) : state;
  };
  if (given !== undefined) {
    const runId = runNamed(context, project, given);
    return runId.ok ? load(runId.value) : runId;
  }
  const active = readActiveRun(files, project);
  if (active.kind === 'run') {
    const named = load(active.runId);
    // The active id came with a checkout, but its run was not committed. Do not choose another run instead.
    if (!named.ok) return named.failure.reason === 'not-found' ? ok(null) : named;
    return ok(belongsHere(files, project, named.value.state) ? named.value : null);
  }
  if (active.kind === 'unusable') {
    return fail(
      'corrupt-file',
      `${activeRunPath(project)} ${active.trouble}.`,
      'Write the id of a run there, or use --run-id.',
    );
  }
  const open = runsInProgress(context, project);
  if (open.length <= 1) return ok(open[0] ?? null);
  const ids = open.map(({ runId }) => runId).join(', ');
  return fail('ambiguous', `Several runs are in progress here: ${ids}.`, 'Name one with --run-id.');
}

/** A sentence if the active run belongs to another worktree or was never committed, else null. */
export function danglingRun({ world }: AppContext, project: FaberProject): string | null {
  const { files } = world;
  const active = readActiveRun(files, project);
  if (active.kind !== 'run') return null;
  const { runId } = active;
  const state = loadState(files, project, runId);
  if (state.ok && !belongsHere(files, project, state.value)) {
    return safeLine(elsewhere(runId, state.value), 600);
  }
  if (lookAt(files, join(project.root, statePath(project, runId))).ok) return null;
  return safeLine(
    `${activeRunPath(project)} names the run ${runId}, which is not in ${project.root}/${project.runs}.`,
    600,
  );
}

/** The failure of a command that needs an active run. */
export function noActiveRun(context: AppContext, project: FaberProject): Failure {
  const dangling = danglingRun(context, project);
  const message = `No FABER run is active in this project.${dangling === null ? '' : ` ${dangling}`}`;
  const next = advise('Start or resume one with', ['faber', 'start', '--work-id', 'ID'], ['faber', 'resume', 'RUN']);
  return fail('not-found', message, next).failure;
}

/** Fails with `illegal-transition` if the run has another work item. */
export function ofWorkItem(run: FoundRun, workId: string | undefined): Result<FoundRun> {
  const { runId, state } = run;
  const item = state.work_id ?? undefined;
  if (workId === undefined || String(item) === workId) return ok(run);
  const has = item === undefined ? 'has no work item' : `has the work item ${safeLine(String(item), 100)}`;
  const message = `The run ${runId} ${has}, not ${safeLine(workId, 100)}.`;
  const next = advise('Name the right one with --run-id, or see', ['faber', 'status']);
  return fail('illegal-transition', message, next);
}

/** Resolves a run id or a unique prefix. */
export function runNamed(context: AppContext, project: FaberProject, typed: string): Result<string> {
  const runs = listRuns(context.world.files, project);
  if (runs.includes(typed)) return ok(typed);
  const found = runs.filter((runId) => runId.startsWith(typed));
  if (found.length === 1) return ok(found[0] as string);
  const next = advise('List them with', ['faber', 'status']);
  const what = safeLine(typed, 200);
  if (found.length > 1) return fail('ambiguous', `${found.length} runs begin with ${what}: ${found.join(', ')}.`, next);
  return fail('not-found', `There is no run ${what} in ${project.root}/${project.runs}.`, next);
}

function runsInProgress(context: AppContext, project: FaberProject): FoundRun[] {
  return listRuns(context.world.files, project).flatMap((runId) => {
    const state = loadState(context.world.files, project, runId);
    const isOpen =
      state.ok && state.value.status === inProgress && belongsHere(context.world.files, project, state.value);
    return isOpen ? [{ runId, state: state.value }] : [];
  });
}

export function soundConfig(context: AppContext, project: FaberProject, name: string): Result<WorkflowConfig> {
  const config = loadWorkflowConfig(context.world.files, project, name);
  if (!config.ok || config.value.problems.length === 0) return config;
  const { problems, file } = config.value;
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
  return fail('corrupt-file', `${file} has ${count}:\n${problems.join('\n')}`, 'Correct them.');
}

/**
 * Run states are shared by git, but each worktree has its own active run. Warns if git ignores the state, and makes git
 * ignore the file of the active run.
 */
export async function settleWithGit(context: AppContext, project: FaberProject, runId: string): Promise<void> {
  const [active, state] = [activeRunPath(project), statePath(project, runId)];
  const ignored = await ignoredFiles(context, project.root, [active, state]);
  // Not in a repository.
  if (!ignored.ok) return;
  const warn = (text: string) => context.notes.line(safeLine(`WARNING: ${text}`, 600));
  if (ignored.value.includes(state)) {
    warn(`git ignores ${state}, so the run cannot continue on another machine. Correct .gitignore.`);
  }
  if (ignored.value.includes(active)) return;
  const tracked = await runOwn(context, project.root, ['--literal-pathspecs', 'ls-files', '--', active]);
  if (tracked.ok && tracked.value !== '') {
    const cure = `git -C ${shellWord(project.root)} rm --cached ${active}`;
    warn(`git tracks ${active}, which only this checkout needs. Remove it with: ${cure}`);
    return;
  }
  const excluded = await exclude(context, project, '.active-run-id');
  if (!excluded.ok) warn(`git does not ignore ${active}: ${excluded.failure.message}`);
}

/** Adds the name to info/exclude of the repository, which all worktrees share and no commit changes. */
async function exclude(context: AppContext, { root }: FaberProject, name: string): Promise<Result<boolean>> {
  const { files } = context.world;
  const found = await runOwn(context, root, ['rev-parse', '--git-path', 'info/exclude']);
  if (!found.ok) return found;
  const path = resolve(root, found.value.trim());
  if (files.info(dirname(path)) === null) files.makeFolder(dirname(path), 'project');
  return updateExclusively(files, {
    path: files.realPath(path) ?? path,
    bytesMax: 1024 ** 2,
    change: (before) => {
      const text = new TextDecoder().decode(before ?? new Uint8Array(0));
      if (text.split('\n').includes(name)) return ok(null);
      return ok(new TextEncoder().encode(`${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${name}\n`));
    },
  });
}
