/**
 * S18: every row of docs/specifications.md names tests that exist, or says where we differ, why, and how to
 * comply all the same.
 */
import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { namedTests } from '../../../scripts/claude/contract.ts';
import { packageRoot } from '../../support/cli.ts';
import { hasName, isThere } from '../../support/named-tests.ts';

const document = readFileSync(join(packageRoot, 'docs/specifications.md'), 'utf8');

/** Rows of all tables: what is asked for, what there is, which tests check it. */
function rowsOf(text: string): string[] {
  return text.split('\n').filter((line) => /^\| /.test(line) && line !== '| Requirement | Here | Test |');
}

function problems(text: string): string[] {
  return rowsOf(text).flatMap((row) => {
    const [asked = '', here = '', tests = '', ...more] = row.slice(2, -2).split(' | ');
    const named = namedTests(row);
    const differs = here.startsWith('Differs: ');
    const wrong = [
      ...([asked, here, tests].includes('') || more.length > 0 ? ['is not of three cells'] : []),
      ...(differs && !/ Why: .+ To comply: ./.test(here) ? ['does not say why, or what to do instead'] : []),
      ...(named.length === 0 && !(differs && tests === '–') ? ['names no test'] : []),
      ...named
        .filter((one) => !isThere(one))
        .map(({ file, begin }) => `${file} has no test that begins with: ${begin}`),
    ];
    return wrong.map((what) => `${asked}: ${what}`);
  });
}

test('S18: every row names its test, which exists, or says where and why we differ', () => {
  expect(rowsOf(document).length).toBeGreaterThan(110);
  expect(problems(document)).toEqual([]);
});

test('S18: each specification has a section and a table of its own', () => {
  const sections = document.split('\n## ').slice(1);
  expect(sections.length).toBeGreaterThanOrEqual(5);
  for (const section of sections) expect(section).toContain('\n| Requirement | Here | Test |\n|---|---|---|\n| ');
});

describe('packages, top-level files and commands', () => {
  const card = document.split('\n## Packages, top-level files and commands\n')[1] ?? '';
  /** What stands in backticks in the first two cells of the rows whose first cell has the word. */
  const namedIn = (word: RegExp) =>
    rowsOf(card)
      .map((row) => row.split(' | '))
      .filter(([asked = '']) => word.test(asked))
      .flatMap(([asked = '', here = '']) =>
        [...`${asked} ${here}`.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
      );
  const {
    devDependencies,
    dependencies = {},
    scripts,
  } = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8'));

  test('every package has a row, and no other has', () => {
    const named = namedIn(/^\| (?:Types|The d|Not specified: packages)/).filter((name) => name !== 'graphlib');
    expect(named.toSorted()).toEqual(Object.keys({ ...devDependencies, ...dependencies }).toSorted());
  });
  test('every file and folder of the top level has a row, and no other has', () => {
    const { stdout } = Bun.spawnSync(['git', 'ls-files'], { cwd: packageRoot });
    const there = new Set(
      stdout
        .toString()
        .trim()
        .split('\n')
        .map((path) => path.split('/')[0] ?? ''),
    );
    expect(namedIn(/of the top level/).toSorted()).toEqual([...there].toSorted());
  });
  test('every command has a row, and no other has', () => {
    const named = namedIn(/ommands/).map((name) => name.replace(/^npm (?:run )?/, ''));
    expect(named.toSorted()).toEqual(Object.keys(scripts).toSorted());
  });
});

test('S18: a row that does not is found', () => {
  const there = '`contract: starts from a FIFO`';
  expect(problems(`| It flies | yes | ${there} |`)).toEqual([]);
  expect(problems('| It flies | yes | – |')).toEqual(['It flies: names no test']);
  expect(problems('| It flies | yes | `contract: flies` |')).toEqual([
    'It flies: tests/system/claude/contract.test.ts has no test that begins with: flies',
  ]);
  expect(problems('| It flies | Differs: it swims. Why: water. To comply: wait | – |')).toEqual([]);
  expect(problems('| It flies | Differs: it swims. Why: water | – |')).toEqual([
    'It flies: does not say why, or what to do instead',
  ]);
  expect(problems(`| It flies | ${there} |`)).toHaveLength(1);
});

test('S18: what a test expects or writes is not taken for its name', () => {
  const names = [
    "test('it flies', () => {});",
    "test.each(['it flies'])('%s', f);",
    "longTest(\n  'it flies',\n  f,\n);",
  ];
  for (const source of [...names, "const names = {\n  'it flies': 1,\n};", "test.if(can)('it flies', f);"]) {
    expect([source, hasName(source, 'it flies')]).toEqual([source, true]);
  }
  for (const source of [
    "expect(said).toContain('it flies');",
    "run({ prompt: 'it flies' });",
    "a.write(\n  'it flies',\n);",
  ]) {
    expect([source, hasName(source, 'it flies')]).toEqual([source, false]);
  }
});
