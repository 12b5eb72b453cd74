/**
 * Promises: the folders above a worktree look to tools like those above the user's checkout. Symlinks lead to the
 * originals or their replacements, and other files there are never removed.
 */
import { beforeEach, expect, test } from 'bun:test';
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  layOutLevels,
  placeBelow,
  placeInLevels,
  removeLevels,
  type WorkspaceLinks,
} from '../../../src/git/worktrees/levels.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const { files } = createRealWorld();
const temp = withTempFolder();
let home: string;
let top: string;

beforeEach(() => {
  home = join(temp.path, 'home');
  top = join(home, '.data/w/abc');
});

function make(...paths: string[]): void {
  for (const path of paths) {
    const full = join(home, path);
    mkdirSync(path.endsWith('/') ? full : dirname(full), { recursive: true });
    if (!path.endsWith('/')) writeFileSync(full, path);
  }
}

/** A worktree of the checkout, before anything is linked around it. */
function around(checkout: string, places: Readonly<Record<string, string>> = {}): WorkspaceLinks {
  const full = join(home, checkout);
  const others = Object.keys(places).map((path) => join(home, path));
  const path = placeBelow(files, top, { checkout: full, home, others });
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, '.git'), 'gitdir: elsewhere');
  const entries = Object.entries(places).map(([from, to]) => [join(home, from), to] as const);
  return { top, path, checkout: full, home, places: new Map(entries) };
}

const below = (path: string): string[] => readdirSync(join(top, path)).sort();
const target = (path: string): string => readlinkSync(join(top, path)).replace(`${home}/`, '');

test('linked levels start at the parent folder, or higher where instructions or tool configuration exist', () => {
  make('work/acme/web/.git/', 'work/acme/money/.git/');
  const place = (others: string[] = []) =>
    placeBelow(files, top, {
      checkout: join(home, 'work/acme/web'),
      home,
      others: others.map((one) => join(home, one)),
    });
  expect(place()).toBe(join(top, 'acme/web'));
  expect(place(['work/acme/money'])).toBe(join(top, 'acme/web'));
  expect(place(['work/libs/round'])).toBe(join(top, 'work/acme/web'));
  make('work/.npmrc');
  expect(place()).toBe(join(top, 'work/acme/web'));
  // Files in the home folder itself are not configuration of the project.
  make('.npmrc', 'CLAUDE.md');
  expect(place()).toBe(join(top, 'work/acme/web'));
});

test('everything is linked except dot folders, three of which are linked by their contents', () => {
  make(
    'acme/web/.git/',
    'acme/money/.git/',
    'acme/notes.txt',
    'acme/.npmrc',
    'acme/.cargo/config.toml',
    'acme/.secret/x',
  );
  make('acme/.git/HEAD');
  const linked = layOutLevels(files, around('acme/web'));
  expect(below('acme')).toEqual(['.cargo', '.npmrc', 'money', 'notes.txt', 'web']);
  expect(target('acme/money')).toBe('acme/money');
  expect(linked.map(({ link }) => link.slice(top.length + 1)).sort()).toEqual(
    below('acme')
      .slice(0, -1)
      .map((name) => `acme/${name}`),
  );
});

test('claude rules are copied and updated, and other files of .claude are linked', () => {
  make('acme/web/.git/', 'acme/.claude/rules/deep/a.md', 'acme/.claude/CLAUDE.md');
  const levels = around('acme/web');
  layOutLevels(files, levels);
  make('acme/.claude/rules/b.md');
  layOutLevels(files, levels);
  expect(lstatSync(join(top, 'acme/.claude/rules/b.md')).isFile()).toBe(true);
  expect(readFileSync(join(top, 'acme/.claude/rules/deep/a.md'), 'utf8')).toBe('acme/.claude/rules/deep/a.md');
  expect(target('acme/.claude/CLAUDE.md')).toBe('acme/.claude/CLAUDE.md');
});

test('of the home folder itself only repositories are linked', () => {
  make('web/.git/', 'money/.git/', 'Documents/letter.txt', '.config/x');
  layOutLevels(files, around('web'));
  expect(below('home')).toEqual(['money', 'web']);
});

test('a linked checkout leads to its replacement, also in subfolders, and later to the original again', () => {
  make('work/acme/web/.git/', 'work/libs/money/.git/', 'work/libs/round/.git/');
  const levels = around('work/acme/web', { 'work/libs/money': '/new/money' });
  layOutLevels(files, levels);
  expect([target('work/libs/money'), target('work/libs/round')]).toEqual(['/new/money', 'work/libs/round']);
  expect(placeInLevels(levels, join(home, 'work/libs/money'))).toBe(join(top, 'work/libs/money'));
  expect(placeInLevels(levels, '/elsewhere/money')).toBeNull();
  layOutLevels(files, { ...levels, places: new Map() });
  expect(target('work/libs')).toBe('work/libs');
});

test('no symlink leads to the folder that contains the workspace', () => {
  top = join(home, 'acme/.data/w/abc');
  make('acme/web/.git/', 'acme/.data/');
  symlinkSync(join(home, 'acme/web'), join(home, 'acme/latest'));
  top = join(home, 'acme/data/w/abc');
  make('acme/data/');
  layOutLevels(files, around('acme/web'));
  expect(below('acme')).toEqual(['latest', 'web']);
});

test('existing files beside a worktree are neither replaced nor removed', () => {
  make('acme/web/.git/', 'acme/money/.git/', 'acme/report.md');
  const levels = around('acme/web');
  writeFileSync(join(top, 'acme/report.md'), 'mine');
  layOutLevels(files, levels);
  expect(readFileSync(join(top, 'acme/report.md'), 'utf8')).toBe('mine');
  files.remove(levels.path);
  expect(removeLevels(files, top)).toEqual([join(top, 'acme/report.md')]);
  expect(below('acme')).toEqual(['report.md']);
  expect(readdirSync(join(home, 'acme/money'))).toEqual(['.git']);
});
