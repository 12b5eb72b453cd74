/**
 * Promises: a compromised host can only affect its own sessions here: no other ref of the repository, no file that
 * claude runs or this program trusts, no name with terminal controls. The run continues.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fail, ok } from '../../../src/core/failure.ts';
import { worktreeOf } from '../../../src/fleet/agent/prepare.ts';
import { Mirror } from '../../../src/fleet/mirror.ts';
import { WorkCode, workRefs } from '../../../src/fleet/order.ts';
import type { BlobStore } from '../../../src/fleet/redis.ts';
import { type Blob, hostEntry, type ParcelFile, toGroup, toHost, unpacked } from '../../../src/fleet/wire.ts';
import type { Git } from '../../../src/git/git.ts';
import { setRefs } from '../../../src/git/worktrees/snapshot.ts';
import { groupPaths, sessionPaths } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { groupId, sid } from '../../support/core-events.ts';
import { git, Repository } from '../../support/git/repository.ts';
import { basePath, expectOk, makeTempFolder } from '../../support/system/rig.ts';

const hash = 'a'.repeat(40);
const blob: Blob = { id: 'files', pieces: 1, size: 1, digest: 'a'.repeat(64) };
const said = (news: object, host = 'one') =>
  toGroup.safeParse({ kind: 'attempt', host, token: 't', attemptId: 'a', n: 1, news }).success;

describe('invalid messages of a host', () => {
  test('a commit id with extra text, which would reach git, is refused', () => {
    expect(said({ say: 'checkpoint', n: 1, prints: 0, head: hash, snapshot: hash })).toBe(true);
    for (const head of [`${hash}\ndelete refs/heads/main`, `${hash} `, 'HEAD', '', hash.slice(1), hash.toUpperCase()]) {
      expect(said({ say: 'checkpoint', n: 1, prints: 0, head, snapshot: hash })).toBe(false);
      expect(said({ say: 'checkpoint', n: 1, prints: 0, head: hash, snapshot: head })).toBe(false);
    }
  });

  test('bytes in too many pieces or under an invalid name are refused', () => {
    for (const files of [
      { ...blob, pieces: 1e15 },
      { ...blob, id: '../x' },
      { ...blob, id: 'a:b' },
      { ...blob, id: '' },
    ])
      expect(said({ say: 'checkpoint', n: 1, prints: 0, files })).toBe(false);
  });

  test('an invalid reason and invalid host names are refused', () => {
    const refused = (reason: string) => ({ say: 'refused', failure: { reason, message: '', next: '' } });
    expect(said(refused('not-logged-in'))).toBe(true);
    for (const reason of ['__proto__', 'a\u001b[2J', '', 'a b']) expect(said(refused(reason))).toBe(false);
    for (const host of ['__proto__', 'a\nb', 'a\u001b[2J', 'x'.repeat(300), 'gpü', '../one', ''])
      expect(said({ say: 'ran', id: '1', exitCode: 0, timedOut: false, output: '' }, host)).toBe(false);
  });

  test('a host that registers with an invalid name or invalid labels is refused', () => {
    const abilities = { wire: 1, version: '1', claudeVersion: '2' };
    const times = { leaseMs: 1, since: 1, seenAt: 1, isDrained: false, isGuarded: true };
    const entry = { name: 'one', labels: ['gpu'], slots: 1, used: 0, abilities, ...times };
    expect(hostEntry.safeParse(entry).success).toBe(true);
    expect(hostEntry.safeParse({ ...entry, name: 'one\n' }).success).toBe(false);
    expect(hostEntry.safeParse({ ...entry, labels: ['a+host=two'] }).success).toBe(false);
  });

  test('an order for an attempt whose id would leave its folder is refused', () => {
    const work = { repository: 'abc', head: hash, snapshot: hash, branch: 'b', settings: [] };
    const rest = { attempt: 1, groupId: 'g', sessionId: 's', args: [], cwd: '.', untrusted: false, files: blob, work };
    const order = (attemptId: string) => ({ do: 'order', order: { ...rest, attemptId } });
    const says = (id: string) =>
      toHost.safeParse({ kind: 'slot', token: 't', groupId: 'g', n: 1, command: order(id) }).success;
    expect(says('4fd0-a')).toBe(true);
    for (const id of ['../../x', 'a/b', '.', '..', '', 'a\0']) expect(says(id)).toBe(false);
  });
});

test('the log keeps at most 64 KB of text that a host sends', () => {
  const long = 'x'.repeat(10_000_000);
  const failure = { reason: 'usage', message: long, next: long };
  const rest = {
    leftover: false,
    limitsHit: [],
    stderrTail: long,
    fenced: false,
    unsent: { why: long, folder: '/' },
  };
  for (const news of [
    { say: 'refused', failure },
    { say: 'ran', id: '1', exitCode: 0, timedOut: false, output: long },
    { say: 'ended', status: { kind: 'exited', code: 0 }, ...rest },
  ]) {
    const message = { kind: 'attempt', host: 'one', token: 't', attemptId: 'a', n: 1, news };
    const heard = unpacked(Buffer.from(JSON.stringify(message)));
    expect(heard).not.toBeNull();
    expect(JSON.stringify(heard).length).toBeLessThan(200_000);
  }
});

describe('files of a checkpoint', () => {
  const world = createRealWorld();
  let temp: ReturnType<typeof makeTempFolder>;
  beforeEach(() => {
    temp = makeTempFolder();
  });
  afterEach(() => temp.remove());

  const file = (path: string, text = 'stolen'): ParcelFile => ({
    path,
    isText: true,
    data: Buffer.from(text).toString('base64'),
  });

  async function checkpoint(...files: ParcelFile[]) {
    const paths = sessionPaths(groupPaths(temp.path, groupId), sid(1));
    mkdirSync(worktreeOf(paths), { recursive: true });
    const bytes = Buffer.from(JSON.stringify({ files }));
    const blobs: BlobStore = {
      putBlob: async () => ok(blob),
      getBlob: async ({ id }) => (id === 'files' ? ok(bytes) : fail('gone', '', '')),
      dropBlob: async () => {},
    };
    const places = () => ({
      session: paths.folder,
      worktree: worktreeOf(paths),
      package: '/package',
      bun: '/bun',
      slug: '-one',
    });
    const options = {
      sessionId: sid(1),
      paths,
      offset: 0,
      places,
      workspace: () => undefined,
      fetch: async () => ok(undefined),
    };
    const mirror = new Mirror({ world, env: { PATH: basePath } }, blobs, options);
    const taken = await mirror.checkpoint({ say: 'checkpoint', n: 1, prints: 0, files: blob });
    return { taken, has: (path: string) => existsSync(join(paths.folder, path)), paths };
  }

  test('the conversation of a checkpoint is stored; files that claude or this program trusts are not', async () => {
    const talk = 'claude-config/projects/{{cca:slug}}/talk.jsonl';
    const others = [
      ...[
        '../x',
        '/x',
        'worktree/ignored/tool.sh',
        'handover-copies.json',
        'handover.json',
        'begin.json',
        'accept-before.txt',
      ],
      ...['prompt.md', 'system-prompt.md', 'worker-settings.json', 'mcp.json', 'inputs/a', 'conversations.late-a/x'],
      ...['claude-config/settings.json', 'claude-config/.claude.json', 'claude-config/CLAUDE.md'],
      ...['claude-config/skills/x/SKILL.md', 'claude-config/shell-snapshots/s.sh', 'claude-config/session-env/e.sh'],
    ];
    const { taken, has, paths } = await checkpoint(file(talk), ...others.map((path) => file(path)), file('hooks.log'));
    expectOk(taken);
    expect(readFileSync(join(paths.config, 'projects/-one/talk.jsonl'), 'utf8')).toBe('stolen');
    expect(has('hooks.log')).toBe(true);
    expect(others.filter(has)).toEqual([]);
  });

  test('a checkpoint with a path outside, into a repository or too long is refused completely', async () => {
    for (const path of [
      ...['claude-config/projects/../../../x', 'claude-config/projects/.git/hooks/post-checkout'],
      ...['claude-config/projects/.GIT/config', 'claude-config/projects/a\\b', 'claude-config/projects/a\0b'],
      ...[`claude-config/projects/${'x'.repeat(300)}`, `claude-config/projects/${'x/'.repeat(2_000)}x`],
    ]) {
      const { taken, has } = await checkpoint(file('claude-config/projects/a.jsonl'), file(path));
      expect([path, taken.ok, has('claude-config/projects/a.jsonl')]).toEqual([path, false, false]);
    }
  });
});

describe('commits of a host', () => {
  const own: Git = { world: createRealWorld(), env: process.env };
  let temp: ReturnType<typeof makeTempFolder>;
  let repository: Repository;
  let worktree: string;
  let base: string;
  let mirror: Mirror;
  let code: WorkCode;
  let folders: { path: string; folder: string; repository: string };

  beforeEach(async () => {
    temp = makeTempFolder();
    repository = new Repository(join(temp.path, 'project'));
    base = repository.commit({ 'kept.txt': 'kept\n' });
    git(repository.folder, 'branch', 'feature');
    git(repository.folder, 'tag', 'v1');
    const paths = sessionPaths(groupPaths(temp.path, groupId), sid(1));
    worktree = worktreeOf(paths);
    mkdirSync(paths.folder, { recursive: true });
    git(repository.folder, 'worktree', 'add', '--quiet', '-b', 'work', worktree);
    const [refs, others] = [workRefs(sid(1)), workRefs(sid(2))];
    const sent = [refs.sentHead, refs.sent, others.sent, others.head].map((ref) => [ref, base] as const);
    expectOk(await setRefs(own, repository.folder, sent));
    code = new WorkCode(own, () => join(temp.path, 'repositories'));
    folders = { path: worktree, folder: worktree, repository: join(repository.folder, '.git') };
    mirror = new Mirror(own, {} as BlobStore, {
      ...{ sessionId: sid(1), paths, offset: 0, places: () => undefined },
      fetch: (workspace, made) => code.fetch(sid(1), workspace, 'one', made),
      workspace: () => ({ ...folders, branch: 'work', base }),
    });
  });
  afterEach(() => temp.remove());

  /** What the host made of the repository; `args`: for git there, for each incoming commit. */
  async function comes(make: (there: string) => string) {
    const there = join(temp.path, 'there');
    git(temp.path, 'clone', '--quiet', repository.folder, there);
    const head = make(there);
    const refs = [
      'heads/main',
      'heads/feature',
      'tags/v1',
      `replace/${base}`,
      workRefs(sid(2)).head.slice('refs/'.length),
    ];
    for (const ref of refs) git(there, 'update-ref', `refs/${ref}`, head);
    // Where the runner looks for it.
    const shipped = expectOk(await code.ship(sid(1), { ...folders, branch: 'work', base }, 'one'));
    git(there, 'push', '--quiet', '--force', join(temp.path, 'repositories', shipped.repository), '+refs/*:refs/*');
    const taken = await mirror.checkpoint({ say: 'checkpoint', n: 1, prints: 0, head, snapshot: head });
    return { head, taken, settled: await mirror.settle() };
  }

  /** Everything that controls git in the repository, except the session's branch and its refs. */
  function goesBy(): string {
    const refs = git(repository.folder, 'for-each-ref', '--format=%(refname) %(objectname)').split('\n');
    const others = refs.filter((ref) => !ref.startsWith('refs/heads/work ') && !ref.includes(`/${sid(1)}/`));
    const inGit = ['config', 'HEAD', 'packed-refs', 'info', 'hooks'].map((name) =>
      join(repository.folder, '.git', name),
    );
    const files = inGit.filter(existsSync).flatMap((path) => {
      const below = statSync(path).isFile() ? [path] : readdirSync(path).map((name) => join(path, name));
      return below.map((file) => `${file} ${readFileSync(file, 'utf8')}`);
    });
    return [...others, ...files, git(repository.folder, 'status', '--porcelain')].join('\n');
  }

  /** A tree that git itself would not create. */
  function tree(there: string, ...entries: readonly (readonly [mode: string, name: string, id: string])[]): string {
    const parts = entries.map(([mode, name, id]) =>
      Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(id, 'hex')]),
    );
    writeFileSync(join(there, 'raw'), Buffer.concat(parts));
    return git(there, 'hash-object', '-t', 'tree', '--literally', '-w', 'raw');
  }

  const text = (there: string, content: string): string => {
    writeFileSync(join(there, 'raw'), content);
    return git(there, 'hash-object', '-w', 'raw');
  };
  const commitOf = (there: string, id: string): string => git(there, 'commit-tree', '-p', 'HEAD', '-m', 'made', id);

  test('commits that arrive with refs of other branches, tags and sessions change only their session', async () => {
    const before = goesBy();
    const { head, settled } = await comes((there) => {
      writeFileSync(join(there, 'made.txt'), 'made\n');
      git(there, 'add', '--all');
      git(there, 'commit', '--quiet', '-m', 'made');
      return git(there, 'rev-parse', 'HEAD');
    });
    expectOk(settled);
    expect(git(worktree, 'rev-parse', 'work')).toBe(head);
    expect(readFileSync(join(worktree, 'made.txt'), 'utf8')).toBe('made\n');
    expect(goesBy()).toBe(before);
  });

  test('commits with a folder .git, or a file below a symlink, write nothing outside', async () => {
    const outside = join(temp.path, 'outside');
    mkdirSync(outside);
    const before = goesBy();
    const dotGit = readFileSync(join(worktree, '.git'), 'utf8');
    const { settled } = await comes((there) => {
      const hook = text(there, '#!/bin/sh\n');
      const hooks = tree(there, ['40000', 'hooks', tree(there, ['100755', 'post-checkout', hook])]);
      const names = ['.git', '.GIT', 'git~1'].map((name) => ['40000', name, hooks] as const);
      const below = tree(there, ['100755', 'owned', hook]);
      const link = ['120000', 'link', text(there, outside)] as const;
      return commitOf(there, tree(there, ...names, link, ['40000', 'link', below]));
    });
    expect(settled.ok ? '' : settled.failure.reason).toBe('worktree-failed');
    expect(readdirSync(outside)).toEqual([]);
    expect(readFileSync(join(worktree, '.git'), 'utf8')).toBe(dotGit);
    expect(goesBy()).toBe(before);
  });
});
