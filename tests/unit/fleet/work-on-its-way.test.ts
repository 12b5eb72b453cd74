/**
 * Promises: work comes whole to where it is wanted. A checkpoint that is being taken in when its machine is lost is
 * taken in with its files and its work; sessions of one repository are laid out on a machine one after another. What
 * was taken in by half is taken for nothing at either end.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fail, ok } from '../../../src/core/failure.ts';
import { layOutWork, worktreeOf } from '../../../src/fleet/agent/prepare.ts';
import type { BlobStore } from '../../../src/fleet/engine.ts';
import { fleetPaths } from '../../../src/fleet/fleet-files.ts';
import { Mirror } from '../../../src/fleet/mirror.ts';
import type { FleetRedis } from '../../../src/fleet/redis.ts';
import { workRefs } from '../../../src/fleet/ship-work.ts';
import type { Order } from '../../../src/fleet/wire.ts';
import type { Git } from '../../../src/git/git.ts';
import { setRefs } from '../../../src/git/worktrees/bundles.ts';
import { snapshotOf } from '../../../src/git/worktrees/snapshot.ts';
import { groupPaths, sessionPaths } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { groupId, sid } from '../../support/core-events.ts';
import { git, Repository } from '../../support/git/repository.ts';
import { makeTempFolder, unwrap } from '../../support/system/rig.ts';

const world = createRealWorld();
const own: Git = { world, env: process.env };
let temp: ReturnType<typeof makeTempFolder>;
let repository: Repository;
let base: string;
/** By id; what is not there yet is waited for. */
let blobs: Map<string, Promise<Uint8Array>>;

beforeEach(() => {
  temp = makeTempFolder();
  repository = new Repository(join(temp.path, 'project'));
  base = repository.commit({ 'kept.txt': 'kept\n' });
  blobs = new Map();
});
afterEach(() => temp.remove());

const store = {
  getBlob: async ({ id }: { id: string }) => {
    const bytes = await blobs.get(id);
    return bytes === undefined ? fail('gone', '', '') : ok(bytes);
  },
} as unknown as BlobStore;
const blob = (id: string) => ({ id, pieces: 1, size: 1 });

/** A file that is not committed, as it was made elsewhere. */
async function madeElsewhere(name: string) {
  const folder = join(temp.path, `elsewhere ${name}`);
  git(temp.path, 'clone', '--quiet', repository.folder, folder);
  writeFileSync(join(folder, name), `${name}\n`);
  const { head, snapshot } = unwrap(await snapshotOf(own, folder));
  git(folder, 'update-ref', 'refs/made', snapshot);
  git(folder, 'bundle', 'create', '--quiet', 'bundle', 'refs/made', `^${base}`);
  return { head, snapshot, bytes: new Uint8Array(readFileSync(join(folder, 'bundle'))) };
}

/** What lies here of a session that works elsewhere and was sent the base. */
async function mirrorOf(asker: Git) {
  const sessionId = sid(1);
  const paths = sessionPaths(groupPaths(temp.path, groupId), sessionId);
  mkdirSync(paths.folder, { recursive: true });
  git(repository.folder, 'worktree', 'add', '--quiet', '-b', 'work', worktreeOf(paths));
  const refs = workRefs(sessionId);
  const sent = [refs.sentHead, refs.sent].map((ref) => [ref, base] as const);
  unwrap(await setRefs(own, repository.folder, sent));
  const mirror = new Mirror(asker, store, {
    ...{ sessionId, paths, offset: 0, takesHandover: true },
    places: () => ({
      session: paths.folder,
      worktree: worktreeOf(paths),
      package: '/package',
      bun: '/bun',
      slug: '-here',
    }),
    workspace: () => ({
      ...{ path: worktreeOf(paths), folder: worktreeOf(paths), repository: join(repository.folder, '.git') },
      ...{ branch: 'work', base },
    }),
  });
  return { mirror, paths };
}

test('a checkpoint that is being taken in when its machine is lost is taken in whole', async () => {
  const { mirror, paths } = await mirrorOf(own);
  const { head, snapshot, bytes } = await madeElsewhere('made.txt');
  const arrives = Promise.withResolvers<Uint8Array>();
  blobs.set('work', arrives.promise);
  const talk = { path: 'claude-config/projects/{{cca:slug}}/talk.jsonl', isText: false, offset: 0 };
  const parcel = { files: [{ ...talk, data: Buffer.from('{"done":1}\n').toString('base64') }] };
  blobs.set('files', Promise.resolve(new Uint8Array(Buffer.from(JSON.stringify(parcel)))));
  const made = {
    say: 'checkpoint',
    n: 1,
    prints: 0,
    files: blob('files'),
    head,
    snapshot,
    bundle: blob('work'),
  } as const;
  const taken = mirror.checkpoint(made);
  const settled = mirror.settle();
  // Nothing of the conversation is here before the work is.
  const conversation = join(paths.config, 'projects', '-here', 'talk.jsonl');
  await new Promise<void>((resolve) => setTimeout(resolve, 0));
  expect(existsSync(conversation)).toBe(false);
  arrives.resolve(bytes);
  unwrap(await taken);
  unwrap(await settled);
  expect(readFileSync(join(worktreeOf(paths), 'made.txt'), 'utf8')).toBe('made.txt\n');
  expect(readFileSync(conversation, 'utf8')).toBe('{"done":1}\n');
});

/** A session that begins at the base, laid out on a machine, as often as it is called. */
function laidOutBy(asker: Git) {
  const whole = join(temp.path, 'base');
  git(repository.folder, 'bundle', 'create', '--quiet', whole, 'main');
  blobs.set('base', Promise.resolve(new Uint8Array(readFileSync(whole))));
  const sessionId = sid(1);
  const paths = sessionPaths(groupPaths(join(temp.path, 'machine'), groupId), sessionId);
  mkdirSync(paths.folder, { recursive: true });
  const work = { repository: 'abc', base, baseBundle: blob('base'), head: base, snapshot: base, branch: 'work' };
  const order = { sessionId, groupId, work } as unknown as Order;
  const layOut = () =>
    layOutWork(asker, store as unknown as FleetRedis, fleetPaths(join(temp.path, 'machine')), order, paths);
  return { paths, layOut };
}

test('a machine that was ended while it made a worktree makes it anew', async () => {
  const { paths, layOut } = laidOutBy(own);
  const { repository: there } = unwrap(await layOut());
  // As git leaves it, which locks it until it is done.
  writeFileSync(join(there, 'worktrees', 'worktree', 'locked'), 'initializing');
  rmSync(join(paths.folder, 'remote-worktree.json'));
  unwrap(await layOut());
  expect(readFileSync(join(worktreeOf(paths), 'kept.txt'), 'utf8')).toBe('kept\n');
});

test('a checkpoint whose work is gone is not had, and comes again', async () => {
  const { mirror, paths } = await mirrorOf(own);
  const { head, snapshot, bytes } = await madeElsewhere('made.txt');
  const made = { say: 'checkpoint', n: 1, prints: 0, head, snapshot, bundle: blob('work') } as const;
  expect(await mirror.checkpoint(made)).toMatchObject({ ok: false, failure: { reason: 'gone' } });
  blobs.set('work', Promise.resolve(bytes));
  unwrap(await mirror.checkpoint(made));
  // Of what is here by now nothing else is needed.
  blobs.delete('work');
  unwrap(await mirror.checkpoint(made));
  unwrap(await mirror.settle());
  expect(readFileSync(join(worktreeOf(paths), 'made.txt'), 'utf8')).toBe('made.txt\n');
});
