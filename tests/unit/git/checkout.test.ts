/**
 * Promises: a branch, a tag or a commit is fetched completely, nothing in a repository runs, and failures have
 * reasons. Uses the real git.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runGit } from '../../../src/git/git.ts';
import { type CheckoutInput, checkOut, filesAt } from '../../../src/git/source.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { git, Repository } from '../../support/git/repository.ts';

const world = createRealWorld();
let root: string;
let repository: Repository;
let env: Record<string, string | undefined>;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'cca git ')));
  repository = new Repository(join(root, 'team templates'));
  env = { PATH: process.env.PATH, HOME: root, GIT_CONFIG_SYSTEM: '/dev/null' };
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function fetchInto(name: string, input: Partial<CheckoutInput> = {}) {
  const folder = join(root, name);
  mkdirSync(folder);
  return checkOut({ world, env }, { repository: repository.folder, folder, ...input });
}

test('HEAD, branches, both kinds of tags and commits can be fetched by path and by file://', async () => {
  const first = repository.commit({ 'a.txt': 'one' });
  git(repository.folder, 'tag', 'v1');
  git(repository.folder, 'tag', '-a', 'v1-annotated', '-m', 'x');
  git(repository.folder, 'branch', 'old/line');
  const second = repository.commit({ 'a.txt': 'two' });
  const bare = `file://${encodeURI(repository.bare(join(root, 'bare one.git')))}`;
  const cases: readonly [Partial<CheckoutInput>, string, string][] = [
    [{}, second, 'two'],
    [{ ref: 'main' }, second, 'two'],
    [{ ref: 'v1' }, first, 'one'],
    [{ ref: 'v1-annotated' }, first, 'one'],
    [{ ref: 'old/line' }, first, 'one'],
    [{ ref: second }, second, 'two'],
    [{ repository: bare }, second, 'two'],
    [{ repository: bare, ref: 'v1' }, first, 'one'],
  ];
  for (const [index, [input, commit, text]] of cases.entries()) {
    expect(await fetchInto(`copy ${index}`, input)).toEqual({ ok: true, value: { commit } });
    expect(readFileSync(join(root, `copy ${index}`, 'a.txt'), 'utf8')).toBe(text);
  }
  expect(await filesAt({ world, env }, repository.folder, second)).toEqual({
    ok: true,
    value: [{ path: 'a.txt', isLink: false }],
  });
});

test('a failed fetch is reported with git’s reason', async () => {
  expect(await fetchInto('empty')).toMatchObject({ ok: false, failure: { message: expect.stringContaining('HEAD') } });
  repository.commit({ 'a.txt': 'one' });
  const ref = await fetchInto('ref', { ref: 'nope' });
  expect(ref).toMatchObject({
    ok: false,
    failure: {
      reason: 'not-found',
      message: expect.stringContaining('nope'),
      next: { sentence: expect.stringContaining('nope') },
    },
  });
  const missing = await fetchInto('missing', { repository: join(root, 'nowhere') });
  expect(missing).toMatchObject({
    failure: { message: expect.stringContaining('does not appear to be a git repository') },
  });
  env = { PATH: root };
  const without = await fetchInto('without');
  expect(without).toMatchObject({ failure: { reason: 'not-found', message: 'The program git was not found.' } });
});

test('a tree with a path outside its folder is refused', async () => {
  repository.commit({ 'a.txt': 'one' });
  const blob = git(repository.folder, 'rev-parse', 'HEAD:a.txt');
  writeFileSync(join(root, 'entries'), `100644 blob ${blob}\tevil\n`);
  const make = (input: string) => {
    const ran = Bun.spawnSync(['git', 'mktree'], { cwd: repository.folder, stdin: Buffer.from(input) });
    return ran.stdout.toString().trim();
  };
  const inner = make(`100644 blob ${blob}\tevil\n`);
  const tree = make(`040000 tree ${inner}\t..\n`);
  const commit = git(repository.folder, 'commit-tree', tree, '-m', 'x');
  git(repository.folder, 'update-ref', 'refs/heads/evil', commit);
  const escaped = await fetchInto('out', { ref: 'evil' });
  expect(escaped).toMatchObject({ ok: false, failure: { message: expect.stringContaining("'../evil'") } });
  expect(existsSync(join(root, 'evil'))).toBe(false);
});

test('a fetch runs no hooks, monitors or template folders, and skips submodules', async () => {
  const mark = join(root, 'ran');
  const script = join(root, 'script');
  writeFileSync(script, `#!/bin/sh\ntouch '${mark}'\n`);
  chmodSync(script, 0o755);
  const other = new Repository(join(root, 'other'));
  other.commit({ 'b.txt': 'x' });
  git(repository.folder, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', other.folder, 'sub');
  repository.commit({ 'a.txt': 'one' });
  for (const hook of ['post-checkout', 'reference-transaction', 'post-index-change']) {
    mkdirSync(join(root, 'template', 'hooks'), { recursive: true });
    for (const folder of [join(root, 'template', 'hooks'), join(repository.folder, '.git', 'hooks')]) {
      writeFileSync(join(folder, hook), `#!/bin/sh\ntouch '${mark}'\n`, { mode: 0o755 });
    }
  }
  const config = [
    `[init]\ntemplateDir = ${join(root, 'template')}`,
    `[core]\nhooksPath = ${join(root, 'template', 'hooks')}`,
  ];
  writeFileSync(
    join(root, '.gitconfig'),
    `${config.join('\n')}\nfsmonitor = "'${script}'"\n[submodule]\nrecurse = true\n`,
  );
  git(repository.folder, 'config', 'core.fsmonitor', `'${script}'`);
  rmSync(mark, { force: true });
  expect(await fetchInto('copy')).toMatchObject({ ok: true });
  expect(existsSync(mark)).toBe(false);
  expect(existsSync(join(root, 'copy', 'sub', 'b.txt'))).toBe(false);
});

test('URLs that the user’s git configuration turns into a program are refused', async () => {
  const mark = join(root, 'ran');
  writeFileSync(
    join(root, '.gitconfig'),
    `[url "ext::sh -c 'touch ${mark}' "]\ninsteadOf = https://git.example.org/\n`,
  );
  const turned = await fetchInto('turned', { repository: 'https://git.example.org/x' });
  expect(turned).toMatchObject({ ok: false, failure: { message: expect.stringContaining("'ext' not allowed") } });
  expect(existsSync(mark)).toBe(false);
});

test('a login from a URL goes to git in the environment and takes precedence over the user’s helpers', async () => {
  writeFileSync(
    join(root, '.gitconfig'),
    '[credential]\nhelper = "!f() { echo username=wrong; echo password=wrong; }; f"\n',
  );
  const login = { user: 'me', password: `it's "$HOME" \\n %s` };
  // `credential fill` reads standard input, which is empty here; a file holds the request.
  writeFileSync(join(root, 'asked'), 'protocol=https\nhost=git.example.org\n\n');
  const args = ['-c', 'alias.ask=!git credential fill < asked', 'ask'];
  const asked = await runGit({ world, env }, { cwd: root, timeoutMs: 10_000, args, login });
  expect(asked).toMatchObject({
    ok: true,
    value: expect.stringContaining(`username=me\npassword=${login.password}\n`),
  });
});
