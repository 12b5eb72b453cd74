/**
 * Promises, through the program and with the real git: a pack from a repository can be installed, updated and removed.
 * A problem in a pack is reported with its file name, and nothing is copied. A password is stored nowhere.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { User } from '../../support/cli/user.ts';
import { type FileTree, git, Repository, writeTree } from '../../support/git/repository.ts';

let user: User;
let repository: Repository;
let packs: string;
beforeEach(() => {
  user = new User({ GIT_CONFIG_SYSTEM: '/dev/null' });
  repository = new Repository(join(user.folder, 'team templates'));
  packs = join(user.home, '.config', 'claude-code-agent', 'templates', 'packs');
});
afterEach(() => user.remove());

const prompt = (text: string) =>
  `---\nname: fix\nvariables:\n  - name: what\n    required: true\n---\n${text} {{what}}\n`;
const workflow = 'version: 1\nsessions:\n  one:\n    project: .\n    template: fix\n    vars: { what: all }\n';
const good: FileTree = {
  'README.md': '# Templates',
  'templates/prompts/fix.md': prompt('Mend'),
  'templates/prompts/notes.txt': 'x',
  'templates/configs/strict/CLAUDE.md': 'Be strict.\n',
  'templates/configs/strict/settings.json': '{"permissions":{"deny":["Read(**/.env)"]}}\n',
  'templates/workflows/fix-all.yaml': workflow,
};

function url(): string {
  return `file://${encodeURI(repository.folder)}`;
}

function installed(): string[] {
  return existsSync(packs) ? readdirSync(packs).filter((name) => !name.startsWith('.lock')) : [];
}

function note(name: string): { source: string; ref?: string; commit?: string; addedAt: string } {
  return JSON.parse(readFileSync(join(packs, name, 'pack.json'), 'utf8'));
}

test('a pack from a repository installs, is found, updates after a new commit and is removed', async () => {
  const first = repository.commit(good);
  const added = await user.run('template', 'add', url(), '--name', 'team');
  expect(added).toMatchObject({ code: 0, stderr: expect.stringContaining('templates') });
  expect(added.stdout).toBe(
    `Added pack team with 3 templates from ${url()} (commit ${first.slice(0, 10)}):\n` +
      '  configs/strict\n  prompts/fix\n  workflows/fix-all\n',
  );
  expect(note('team')).toMatchObject({ source: url(), commit: first, version: 1, name: 'team' });
  const listed = await user.json<{ kind: string; name: string }[]>('template', 'list');
  expect(listed.map(({ kind, name }) => `${kind} ${name}`)).toEqual(
    expect.arrayContaining(['prompt fix', 'config strict', 'workflow fix-all']),
  );
  expect(await user.ok('template', 'render', 'fix', '--var', 'what=it')).toBe('Mend it');
  expect(await user.run('template', 'update')).toMatchObject({
    code: 0,
    stdout: `team: up to date (${first.slice(0, 10)})\n`,
  });
  const second = repository.commit({
    'templates/prompts/fix.md': prompt('Repair'),
    'templates/prompts/more.md': 'More.\n',
    'templates/configs/strict': null,
  });
  expect((await user.run('template', 'update', 'team')).stdout).toBe(
    `team: updated, ${first.slice(0, 10)} -> ${second.slice(0, 10)}\n`,
  );
  expect(await user.ok('template', 'render', 'fix', '--var', 'what=it')).toBe('Repair it');
  expect(existsSync(join(packs, 'team', 'configs'))).toBe(false);
  expect(await user.run('template', 'remove', 'team')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--force'),
  });
  expect(await user.run('template', 'remove', 'team', '--force')).toMatchObject({ code: 0, stdout: '' });
  expect(installed()).toEqual([]);
}, 60_000);

test('--ref names a tag; update stays with it until another is named', async () => {
  const first = repository.commit(good);
  git(repository.folder, 'tag', 'v1');
  const bare = repository.bare(join(user.folder, 'bare.git'));
  const second = repository.commit({ 'templates/prompts/fix.md': prompt('Repair') });
  git(repository.folder, 'push', '--quiet', bare, 'main');
  expect(await user.json('template', 'add', `file://${bare}@v1`)).toMatchObject({
    name: 'bare',
    ref: 'v1',
    commit: first,
  });
  expect(await user.json('template', 'update', 'bare')).toMatchObject([{ name: 'bare', status: 'unchanged' }]);
  expect(await user.json('template', 'update', 'bare', '--ref', 'main')).toMatchObject([
    {
      status: 'updated',
      from: { ref: 'v1', commit: first },
      note: { ref: 'main', commit: second },
    },
  ]);
  expect(note('bare')).toMatchObject({ source: `file://${encodeURI(bare)}`, ref: 'main' });
  const wrong = await user.run('template', 'update', 'bare', '--ref', 'nope');
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('nope') });
  expect(note('bare')).toMatchObject({ ref: 'main', commit: second });
}, 60_000);

test('a local repository is taken as committed, and a folder without one is refused', async () => {
  const commit = repository.commit(good);
  writeTree(repository.folder, { 'templates/prompts/fix.md': prompt('Not committed:') });
  await user.ok('template', 'add', './team templates', '--name', 'here');
  expect(note('here')).toMatchObject({ source: repository.folder, commit });
  expect(await user.ok('template', 'render', 'fix', '--var', 'what=it')).toBe('Mend it');
  const plain = join(user.folder, 'plain');
  writeTree(plain, { 'prompts/one.md': 'One.\n' });
  const refused = await user.run('template', 'add', plain);
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('CLAUDE_CODE_AGENT_TEMPLATES') });
  expect(installed()).toEqual(['here']);
}, 60_000);

test('symlinks next to the templates are ignored and not followed', async () => {
  repository.commit({ 'prompts/one.md': 'One.\n', 'docs/link': { link: '/etc/passwd' }, templates: { link: '/etc' } });
  await user.ok('template', 'add', url(), '--name', 'team');
  expect(await user.ok('template', 'render', 'one')).toBe('One.');
}, 60_000);

test('an update that fails for one pack is still done for the others', async () => {
  repository.commit(good);
  const other = new Repository(join(user.folder, 'plain'));
  other.commit({ 'prompts/one.md': 'One.\n' });
  await user.ok('template', 'add', repository.folder, '--name', 'here');
  await user.ok('template', 'add', other.folder);
  rmSync(other.folder, { recursive: true });
  const gone = await user.run('template', 'update');
  expect(gone).toMatchObject({ code: 2, stdout: expect.stringContaining('here: up to date') });
  expect(gone.stderr).toContain('Pack plain was not updated');
  expect(await user.ok('template', 'render', 'one')).toBe('One.');
  writeFileSync(join(packs, 'plain', 'pack.json'), '{');
  expect(await user.run('template', 'update')).toMatchObject({ code: 1, stderr: expect.stringContaining('pack.json') });
}, 60_000);

test.each<[string, FileTree, string]>([
  ['a link instead of a folder', { prompts: { link: '/etc' } }, 'prompts:1:1: is a symlink'],
  ['a link', { 'prompts/a.md': { link: '/etc/passwd' } }, 'prompts/a.md:1:1: is a symlink'],
  [
    'a symlink that leads out',
    { 'configs/c/CLAUDE.md': { link: '../../../../x' } },
    'configs/c/CLAUDE.md:1:1: is a symlink',
  ],
  ['a huge file', { 'prompts/a.md': 'x'.repeat(1024 * 1024 + 1) }, 'prompts/a.md:1:1: is larger than'],
  [
    'code in the front matter',
    { 'prompts/a.md': '---js\nmodule.exports = {}\n---\nx\n' },
    'prompts/a.md:1:1: the front matter',
  ],
  [
    'an unknown variable',
    { 'prompts/a.md': '---\nname: a\n---\n\nDo {{it}}.\n' },
    'prompts/a.md:5:4: there is no variable "it"',
  ],
  ['settings that are not JSON', { 'configs/c/settings.json': '{"permissions":' }, 'configs/c/settings.json:1:'],
  ['a misplaced file', { 'configs/c/run.sh': 'x' }, 'configs/c/run.sh:1:1: does not belong here'],
  ['an invalid workflow', { 'workflows/w.yaml': 'version: 1\nsesions: {}\n' }, 'workflows/w.yaml:2:1'],
  ['no template', { 'src/a.ts': 'x' }, 'There are no templates'],
])(
  '%s in a pack is refused, and nothing is installed',
  async (_, tree, why) => {
    repository.commit(tree);
    for (const source of [repository.folder, url()]) {
      const refused = await user.run('template', 'add', source, '--name', 'bad');
      expect(refused).toMatchObject({ code: 2, stdout: '' });
      expect(refused.stderr).toContain(why);
      expect(refused.stderr).toMatch(/^claude-code-agent: [A-Z][\s\S]*[.\n][A-Z ].*\.\n$/);
    }
    expect(installed()).toEqual([]);
  },
  60_000,
);

test('a faulty new version leaves the old one in place', async () => {
  repository.commit(good);
  await user.ok('template', 'add', url(), '--name', 'team');
  const before = note('team');
  repository.commit({ 'templates/prompts/fix.md': { link: '/etc/passwd' }, 'templates/prompts/x.md': '---js\n---\n' });
  const refused = await user.run('template', 'update');
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain('templates/prompts/fix.md:1:1: is a symlink');
  expect(note('team')).toEqual(before);
  expect(await user.ok('template', 'render', 'fix', '--var', 'what=it')).toBe('Mend it');
}, 60_000);

test('a taken name is refused with the next step', async () => {
  repository.commit(good);
  await user.ok('template', 'add', url(), '--name', 'team');
  const again = await user.run('template', 'add', url(), '--name', 'team');
  expect(again).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('or use: claude-code-agent template update team\n'),
  });
  const tagged = await user.run('template', 'add', url(), '--name', 'team', '--ref', 'v9');
  expect(tagged.stderr).toContain('or use: claude-code-agent template update team --ref v9\n');
  const other = join(user.folder, 'TEAM');
  new Repository(other).commit({ 'prompts/one.md': 'One.\n' });
  const taken = await user.run('template', 'add', other);
  expect(taken).toMatchObject({ code: 2, stderr: expect.stringContaining('--name') });
  expect(installed()).toEqual(['team']);
}, 60_000);

test.each<[string[], string]>([
  [['add', ''], 'The location of the pack is invalid'],
  [['add', 'ext::sh -c x'], 'start a program'],
  [['add', 'http://git.example.org/x'], 'not encrypted'],
  [['add', 'nowhere'], 'does not exist'],
  [['add', '.', '--ref', '--upload-pack=x'], 'is not a branch, tag or commit id'],
  [['add', 'https://git.example.org/x', '--name', '../x'], 'is not a valid pack name'],
  [['add', '.', '--ref', 'main'], 'git repository'],
  [['add', '.', '--name', 'x'], 'git repository'],
  [['update', 'nope'], 'There is no template pack "nope"'],
  [['update', '--ref', 'x'], '--ref needs the name of a pack'],
  [['remove', 'nope', '--force'], 'There is no template pack "nope"'],
  [['remove', '../../templates', '--force'], 'There is no template pack'],
])('template %p is refused', async (args, why) => {
  const refused = await user.runWith({ cwd: user.project('empty') }, 'template', ...args);
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain(why);
  expect(installed()).toEqual([]);
});

test('files that can start programs are named, of an added pack and of an update', async () => {
  const settings = (hook: string) =>
    JSON.stringify({ hooks: { Stop: [{ hooks: [{ type: 'command', command: hook }] }] } });
  const workflow = (keys: string) =>
    `version: 1\nvars: { check: make }\nsessions: { a: { project: ., prompt: hi, ${keys} } }\n`;
  repository.commit({
    'configs/c/settings.json': settings('a'),
    'configs/c/mcp.json': '{"mcpServers":{"x":{"command":"x"}}}',
    'configs/c/commands/go.md': 'Now: !`date`\n',
    'configs/d/settings.json': '{"permissions":{"allow":["Read"]}}',
    'workflows/w.yaml': workflow('accept: "{{check}}", "s\\u0065tup": npm ci'),
    'workflows/x.yaml': workflow('accept: false, description: "accept: npm test"'),
  });
  const added = await user.run('template', 'add', url(), '--name', 'team');
  expect(added.stderr.match(/^ {2}workflows.*$/gm)).toEqual([
    '  workflows/w.yaml: runs shell commands (setup, accept)',
  ]);
  expect(added.stderr.match(/^ {2}configs.*$/gm)).toEqual([
    '  configs/c/commands/go.md: runs shell commands when it is used',
    '  configs/c/mcp.json: starts MCP servers',
    '  configs/c/settings.json: sets hooks',
  ]);
  expect((await user.run('template', 'update')).stderr).toBe('');
  repository.commit({ 'configs/c/settings.json': settings('b') });
  expect((await user.run('template', 'update')).stderr).toContain('  configs/c/settings.json: sets hooks\n');
}, 60_000);

test('an update without packs says so; a pack whose source is gone can be removed', async () => {
  expect(await user.run('template', 'update')).toMatchObject({
    code: 0,
    stdout: '',
    stderr: expect.stringContaining('no template packs'),
  });
  mkdirSync(join(packs, 'mine', 'prompts'), { recursive: true });
  const asked = await user.run('template', 'remove', 'mine');
  expect(asked).toMatchObject({ code: 2, stderr: expect.stringContaining('Its source is unknown') });
  await user.ok('template', 'remove', 'mine', '--force');
  expect(installed()).toEqual([]);
});

test('a password in a URL is neither stored nor shown', async () => {
  // A certificate for no server: git gets as far as connecting to a port without one.
  const secret = 'hunter2-secret';
  const failed = await user.run('template', 'add', `https://me:${secret}@127.0.0.1:1/x.git`);
  expect(failed.code).toBe(2);
  expect(failed.stderr).toContain('https://127.0.0.1:1/x.git');
  expect(failed.stdout + failed.stderr).not.toContain(secret);
  const left = readdirSync(packs, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  expect(left.map(({ name }) => name)).toEqual(['.lock']);
});
