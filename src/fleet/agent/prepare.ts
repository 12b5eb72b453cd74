/** Prepares an order for its start: files, worktree, set-up, login and program, all on this host. */
import { dirname, join } from 'node:path';
import { commandEnvironment } from '../../claude/launch/environment.ts';
import {
  type HookProgram,
  inCleanEnvironment,
  telemetryOf,
  withHooksHere,
  workerSettings,
} from '../../claude/launch/settings.ts';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { type Git, gitDirOf } from '../../git/git.ts';
import { askOwn, longTimeoutMs, runOwn } from '../../git/run-git.ts';
import type { Snapshot } from '../../git/worktrees/snapshot.ts';
import { fetchCommits, keepingRef, keptCommits, setRefs } from '../../git/worktrees/snapshot.ts';
import { type JsonObject, parseOwn } from '../../store/json.ts';
import type { SessionPaths } from '../../store/paths.ts';
import { systemFailure } from '../../store/system-failure.ts';
import { linkFailure } from '../../system/system-error.ts';
import type { Files, SpawnOptions, World } from '../../system/world.ts';
import { checkLimits, limitsOf } from '../../worker/limits.ts';
import { commandFailure, runShellCommand } from '../../worker/shell-command.ts';
import type { FleetPaths, HostConfig } from '../fleet-files.ts';
import { environmentFor } from '../login-files.ts';
import type { FleetEngine } from '../redis.ts';
import {
  type GitSetting,
  isSentSetting,
  type Order,
  type ParcelFile,
  parcelIn,
  projectSlug,
  type ShippedWork,
} from '../wire.ts';
import { fillIn, layOut, type Places, removeOtherConversations, SessionFiles, worktreeFolder } from './lay-out.ts';
import type { Slot } from './slot.ts';

export interface PrepareOptions {
  readonly onStop: (stop: () => void) => void;
  /** Called as soon as there is a folder, even if its set-up fails afterwards. */
  readonly onWork: (work: AttemptWork) => void;
}

export interface AttemptWork {
  readonly places: Places;
  readonly worktree: RemoteWorktree;
  readonly folder: string;
  readonly files: SessionFiles;
  told: Snapshot;
}

export async function prepareAttempt(
  context: AgentContext,
  slot: Slot,
  options: PrepareOptions,
): Promise<Result<SpawnOptions>> {
  const { paths, order } = slot;
  try {
    return await prepare(context, slot, order, options);
  } catch (error) {
    return { ok: false, failure: systemFailure(paths.folder, error) };
  }
}

async function prepare(
  context: AgentContext,
  slot: Slot,
  order: Order,
  { onStop, onWork }: PrepareOptions,
): Promise<Result<SpawnOptions>> {
  const { world, git, engine } = context;
  const { paths } = slot;
  const claude = await context.claude();
  if (!claude.ok) return claude;
  const { processesMax: maxProcesses, memoryBytes } = order;
  const wanted = {
    ...(order.untrusted ? { untrusted: true as const } : {}),
    ...defined({ maxProcesses, memoryBytes }),
  };
  const limitable = checkLimits(wanted, world.processes);
  if (!limitable.ok) return limitable;
  const login = environmentFor(world.files, {
    root: context.root,
    agentEnv: context.env,
    ownLogin: context.config.login,
    order,
    paths,
    programs: join(context.packageRoot, 'bin'),
  });
  if (!login.ok) return login;
  const env = { ...login.value, ...variablesHere(slot) };
  const link = [paths.folder, paths.config, paths.tmp].find((path) => world.files.entryKind(path) === 'link');
  if (link !== undefined) return { ok: false, failure: linkFailure(link) };
  for (const folder of [paths.folder, paths.config, paths.tmp]) world.files.makeFolder(folder);
  const bytes = await engine.getBlob(order.files);
  const sent = bytes.ok ? parcelIn(bytes.value) : bytes;
  if (!sent.ok) return sent;
  const made = await layOutWork(git, context.paths, order, paths);
  if (!made.ok) return made;
  const work = workOf(context, slot, made.value);
  if (!work.ok) return work;
  const { places, folder } = work.value;
  const laidOut = layOutFiles(world.files, sent.value, places);
  if (!laidOut.ok) return laidOut;
  restateEnvironment(world.files, paths, env);
  restateHooks(context, paths, env, folder);
  work.value.files.noteAll();
  onWork(work.value);
  if (made.value.isNew) {
    const set = await setUp(context, slot, { ...made.value, folder }, onStop);
    if (!set.ok) return set;
  }
  const limits = limitsOf(wanted, world.processes);
  const { fifo: stdinFifo, transcript: stdoutFile, stderr: stderrFile } = paths;
  const spawn: SpawnOptions = {
    program: claude.value.program,
    args: order.args.map((arg) => fillIn(arg, places)),
    cwd: folder,
    env,
    ...{ stdinFifo, stdoutFile, stderrFile, syncsStdout: true as const },
    contained: order.attemptId,
    ...defined({ limits }),
  };
  return ok(spawn);
}

/** For its commands and claude. */
export function variablesHere({ paths, order }: Pick<Slot, 'paths' | 'order'>): Readonly<Record<string, string>> {
  return { ...defined(order.variables ?? {}), CCA_WORKSPACE: worktreeOf(paths) };
}

function layOutFiles(files: Files, all: readonly ParcelFile[], places: Places): Result<void> {
  const [inWorktree, others] = [true, false].map((isIn) =>
    all.filter((file) => file.path.startsWith(worktreeFolder) === isIn),
  ) as [ParcelFile[], ParcelFile[]];
  removeOtherConversations(files, others, places);
  const laidOut = layOut(files, others, places);
  if (!laidOut.ok) return laidOut;
  // Ignored files: existing ones belong to the session.
  return layOut(files, inWorktree, places, true);
}

/** The variables in settings that override a project's, as they are on this host. */
function restateEnvironment(
  files: Files,
  { workerSettings: path }: SessionPaths,
  env: Readonly<Record<string, string>>,
) {
  const settings = JSON.parse(files.readText(path) ?? '{}') as JsonObject;
  // Empty ones only mean that telemetry was off there.
  const telemetry = Object.entries(telemetryOf(settings)).filter(([, value]) => value !== '');
  const restated = { ...settings, env: workerSettings(env, { base: { env: Object.fromEntries(telemetry) } }).env };
  files.writeAtomic(path, `${JSON.stringify(restated, null, 2)}\n`);
}

/** Its runner does not know how this program is started here. */
function restateHooks(
  { world: { files }, hook }: AgentContext,
  { config }: SessionPaths,
  env: Readonly<Record<string, string>>,
  folder: string,
) {
  const path = join(config, 'settings.json');
  const text = files.readText(path);
  if (text === null) return;
  const settings = JSON.parse(text) as JsonObject;
  const restated = withHooksHere(settings, (args) =>
    inCleanEnvironment({ ...hook, args: [...hook.args, ...args] }, env, folder),
  );
  files.writeAtomic(path, `${JSON.stringify(restated, null, 2)}\n`);
}

/** Fails with `project-missing` when the order's folder is not in the worktree. */
function workOf(context: AgentContext, { paths, order }: Slot, worktree: RemoteWorktree): Result<AttemptWork> {
  const { files } = context.world;
  const session = files.realPath(paths.folder) ?? paths.folder;
  const wanted = join(session, order.cwd);
  const folder = files.realPath(wanted);
  const top = join(session, 'worktree');
  if (folder === null || (folder !== top && !folder.startsWith(`${top}/`)) || files.info(folder)?.kind !== 'folder') {
    const next = 'Commit that folder, or run the session on this host.';
    return fail('project-missing', `The folder ${order.cwd} of the session is not in its worktree.`, next);
  }
  const slug = projectSlug(folder);
  const places = { session, worktree: top, package: context.packageRoot, bun: context.bun, slug };
  const { head, snapshot } = order.work;
  return ok({ places, worktree, folder, files: new SessionFiles(files, places), told: { head, snapshot } });
}

/** After a restart of the agent: the attempt is known, but not its last reported snapshot. */
export function recallWork(context: AgentContext, slot: Slot): Result<AttemptWork> {
  const path = join(context.paths.repositories, slot.order.work.repository);
  return workOf(context, slot, { repository: path, path: worktreeOf(slot.paths), isNew: false });
}

async function setUp(
  context: AgentContext,
  slot: Slot,
  worktree: RemoteWorktree & { readonly folder: string },
  onStop: PrepareOptions['onStop'],
): Promise<Result<void>> {
  const { world, git, env } = context;
  const { paths, order } = slot;
  if (order.setup !== undefined) {
    const { command, timeoutMs } = order.setup;
    world.files.makeFolder(dirname(paths.setupLog));
    const running = runShellCommand(world, {
      command,
      cwd: worktree.folder,
      env: { ...commandEnvironment(env), ...variablesHere(slot) },
      logFile: paths.setupLog,
      timeoutMs,
      mark: order.attemptId,
    });
    onStop(running.stop);
    const end = await running.ended;
    onStop(() => {});
    if (!end.ok) {
      const message = commandFailure('The set-up command of the worktree', command, end, timeoutMs);
      return fail('setup-failed', message, 'Its output is in setup.log of the session. Correct it, then retry.');
    }
  }
  noteSetUp(git, paths, worktree);
  return ok(undefined);
}

// The worktree of a session from elsewhere: its commits are pushed into a bare repository of this host, one for each
// repository of a user, and its files lie as they lay there, changed and new ones as such.

export interface RemoteWorktree {
  readonly repository: string;
  readonly path: string;
  /** Nothing of the session, or of this repository, was here: ignored files and the results of `setup` are missing. */
  readonly isNew: boolean;
}

interface Note {
  readonly repository: string;
  readonly isSetUp: boolean;
}
const long = { timeoutMs: longTimeoutMs };

const busyIn = new WeakMap<World, Map<string, Promise<unknown>>>();

/** One at a time in a repository: while a worktree is created it has no HEAD. */
function alone<T>({ world }: Git, repository: string, work: () => Promise<T>): Promise<T> {
  const busy = busyIn.get(world) ?? new Map<string, Promise<unknown>>();
  busyIn.set(world, busy);
  const doing = (busy.get(repository) ?? Promise.resolve()).then(work);
  busy.set(
    repository,
    doing.catch(() => {}),
  );
  return doing;
}

/** Fails with `worktree-failed`, and as `fetchCommits` if the commits come through a remote. */
export async function layOutWork(
  git: Git,
  fleet: FleetPaths,
  order: Order,
  paths: SessionPaths,
): Promise<Result<RemoteWorktree>> {
  const { work } = order;
  if (!/^[A-Za-z0-9_][\w./+-]*$/.test(work.branch) || work.branch.includes('..')) {
    return fail('usage', 'The order names no branch.', 'Retry the session.');
  }
  const repository = join(fleet.repositories, work.repository);
  const place = { repository, path: worktreeOf(paths) };
  const found = await alone(git, repository, async () => {
    const ready = await readyRepository(git, repository, order);
    return ready.ok ? findFolder(git, place, order, paths) : ready;
  });
  if (!found.ok) return found;
  const filled = await checkOut(git, place.path, work, found.value);
  if (!filled.ok) return filled;
  if (found.value === 'new') noteWorktree(git, paths, { repository, isSetUp: false });
  return ok({ ...place, isNew: found.value !== 'set up' });
}

/** The runner has pushed the order's commits there, or to a remote from which they are fetched. */
async function readyRepository(git: Git, repository: string, { work, sessionId }: Order): Promise<Result<void>> {
  const { files } = git.world;
  const { head, snapshot, remote, settings } = work;
  const isThere = files.entryKind(join(repository, 'HEAD')) !== null;
  if (remote !== undefined) {
    files.makeFolder(repository);
    const made = isThere ? ok('') : await runOwn(git, repository, ['init', '--bare', '--quiet', repository]);
    if (!made.ok) return made;
    const wanted = [
      [head, keepingRef(sessionId, 'sent-head')],
      [snapshot, keepingRef(sessionId, 'sent')],
    ] as const;
    const fetched = await fetchCommits(git, repository, { url: remote, isOnHost: false }, wanted);
    if (!fetched.ok) return fetched;
  }
  const wanted = [head, snapshot].map((commit) => `${commit}^{commit}`);
  const known = isThere || remote !== undefined ? await runOwn(git, repository, ['rev-parse', ...wanted]) : null;
  if (!known?.ok) {
    const message = 'The commits of the session were not pushed to this host.';
    return fail('worktree-failed', message, 'See whether its --ssh leads to it, then retry the session.');
  }
  files.writeAtomic(join(repository, usedNote), '');
  return setUpAs(git, repository, settings.filter(isSentSetting));
}

/** Its modification time is the last start of a session there. */
const usedNote = 'cca-used';
/** How long files of sessions are kept after the last of them started. */
export const keptMs = 14 * 24 * 60 * 60_000;

/** The slot is free: the branch and the worktree are kept for a next attempt, the rest is not needed. */
export async function forgetWork(git: Git, fleet: FleetPaths, { work, sessionId }: Order): Promise<void> {
  const repository = join(fleet.repositories, work.repository);
  const kept = await keptCommits(git, repository, sessionId);
  if (!kept.ok) return;
  const refs = [...kept.value.keys()].map((name) => [keepingRef(sessionId, name), null] as const);
  await setRefs(git, repository, refs);
}

/** Removes repositories that no session has used for long, and packs the others. */
export async function tidyRepositories(git: Git, fleet: FleetPaths): Promise<void> {
  const { files, clock } = git.world;
  for (const name of files.list(fleet.repositories)) {
    const repository = join(fleet.repositories, name);
    const usedAtMs = files.info(join(repository, usedNote))?.mtimeMs ?? clock.now();
    if (clock.now() - usedAtMs > keptMs) files.remove(repository);
    else await askOwn(git, repository, ['-c', 'gc.auto=6700', 'gc', '--auto', '--quiet'], long);
  }
}

const settingsNote = 'cca-settings';

/** Gives the repository the identity and the remotes of the user's. */
async function setUpAs(git: Git, repository: string, settings: readonly GitSetting[]): Promise<Result<void>> {
  const { files } = git.world;
  const note = join(repository, settingsNote);
  const text = JSON.stringify(settings);
  if ((files.readText(note) ?? '[]') === text) return ok(undefined);
  for (const key of new Set(settings.map(([key]) => key)))
    await askOwn(git, repository, ['config', '--unset-all', key]);
  for (const [key, value] of settings) {
    const set = await runOwn(git, repository, ['config', '--add', key, value]);
    if (!set.ok) return set;
  }
  files.writeAtomic(note, text);
  return ok(undefined);
}

type Found = 'new' | 'not set up' | 'set up';

async function findFolder(
  git: Git,
  { repository, path }: Pick<RemoteWorktree, 'repository' | 'path'>,
  { work: { branch, snapshot } }: Order,
  paths: SessionPaths,
): Promise<Result<Found>> {
  const { files } = git.world;
  const known = readNote(git, paths);
  unlock(git, repository, path, branch);
  if (known?.repository === repository && files.entryKind(path) === 'folder')
    return ok(known.isSetUp ? 'set up' : 'not set up');
  files.remove(path);
  files.remove(notePath(paths));
  // An old session may still have the branch checked out, so it is moved first and then checked out with force.
  const moved = await setRefs(git, repository, [[`refs/heads/${branch}`, snapshot]]);
  if (!moved.ok) return moved;
  const add = ['worktree', 'add', '--quiet', '--no-checkout', '--force', path, branch];
  const made = await runOwn(git, repository, add, long);
  if (made.ok) return ok('new');
  // An old worktree at that path, or one left locked by a killed git. Nothing else uses the branch here.
  const gone = await runOwn(git, repository, ['worktree', 'remove', '--force', '--force', '--', path]);
  const again = gone.ok ? await runOwn(git, repository, add, long) : made;
  return again.ok ? ok('new') : again;
}

async function checkOut(
  git: Git,
  path: string,
  { branch, head, snapshot }: ShippedWork,
  found: Found,
): Promise<Result<void>> {
  const steps = [
    ...(found === 'new' ? [] : [['symbolic-ref', 'HEAD', `refs/heads/${branch}`]]),
    ['reset', '--hard', '--quiet', snapshot],
    ...(found === 'new' ? [] : [['clean', '-ffd', '--quiet']]),
    ...(head === snapshot ? [] : [['reset', '--mixed', '--quiet', head]]),
  ];
  for (const args of steps) {
    const done = await runOwn(git, path, args, long);
    if (!done.ok) return done;
  }
  return ok(undefined);
}

/** No process of the session is running, but a killed git may have left its locks. */
function unlock({ world: { files } }: Git, repository: string, path: string, branch: string): void {
  const own = gitDirOf(files, path);
  const worktrees = join(files.realPath(repository) ?? repository, 'worktrees/');
  // The session could have redirected it.
  if (own?.startsWith(worktrees) === true)
    for (const name of ['index', 'HEAD']) files.remove(join(own, `${name}.lock`));
  files.remove(join(repository, 'refs', 'heads', `${branch}.lock`));
}

export const worktreeOf = ({ folder }: Pick<SessionPaths, 'folder'>): string => join(folder, 'worktree');

const notePath = ({ folder }: SessionPaths): string => join(folder, 'remote-worktree.json');

function readNote({ world }: Git, paths: SessionPaths): Note | null {
  return parseOwn<Note>(world.files.readText(notePath(paths)));
}

function noteWorktree({ world }: Git, paths: SessionPaths, note: Note): void {
  world.files.writeAtomic(notePath(paths), `${JSON.stringify(note)}\n`, { durable: true });
}

export function noteSetUp(git: Git, paths: SessionPaths, { repository }: RemoteWorktree): void {
  noteWorktree(git, paths, { repository, isSetUp: true });
}

// the host's end of a fleet. This file: what all its parts need.

export interface ChosenProgram {
  readonly program: string;
  readonly version: string;
}

export interface AgentContext {
  readonly world: World;
  readonly engine: FleetEngine;
  readonly config: HostConfig;
  readonly root: string;
  readonly paths: FleetPaths;
  /** Distinguishes this data root on this host from any other. */
  readonly home: string;
  readonly git: Git;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly packageRoot: string;
  readonly bun: string;
  readonly hook: HookProgram;
  readonly claude: () => Promise<Result<ChosenProgram>>;
  readonly tell: (line: string) => void;
  readonly noteLeases: () => void;
  readonly isGuarded: () => boolean;
  /** The disk is so full that files on it may be incomplete. */
  readonly isDiskFull: () => boolean;
}

/** The part that the agent does not provide itself. */
export type OuterContext = Omit<AgentContext, 'noteLeases' | 'isDiskFull'>;
