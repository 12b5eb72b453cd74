/** From an order to what is to be started: files, worktree, set-up, login and program, all on this machine. */
import { dirname, join } from 'node:path';
import { commandEnvironment } from '../../claude/launch/environment.ts';
import { inCleanEnvironment, telemetryOf, withHooksHere, workerSettings } from '../../claude/launch/settings.ts';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { Git } from '../../git/git.ts';
import { gitDirOf } from '../../git/git.ts';
import { longTimeoutMs, runOwn } from '../../git/run-git.ts';
import { checkWhole, keepingRef, keepingRefs, setRefs, takeBundle } from '../../git/worktrees/bundles.ts';
import type { Snapshot } from '../../git/worktrees/snapshot.ts';
import { type JsonObject, parseOwn } from '../../store/json.ts';
import type { SessionPaths } from '../../store/paths.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { Files, SpawnOptions, World } from '../../system/world.ts';
import { linkFailure } from '../../system/write-failure.ts';
import { checkLimits, limitsOf } from '../../worker/limits.ts';
import { commandFailure, runShellCommand } from '../../worker/shell-command.ts';
import type { FleetEngine } from '../engine.ts';
import type { FleetPaths } from '../fleet-files.ts';
import { environmentFor } from '../login-files.ts';
import { type Blob, type Order, type ParcelFile, parcelIn, projectSlug, type ShippedWork } from '../wire.ts';
import { isSent, SessionFiles, takeSent } from './checkpoint.ts';
import type { AgentContext } from './context.ts';
import { fillIn, layOut, type Places, removeOtherConversations } from './lay-out.ts';
import type { Slot } from './slot.ts';

export interface PrepareOptions {
  readonly onStop: (stop: () => void) => void;
  /** Told as soon as there is a place of work, also when its set-up fails afterwards. */
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
  const env = environmentFor(world.files, {
    root: context.root,
    agentEnv: context.env,
    ownLogin: context.config.login,
    order,
    paths,
    programs: join(context.packageRoot, 'bin'),
  });
  if (!env.ok) return env;
  const link = [paths.folder, paths.config, paths.tmp].find((path) => world.files.entryKind(path) === 'link');
  if (link !== undefined) return { ok: false, failure: linkFailure(link) };
  for (const folder of [paths.folder, paths.config, paths.tmp]) world.files.makeFolder(folder);
  const bytes = await engine.getBlob(order.files);
  const sent = bytes.ok ? parcelIn(bytes.value) : bytes;
  if (!sent.ok) return sent;
  const made = await layOutWork(git, engine, context.paths, order, paths);
  if (!made.ok) return made;
  const work = workOf(context, slot, made.value);
  if (!work.ok) return work;
  const { places, folder } = work.value;
  const laidOut = layOutFiles(world.files, sent.value.files, places);
  if (!laidOut.ok) return laidOut;
  restateEnvironment(world.files, paths, env.value);
  restateHooks(context, paths, env.value, folder);
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
    env: env.value,
    ...{ stdinFifo, stdoutFile, stderrFile, syncsStdout: true as const },
    contained: order.attemptId,
    ...defined({ limits }),
  };
  return ok(spawn);
}

function layOutFiles(files: Files, all: readonly ParcelFile[], places: Places): Result<void> {
  const [inWorktree, others] = [true, false].map((isIn) =>
    all.filter((file) => !isSent(file) && file.path.startsWith('worktree/') === isIn),
  ) as [ParcelFile[], ParcelFile[]];
  removeOtherConversations(files, { files: others }, places);
  const laidOut = layOut(files, { files: others }, places);
  if (!laidOut.ok) return laidOut;
  // Those that git ignores: what lies there is the session's own already.
  const included = layOut(files, { files: inWorktree }, places, true);
  return included.ok ? layOut(files, { files: takeSent(all) }, places) : included;
}

/** What beats a project's settings states the environment of the machine on which it was written. */
function restateEnvironment(
  files: Files,
  { workerSettings: path }: SessionPaths,
  env: Readonly<Record<string, string>>,
) {
  const settings = JSON.parse(files.readText(path) ?? '{}') as JsonObject;
  // Empty ones only say that it was off there.
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

/** Fails with `project-missing` when the folder that the order names is none of the worktree. */
function workOf(context: AgentContext, { paths, order }: Slot, worktree: RemoteWorktree): Result<AttemptWork> {
  const { files } = context.world;
  const session = files.realPath(paths.folder) ?? paths.folder;
  const wanted = join(session, order.cwd);
  const folder = files.realPath(wanted);
  const top = join(session, 'worktree');
  if (folder === null || (folder !== top && !folder.startsWith(`${top}/`)) || files.info(folder)?.kind !== 'folder') {
    const next = 'Commit that folder, or run the session on this machine.';
    return fail('project-missing', `The folder ${order.cwd} of the session is not in its worktree.`, next);
  }
  const slug = projectSlug(folder);
  const places = { session, worktree: top, package: context.packageRoot, bun: context.bun, slug };
  const { head, snapshot } = order.work;
  return ok({ places, worktree, folder, files: new SessionFiles(files, places), told: { head, snapshot } });
}

/** After the agent was started anew: the attempt is there, and what of it was told last is not known any more. */
export function recallWork(context: AgentContext, slot: Slot): Result<AttemptWork> {
  const { repository } = slot.order.work;
  const path = join(context.paths.repositories, `${repository}-${slot.order.groupId}`);
  return workOf(context, slot, { repository: path, path: worktreeOf(slot.paths), isNew: false });
}

async function setUp(
  context: AgentContext,
  { paths, order }: Slot,
  worktree: RemoteWorktree & { readonly folder: string },
  onStop: PrepareOptions['onStop'],
): Promise<Result<void>> {
  const { world, git, env } = context;
  if (order.setup !== undefined) {
    const { command, timeoutMs } = order.setup;
    world.files.makeFolder(dirname(paths.setupLog));
    const running = runShellCommand(world, {
      command,
      cwd: worktree.folder,
      env: commandEnvironment(env),
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

// * The worktree of a session of somebody else: its commits come in bundles into a bare repository of this
// machine, its files as they lay on the other one, changed and new ones as such.

export interface RemoteWorktree {
  readonly repository: string;
  readonly path: string;
  /** Nothing of the session was here, or not of this repository: ignored files and what `setup` makes are missing. */
  readonly isNew: boolean;
}

interface Note {
  readonly repository: string;
  readonly isSetUp: boolean;
}
const long = { timeoutMs: longTimeoutMs };

const busyIn = new WeakMap<World, Map<string, Promise<unknown>>>();

/** One after another in a repository: while a worktree is made it has no HEAD, and git takes no bundle in. */
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

/** Fails with `worktree-failed`, with `usage` for an order that is none, and as `getBlob`. */
export async function layOutWork(
  git: Git,
  engine: FleetEngine,
  fleet: FleetPaths,
  order: Order,
  paths: SessionPaths,
): Promise<Result<RemoteWorktree>> {
  const { work } = order;
  const problem = problemWith(work);
  if (problem !== null) return fail('usage', `The order ${problem}.`, 'Whoever made it is broken: retry the session.');
  const repository = join(fleet.repositories, `${work.repository}-${order.groupId}`);
  const place = { repository, path: worktreeOf(paths) };
  const found = await alone(git, repository, async () => {
    const fetched = await fetchWork(git, engine, repository, order);
    return fetched.ok ? findFolder(git, place, order, paths) : fetched;
  });
  if (!found.ok) return found;
  const filled = await checkOut(git, place.path, work, found.value);
  if (!filled.ok) return filled;
  if (found.value === 'new') noteWorktree(git, paths, { repository, isSetUp: false });
  return ok({ ...place, isNew: found.value !== 'set up' });
}

function problemWith({ repository, base, head, snapshot, branch }: ShippedWork): string | null {
  if (!/^[0-9a-f]{1,128}$/.test(repository)) return 'names no repository';
  if (![base, head, snapshot].every((commit) => /^[0-9a-f]{40,64}$/.test(commit))) return 'names no commits';
  return /^[A-Za-z0-9_][\w./+-]*$/.test(branch) && !branch.includes('..') ? null : 'names no branch';
}

async function fetchWork(git: Git, engine: FleetEngine, repository: string, order: Order): Promise<Result<void>> {
  const { work, sessionId } = order;
  const { files } = git.world;
  if (files.entryKind(join(repository, 'HEAD')) === null) {
    files.makeFolder(repository);
    const made = await runOwn(git, repository, ['init', '--bare', '--quiet', repository]);
    if (!made.ok) return made;
  }
  const keep = async (...which: readonly ('base' | 'head' | 'snapshot')[]): Promise<boolean> => {
    const commits = which.map((what) => work[what]);
    if (!(await checkWhole(git, repository, commits, keepingRefs)).ok) return false;
    const refs = which.map((what) => [keepingRef(sessionId, what), work[what]] as const);
    return (await setRefs(git, repository, refs)).ok;
  };
  const take = async (bundle: Blob): Promise<Result<void>> => {
    const got = await engine.getBlob(bundle);
    return got.ok ? takeBundle(git, repository, got.value, repository) : got;
  };
  if (await keep('base', 'head', 'snapshot')) return ok(undefined);
  // What a bundle leans on must hang on a ref.
  if (!(await keep('base'))) {
    const taken = await take(work.baseBundle);
    if (!taken.ok) return taken;
    await keep('base');
  }
  const taken = work.bundle === undefined ? ok(undefined) : await take(work.bundle);
  if (!taken.ok) return taken;
  if (await keep('base', 'head', 'snapshot')) return ok(undefined);
  return fail('worktree-failed', 'The bundles of the order do not hold its commits.', 'Retry the session.');
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
  const add = ['worktree', 'add', '--quiet', '--no-checkout', '-B', branch, path, snapshot];
  const made = await runOwn(git, repository, add, long);
  if (made.ok) return ok('new');
  // One of that path was there once, or its git was ended and has left it locked. Nobody else works on the branch here.
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

/** Nothing of the session works any more, but a git that was killed in the middle may have left its locks. */
function unlock({ world: { files } }: Git, repository: string, path: string, branch: string): void {
  const own = gitDirOf(files, path);
  const worktrees = join(files.realPath(repository) ?? repository, 'worktrees/');
  // The session could have made it lead anywhere.
  if (own?.startsWith(worktrees) === true)
    for (const name of ['index', 'HEAD']) files.remove(join(own, `${name}.lock`));
  files.remove(join(repository, 'refs', 'heads', `${branch}.lock`));
}

export const worktreeOf = ({ folder }: Pick<SessionPaths, 'folder'>): string => join(folder, 'worktree');

const notePath = ({ folder }: SessionPaths): string => join(folder, 'remote-worktree.json');

function readNote({ world }: Git, paths: SessionPaths): Note | null {
  const path = notePath(paths);
  if (world.files.entryKind(path) !== 'file') return null;
  try {
    return parseOwn<Note>(world.files.readText(path));
  } catch {
    return null;
  }
}

function noteWorktree({ world }: Git, paths: SessionPaths, note: Note): void {
  world.files.writeAtomic(notePath(paths), `${JSON.stringify(note)}\n`, { durable: true });
}

export function noteSetUp(git: Git, paths: SessionPaths, { repository }: RemoteWorktree): void {
  noteWorktree(git, paths, { repository, isSetUp: true });
}
