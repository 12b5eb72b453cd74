/**
 * Where an attempt works: in the project folder itself, or in a git worktree that is made before the session's first
 * attempt, filled with what the project names, and set up by the user's command.
 */
import { isFaberRunning } from '../context/faber/running.ts';
import { noteSessionWorktree } from '../context/faber/worktrees.ts';
import type { Failure } from '../core/failure.ts';
import { describeFailure, fail, ok, type Result } from '../core/failure.ts';
import { defaultCommandTimeoutMs, type Workspace } from '../core/group.ts';
import { groundworkOf } from '../core/isolation.ts';
import type { Attempt, SessionRecord } from '../core/session-state.ts';
import type { Base, GroupState } from '../core/state.ts';
import { fingerprint } from '../git/fingerprint.ts';
import type { Git } from '../git/git.ts';
import { copyIncluded } from '../git/include.ts';
import { commitOf } from '../git/own.ts';
import { findRepository } from '../git/repository.ts';
import { branchName, makeWorkspace } from '../git/workspace.ts';
import type { SessionPaths } from '../store/paths.ts';
import type { World } from '../world/world.ts';
import { commandFailure } from './acceptance.ts';
import { groundsOf, withCure } from './groundwork.ts';
import { contextOf } from './session-context.ts';
import { runShellCommand } from './shell-command.ts';

export interface WorkplaceInput {
  readonly state: GroupState;
  readonly record: SessionRecord;
  readonly attempt: Attempt;
  readonly paths: SessionPaths;
  /** For the set-up command. */
  readonly env: Readonly<Record<string, string>>;
  /** Told as soon as the worktree exists, also when its set-up fails afterwards. */
  readonly isolated: (workspace: Workspace, notes: readonly string[]) => void;
  /** Takes what ends the preparation early. */
  readonly onStop: (stop: () => void) => void;
}

export interface Workplaces {
  /**
   * The folder in which claude is started. Fails with project-missing, worktree-failed, merge-conflict or
   * setup-failed.
   */
  folderFor(input: WorkplaceInput): Promise<Result<string>>;
}

/** Worktrees of a repository are made one after another: the first one fixes the base of the others. */
export function createWorkplaces(world: World, git: Git): Workplaces {
  const queues = new Map<string, Promise<unknown>>();
  const bases = new Map<string, Base>();
  const inTurn = <T>(repository: string, work: () => Promise<T>): Promise<T> => {
    const turn = (queues.get(repository) ?? Promise.resolve()).then(work);
    queues.set(
      repository,
      turn.catch(() => {}),
    );
    return turn;
  };
  return {
    folderFor: async (input) => {
      const { projectPath, repository } = input.record.definition;
      if (input.record.isolated !== true) {
        if (world.files.info(projectPath)?.kind !== 'folder') return projectMissing(projectPath);
        await noteBefore(world, git, input);
        return ok(projectPath);
      }
      if (repository === undefined) return noRepository(projectPath);
      const made = await inTurn(repository, () => isolate(git, input, repository, bases));
      if (!made.ok) return made;
      return setUp(world, git, input, made.value);
    },
  };
}

/** For a session that is expected to change something: what was there before its first attempt. */
async function noteBefore(world: World, git: Git, { record, paths }: WorkplaceInput): Promise<void> {
  const { expectChanges, repository, projectPath } = record.definition;
  if (!expectChanges || repository === undefined || world.files.info(paths.before) !== null) return;
  const before = await fingerprint(git, projectPath);
  // Nobody can say then whether anything changed, which is no reason not to work.
  if (before.ok) world.files.writeAtomic(paths.before, before.value);
}

interface Made {
  readonly workspace: Workspace;
  /** Sentences for people. */
  readonly notes: readonly string[];
  readonly isNew: boolean;
}

async function isolate(
  git: Git,
  { state, record, paths }: WorkplaceInput,
  repository: string,
  bases: Map<string, Base>,
): Promise<Result<Made>> {
  const { id, name, projectPath } = record.definition;
  const checkout = findRepository(git.world.files, projectPath)?.top ?? projectPath;
  const known = state.bases.get(checkout) ?? bases.get(checkout);
  const grounds = await groundsOf(git, groundworkOf(state, id), checkout);
  if (!grounds.ok) return grounds;
  const { commits, isForeign } = grounds.value;
  const own = isForeign ? await originOf(git, projectPath, known) : ok([]);
  if (!own.ok) return own;
  const made = await makeWorkspace(git, {
    projectPath,
    repository,
    path: paths.worktree,
    branch: record.workspace?.branch ?? branchName(state.group.slug, id, name),
    intentFile: paths.workspace,
    ...(known === undefined ? {} : { base: known.base }),
    parents: [...own.value, ...commits],
  });
  if (!made.ok) return withCure(made.failure, groundworkOf(state, id));
  const { notes, isNew } = made.value;
  // All work of a checkout goes back to the branch that was checked out there when the first of it began.
  const { target: found, ...rest } = made.value.workspace;
  const target = known === undefined ? found : known.target;
  const origin = known?.base ?? own.value[0] ?? rest.base;
  const workspace: Workspace = { ...rest, ...(target === undefined ? {} : { target }), checkout, origin };
  if (known === undefined)
    bases.set(checkout, { repository, base: origin, ...(target === undefined ? {} : { target }) });
  return ok({ workspace, isNew, notes: [...notes, ...tellFaber(git, record, workspace)] });
}

/** What was checked out in the session's own checkout when work began there, or is now. */
async function originOf(git: Git, projectPath: string, known: Base | undefined): Promise<Result<string[]>> {
  if (known !== undefined) return ok([known.base]);
  const head = await commitOf(git, projectPath, 'HEAD');
  return head.ok ? ok(head.value === null ? [] : [head.value]) : head;
}

/** FABER keeps a list of a project's worktrees. The sentences say what that means, or what keeps ours out of it. */
function tellFaber({ world }: Git, { definition }: SessionRecord, workspace: Workspace): string[] {
  const { projectPath } = definition;
  if (!contextOf(world, definition).includes('faber') || !isFaberRunning(world.files, projectPath)) return [];
  const noted = noteSessionWorktree(world.files, { ...workspace, projectPath }, world.clock.now());
  const trouble = noted.ok ? [] : [describeFailure(noted.failure)];
  return [...trouble, `${besideFaber} To take part in it, add such a session with --isolate none.`];
}

const besideFaber =
  'It works beside the FABER run of its project: a run belongs to a checkout, and what is recorded of it in a ' +
  'worktree goes with that.';

/** Copies what the project names and runs the set-up command, once in a worktree. */
async function setUp(
  world: World,
  git: Git,
  { record, attempt, paths, env, isolated, onStop }: WorkplaceInput,
  { workspace, isNew, notes }: Made,
): Promise<Result<string>> {
  const { setup, setupTimeoutMs = defaultCommandTimeoutMs, projectPath } = record.definition;
  if (isNew) world.files.remove(paths.setupDone);
  const isSetUp = world.files.info(paths.setupDone) !== null;
  const copied = isSetUp ? ok({ notes: [] }) : await copyIncluded(git, workspace, projectPath);
  // It exists, also when it cannot be filled.
  if (record.workspace === undefined) isolated(workspace, [...notes, ...(copied.ok ? copied.value.notes : [])]);
  if (isSetUp) return ok(workspace.folder);
  if (!copied.ok) return copied;
  if (setup !== undefined) {
    const command = runShellCommand(world, {
      command: setup,
      cwd: workspace.folder,
      env,
      logFile: paths.setupLog,
      timeoutMs: setupTimeoutMs,
      mark: attempt.id,
    });
    onStop(command.stop);
    const end = await command.ended;
    if (!end.ok) {
      const next = `Its output is in ${paths.setupLog}. Correct it, then retry the session.`;
      return fail('setup-failed', commandFailure('The set-up command of the worktree', end, setupTimeoutMs), next);
    }
  }
  world.files.writeAtomic(paths.setupDone, '', { durable: true });
  return ok(workspace.folder);
}

function projectMissing(projectPath: string): { readonly ok: false; readonly failure: Failure } {
  return fail(
    'project-missing',
    `The project folder ${projectPath} does not exist any more or is not a folder.`,
    'Put it back and retry the session, or remove the session from the group.',
  );
}

function noRepository(projectPath: string): { readonly ok: false; readonly failure: Failure } {
  return fail(
    'worktree-failed',
    `${projectPath} was in no git repository when the session was added, so it cannot have a worktree.`,
    'Remove the session and add it again, with --isolate none if it is to work in the folder itself.',
  );
}
