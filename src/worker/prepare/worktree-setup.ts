/** The worktree of a session: made, filled and set up. Loaded only by runs that have worktrees. */
import { join } from 'node:path';
import type { ConversationLoss } from '../../claude/launch/resume-prompt.ts';
import { isFaberRunning } from '../../context/faber/state-file.ts';
import { defined } from '../../core/defined.ts';
import { type Failure, fail, ok, type Result } from '../../core/failure.ts';
import { defaultCommandTimeoutMs, type SessionDefinition, type Workspace } from '../../core/group.ts';
import { quoted, sessionLabel } from '../../core/id.ts';
import { baseSessionsOf } from '../../core/plan/isolation.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { Base } from '../../core/state.ts';
import { findRepository, type Git } from '../../git/git.ts';
import { noteIgnored } from '../../git/ignored-output.ts';
import { copyIncluded } from '../../git/include.ts';
import { commitOf, runOwn } from '../../git/run-git.ts';
import { isOurFile, recordSetUpFiles } from '../../git/stage.ts';
import { placeBelow } from '../../git/worktrees/levels.ts';
import { branchName, makeWorkspace, readIntent } from '../../git/worktrees/workspace.ts';
import { changedFiles } from '../../git/worktrees/worktree.ts';
import { workspaceName } from '../../store/paths.ts';
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

interface Made {
  readonly workspace: Workspace;
  readonly notes: readonly string[];
  readonly isNew: boolean;
}

interface IsolateOptions {
  readonly repository: string;
  /** The folder below which new worktrees are made. */
  readonly worktrees: string;
  readonly bases: Map<string, Base>;
}

export async function isolate(
  git: Git,
  { state, record, paths }: WorkspaceInput,
  { repository, worktrees, bases }: IsolateOptions,
): Promise<Result<Made>> {
  const { id, name, projectPath } = record.definition;
  const { files } = git.world;
  const checkout = findRepository(files, projectPath)?.top ?? projectPath;
  const upstreams = upstreamsOf(files, state, record).map((one) => one.checkout);
  // One that was made before stays where it is, whatever the user has set since.
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
  if (!made.ok) return withCure(made.failure, baseSessionsOf(state, id));
  const { notes, isNew } = made.value;
  // All work of a checkout goes back to the branch that was checked out there when the first of it began.
  const { target: found, ...rest } = made.value.workspace;
  const target = known === undefined ? found : known.target;
  const origin = known?.base ?? own.value[0] ?? rest.base;
  const workspace: Workspace = { ...rest, ...defined({ target }), checkout, origin };
  if (known === undefined) bases.set(checkout, { repository, base: origin, ...defined({ target }) });
  return ok({ workspace, isNew, notes: [...notes, ...faberNotes(git, record)] });
}

/** What was checked out in the session's own checkout when work began there, or is now. */
async function originOf(git: Git, projectPath: string, known: Base | undefined): Promise<Result<string[]>> {
  if (known !== undefined) return ok([known.base]);
  const head = await commitOf(git, projectPath, 'HEAD');
  return head.ok ? ok(head.value === null ? [] : [head.value]) : head;
}

function faberNotes({ world }: Git, { definition }: SessionRecord): string[] {
  // Every session has FABER's hooks; who chose it wants to take part.
  if (definition.context?.includes('faber') !== true || !isFaberRunning(world.files, definition.projectPath)) return [];
  return [
    'It works beside the FABER run of its project: a run belongs to a checkout, and what is recorded of it in a ' +
      'worktree goes with that. To take part in it, add such a session with --isolate none.',
  ];
}

/** Copies what the project names and runs the set-up command, once in a worktree. */
export async function setUp(
  world: World,
  git: Git,
  input: WorkspaceInput,
  { workspace, isNew, notes, slots }: Made & { readonly slots: CommandSlots },
): Promise<Result<PreparedWorkspace>> {
  const { record, paths, isolated, isElsewhere } = input;
  const { setup, setupTimeoutMs = defaultCommandTimeoutMs, projectPath } = record.definition;
  if (isNew) world.files.remove(paths.setupDone);
  // A crash may have come between the making and this call.
  const round = workspace.remade?.at ?? '';
  const isSetUp = world.files.readText(paths.setupDone) === round;
  const known = record.workspace;
  const isNews = known === undefined || known.remade?.at !== workspace.remade?.at;
  const loss = known !== undefined && (isNews || record.unaware) ? await lossOf(git, record, workspace) : undefined;
  const copied = isSetUp ? ok({ notes: [] }) : await copyIncluded(git, workspace, projectPath);
  const lost = loss === undefined ? [] : [describeLoss(loss)];
  // It exists, also when it cannot be filled.
  if (isNews) isolated(workspace, [...notes, ...lost, ...(copied.ok ? copied.value.notes : [])]);
  const place = { folder: workspace.folder, workspace, ...defined({ loss }) };
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
  if (isSetUp) return ok({ ...place, linked: linked.value });
  if (!copied.ok) return copied;
  const watched = watchedRepositories(world.files, input.state, linked.value);
  await noteLinked(git, paths, watched);
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
  const what = cwd === workspace.folder ? 'The set-up command of the worktree' : `The set-up command in ${cwd}`;
  const next = `Its output is in ${paths.setupLog}. Correct it, then retry the session.`;
  return fail('setup-failed', commandFailure(what, command, end, timeoutMs), next);
}

export interface WorktreeReasons {
  readonly commits: readonly string[];
  /** Some of it began in another checkout, which may lack what is checked out in this one. */
  readonly isForeign: boolean;
}

/** The work on which the session builds. Fails with `worktree-failed` when some of it is in no commit. */
async function baseCommitsOf(
  git: Git,
  baseCommits: readonly SessionRecord[],
  checkout: string,
): Promise<Result<WorktreeReasons>> {
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

/** The work of a session without a worktree is what is checked out, once nothing of it is uncommitted. */
async function commitInPlace(git: Git, { id, name, projectPath }: SessionDefinition): Promise<Result<string>> {
  const changed = await changedFiles(git, projectPath);
  if (!changed.ok) return changed;
  const who = sessionLabel(id, name);
  const next = `Commit it in ${projectPath} and retry the session, or add it again with --isolate none.`;
  if (changed.value.some((path) => !isOurFile(path))) {
    return fail('worktree-failed', `${who} worked in ${projectPath} itself and left work uncommitted there.`, next);
  }
  const head = await commitOf(git, projectPath, 'HEAD');
  if (!head.ok) return head;
  return head.value === null ? fail('worktree-failed', `${projectPath} has no commit yet.`, next) : ok(head.value);
}

/** A conflict can be resolved where both sides are: in the worktree of the session that was completed last. */
function withCure(failure: Failure, baseCommits: readonly SessionRecord[]): Result<never> {
  const [last, ...others] = baseCommits.flatMap(({ workspace }) => workspace ?? []).reverse();
  if (failure.reason !== 'merge-conflict' || last === undefined || others.length === 0) return { ok: false, failure };
  const branches = others.map(({ branch }) => branch).join(' ');
  const command = `git -C ${quoted(last.path)} merge ${branches}`;
  return fail(failure.reason, failure.message, `Resolve it there with \`${command}\` and commit the result.`);
}

/** `record` is as it was when the worktree was made again. */
async function lossOf(git: Git, record: SessionRecord, workspace: Workspace): Promise<ConversationLoss> {
  const { path, branch, base, remade } = workspace;
  const hasBegun = record.claudeSessionIds.length > 0;
  if (!hasBegun || (record.committed === true && remade?.from === 'branch')) return { branch, kept: 'all' };
  const counted = await runOwn(git, path, ['rev-list', '--count', `${base}..refs/heads/${branch}`]);
  // Unknown is not nothing: what then is said holds either way.
  const commits = counted.ok ? Number.parseInt(counted.value, 10) : null;
  return { branch, kept: commits === 0 ? 'nothing' : 'commits' };
}

function describeLoss({ branch, kept }: ConversationLoss): string {
  const what = {
    all: 'nothing of its work is lost',
    commits: 'its commits are there, what was in no commit is lost, and claude is told so',
    nothing: 'that holds no commit of the session, so what it had changed is lost, and claude is told so',
  };
  return `The worktree of the session was gone; it was made again from the branch ${branch}: ${what[kept]}.`;
}
