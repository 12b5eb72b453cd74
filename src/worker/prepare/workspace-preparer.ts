/** worker/prepare/: the folder of an attempt, which is the project folder itself or a git worktree. */
import { join } from 'node:path';
import { attemptMark } from '../../claude/launch/attempt-mark.ts';
import { isFaberRunning } from '../../context/faber/state-file.ts';
import { defined } from '../../core/defined.ts';
import type { Warning } from '../../core/event.ts';
import { type Failure, fail, ok, type Result } from '../../core/failure.ts';
import { defaultCommandTimeoutMs, type SessionDefinition, type Workspace } from '../../core/group.ts';
import { quoted, sessionLabel } from '../../core/id.ts';
import { baseSessionsOf } from '../../core/plan/isolation.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { Base } from '../../core/state.ts';
import { stateNow } from '../../git/diff.ts';
import { findRepository, type Git } from '../../git/git.ts';
import { copyIncluded } from '../../git/include.ts';
import { noteIgnored } from '../../git/leftover-files.ts';
import { commitOf } from '../../git/run-git.ts';
import { isOurFile, recordSetUpFiles } from '../../git/stage.ts';
import { changesInRepository, type Inventory, noteBranches } from '../../git/unexpected-changes.ts';
import { placeBelow } from '../../git/worktrees/levels.ts';
import { branchName, makeWorkspace, readIntent } from '../../git/worktrees/workspace.ts';
import { changedFiles } from '../../git/worktrees/worktree.ts';
import { type SessionPaths, workspaceName } from '../../store/paths.ts';
import type { World } from '../../system/world.ts';
import type { CommandSlots } from '../attempt/command-slots.ts';
import { type PreparedWorkspace, stoppedWaiting, type WorkspaceInput } from '../host.ts';
import { sessionVariables } from '../session-variables.ts';
import { commandFailure, runShellCommand } from '../shell-command.ts';
import {
  changedLinked,
  layOutAround,
  newestOf,
  noteLinked,
  type SetupCommand,
  upstreamsOf,
  watchedRepositories,
} from './workspace-links.ts';

/**
 * Prepares the folders of attempts. Worktrees of a repository are created one after another: the first one fixes the
 * base of the others. Fails with `project-missing`, `worktree-failed`, `merge-conflict` or `setup-failed`.
 */
export function workspacePreparer(world: World, git: Git, slots: CommandSlots, worktrees: string) {
  const bases = new Map<string, Base>();
  return async (input: WorkspaceInput): Promise<Result<PreparedWorkspace>> => {
    const { record, paths, onStop } = input;
    const { id: sessionId, projectPath, repository } = record.definition;
    const inventory = input.isElsewhere === true ? null : branchInventory(record, paths, worktrees);
    if (inventory !== null) await noteBranches(git, inventory);
    if (record.isolated !== true) {
      if (world.files.info(projectPath)?.kind !== 'folder') return projectMissing(projectPath);
      await noteBegin(world, git, input);
      return ok({ folder: projectPath });
    }
    if (repository === undefined) return noRepository(projectPath);
    // Marked, so that the next runner can end a git process that outlives this one.
    const marked = { ...git, mark: { [attemptMark]: input.attempt.id } };
    const { workspace } = record;
    const isLight = workspace !== undefined && world.files.info(workspace.path)?.kind === 'folder';
    const made = await slots.take({ sessionId, command: 'checkout', turn: repository, onStop, isLight }, () =>
      isolate(marked, input, repository, { worktrees, bases }),
    );
    if (made === null) return stoppedWaiting;
    return made.ok ? setUp(world, git, input, { ...made.value, slots }) : made;
  };
}

/** Records the state before the first attempt without a worktree, for a later diff. */
async function noteBegin(world: World, git: Git, { record, paths }: WorkspaceInput): Promise<void> {
  const { repository, projectPath } = record.definition;
  if (repository === undefined || world.files.info(paths.begin) !== null) return;
  const begin = await stateNow(git, projectPath);
  // On failure only the diff is missing.
  if (begin.ok && begin.value !== null) world.files.writeAtomic(paths.begin, begin.value);
}

/** At the end of an attempt: unexpected changes in its repository and in linked ones. */
export async function branchWarnings(
  { git, worktrees }: { readonly git: Git; readonly worktrees: string },
  record: SessionRecord,
  paths: SessionPaths,
): Promise<Warning[]> {
  const linked = record.isolated === true ? await changedLinked(git, paths, 'the session') : [];
  const inventory = branchInventory(record, paths, worktrees);
  if (inventory === null) return linked;
  const messages = await changesInRepository(git, inventory);
  return [...linked, ...messages.map((message): Warning => ({ code: 'workspace', message }))];
}

function branchInventory({ definition }: SessionRecord, paths: SessionPaths, worktrees: string): Inventory | null {
  const { repository } = definition;
  if (repository === undefined) return null;
  // <data root>/session-groups/<group>/sessions/<session>
  const root = join(paths.folder, '..', '..', '..', '..');
  return { repository, file: paths.branchesBefore, ownFolders: [root, worktrees] };
}

function projectMissing(projectPath: string): { readonly ok: false; readonly failure: Failure } {
  return fail(
    'project-missing',
    `The project folder ${projectPath} no longer exists or is not a folder.`,
    'Restore it and retry the session, or remove the session and its dependents.',
  );
}

function noRepository(projectPath: string): { readonly ok: false; readonly failure: Failure } {
  return fail(
    'worktree-failed',
    `${projectPath} was not in a git repository when the session was added, so the session cannot have a worktree.`,
    'Remove the session and add it again. Add it with --isolate none to work in the folder itself.',
  );
}

// A worktree is made, filled with the files that the project names, and set up.

interface MadeWorkspace {
  readonly workspace: Workspace;
  readonly notes: readonly string[];
  readonly isNew: boolean;
}

async function isolate(
  git: Git,
  { state, record, paths }: WorkspaceInput,
  repository: string,
  { worktrees, bases }: { readonly worktrees: string; readonly bases: Map<string, Base> },
): Promise<Result<MadeWorkspace>> {
  const { id, name, projectPath } = record.definition;
  const { files } = git.world;
  const checkout = findRepository(files, projectPath)?.top ?? projectPath;
  const upstreams = upstreamsOf(files, state, record).map((one) => one.checkout);
  // An existing worktree keeps its path.
  const before = readIntent(files, paths.workspace)?.path ?? record.workspace?.path;
  const top = join(worktrees, workspaceName(state.group.id, id));
  const path = before ?? placeBelow(files, top, { checkout, home: git.env.HOME ?? '/', others: upstreams });
  const known = state.bases.get(checkout) ?? bases.get(checkout);
  const grounds = await baseCommitsOf(git, baseSessionsOf(state, id), checkout);
  if (!grounds.ok) return grounds;
  const { commits, isForeign } = grounds.value;
  const own = isForeign ? await originOf(git, projectPath, known) : ok([]);
  if (!own.ok) return own;
  const made = await makeWorkspace(git, {
    projectPath,
    repository,
    path,
    branch: record.workspace?.branch ?? branchName(state.group.slug, id, name),
    intentFile: paths.workspace,
    ...(known === undefined ? {} : { base: known.base }),
    parents: [...own.value, ...commits],
    isKnown: record.workspace !== undefined,
  });
  if (!made.ok) return withResolution(made.failure, baseSessionsOf(state, id));
  const { notes, isNew } = made.value;
  // All work of a checkout is merged into the branch that was checked out when the first session started.
  const { target: found, ...rest } = made.value.workspace;
  const target = known === undefined ? found : known.target;
  const origin = known?.base ?? own.value[0] ?? rest.base;
  const workspace: Workspace = { ...rest, ...defined({ target }), checkout, origin };
  if (known === undefined) bases.set(checkout, { repository, base: origin, ...defined({ target }) });
  return ok({ workspace, isNew, notes: [...notes, ...faberNotes(git, record)] });
}

/** The base of the session's own checkout. */
async function originOf(git: Git, projectPath: string, known: Base | undefined): Promise<Result<string[]>> {
  if (known !== undefined) return ok([known.base]);
  const head = await commitOf(git, projectPath, 'HEAD');
  return head.ok ? ok(head.value === null ? [] : [head.value]) : head;
}

function faberNotes({ world }: Git, { definition }: SessionRecord): string[] {
  // Only sessions that explicitly chose FABER are told.
  if (definition.context?.includes('faber') !== true || !isFaberRunning(world.files, definition.projectPath)) return [];
  return [
    'The session does not take part in the FABER run of its project: a run belongs to a checkout, and a ' +
      'worktree is another one. To take part, add the session with --isolate none.',
  ];
}

/** Copies the files that the project lists, and runs the set-up command once per worktree. */
async function setUp(
  world: World,
  git: Git,
  input: WorkspaceInput,
  { workspace, isNew, notes, slots }: MadeWorkspace & { readonly slots: CommandSlots },
): Promise<Result<PreparedWorkspace>> {
  const { record, paths, isolated, isElsewhere } = input;
  const { setup, setupTimeoutMs = defaultCommandTimeoutMs, projectPath } = record.definition;
  if (isNew) world.files.remove(paths.setupDone);
  // There may have been a crash since the worktree was created.
  const round = workspace.remadeAt ?? '';
  const isSetUp = world.files.readText(paths.setupDone) === round;
  const known = record.workspace;
  const isChanged = known === undefined || known.remadeAt !== workspace.remadeAt;
  const remadeFrom = known !== undefined && (isChanged || record.unaware) ? workspace.branch : undefined;
  const copied = isSetUp ? ok({ notes: [] }) : await copyIncluded(git, workspace, projectPath);
  const lost = remadeFrom === undefined ? [] : [remadeNote(remadeFrom)];
  // Report it even if it cannot be filled.
  if (isChanged) isolated(workspace, [...notes, ...lost, ...(copied.ok ? copied.value.notes : [])]);
  const place = { folder: workspace.folder, workspace, ...defined({ remadeFrom }) };
  if (isElsewhere) {
    if (!isSetUp) await noteIgnored(git, workspace.path, paths.ignoredBefore);
    return copied.ok ? ok(place) : copied;
  }
  const run = (command: SetupCommand) => runSetUp(world, git, input, workspace, { ...command, slots });
  const linked = await layOutAround(git, input, workspace, {
    inTurn: (turn, work) =>
      slots.take({ sessionId: record.definition.id, command: 'checkout', turn, onStop: input.onStop }, work),
    setUp: run,
  });
  if (!linked.ok) return linked;
  // Again for each attempt: in between, the user merges and commits.
  await noteLinked(git, paths, watchedRepositories(world.files, input.state, linked.value));
  if (isSetUp) return ok({ ...place, linked: linked.value });
  if (!copied.ok) return copied;
  if (setup !== undefined) {
    const done = await run({ command: setup, cwd: workspace.folder, timeoutMs: setupTimeoutMs });
    input.noticed(await changedLinked(git, paths, 'the set-up command'));
    const noted = done.ok ? await recordSetUpFiles(git, workspace.path) : done;
    if (!noted.ok) return noted;
  }
  await noteIgnored(git, workspace.path, paths.ignoredBefore);
  world.files.writeAtomic(paths.setupDone, round, { durable: true });
  return ok({ ...place, linked: linked.value });
}

async function runSetUp(
  world: World,
  git: Git,
  { state, record, attempt, paths, env, onStop }: WorkspaceInput,
  workspace: Workspace,
  { command, cwd, timeoutMs, slots }: SetupCommand & { readonly slots: CommandSlots },
): Promise<Result<void>> {
  const variables = sessionVariables(git, state, { ...record, workspace });
  const options = { cwd, env: { ...env, ...variables }, logFile: paths.setupLog, timeoutMs, mark: attempt.id };
  const end = await slots.take({ sessionId: record.definition.id, command: 'setup', onStop }, () => {
    const running = runShellCommand(world, { command, ...options });
    onStop(running.stop);
    return running.ended;
  });
  if (end === null) return stoppedWaiting;
  if (end.ok) return ok(undefined);
  const what = cwd === workspace.folder ? 'The set-up command' : `The set-up command in ${cwd}`;
  const next = `Its output is in ${paths.setupLog}. Correct it, then retry the session.`;
  return fail('setup-failed', commandFailure(what, command, end, timeoutMs), next);
}

interface BaseCommits {
  readonly commits: readonly string[];
  /** Some of it started from another checkout, which may lack commits of this one. */
  readonly isForeign: boolean;
}

/** The commits on which the session builds. Fails with `worktree-failed` when some work is uncommitted. */
async function baseCommitsOf(
  git: Git,
  baseCommits: readonly SessionRecord[],
  checkout: string,
): Promise<Result<BaseCommits>> {
  const commits: string[] = [];
  let isForeign = false;
  for (const { definition, state: session, workspace } of baseCommits) {
    const recorded = session.status === 'completed' ? session.work?.commit : undefined;
    const commit =
      recorded === undefined
        ? await commitInPlace(git, definition)
        : await newestOf(git, definition, recorded, workspace);
    if (!commit.ok) return commit;
    commits.push(commit.value);
    isForeign ||= (workspace?.checkout ?? checkout) !== checkout;
  }
  return ok({ commits, isForeign });
}

/** The work of a session without a worktree is HEAD, if nothing is uncommitted. */
async function commitInPlace(git: Git, { id, name, projectPath }: SessionDefinition): Promise<Result<string>> {
  const changed = await changedFiles(git, projectPath);
  if (!changed.ok) return changed;
  const who = sessionLabel(id, name);
  const next = `Commit it in ${projectPath} and retry the session, or add it again with --isolate none.`;
  if (changed.value.some((path) => !isOurFile(path))) {
    return fail('worktree-failed', `${who} worked in ${projectPath} itself and left uncommitted changes there.`, next);
  }
  const head = await commitOf(git, projectPath, 'HEAD');
  if (!head.ok) return head;
  return head.value === null ? fail('worktree-failed', `${projectPath} has no commit yet.`, next) : ok(head.value);
}

/** A conflict is resolved in the worktree of the dependency that was completed last. */
function withResolution(failure: Failure, baseCommits: readonly SessionRecord[]): Result<never> {
  const [last, ...others] = baseCommits.flatMap(({ workspace }) => workspace ?? []).reverse();
  if (failure.reason !== 'merge-conflict' || last === undefined || others.length === 0) return { ok: false, failure };
  const branches = others.map(({ branch }) => branch).join(' ');
  const command = `git -C ${quoted(last.path)} merge ${branches}`;
  return fail(failure.reason, failure.message, `Resolve it with \`${command}\` and commit the result.`);
}

function remadeNote(branch: string): string {
  const made = `The session's worktree was missing and was created again from branch ${branch}.`;
  return `${made} Changes that were in no commit are lost. claude is told.`;
}
