/** Commits as files that another repository takes in, and refs that keep them. */
import { join } from 'node:path';
import { ok, type Result } from '../../core/failure.ts';
import type { Git } from '../git.ts';
import { askOwn, longTimeoutMs, refusal, runOwn } from '../run-git.ts';
import { together } from '../together.ts';

const long = { timeoutMs: longTimeoutMs };

/** What keeps commits of a session while no branch does; `name` is unique among those of the session. */
export function keepingRef(sessionId: string, name: string): string {
  return `refs/claude-code-agent/${sessionId}/${name}`;
}

export type RefChanges = readonly (readonly [ref: string, commit: string | null])[];

/**
 * Sets the refs to these commits, null = the ref is to be gone: all of them or none. Fails with `worktree-failed`, also
 * when one of the commits is not there.
 */
export const setRefs = together(async (git, repository, all: readonly RefChanges[]): Promise<Result<void>[]> => {
  const [first, ...others] = all as [RefChanges, ...RefChanges[]];
  const set = await changeRefs(git, repository, all.flat());
  if (set.ok || others.length === 0) return all.map(() => set);
  // Whose it is that is refused git does not say.
  const each = [await changeRefs(git, repository, first)];
  for (const changes of others) each.push(await changeRefs(git, repository, changes));
  return each;
});

async function changeRefs(git: Git, repository: string, changes: RefChanges): Promise<Result<void>> {
  const lines = changes.map(([ref, commit]) => (commit === null ? `delete ${ref}\n` : `update ${ref} ${commit}\n`));
  const set = await runOwn(git, repository, ['update-ref', '--stdin'], { input: lines.join('') });
  return set.ok ? ok(undefined) : set;
}

/** Commits of the session's refs, by what their names end with. Fails with `worktree-failed`. */
export const keptCommits = together(
  async (git, repository, sessionIds: readonly string[]): Promise<Result<ReadonlyMap<string, string>>[]> => {
    const folders = sessionIds.map((sessionId) => keepingRef(sessionId, ''));
    const args = ['for-each-ref', '--format=%(objectname) %(refname)', ...folders];
    const listed = await runOwn(git, repository, args);
    if (!listed.ok) return folders.map(() => listed);
    const lines = listed.value.split('\n').map((line) => line.split(' '));
    const below = (folder: string) =>
      lines.flatMap(([commit = '', ref = '']) =>
        ref.startsWith(folder) ? [[ref.slice(folder.length), commit] as const] : [],
      );
    return folders.map((folder) => ok(new Map(below(folder))));
  },
);

/**
 * The commits of these refs without those that the other end has, as a file in `folder` that is the caller's to remove;
 * null when the other end has all. Fails with `worktree-failed`.
 */
export async function makeBundle(
  git: Git,
  repository: string,
  {
    refs,
    without,
    folder,
  }: { readonly refs: readonly string[]; readonly without: readonly string[]; readonly folder: string },
): Promise<Result<string | null>> {
  const revisions = [...refs, ...without.map((commit) => `^${commit}`)];
  const path = join(folder, `outgoing-${git.world.random.uuid()}.bundle`);
  const args = ['bundle', 'create', '--quiet', path, ...revisions];
  const made = await askOwn(git, repository, args, long);
  if (!made.ok) return made;
  if (made.value.exitCode === 0) return ok(path);
  return /empty bundle/.test(made.value.stderr) ? ok(null) : refusal(args, made.value);
}

/** Of so few objects each becomes a file, as after `git fetch`: every pack slows down each git from then on. */
const unpackedMax = 100;

/** Takes in the commits of a bundle; nothing refers to them yet. Fails with `worktree-failed`. */
export async function takeBundle(
  git: Git,
  repository: string,
  bytes: Uint8Array,
  folder: string,
): Promise<Result<void>> {
  const bundle = readBundle(bytes);
  if (bundle !== null && bundle.objects < unpackedMax) return takeFew(git, repository, bundle);
  const { files, random } = git.world;
  const path = join(folder, `incoming-${random.uuid()}.bundle`);
  try {
    files.writeBytes(path, bytes);
    const taken = await runOwn(git, repository, ['bundle', 'unbundle', path], long);
    return taken.ok ? ok(undefined) : taken;
  } finally {
    files.remove(path);
  }
}

interface Bundle {
  /** Commits in it, and those that it leans on. */
  readonly tips: readonly string[];
  readonly without: readonly string[];
  readonly objects: number;
  readonly pack: Uint8Array;
}

/** Null for one that only git understands. See gitformat-bundle and gitformat-pack. */
function readBundle(bytes: Uint8Array): Bundle | null {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = all.indexOf('\n\n');
  const [first, ...lines] = all.subarray(0, Math.max(0, end)).toString('latin1').split('\n');
  const pack = all.subarray(end + 2);
  if (first !== '# v2 git bundle' || pack.length < 12 || pack.toString('latin1', 0, 4) !== 'PACK') return null;
  const named = lines.map((line) => /^(-?)([0-9a-f]{40}) /.exec(line));
  const ids = (sign: string) => named.flatMap((found) => (found?.[1] === sign ? [found[2] as string] : []));
  if (named.includes(null)) return null;
  return { tips: ids(''), without: ids('-'), objects: pack.readUInt32BE(8), pack };
}

/** On the disk when it returns, as a pack would be. */
const synced = ['-c', 'core.fsync=loose-object'];

async function takeFew(git: Git, repository: string, { tips, without, pack }: Bundle): Promise<Result<void>> {
  const taken = await runOwn(git, repository, [...synced, 'unpack-objects', '-q'], { ...long, input: pack });
  if (!taken.ok) return taken;
  // What it leans on must be there, and all that its commits hold.
  const whole = ['rev-list', '--quiet', '--objects', ...tips, '--not', ...without];
  const checked = await runOwn(git, repository, whole, long);
  return checked.ok ? ok(undefined) : checked;
}
