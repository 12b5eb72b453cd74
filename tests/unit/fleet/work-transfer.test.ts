/**
 * Promises: work arrives completely. A checkpoint in progress when its host is lost is completed with files and work,
 * sessions of one repository are set up on a host one at a time, and a partial transfer is discarded at both ends.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ok } from '../../../src/core/failure.ts';
import { snapshotWork } from '../../../src/fleet/agent/lay-out.ts';
import { layOutWork, worktreeOf } from '../../../src/fleet/agent/prepare.ts';
import { fleetPaths } from '../../../src/fleet/fleet-files.ts';
import { Mirror } from '../../../src/fleet/mirror.ts';
import { WorkCode, workRefs } from '../../../src/fleet/order.ts';
import type { BlobStore } from '../../../src/fleet/redis.ts';
import type { Order } from '../../../src/fleet/wire.ts';
import type { Git } from '../../../src/git/git.ts';
import { type Snapshot, snapshotOf } from '../../../src/git/worktrees/snapshot.ts';
import { groupPaths, sessionPaths } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { groupId, sid } from '../../support/core-events.ts';
import { git, Repository } from '../../support/git/repository.ts';
import { expectOk, makeTempFolder } from '../../support/system/rig.ts';

const world = createRealWorld();
const own: Git = { world, env: process.env };
let temp: ReturnType<typeof makeTempFolder>;
let repository: Repository;
let base: string;
/** Pushes to a host's folder of repositories, which is a local folder here. */
let code: WorkCode;

beforeEach(() => {
  temp = makeTempFolder();
  repository = new Repository(join(temp.path, 'project'));
  base = repository.commit({ 'kept.txt': 'kept\n' });
  code = new WorkCode(own, () => join(temp.path, 'host', 'fleet', 'repositories'));
});
afterEach(() => temp.remove());

const files = { id: 'files', pieces: 1, size: 1, digest: '' };
const blobsOf = (parcel: object): BlobStore =>
  ({ getBlob: async () => ok(new Uint8Array(Buffer.from(JSON.stringify(parcel)))) }) as unknown as BlobStore;

/** An uncommitted file from the host, whose commits `arrive` pushes. */
async function madeOnHost(name: string) {
  const folder = join(temp.path, `elsewhere ${name}`);
  git(temp.path, 'clone', '--quiet', repository.folder, folder);
  writeFileSync(join(folder, name), `${name}\n`);
  const { head, snapshot } = expectOk(await snapshotOf(own, folder));
  const there = join(temp.path, 'host', 'fleet', 'repositories');
  const arrive = (): void => {
    const [id = ''] = readdirSync(there);
    git(folder, 'push', '--quiet', join(there, id), `${snapshot}:refs/x/made`);
  };
  return { head, snapshot, arrive };
}

/** The local data of a session that runs on another host and has the base. */
async function mirrorOf(talk: object, before: () => Promise<void> = async () => {}) {
  const sessionId = sid(1);
  const paths = sessionPaths(groupPaths(temp.path, groupId), sessionId);
  mkdirSync(paths.folder, { recursive: true });
  git(repository.folder, 'worktree', 'add', '--quiet', '-b', 'work', worktreeOf(paths));
  const folders = { path: worktreeOf(paths), folder: worktreeOf(paths), repository: join(repository.folder, '.git') };
  const workspace = { ...folders, branch: 'work', base };
  expectOk(await code.ship(sessionId, workspace, 'one'));
  const mirror = new Mirror(own, blobsOf({ files: [talk] }), {
    ...{ sessionId, paths, offset: 0 },
    places: () => ({
      session: paths.folder,
      worktree: worktreeOf(paths),
      package: '/package',
      bun: '/bun',
      slug: '-here',
    }),
    workspace: () => workspace,
    fetch: async (where, made) => {
      await before();
      return code.fetch(sessionId, where, 'one', made);
    },
  });
  return { mirror, paths };
}

const talk = {
  path: 'claude-config/projects/{{cca:slug}}/talk.jsonl',
  isText: false,
  offset: 0,
  data: Buffer.from('{"done":1}\n').toString('base64'),
};

test('a checkpoint in progress when its host is lost is completed', async () => {
  const arrives = Promise.withResolvers<void>();
  const { mirror, paths } = await mirrorOf(talk, () => arrives.promise);
  const { head, snapshot, arrive } = await madeOnHost('made.txt');
  const taken = mirror.checkpoint({ say: 'checkpoint', n: 1, prints: 0, files, head, snapshot });
  const settled = mirror.settle();
  // No part of the conversation is stored before the work is.
  const conversation = join(paths.config, 'projects', '-here', 'talk.jsonl');
  await new Promise<void>((resolve) => setTimeout(resolve, 0));
  expect(existsSync(conversation)).toBe(false);
  arrive();
  arrives.resolve();
  expectOk(await taken);
  expectOk(await settled);
  expect(readFileSync(join(worktreeOf(paths), 'made.txt'), 'utf8')).toBe('made.txt\n');
  expect(readFileSync(conversation, 'utf8')).toBe('{"done":1}\n');
});

test('a host that was killed while it made a worktree makes it again', async () => {
  const sessionId = sid(1);
  const host = join(temp.path, 'host');
  const paths = sessionPaths(groupPaths(host, groupId), sessionId);
  mkdirSync(paths.folder, { recursive: true });
  const folders = { path: repository.folder, folder: repository.folder, repository: join(repository.folder, '.git') };
  git(repository.folder, 'config', 'remote.origin.url', 'https://someone:secret@example.org/x.git');
  git(repository.folder, 'tag', 'v1');
  const work = expectOk(await code.ship(sessionId, { ...folders, branch: 'work', base }, 'one'));
  const order = { sessionId, groupId, work } as unknown as Order;
  const layOut = () => layOutWork(own, fleetPaths(host), order, paths);
  const { repository: there } = expectOk(await layOut());
  // As git leaves it, which locks the worktree until it is complete.
  writeFileSync(join(there, 'worktrees', 'worktree', 'locked'), 'initializing');
  rmSync(join(paths.folder, 'remote-worktree.json'));
  expectOk(await layOut());
  const worktree = worktreeOf(paths);
  expect(readFileSync(join(worktree, 'kept.txt'), 'utf8')).toBe('kept\n');
  // Git answers the session there as in the user's checkout.
  expect(git(worktree, 'describe', '--tags')).toBe('v1');
  expect(git(worktree, 'rev-parse', '--abbrev-ref', 'HEAD')).toBe('work');
  expect(git(worktree, 'rev-parse', 'main')).toBe(base);
  expect(git(worktree, 'remote', 'get-url', 'origin')).toBe('https://example.org/x.git');
});

test('a checkpoint without its work is not acknowledged, and is sent again', async () => {
  const { mirror, paths } = await mirrorOf(talk);
  const { head, snapshot, arrive } = await madeOnHost('made.txt');
  const made = { say: 'checkpoint', n: 1, prints: 0, head, snapshot } as const;
  expect((await mirror.checkpoint(made)).ok).toBe(false);
  arrive();
  expectOk(await mirror.checkpoint(made));
  // None of the rest is needed anymore.
  rmSync(join(temp.path, 'host'), { recursive: true });
  expectOk(await mirror.checkpoint(made));
  expectOk(await mirror.settle());
  expect(readFileSync(join(worktreeOf(paths), 'made.txt'), 'utf8')).toBe('made.txt\n');
});

test('without ssh to the host, work travels both ways through a remote that both sides reach', async () => {
  const server = join(temp.path, 'server.git');
  git(temp.path, 'init', '--quiet', '--bare', server);
  git(repository.folder, 'remote', 'add', 'origin', server);
  const remote = new WorkCode(own, () => undefined);
  const sessionId = sid(1);
  const folders = { path: repository.folder, folder: repository.folder, repository: join(repository.folder, '.git') };
  const workspace = { ...folders, branch: 'work', base };
  const work = expectOk(await remote.ship(sessionId, workspace, 'one'));
  expect(work.remote).toBe(server);
  const host = join(temp.path, 'host');
  const paths = sessionPaths(groupPaths(host, groupId), sessionId);
  mkdirSync(paths.folder, { recursive: true });
  const order = { sessionId, groupId, work } as unknown as Order;
  const laidOut = expectOk(await layOutWork(own, fleetPaths(host), order, paths));
  writeFileSync(join(laidOut.path, 'made.txt'), 'made\n');
  const told = { head: base, snapshot: base };
  const made = expectOk(await snapshotWork(own, laidOut, sessionId, { told, remote: work.remote }));
  expectOk(await remote.fetch(sessionId, workspace, 'one', made as Snapshot));
  expect(git(repository.folder, 'show', `${workRefs(sessionId).checkpoint}:made.txt`)).toBe('made');
  // No branch is created or moved there.
  expect(git(server, 'for-each-ref', 'refs/heads', 'refs/tags')).toBe('');
});

test('a remote is required where neither ssh nor a shared remote reaches the host', async () => {
  const folders = { path: repository.folder, folder: repository.folder, repository: join(repository.folder, '.git') };
  const shipped = await new WorkCode(own, () => undefined).ship(sid(1), { ...folders, branch: 'work', base }, 'one');
  expect(shipped).toMatchObject({ ok: false, failure: { reason: 'worktree-failed' } });
});
