/**
 * Promises: what a machine that was stolen says of its own sessions reaches nothing else here: no other ref of the
 * repository, no file that claude runs or this program believes, no name that a terminal obeys; and the run goes on.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fail, ok } from '../../../src/core/failure.ts';
import type { BlobStore } from '../../../src/hosts/fleet/engine.ts';
import { Mirror } from '../../../src/hosts/fleet/mirror.ts';
import { type Blob, hostEntry, type ParcelFile, toGroup, toHost, unpacked } from '../../../src/hosts/fleet/wire.ts';
import { groupPaths, sessionPaths } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/world/real-world.ts';
import { groupId, sid } from '../../support/core-events.ts';
import { basePath, makeTempFolder, unwrap } from '../../world/rig.ts';

const hash = 'a'.repeat(40);
const blob: Blob = { id: 'files', pieces: 1, size: 1 };
const said = (news: object, host = 'one') =>
  toGroup.safeParse({ kind: 'attempt', host, token: 't', attemptId: 'a', n: 1, news }).success;

describe('what is no message', () => {
  test('a commit with more than its id, which would go into what git is told', () => {
    expect(said({ say: 'checkpoint', prints: 0, head: hash, snapshot: hash })).toBe(true);
    for (const head of [`${hash}\ndelete refs/heads/main`, `${hash} `, 'HEAD', '', hash.slice(1), hash.toUpperCase()]) {
      expect(said({ say: 'checkpoint', prints: 0, head, snapshot: hash })).toBe(false);
      expect(said({ say: 'checkpoint', prints: 0, head: hash, snapshot: head })).toBe(false);
    }
  });

  test('bytes in more pieces than anybody could want, or under a name that is none', () => {
    for (const files of [
      { ...blob, pieces: 1e15 },
      { ...blob, id: '../x' },
      { ...blob, id: 'a:b' },
      { ...blob, id: '' },
    ])
      expect(said({ say: 'checkpoint', prints: 0, files })).toBe(false);
  });

  test('a reason that is no word, and names of machines that nobody could have joined with', () => {
    const refused = (reason: string) => ({ say: 'refused', failure: { reason, message: '', next: '' } });
    expect(said(refused('not-logged-in'))).toBe(true);
    for (const reason of ['__proto__', 'a\u001b[2J', '', 'a b']) expect(said(refused(reason))).toBe(false);
    for (const host of ['__proto__', 'a\nb', 'a\u001b[2J', 'x'.repeat(300), 'gpü', '../one', ''])
      expect(said({ say: 'ran', id: '1', exitCode: 0, signal: null, timedOut: false, output: '' }, host)).toBe(false);
  });

  test('a machine that lists itself under such a name, or with such labels', () => {
    const abilities = { wire: 1, version: '1', claudeVersion: '2', logins: [] };
    const can = { forwardsSubagents: true, limitsUntrusted: true, limitsMemory: true };
    const times = { leaseMs: 1, since: 1, seenAt: 1, isDrained: false, isGuarded: true };
    const entry = { name: 'one', labels: ['gpu'], slots: 1, used: 0, abilities: { ...abilities, ...can }, ...times };
    expect(hostEntry.safeParse(entry).success).toBe(true);
    expect(hostEntry.safeParse({ ...entry, name: 'one\n' }).success).toBe(false);
    expect(hostEntry.safeParse({ ...entry, labels: ['a+host=two'] }).success).toBe(false);
  });

  test('a moment that is no date, and names longer than any', () => {
    const abilities = { wire: 1, version: '1', claudeVersion: '2', logins: [] };
    const can = { forwardsSubagents: true, limitsUntrusted: true, limitsMemory: true };
    const times = { leaseMs: 1, since: 1, seenAt: 1, isDrained: false, isGuarded: true };
    const entry = { name: 'one', labels: ['gpu'], slots: 1, used: 0, abilities: { ...abilities, ...can }, ...times };
    expect(hostEntry.safeParse({ ...entry, since: 8.64e15 }).success).toBe(true);
    const [late, long] = [8.64e15 + 1, 'x'.repeat(1_000)];
    for (const bad of [{ since: late }, { seenAt: late }, { ownClockAt: late }, { login: long }])
      expect(hostEntry.safeParse({ ...entry, ...bad }).success).toBe(false);
    const process = { pid: 1, startTime: '1', host: 'one', bootId: 'b' };
    expect(said({ say: 'started', process })).toBe(true);
    expect(said({ say: 'started', process: { ...process, bootId: long } })).toBe(false);
  });

  test('an order for an attempt whose id would lead elsewhere', () => {
    const work = { repository: 'abc', base: hash, baseBundle: blob, head: hash, snapshot: hash, branch: 'b' };
    const rest = { attempt: 1, groupId: 'g', sessionId: 's', args: [], cwd: '.', untrusted: false, files: blob, work };
    const order = (attemptId: string) => ({ do: 'order', order: { ...rest, attemptId } });
    const says = (id: string) =>
      toHost.safeParse({ kind: 'slot', token: 't', groupId: 'g', n: 1, command: order(id) }).success;
    expect(says('4fd0-a')).toBe(true);
    for (const id of ['../../x', 'a/b', '.', '..', '', 'a\0']) expect(says(id)).toBe(false);
  });
});

test('of what a machine says in words no more than 64 KB is kept in the log', () => {
  const long = 'x'.repeat(10_000_000);
  const failure = { reason: 'usage', message: long, next: long };
  const rest = {
    leftover: false,
    limitsHit: [],
    lastStderrLine: long,
    fenced: false,
    unsent: { why: long, folder: '/' },
  };
  for (const news of [
    { say: 'refused', failure },
    { say: 'ran', id: '1', exitCode: 0, signal: null, timedOut: false, output: long },
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
    mode: 0o755,
    isText: true,
    data: Buffer.from(text).toString('base64'),
  });

  async function checkpoint(...files: ParcelFile[]) {
    const paths = sessionPaths(groupPaths(temp.path, groupId), sid(1));
    mkdirSync(paths.worktree, { recursive: true });
    const bytes = Buffer.from(JSON.stringify({ files }));
    const blobs: BlobStore = {
      putBlob: async () => ok(blob),
      hasBlob: async () => ok(true),
      getBlob: async ({ id }) => (id === 'files' ? ok(bytes) : fail('gone', '', '')),
      dropBlob: async () => {},
    };
    const places = () => ({ session: paths.folder, package: '/package', bun: '/bun', slug: '-one' });
    const options = { sessionId: sid(1), paths, offset: 0, places, workspace: () => undefined };
    const mirror = new Mirror({ world, env: { PATH: basePath } }, blobs, options);
    const taken = await mirror.checkpoint({ say: 'checkpoint', prints: 0, files: blob });
    return { taken, has: (path: string) => existsSync(join(paths.folder, path)), paths };
  }

  test('the conversation comes; what claude obeys and what this program believes does not', async () => {
    const talk = 'claude-config/projects/{{cca:slug}}/talk.jsonl';
    const others = [
      ...[
        '../x',
        '/x',
        'worktree/ignored/tool.sh',
        'handover-copies.json',
        'handover.json',
        'before.txt',
        'accept-before.txt',
      ],
      ...['prompt.md', 'system-prompt.md', 'worker-settings.json', 'mcp.json', 'inputs/a', 'conversations.late-a/x'],
      ...['claude-config/settings.json', 'claude-config/.claude.json', 'claude-config/CLAUDE.md', 'subreaper'],
      ...['claude-config/skills/x/SKILL.md', 'claude-config/shell-snapshots/s.sh', 'claude-config/session-env/e.sh'],
    ];
    const { taken, has, paths } = await checkpoint(file(talk), ...others.map((path) => file(path)), file('hooks.log'));
    unwrap(taken);
    expect(readFileSync(join(paths.config, 'projects/-one/talk.jsonl'), 'utf8')).toBe('stolen');
    expect(has('hooks.log')).toBe(true);
    expect(others.filter(has)).toEqual([]);
  });

  test('the name of the folder of conversations may stand in a path twice', async () => {
    const { taken } = await checkpoint(file('claude-config/projects/{{cca:slug}}/{{cca:slug}}.jsonl'));
    unwrap(taken);
  });

  test('paths that lead out, or into a repository, are refused with all that comes with them', async () => {
    for (const path of [
      ...['claude-config/projects/../../../x', 'claude-config/projects/.git/hooks/post-checkout'],
      ...['claude-config/projects/.GIT/config', 'claude-config/projects/a\\b', 'claude-config/projects/a\0b'],
    ]) {
      const { taken, has } = await checkpoint(file('claude-config/projects/a.jsonl'), file(path));
      expect([path, taken.ok, has('claude-config/projects/a.jsonl')]).toEqual([path, false, false]);
    }
  });
});
