/**
 * Promises of `group pr`: merged and accepted work is pushed to one branch per repository, without force and without
 * changing local branches. Each repository gets one pull request; they link each other, and a second call updates them.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Review } from '../../../src/view/review/review.ts';
import { type MergeGroup, MergeUser, type WorkSketch } from '../../support/cli/merge-ground.ts';
import { launcher } from '../../support/cli/user.ts';
import { git } from '../../support/git/repository.ts';
import { TestTerminal } from '../../support/terminal.ts';

const one = `o n"e's`;
const two = 'two';

interface PullRequest {
  readonly url: string;
  readonly title: string;
  readonly base: string;
  readonly body: string;
  readonly draft: boolean;
}

let user: MergeUser;
let gh: string;
beforeEach(() => {
  user = new MergeUser();
  gh = join(user.folder, 'fake gh');
  const bin = join(user.folder, 'bin');
  mkdirSync(gh);
  mkdirSync(bin);
  const fake = fileURLToPath(import.meta.resolve('../../support/cli/fake-gh.ts'));
  const script = `#!/bin/sh\nexec '${process.execPath}' '${fake}' "$@"\n`;
  writeFileSync(join(bin, 'gh'), script);
  chmodSync(join(bin, 'gh'), 0o755);
  user.env.PATH = `${bin}:${user.env.PATH}`;
  user.env.FAKE_GH = gh;
  for (const name of [one, two]) {
    git(user.folderOf(name), 'remote', 'add', 'origin', user.repository(name).bare(bare(name)));
  }
});
afterEach(() => {
  for (const name of [one, two]) user.expectSound(name);
  user.remove();
});

const shop: readonly WorkSketch[] = [
  { name: 'a', repository: one, tree: { 'a.txt': 'a\n' }, result: 'Did it, @team.\nFixes #12. <!-- x' },
  { name: 'b', repository: one, after: ['a'], tree: { 'b.txt': 'b\n' } },
  { name: 'c', repository: two, tree: { 'c.txt': 'c\n' }, fields: { accept: 'test -e c.txt' } },
];

function bare(name: string): string {
  return join(user.folder, `${name} bare.git`);
}

const propose = (group: MergeGroup, ...more: string[]) => user.run('group', 'pr', group.id, ...more);
const reviewed = async ({ id }: MergeGroup) => {
  const { rows } = await user.json<Review>('review', id);
  return rows.map(({ sessionId, kind, pullRequest }) => [sessionId, kind, pullRequest]);
};
const remoteBranches = (name: string) => git(bare(name), 'for-each-ref', '--format=%(refname:short)').split('\n');
const calls = (): string[] =>
  existsSync(join(gh, 'calls')) ? readFileSync(join(gh, 'calls'), 'utf8').trim().split('\n') : [];
const request = (name: string, branch = 'cca/shop'): PullRequest =>
  JSON.parse(readFileSync(join(gh, `${name} ${branch.replaceAll('/', '+')}.json`), 'utf8'));

test('one branch and one pull request per repository, and no local branch moves', async () => {
  const group = user.mergeGroup('shop', shop);
  const before = [user.snapshot(one), user.snapshot(two)];
  const { code, stdout } = await propose(group, '--draft');
  expect(code).toBe(0);
  expect(stdout).toContain('Proposed: https://example.org/pull/1');
  expect([user.snapshot(one), user.snapshot(two)].map(({ status, worktrees }) => [status, worktrees])).toEqual(
    before.map(({ status, worktrees }) => [status, worktrees]),
  );
  const locals = (refs: string) => refs.split('\n').filter((line) => line.includes('refs/heads/'));
  expect(locals(user.snapshot(one).refs)).toEqual(locals(before[0]?.refs ?? ''));
  for (const name of [one, two]) {
    expect(remoteBranches(name)).toEqual(['cca/shop', 'main']);
    expect(git(bare(name), 'rev-parse', 'main')).toBe(user.tip(name));
  }
  git(bare(one), 'merge-base', '--is-ancestor', group.commit('b'), 'cca/shop');
  expect(request(one)).toMatchObject({ title: 'The "shop"', base: 'main', draft: true });
  const { body } = request(one);
  expect(body).toContain('All of it.');
  expect(body).toContain('### 001 a: The a part');
  expect(body).toContain('2 files changed, +7 -3');
  expect(body).toContain('> b is done.');
  expect(body).toContain('https://example.org/pull/2');
  expect(request(two).body).toContain('https://example.org/pull/1');
  // Text of a model mentions no user, closes no issue and cannot end our part of the text.
  expect(body).not.toMatch(/@team|Fixes #12|<!-- x/);
  expect([group.isTidy(), group.worktrees().length, group.mergedInto('a')]).toEqual([true, 3, undefined]);
});

test('a second call adds new work by an ordinary push and keeps what people wrote', async () => {
  const group = user.mergeGroup('shop', shop);
  expect(await propose(group)).toMatchObject({ code: 0 });
  const first = git(bare(one), 'rev-parse', 'cca/shop');
  const isProposed = [
    [group.session('a'), 'proposed', request(one).url],
    [group.session('b'), 'proposed', request(one).url],
    [group.session('c'), 'proposed', request(two).url],
  ];
  expect(await reviewed(group)).toEqual(isProposed);
  expect((await user.ok('review', group.id)).split('\n')).toContain('In a pull request (3)');
  // A reviewer adds a commit, and the author a line to the text; then a session's work is corrected.
  const review = join(user.folder, 'review');
  git(user.folder, 'clone', '--quiet', '--branch', 'cca/shop', bare(one), review);
  writeFileSync(join(review, 'review.txt'), 'reviewed\n');
  git(review, 'add', '--all');
  git(review, 'commit', '--quiet', '-m', 'Review');
  git(review, 'push', '--quiet');
  const file = join(gh, `${one} cca+shop.json`);
  writeFileSync(file, JSON.stringify({ ...request(one), body: `Please look.\n\n${request(one).body}\n\nThanks!` }));
  writeFileSync(join(group.path('b'), 'more.txt'), 'more\n');
  git(group.path('b'), 'add', '--all');
  git(group.path('b'), 'commit', '--quiet', '-m', 'More');
  expect((await reviewed(group)).map(([, kind]) => kind)).toEqual(['safe', 'proposed', 'proposed']);

  const { code, stdout } = await propose(group, '--json');
  expect(code).toBe(0);
  const { repositories } = JSON.parse(stdout);
  expect(repositories).toMatchObject([
    { branch: 'cca/shop', base: 'main', remote: 'origin', pushed: true, created: false, url: request(one).url },
    { branch: 'cca/shop', pushed: false, created: false },
  ]);
  expect(await reviewed(group)).toEqual(isProposed);
  const names = git(bare(one), 'ls-tree', '--name-only', 'cca/shop').split('\n');
  expect(names).toEqual(expect.arrayContaining(['a.txt', 'b.txt', 'more.txt', 'review.txt']));
  git(bare(one), 'merge-base', '--is-ancestor', first, 'cca/shop');
  expect(request(one).body).toMatch(/^Please look\.\n\n<!--/);
  expect(request(one).body).toMatch(/-->\n\nThanks!$/);
}, 20_000);

test('one for a session brings along what its work was built on, and a later call keeps it described', async () => {
  const d: WorkSketch = { name: 'd', repository: one, tree: { 'd.txt': 'd\n' } };
  const group = user.mergeGroup('shop', [...shop.slice(0, 2), d]);
  expect(await propose(group, '--session', 'b')).toMatchObject({ code: 0 });
  const described = () => request(one).body.match(/(?<=### \d\d\d )./g);
  expect(described()).toEqual(['a', 'b']);
  const isIn = (name: string) => [group.session(name), 'proposed', request(one).url];
  expect(await reviewed(group)).toEqual([[group.session('d'), 'safe', undefined], isIn('a'), isIn('b')]);
  expect(await propose(group, '--session', 'd')).toMatchObject({ code: 0 });
  expect(described()?.toSorted()).toEqual(['a', 'b', 'd']);
  expect(await reviewed(group)).toEqual(['a', 'b', 'd'].map(isIn));
}, 20_000);

test('a key of the review opens one, and the session moves to those that have one', async () => {
  const group = user.mergeGroup('shop', shop.slice(2));
  const terminal = new TestTerminal([launcher, 'review', group.id], { cwd: user.folder, env: user.env, columns: 120 });
  try {
    await terminal.shows('Safe to merge', 'c is done.');
    terminal.type('p');
    await terminal.shows('In a pull request', 'Pull request https://example.org/pull/1', '1 in a pull request.');
    terminal.type('p');
    await terminal.shows('001 c: Updated: https://example.org/pull/1');
    terminal.type('q');
    expect(await terminal.exited).toBe(0);
  } finally {
    terminal.close();
  }
}, 60_000);

test("pushed to the user's push remote, such as a fork, and opened where the branch comes from", async () => {
  const fork = join(user.folder, 'fork.git');
  const folder = user.folderOf(two);
  git(folder, 'remote', 'add', 'fork', user.repository(two).bare(fork));
  git(folder, 'fetch', '--quiet', 'origin');
  git(folder, 'branch', '--quiet', '--set-upstream-to=origin/main');
  git(folder, 'config', 'remote.pushDefault', 'fork');
  const group = user.mergeGroup('shop', [{ name: 'c', repository: two, tree: { 'c.txt': 'c\n' } }]);
  const { code, stdout } = await propose(group);
  expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('Proposed: ') });
  expect(git(fork, 'show', 'cca/shop:c.txt')).toBe('c');
  expect(remoteBranches(two)).toEqual(['main']);
});

test('--dry-run prints equivalent commands and does nothing', async () => {
  const group = user.mergeGroup('shop', shop);
  const before = [user.snapshot(one), user.snapshot(two)];
  const { code, stdout } = await propose(group, '--dry-run');
  expect(code).toBe(0);
  expect([user.snapshot(one), user.snapshot(two)]).toEqual(before);
  expect([remoteBranches(one), calls()]).toEqual([['main'], []]);
  expect(group.isTidy()).toBe(true);
  // A shell accepts them as printed.
  const env = {
    ...user.env,
    GIT_AUTHOR_NAME: 'x',
    GIT_AUTHOR_EMAIL: 'x',
    GIT_COMMITTER_NAME: 'x',
    GIT_COMMITTER_EMAIL: 'x',
  };
  const ran = Bun.spawnSync(['/bin/sh', '-e', '-c', stdout], { env, cwd: user.folder });
  const { exitCode } = ran;
  expect({ exitCode, stderr: ran.stderr.toString() }).toMatchObject({ exitCode: 0 });
  expect(remoteBranches(one)).toEqual(['cca/shop', 'main']);
  git(bare(one), 'merge-base', '--is-ancestor', group.commit('b'), 'cca/shop');
  expect(request(one)).toMatchObject({ title: 'The "shop"', base: 'main', draft: false });
  expect(request(two).body).toContain('c is done.');
  rmSync(join(group.paths.folder, 'pull-request.md'));
});

test('without gh or its login, nothing is tried or pushed', async () => {
  const group = user.mergeGroup('shop', shop);
  writeFileSync(join(gh, 'logged-out'), '');
  const withoutGh = (user.env.PATH ?? '').split(':').slice(1).join(':');
  for (const [env, words, code] of [
    [{}, ['not logged in', 'gh auth login'], 2],
    [{ PATH: withoutGh }, ['gh was not found'], 1],
  ] as const) {
    const refused = await user.runWith({ env }, 'group', 'pr', group.id);
    expect(refused).toMatchObject({ code, stdout: '' });
    for (const word of [...words, 'Nothing was pushed.']) expect(refused.stderr).toContain(word);
    expect(refused.stderr).not.toContain('Merging in a scratch');
    expect([remoteBranches(one), remoteBranches(two), group.isTidy()]).toEqual([['main'], ['main'], true]);
  }
}, 20_000);

test('when gh fails, the message names what was pushed; a later call continues', async () => {
  const group = user.mergeGroup('shop', shop);
  writeFileSync(join(gh, 'broken'), two);
  const broken = await propose(group);
  expect(broken).toMatchObject({ code: 1, stdout: '' });
  for (const word of ['GraphQL: something is wrong', 'Pushed already: cca/shop of origin']) {
    expect(broken.stderr).toContain(word);
  }
  rmSync(join(gh, 'broken'));
  expect(await propose(group)).toMatchObject({ code: 0 });
  expect([request(one).body.includes('/pull/2'), request(two).body.includes('/pull/1')]).toEqual([true, true]);
  expect(calls().filter((line) => line.includes('"create"')).length).toBe(3);
}, 30_000);

test('nothing is pushed when a session is not accepted', async () => {
  const group = user.mergeGroup('shop', [
    ...shop.slice(0, 2),
    { ...(shop[2] as WorkSketch), fields: { accept: 'exit 3' } },
  ]);
  const refused = await propose(group);
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toContain('003 c');
  expect([remoteBranches(one), remoteBranches(two)]).toEqual([['main'], ['main']]);
  expect(calls().filter((line) => !line.includes('"auth"'))).toEqual([]);
  expect(group.isTidy()).toBe(true);
});
