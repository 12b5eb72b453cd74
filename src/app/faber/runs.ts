/** What all FABER commands need: the current project, the current run, and the calling session. */
import { dirname, join, resolve } from 'node:path';
import { updateExclusively } from '../../context/exclusive-update.ts';
import { fillPlaceholders, portablePath } from '../../context/faber/artifacts.ts';
import { primeContext } from '../../context/faber/prime.ts';
import {
  activeRunPath,
  changeInProject,
  type FaberProject,
  findProject,
  listRuns,
  readActiveRun,
  readGitHead,
  statePath,
} from '../../context/faber/project.ts';
import {
  type Actor,
  beginSession,
  finishPhase,
  inProgress,
  newState,
  objectOf,
  phasesCompleted,
  type RunPlace,
  stamp,
} from '../../context/faber/state.ts';
import { belongsHere, createState, elsewhere, loadState, updateState } from '../../context/faber/state-file.ts';
import { loadWorkflowConfig, type WorkflowConfig } from '../../context/faber/workflow-config.ts';
import { harmless } from '../../context/hook-call.ts';
import { advise, shellWord } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { type Failure, fail, ok, type Result } from '../../core/failure.ts';
import { nearest } from '../../core/nearest.ts';
import { foreignText } from '../../core/text.ts';
import { runOwn } from '../../git/run-git.ts';
import { ignoredFiles, removeWorktree } from '../../git/worktrees/worktree.ts';
import type { JsonObject } from '../../store/json.ts';
import { platform } from '../../system/machine.ts';
import { safeLine } from '../../view/terminal-text.ts';
import type { AppContext } from '../app-context.ts';
import { briefPath, folderNamed, lookAt, tryPath } from '../path-argument.ts';
import { makeWorktree, repositoryOf, trackWorktree, untrackWorktree } from './worktrees.ts';

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

// Starts a run in this worktree or a new one, and records finished phases.

export interface NewRun {
  readonly runId: string;
  readonly workId: string;
  readonly workflow: string;
  readonly config: WorkflowConfig;
}

export function newRun(context: AppContext, run: Omit<NewRun, 'runId'>): NewRun {
  const { clock, random } = context.world;
  const suffix = random.uuid().replaceAll('-', '').slice(0, 6);
  return { ...run, runId: `fractary-faber-${run.workId}-${stamp(clock.now())}-${suffix}` };
}

/** Starts the run in the worktree of the project. `isOwnTree`: the worktree was created for this run. */
export function startHere(context: AppContext, project: FaberProject, run: NewRun, isOwnTree = false): Result<void> {
  const { files, clock } = context.world;
  const nowMs = clock.now();
  const { phases } = run.config;
  const workflowId = `fractary-faber:${run.workflow}`;
  const made = newState({ ...run, phases, workflowId, nowMs, place: runLocation(context, project, isOwnTree) });
  const who = currentActor(context, project);
  // The SessionStart hook found no run yet, so record the session now. It has no part in a run in another worktree.
  const state = isOwnTree || who.sessionId === undefined ? made : beginSession(made, who).state;
  // Write the state first, so that the active run always has one.
  const created = createState(files, project, run.runId, state);
  const active = created.ok ? activate(context, project, run.runId) : created;
  // The run could not become active, so remove its state.
  if (!active.ok) tryPath(() => files.remove(join(project.root, project.runs, run.runId)));
  return active;
}

/** The worktree and branch of a run, for its state. */
export function runLocation({ world }: AppContext, { top }: FaberProject, isMade = false): RunPlace {
  const { branch } = readGitHead(world.files, top) ?? {};
  return { path: top, ...defined({ branch }), ...(isMade ? { created_by: 'fractary-faber', auto_cleanup: true } : {}) };
}

/** Starts the run in a new worktree and returns the project there. Cleans up on failure. */
export async function startBeside(
  context: AppContext,
  project: FaberProject,
  run: NewRun,
): Promise<Result<FaberProject>> {
  const { files, clock } = context.world;
  const repository = await repositoryOf(context, project);
  if (!repository.ok) return repository;
  const made = await makeWorktree(context, project, repository.value, run.workId);
  if (!made.ok) return made;
  const { project: there, branch } = made.value;
  const entry = { ...run, path: there.top, branch, createdAt: new Date(clock.now()).toISOString() };
  const { main } = repository.value;
  const tracked = trackWorktree(files, main, entry);
  const begun = tracked.ok ? startHere(context, there, run, true) : tracked;
  if (!begun.ok) {
    // Leave neither a folder without a run nor an entry without a folder.
    if (tracked.ok) untrackWorktree(files, main, there.top);
    await removeWorktree(context, main.top, there.top);
  }
  return begun.ok ? ok(there) : begun;
}

/** Another run that is in progress in the worktree. */
export interface Conflict {
  readonly runId: string;
  readonly workId: string | undefined;
}

/** Null if the worktree is free. */
export function conflictWith(context: AppContext, project: FaberProject, newRunId: string): Result<Conflict | null> {
  const active = readActiveRun(context.world.files, project);
  if (active.kind === 'unusable') {
    return fail('corrupt-file', `${activeRunPath(project)} ${active.trouble}.`, 'Check it, then remove it.');
  }
  if (active.kind === 'none' || active.runId === newRunId) return ok(null);
  const { files } = context.world;
  const state = loadState(files, project, active.runId);
  const { runId } = active;
  // A run without a state cannot continue.
  if (!state.ok) return state.failure.reason === 'not-found' ? ok(null) : state;
  if (state.value.status !== inProgress || !belongsHere(files, project, state.value)) return ok(null);
  return ok({ runId, workId: foreignText(state.value.work_id ?? '') || undefined });
}

export function activate({ world }: AppContext, project: FaberProject, runId: string): Result<void> {
  return changeInProject(world.files, project, activeRunPath(project), 4096, () => ok(`${runId}\n`));
}

/** claude's Bash tool passes on 30,000 characters of output. */
export const bashCharactersMax = 25_000;

/** `/prime-context`, with or without the name of a plugin. */
const primes = /^\/(?:[\w-]+:)?prime-context\s*$/;

/** Runs the actions of a workflow before a phase. Outside claude there is no conversation to load context into. */
export function beginPhase(
  context: AppContext,
  project: FaberProject,
  { runId, phase, config }: { readonly runId: string; readonly phase: string; readonly config: WorkflowConfig },
): void {
  const who = currentActor(context, project);
  if (who.sessionId === undefined) return;
  const { notes } = context;
  for (const { id, prompt } of config.preSteps.filter((step) => step.phase === phase)) {
    if (!primes.test(prompt)) {
      notes.line(safeLine(`Before the phase ${phase} (${id}): ${prompt}`, 4_000));
      continue;
    }
    const primed = primeContext(context.world.files, {
      project,
      runId,
      who,
      trigger: 'manual',
      force: false,
      dryRun: false,
      isCompacted: false,
      charactersMax: bashCharactersMax,
    });
    // On stderr, because scripts read stdout; claude receives both.
    if (primed.ok) notes.line(harmless(primed.value.text));
    else notes.line(safeLine(`WARNING: The context could not be loaded (${id}): ${primed.failure.message}`, 600));
  }
}

export interface NamedValue {
  readonly name: string;
  readonly value: string;
}

/** Records the phase in the state. Fails for an unknown phase, an artifact outside the project, and a finished run. */
export function recordPhase(
  context: AppContext,
  project: FaberProject,
  run: FoundRun,
  finished: { readonly name: string; readonly phases: readonly string[]; readonly made: readonly NamedValue[] },
): Result<JsonObject> {
  const { name, phases, made } = finished;
  if (!phases.includes(name)) {
    const near = nearest(name, phases);
    const hint = near === undefined ? '' : ` Did you mean ${near}?`;
    const what = JSON.stringify(name.slice(0, 100));
    return fail('usage', `The workflow has no phase ${what}.${hint}`, `Its phases are: ${phases.join(', ')}.`);
  }
  const artifacts = portableArtifacts(context, project, run, made);
  if (!artifacts.ok) return artifacts;
  const who = currentActor(context, project);
  return updateState(context.world.files, project, run.runId, (now) => {
    if (now.status !== inProgress) return notInProgress(run.runId, foreignText(now.status));
    const all = { ...objectOf(now.artifacts), ...artifacts.value };
    const known = Object.keys(artifacts.value).length === 0 ? now : { ...now, artifacts: all };
    // A phase that is recorded again keeps its time.
    return ok(phasesCompleted(now).includes(name) ? known : finishPhase(known, name, phases, who));
  });
}

function notInProgress(runId: string, status: string): Result<never> {
  const message = `The run ${runId} is not in progress, but ${safeLine(status, 100)}.`;
  return fail('illegal-transition', message, advise('Continue with it', ['faber', 'resume', runId]));
}

const placeholders = 'Placeholders: {project_root}, {run_id}, {plan_id}, {work_id} and {faber_root}.';

/** Stores paths with placeholders, so that they are valid on every machine. Fails for paths outside the project. */
function portableArtifacts(
  context: AppContext,
  project: FaberProject,
  { runId, state }: FoundRun,
  given: readonly NamedValue[],
): Result<Record<string, string>> {
  const made: Record<string, string> = {};
  for (const { name, value } of given) {
    const filled = fillPlaceholders(value, { project, runId, state });
    if (!filled.ok) return fail('usage', `${name} ${filled.trouble}.`, placeholders);
    if (!name.endsWith('_path')) {
      made[name] = value;
      continue;
    }
    const path = resolve(context.cwd, filled.text);
    const kind = lookAt(context.world.files, path);
    const next = 'Give the path of something in the project.';
    if (!kind.ok) return fail('usage', `${name}: ${briefPath(path)} ${kind.trouble}.`, next);
    const real = tryPath(() => context.world.files.realPath(path));
    const portable = real.ok && real.value !== null ? portablePath(project, real.value) : null;
    if (portable === null) return fail('usage', `${name}: ${briefPath(path)} is not in the project.`, next);
    made[name] = portable;
  }
  return ok(made);
}
