/**
 * The worktree of a session of somebody else: its commits come in bundles into a bare repository of this machine, its
 * files as they lay on the other one, changed and new ones as such.
 */
import { join } from 'node:path';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { Git } from '../../git/git.ts';
import { gitDirOf } from '../../git/repository.ts';
import { longTimeoutMs, runOwn } from '../../git/run-git.ts';
import { checkWhole, keepingRef, keepingRefs, setRefs, takeBundle } from '../../git/worktrees/bundles.ts';
import type { SessionPaths } from '../../store/paths.ts';
import { fields, isFlag, isText, parseJson } from '../../store/shape.ts';
import type { World } from '../../system/world.ts';
import type { FleetEngine } from '../engine.ts';
import type { FleetPaths } from '../fleet-files.ts';
import type { Blob, Order, ShippedWork } from '../wire.ts';

export interface RemoteWorktree {
  /** The bare repository. */
  readonly repository: string;
  readonly path: string;
  /** Nothing of the session was here, or not of this repository: ignored files and what `setup` makes are missing. */
  readonly isNew: boolean;
}

interface Note {
  readonly repository: string;
  readonly isSetUp: boolean;
}
const isNote = fields({ repository: isText, isSetUp: isFlag });
const long = { timeoutMs: longTimeoutMs };

/** Of each process by its world; by repository. */
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
  const place = { repository, path: paths.worktree };
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
  /** False when not all of it is there. */
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

/** The session's worktree as it lies there, or a new one without files. */
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
    // Ignored files stay: what `setup` has made is there still.
    ...(found === 'new' ? [] : [['clean', '-ffd', '--quiet']]),
    // What was not committed there is not committed here.
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

const notePath = ({ folder }: SessionPaths): string => join(folder, 'remote-worktree.json');

function readNote({ world }: Git, paths: SessionPaths): Note | null {
  const path = notePath(paths);
  if (world.files.entryKind(path) !== 'file') return null;
  try {
    const note = parseJson(world.files.readText(path) ?? '');
    return isNote(note) ? (note as Note) : null;
  } catch {
    return null;
  }
}

function noteWorktree({ world }: Git, paths: SessionPaths, note: Note): void {
  world.files.writeAtomic(notePath(paths), `${JSON.stringify(note)}\n`, { durable: true });
}

/** `setup` need not run in it again. */
export function noteSetUp(git: Git, paths: SessionPaths, { repository }: RemoteWorktree): void {
  noteWorktree(git, paths, { repository, isSetUp: true });
}
