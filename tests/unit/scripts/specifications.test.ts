/**
 * Promises: every requirement in docs/specifications.md names existing tests, or states the difference, its reason and
 * how to comply anyway.
 */
import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { namedTests } from '../../../scripts/claude/contract.ts';
import { checkoutRoot } from '../../support/cli.ts';
import { hasName, isThere } from '../../support/named-tests.ts';

const document = readFileSync(join(checkoutRoot, 'docs/specifications.md'), 'utf8');

interface Requirement {
  readonly asked: string;
  /** What there is instead; null if the requirement holds as written. */
  readonly instead: string | null;
  readonly line: string;
}

/** List items hold as written, table rows do not. */
function requirements(text: string): Requirement[] {
  return text.split('\n').flatMap((line): Requirement[] => {
    if (line.startsWith('- ')) return [{ asked: line.slice(2).split(' → ')[0] ?? '', instead: null, line }];
    if (!line.startsWith('| ') || line === heading) return [];
    const [asked = '', instead = ''] = line.slice(2, -2).split(' | ');
    return [{ asked, instead, line }];
  });
}

const heading = '| Requirement | Instead | Test |';

function problems(text: string): string[] {
  return requirements(text).flatMap(({ asked, instead, line }) => {
    const named = namedTests(line);
    const wrong = [
      ...(instead !== null && line.split(' | ').length !== 3 ? ['is not of three cells'] : []),
      ...(instead !== null && !/^.+\. Why: .+ To comply: ./.test(instead)
        ? ['does not say why, or what to do instead']
        : []),
      ...(named.length === 0 && !(instead !== null && line.endsWith(' | – |')) ? ['names no test'] : []),
      ...named
        .filter((one) => !isThere(one))
        .map(({ file, begin }) => `${file} has no test that begins with: ${begin}`),
    ];
    return wrong.map((what) => `${asked}: ${what}`);
  });
}

test('every requirement names an existing test, or states a difference with its reason', () => {
  expect(requirements(document).length).toBeGreaterThan(110);
  expect(problems(document)).toEqual([]);
});

test('each specification has a section with requirements and differences', () => {
  const sections = document.split('\n## ').slice(1);
  expect(sections.length).toBeGreaterThanOrEqual(5);
  for (const section of sections) {
    expect(section).toContain('\n\n- ');
    expect(section).toContain(`\n${heading}\n|---|---|---|\n| `);
  }
});

describe('packages, top-level files and commands', () => {
  const card = document.split('\n## Packages, top-level files and commands\n')[1] ?? '';
  /** Inline code of the requirements whose text begins with the word. */
  const namedIn = (word: RegExp) =>
    requirements(card)
      .filter(({ asked }) => word.test(asked))
      .flatMap(({ asked, instead }) => [...`${asked} ${instead ?? ''}`.matchAll(/`([^`]+)`/g)])
      .map(([, name = '']) => name);
  const {
    devDependencies,
    dependencies = {},
    scripts,
  } = JSON.parse(readFileSync(join(checkoutRoot, 'package.json'), 'utf8'));

  test('every package is named in the specifications, and no other', () => {
    const named = namedIn(/^(?:Types|The d|Packages)/).filter((name) => name !== 'graphlib');
    expect(named.toSorted()).toEqual(Object.keys({ ...devDependencies, ...dependencies }).toSorted());
  });
  test('every file and folder of the top level is named in the specifications, and no other', () => {
    const { stdout } = Bun.spawnSync(['git', 'ls-files'], { cwd: checkoutRoot });
    const there = new Set(
      stdout
        .toString()
        .trim()
        .split('\n')
        .map((path) => path.split('/')[0] ?? ''),
    );
    expect(namedIn(/of the top level/).toSorted()).toEqual([...there].toSorted());
  });
  test('every npm command is named in the specifications, and no other', () => {
    const named = namedIn(/^Commands/).map((name) => name.replace(/^npm (?:run )?/, ''));
    expect(named.toSorted()).toEqual(Object.keys(scripts).toSorted());
  });
});

test('a requirement without a test or a reason is found', () => {
  const there = '`contract: starts from a FIFO`';
  expect(problems(`- It flies → ${there}`)).toEqual([]);
  expect(problems('- It flies')).toEqual(['It flies: names no test']);
  expect(problems('- It flies → `contract: flies`')).toEqual([
    'It flies: tests/system/claude/contract.test.ts has no test that begins with: flies',
  ]);
  expect(problems('| It flies | it swims. Why: water. To comply: wait | – |')).toEqual([]);
  expect(problems('| It flies | it swims. Why: water | – |')).toEqual([
    'It flies: does not say why, or what to do instead',
  ]);
  expect(problems(`| It flies | ${there} |`)).toContain('It flies: is not of three cells');
});

test('expected values and arguments in a test do not count as its name', () => {
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
