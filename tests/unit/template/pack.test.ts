/**
 * Promises: only plain files of templates become part of a pack, everything else is refused by name and all at once; a
 * pack appears, changes and goes as a whole, and what a crash leaves is put right.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ok } from '../../../src/core/failure.ts';
import type { Problem } from '../../../src/store/yaml-text.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import type { World } from '../../../src/system/world.ts';
import {
  findPack,
  handEdits,
  listPacks,
  packNamed,
  placePack,
  removePack,
  withPacks,
} from '../../../src/template/pack/pack.ts';
import { findPackRoot, gatherPack, type PackFile } from '../../../src/template/pack/pack-files.ts';
import { type Tree, writeTree } from '../../support/git/repository.ts';

const world = createRealWorld();
let root: string;
let source: string;
let packs: string;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'cca template ')));
  source = join(root, 'source');
  packs = join(root, 'config', 'templates', 'packs');
  mkdirSync(source);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const prompt = 'Do {{what}}.\n';

/** The problems as `file: message`, or the paths of what was gathered. */
function gathered(tree: Tree): string[] {
  writeTree(source, tree);
  const found = findPackRoot(world, source);
  if (found === null) return ['nothing'];
  const pack = gatherPack(world, source, found, '');
  return pack.ok ? pack.value.files.map(({ path }) => path) : pack.problems.map((one) => `${one.file}: ${one.message}`);
}

test('a pack is found at the top, in templates/ or in .claude-code-agent/templates/, the most specific first', () => {
  expect(gathered({ 'README.md': 'x', 'src/a.ts': '' })).toEqual(['nothing']);
  expect(gathered({ 'prompts/notes.txt': 'x', configs: 'a file', 'workflows/.hidden.yaml': '' })).toEqual(['nothing']);
  const whole = {
    'prompts/a.md': prompt,
    'prompts/.DS_Store': 'x',
    'configs/strict/CLAUDE.md': 'x',
    'configs/strict/.git/config': 'x',
    'configs/strict/.mcp.json': '{}',
    'configs/strict/skills/s/SKILL.md': 'x',
    'workflows/w.yaml': 'x',
    'workflows/v.yml': 'x',
    '.git/prompts/x.md': 'x',
    'other/prompts/y.md': 'x',
  };
  const files = [
    'configs/strict/.mcp.json',
    'configs/strict/CLAUDE.md',
    'configs/strict/skills/s/SKILL.md',
    'prompts/a.md',
    'workflows/v.yml',
    'workflows/w.yaml',
  ];
  writeTree(source, { configs: null });
  expect(gathered(whole)).toEqual(files);
  expect(gathered({ 'templates/prompts/b.md': prompt })).toEqual(['prompts/b.md']);
  expect(gathered({ '.claude-code-agent/templates/prompts/c.md': prompt })).toEqual(['prompts/c.md']);
});

test('files beside the templates are left out and named', () => {
  writeTree(source, {
    'prompts/a.md': prompt,
    'prompts/notes.txt': 'x',
    'workflows/list.txt': 'x',
    'configs/x.md': 'x',
  });
  expect(gatherPack(world, source, '.', '')).toMatchObject({
    value: { leftOut: ['prompts/notes.txt', 'configs/x.md', 'workflows/list.txt'] },
  });
});

test.each<[string, Tree, string]>([
  ['a link to a file', { 'prompts/a.md': { link: '/etc/passwd' } }, 'prompts/a.md: is a symbolic link'],
  ['a link in a config', { 'configs/c/CLAUDE.md': { link: '../../../x' } }, 'configs/c/CLAUDE.md: is a symbolic link'],
  ['a link to a folder', { 'configs/c': { link: '/etc' } }, 'configs/c: is a symbolic link'],
  ['a link instead of prompts', { prompts: { link: '/etc' } }, 'prompts: is a symbolic link'],
  ['a link that leads nowhere', { 'workflows/w.yaml': { link: 'nowhere' } }, 'workflows/w.yaml: is a symbolic link'],
  ['a huge file', { 'prompts/a.md': 'x'.repeat(1024 * 1024 + 1) }, 'prompts/a.md: has 1048577 bytes, more than 1 MiB'],
  ['a folder of prompts', { 'prompts/sub/a.md': prompt, 'prompts/b.md': prompt }, 'prompts/sub: is a folder'],
  ['a name with a blank', { 'prompts/my prompt.md': prompt }, 'prompts/my prompt.md: "my prompt" is no template name'],
  ['a name that is an option', { 'prompts/-rf.md': prompt }, 'prompts/-rf.md: "-rf" is no template name'],
  ['a name that is too long', { [`prompts/${'x'.repeat(65)}.md`]: prompt }, 'is no template name'],
  [
    'a config of a bad name',
    { 'configs/..x/CLAUDE.md': 'x', 'configs/a b/CLAUDE.md': 'x' },
    '"a b" is no template name',
  ],
  ['a control character', { 'configs/c/commands/a\u001b[31m.md': 'x' }, 'a character that not every system can have'],
  ['a backslash', { 'configs/c/commands/a\\b.md': 'x' }, 'a character that not every system can have'],
  [
    'the same name in capitals',
    { 'prompts/a.md': prompt, 'prompts/A.md': prompt },
    'prompts/a.md: has the name of prompts/A.md',
  ],
  [
    'two endings',
    { 'workflows/w.yaml': 'x', 'workflows/w.yml': 'x' },
    'workflows/w.yml: has the name of workflows/w.yaml',
  ],
  [
    'two files, one in capitals',
    { 'configs/c/CLAUDE.md': 'x', 'configs/c/claude.md': 'x' },
    'has the name of configs/c/CLAUDE.md',
  ],
  ['two spellings', { 'configs/c/commands/\u00e9.md': 'x', 'configs/c/commands/e\u0301.md': 'x' }, 'has the name of'],
  ['a deep folder', { 'configs/c/1/2/3/4/5/6/7/8/9/x.md': 'x' }, 'more than 8 folders deep'],
  ['an empty config', { 'configs/c/.DS_Store': 'x', 'prompts/a.md': prompt }, 'configs/c: is empty'],
])('%s is refused', (_, tree, problem) => {
  const [first, second] = gathered(tree);
  expect(first).toContain(problem);
  expect(second).toBeUndefined();
});

test('a pipe is refused without being read', () => {
  writeTree(source, { 'prompts/a.md': prompt });
  world.fifos.create(join(source, 'prompts', 'b.md'));
  expect(gathered({})).toEqual(['prompts/b.md: is no plain file: a pipe, a socket or a device']);
});

test('too many files and too many bytes are refused, at the first file beyond', () => {
  const many = Object.fromEntries(Array.from({ length: 502 }, (_, index) => [`prompts/p${index}.md`, prompt]));
  expect(gathered(many)).toEqual(['prompts/p98.md: is beyond the 500 files that a pack may have']);
  const mega = new Uint8Array(1024 * 1024);
  const large = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`configs/c/skills/s${index}`, mega]));
  expect(gathered({ prompts: null, ...large })).toEqual([
    'configs/c/skills/s8: is beyond the 8 MiB that a pack may have',
  ]);
});

test('all problems are told at once', () => {
  const problems = gathered({ 'prompts/a.md': { link: 'x' }, 'prompts/b c.md': prompt, 'workflows/s/w.yaml': 'x' });
  expect(problems.map((problem) => problem.split(':')[0])).toEqual(['prompts/a.md', 'prompts/b c.md', 'workflows/s']);
});

function bytes(files: Readonly<Record<string, string>>): PackFile[] {
  return Object.entries(files).map(([path, text]) => ({ path, bytes: Buffer.from(text) }));
}

interface Placing {
  readonly name?: string;
  readonly world?: World;
  readonly check?: (folder: string) => readonly Problem[];
}

function place(files: Readonly<Record<string, string>>, options: Placing = {}) {
  const { name = 'team', world: used = world, check = () => [] } = options;
  const placement = { name, origin: { source: '/s' }, files: bytes(files), shownRoot: 'templates/', check };
  return withPacks(used, packs, () => ok(placePack(used, packs, placement)), { make: true });
}

function names(): string[] {
  return readdirSync(packs)
    .filter((name) => name !== '.lock')
    .sort();
}

test('a pack is placed with its note, private, and nothing else is left', async () => {
  const placed = await place({ 'prompts/a.md': prompt, 'configs/c/CLAUDE.md': 'x' });
  expect(placed).toMatchObject({ ok: true, value: { ok: true, value: { name: 'team', source: '/s', version: 1 } } });
  expect(names()).toEqual(['team']);
  expect(readFileSync(join(packs, 'team', 'prompts', 'a.md'), 'utf8')).toBe(prompt);
  const [pack] = listPacks(world, packs);
  expect(pack?.note?.files.map(({ path, bytes: size }) => [path, size])).toEqual([
    ['prompts/a.md', prompt.length],
    ['configs/c/CLAUDE.md', 1],
  ]);
  expect(pack?.note?.digest).toMatch(/^[0-9a-f]{64}$/);
  expect(packNamed(world, packs, 'TEAM')?.name).toBe('team');
  expect(findPack(world, packs, 'nope')).toMatchObject({
    failure: { reason: 'not-found', next: { sentence: expect.stringContaining('team') } },
  });
  if (pack !== undefined) expect(handEdits(world, pack)).toEqual([]);
});

test('a pack that fails its check changes nothing, and its problems name files as the user knows them', async () => {
  await place({ 'prompts/a.md': 'old' });
  const check = (folder: string) => [{ file: join(folder, 'prompts/a.md'), line: 3, column: 1, message: 'is bad' }];
  expect(await place({ 'prompts/a.md': 'new' }, { check })).toMatchObject({
    value: { ok: false, problems: [{ file: 'templates/prompts/a.md', line: 3 }] },
  });
  expect(names()).toEqual(['team']);
  expect(readFileSync(join(packs, 'team', 'prompts', 'a.md'), 'utf8')).toBe('old');
});

/** A world whose n-th change of a file fails as on a full disk; with `dies` everything after it fails as well. */
function failingWorld(n: number, dies: boolean): { readonly world: World; readonly failed: () => boolean } {
  let count = 0;
  const guard = <A extends unknown[], R>(action: (...args: A) => R) => {
    return (...args: A): R => {
      count += 1;
      if (count === n || (dies && count > n)) throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
      return action(...args);
    };
  };
  const { files } = world;
  const guarded = {
    ...files,
    writeBytes: guard(files.writeBytes),
    writeAtomic: guard(files.writeAtomic),
    rename: guard(files.rename),
    remove: guard(files.remove),
    makeFolder: guard(files.makeFolder),
  };
  return { world: { ...world, files: guarded }, failed: () => count >= n };
}

test.each([false, true])(
  'wherever the disk fails or the program dies (%p), the old or the new pack is whole',
  async (dies) => {
    const before = { 'prompts/a.md': 'old', 'configs/c/CLAUDE.md': 'old' };
    const after = { 'prompts/a.md': 'new', 'configs/c/CLAUDE.md': 'new' };
    const seen = new Set<string>();
    for (let n = 1; ; n++) {
      rmSync(packs, { recursive: true, force: true });
      await place(before);
      const failing = failingWorld(n, dies);
      const result = await place(after, { world: failing.world });
      if (!failing.failed()) break;
      expect(result.ok || result.failure.reason === 'write-failed').toBe(true);
      await withPacks(world, packs, () => ok(undefined));
      expect(names()).toEqual(['team']);
      const texts = Object.keys(before).map((path) => readFileSync(join(packs, 'team', path), 'utf8'));
      expect(new Set(texts).size).toBe(1);
      const [pack] = listPacks(world, packs);
      if (pack !== undefined) expect(handEdits(world, pack)).toEqual([]);
      seen.add(texts[0] ?? '');
    }
    expect([...seen].sort()).toEqual(['new', 'old']);
  },
);

test('leftovers of a crash are cleared away, and a pack that had stepped aside comes back', async () => {
  await place({ 'prompts/a.md': 'old' });
  renameSync(join(packs, 'team'), join(packs, '.old-team'));
  for (const name of ['.new-team', '.new-other', '.fetch-1', '.old-gone.x'])
    mkdirSync(join(packs, name, 'prompts'), { recursive: true });
  mkdirSync(join(packs, 'gone.x'));
  await withPacks(world, packs, () => ok(undefined));
  expect(names()).toEqual(['gone.x', 'team']);
  expect(readFileSync(join(packs, 'team', 'prompts', 'a.md'), 'utf8')).toBe('old');
});

test('only one command changes packs at a time; looking at none makes no folder', async () => {
  const inside = await withPacks(world, packs, () => withPacks(world, packs, () => ok('never')), { make: true });
  expect(inside).toMatchObject({ ok: false, failure: { reason: 'busy' } });
  rmSync(packs, { recursive: true });
  expect(await withPacks(world, packs, () => ok('seen'))).toEqual({ ok: true, value: 'seen' });
  expect(existsSync(packs)).toBe(false);
});

test('changes by hand are seen: other bytes, more or fewer files, links; a damaged note is seen as none', async () => {
  await place({ 'prompts/a.md': 'a', 'prompts/b.md': 'b', 'prompts/c.md': 'c' });
  writeTree(join(packs, 'team'), {
    'prompts/a.md': 'A',
    'prompts/b.md': null,
    'prompts/c.md': { link: 'a.md' },
    'notes.txt': 'x',
  });
  const [pack] = listPacks(world, packs);
  if (pack === undefined) throw new Error('The pack is gone.');
  expect(handEdits(world, pack)).toEqual([
    { kind: 'added', path: 'notes.txt' },
    { kind: 'changed', path: 'prompts/a.md' },
    { kind: 'removed', path: 'prompts/b.md' },
    { kind: 'changed', path: 'prompts/c.md' },
  ]);
  for (const damage of ['', '{', '[]', '{"version":2}', '{"version":1,"name":1}']) {
    writeFileSync(join(packs, 'team', 'pack.json'), damage);
    expect(listPacks(world, packs)).toMatchObject([{ name: 'team', note: null }]);
  }
});

test('a pack goes as a whole', async () => {
  await place({ 'prompts/a.md': 'a' });
  await withPacks(world, packs, () => ok(removePack(world, packs, 'team')));
  expect(names()).toEqual([]);
});
