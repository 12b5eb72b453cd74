/** Promises: refs keep the commits of a session, and travel by push and fetch. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { join } from 'node:path';
import type { Git } from '../../../src/git/git.ts';
import { fetchCommits, keepingRef, keptCommits, pushRefs, setRefs } from '../../../src/git/worktrees/snapshot.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { git, Repository } from '../../support/git/repository.ts';
import { expectOk, makeTempFolder } from '../../support/system/rig.ts';

const world = createRealWorld();
let temp: ReturnType<typeof makeTempFolder>;
let repository: Repository;
let commit: string;
const own: Git = { env: process.env, world };

beforeEach(() => {
  temp = makeTempFolder();
  repository = new Repository(join(temp.path, 'project'));
  commit = repository.commit({ 'a.txt': 'a\n' });
});
afterEach(() => temp.remove());

test('refs of a session are set, found and removed', async () => {
  expectOk(await setRefs(own, repository.folder, [[keepingRef('s1', 'sent'), commit]]));
  expect((await setRefs(own, repository.folder, [[keepingRef('s2', 'sent'), 'f'.repeat(40)]])).ok).toBe(false);
  expect([...expectOk(await keptCommits(own, repository.folder, 's1'))]).toEqual([['sent', commit]]);
  expect(expectOk(await keptCommits(own, repository.folder, 's2')).size).toBe(0);
  expectOk(await setRefs(own, repository.folder, [[keepingRef('s1', 'sent'), null]]));
  expect(git(repository.folder, 'for-each-ref', 'refs/claude-code-agent')).toBe('');
});

test('pushed commits create the repository on a host, and return under their own refs', async () => {
  const there = { url: join(temp.path, 'a host', 'repository'), isOnHost: true };
  expectOk(await pushRefs(own, repository.folder, there, [`${commit}:refs/x/sent`]));
  expect(git(there.url, 'rev-parse', 'refs/x/sent')).toBe(commit);
  const clone = join(temp.path, 'clone');
  git(temp.path, 'clone', '--quiet', repository.folder, clone);
  const made = new Repository(clone).commit({ 'b.txt': 'b\n' });
  git(clone, 'push', '--quiet', there.url, `${made}:refs/x/sent`);
  // The previous commit, which has no ref anymore, can be fetched too.
  git(there.url, 'update-ref', '-d', 'refs/x/sent');
  const refs = [
    [made, keepingRef('s1', 'head')],
    [commit, keepingRef('s1', 'checkpoint')],
  ] as const;
  const before = git(repository.folder, 'status', '--porcelain', '--branch');
  expectOk(await fetchCommits(own, repository.folder, there, refs));
  expect(expectOk(await keptCommits(own, repository.folder, 's1')).get('head')).toBe(made);
  expect(git(repository.folder, 'status', '--porcelain', '--branch')).toBe(before);
});

test('an unreachable host and a missing commit are different failures', async () => {
  const away = { url: 'nobody@127.0.0.1:/nowhere', isOnHost: true };
  const away2: Git = { ...own, env: { ...own.env, GIT_SSH_COMMAND: "sh -c 'echo ssh: no way >&2; exit 255'" } };
  const pushed = await pushRefs(away2, repository.folder, away, [`${commit}:refs/x/sent`]);
  expect(pushed).toMatchObject({
    ok: false,
    failure: { reason: 'timeout', message: expect.stringContaining('no way') },
  });
  const there = { url: repository.folder, isOnHost: true };
  const fetched = await fetchCommits(own, repository.folder, there, [['f'.repeat(40), keepingRef('s1', 'head')]]);
  expect(fetched).toMatchObject({ ok: false, failure: { reason: 'worktree-failed' } });
});
