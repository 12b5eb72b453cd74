/**
 * Promises: the rules of docs/architecture.md hold for the whole tree. Every rule is also tested with a violation, so
 * that a rule without effect is noticed.
 */
import { describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { commandsInTexts } from '../support/advice-sites.ts';
import * as rules from '../support/tidy-rules.ts';
import {
  blankComments,
  blankOut,
  functionsOf,
  readImports,
  readSources,
  type SourceFile,
} from '../support/tidy-source.ts';

const root = join(import.meta.dir, '../..');
const code = /\.tsx?$/;
const src = readSources(root, ['src'], code);
const tests = readSources(root, ['tests'], code);
const all = readSources(root, ['src', 'tests', 'bench', 'scripts', 'examples'], code);
const texts = readSources(
  root,
  ['src', 'tests', 'bench', 'scripts', 'examples', 'docs', 'templates', 'bin', '.ci', 'README.md', 'package.json'],
  /(^|\/)[\w.-]+\.(tsx?|md|sh|json|ya?ml|txt)$|^(bin|\.ci)\//,
);

const architecture = texts.find(({ path }) => path === 'docs/architecture.md')?.text ?? '';

/** A tree of the given files, for test violations. */
function tree(files: Readonly<Record<string, string>>): SourceFile[] {
  return Object.entries(files).map(([path, text]) => ({ path, text }));
}

describe('the tree', () => {
  test('the source tree is read', () => {
    expect(src.map(({ path }) => path)).toContain('src/core/state.ts');
    expect(texts.map(({ path }) => path)).toContain('package.json');
  });
  test('imports go in one direction', () => expect(rules.checkLayers(src)).toEqual([]));
  test('front ends use groups only through app', () => expect(rules.checkFrontEnds(src)).toEqual([]));
  test('there are no import cycles', () => expect(rules.checkCircles(src)).toEqual([]));
  test('only src/system makes system calls', () => expect(rules.checkBannedCalls(src)).toEqual([]));
  test('files, functions and lines are short', () => expect(rules.checkSizes(all)).toEqual([]));
  test('no module holds more than 18 % of src', () => expect(rules.checkShares(src)).toEqual([]));
  test('hooks, runners and short commands load few modules', () => expect(rules.checkWeight(src)).toEqual([]));
  test('every file has a header', () => expect(rules.checkHeaders(all)).toEqual([]));
  test('the table of folders matches the imports', () =>
    expect(rules.checkArchitecture(src, architecture)).toEqual([]));
  test('no leftovers remain in the code', () => expect(rules.checkLeftovers(all)).toEqual([]));
  test('every file that docs and comments name exists', () => {
    const tracked = Bun.spawnSync(['git', 'ls-files'], { cwd: root }).stdout.toString().trim().split('\n');
    const there = tracked.filter((path) => existsSync(join(root, path)));
    const ours = texts.filter(({ path }) => !/^(?:examples|templates|docs\/reference)\//.test(path));
    expect(rules.checkNamedFiles(ours, new Set(there))).toEqual([]);
  });
  test('comments, messages and documents use the words of the field', () =>
    expect(rules.checkWords(texts)).toEqual([]));
  test('an exported name is declared once', () => expect(rules.checkNames(all)).toEqual([]));
  test('no file contains a path of one machine', () => expect(rules.checkMachinePaths(texts)).toEqual([]));
  test('suggested commands are data, and no code searches for them in sentences', () => {
    const program = src.find(({ path }) => path === 'src/cli/entries.ts')?.text ?? '';
    expect(commandsInTexts(src, program)).toEqual([]);
  });
  test('no sentence in docs and help texts has more than 40 words', () => {
    const pages = readSources(root, ['docs', 'README.md', 'CHANGELOG.md', 'CONTRIBUTING.md'], /\.md$/);
    expect(pages.map(({ path }) => path)).toContain('docs/reference/commands.md');
    expect(rules.checkSentences(pages)).toEqual([]);
  });
  test('no test is switched off', () => expect(rules.checkTestSwitches(tests)).toEqual([]));
});

test('a wrong table of folders is found', () => {
  const check = (doc: string) => rules.checkArchitecture(src, doc);
  expect(check('').length).toBe(16);
  expect(check(architecture.replace('| `state.ts` |', '| `graph.ts` |'))).toHaveLength(1);
  expect(check(architecture.replace('| core, system, store |', '| core, store |'))).toHaveLength(1);
  expect(check(architecture.replace('| nothing of ours |', '| system |'))).toHaveLength(1);
});

describe('imports', () => {
  const importing = (path: string, line: string) => rules.checkLayers(tree({ [path]: `/** x */\n${line}\n` }));

  test.each([
    ['src/core/a.ts', "import { b } from '../system/b.ts';"],
    ['src/core/a.ts', "import { join } from 'node:path';"],
    ['src/claude/a.ts', "import {\n  b,\n  c,\n} from '../runner/b.ts';"],
    ['src/runner/a.ts', "import { Reporter } from '../view/reporter.ts';"],
    ['src/rehearsal/a.ts', "const b = await import('../cli/b.ts');"],
    ['src/cli/a.ts', "import '../support/preload.ts';"],
    ['src/cli/a.ts', "import { readFileSync } from 'node:fs';"],
    ['src/store/a.ts', "import { dlopen } from 'bun:ffi';"],
    ['src/app/a.ts', "import { b } from '../cli/b.ts';"],
    ['src/helpers/a.ts', ''],
  ])('%s may not contain: %s', (path, line) => expect(importing(path, line)).toHaveLength(1));

  test.each([
    ['src/core/a.ts', "import { b } from './b.ts';"],
    ['src/core/a.ts', "// import { b } from '../system/b.ts';"],
    ['src/system/a.ts', "import { readFileSync } from 'node:fs';"],
    ['src/runner/a.ts', "import type { Reporter } from '../view/reporter.ts';"],
    ['src/cli/commands/a.ts', "import { b } from '../../app/b.ts';"],
    ['src/main.ts', "import { b } from './cli/b.ts';"],
  ])('%s may contain: %s', (path, line) => expect(importing(path, line)).toEqual([]));
});

test('a front end that reads a group by itself is found, and so is an unused exception', () => {
  const told = (path: string, line: string) => rules.checkFrontEnds(tree({ [path]: `/** x */\n${line}\n` }));
  expect(told('src/cli/a.ts', "import { loadGroup } from '../store/group-store.ts';")).toHaveLength(1);
  expect(told('src/cli/commands/a.ts', "const b = await import('../../runner/run-group.ts');")).toHaveLength(1);
  expect(told('src/cli/a.ts', "import { LocalHost } from '../worker/local-host.ts';")).toHaveLength(1);
  expect(told('src/library/a.ts', "import type { GroupWriter } from '../store/group-writer.ts';")).toHaveLength(1);
  expect(told('src/index.ts', "export * from './runner/facts.ts';")).toHaveLength(1);
  expect(told('src/cli/a.ts', "import { submit } from '../app/submit.ts';")).toEqual([]);
  expect(told('src/app/a.ts', "import { loadGroup } from '../store/group-store.ts';")).toEqual([]);
  const ofFrontEnds = src.filter(({ path }) => path.startsWith('src/cli/')).flatMap((file) => readImports(file));
  const unused = rules.frontEndExceptions.filter(({ target }) => !ofFrontEnds.some((one) => target.test(one.target)));
  expect(unused).toEqual([]);
});

describe('import cycles', () => {
  const files = (...lines: readonly (readonly [path: string, line: string])[]) =>
    rules.checkCircles(tree(Object.fromEntries(lines.map(([path, line]) => [path, `/** x */\n${line}\n`]))));

  test('a cycle of two files is found, even for a type alone, and so is a file that imports itself', () => {
    const there = ['src/core/a.ts', "import type { B } from './b.ts';"] as const;
    const back = ['src/core/b.ts', "export { a } from './a.ts';"] as const;
    expect(files(there, back)).toEqual([
      expect.stringMatching(/^src\/core\/a.ts -> src\/core\/b.ts -> src\/core\/a.ts:/),
    ]);
    expect(files(['src/core/a.ts', "const a = await import('./a.ts');"])).toHaveLength(1);
  });

  test('two paths to one file are no cycle', () => {
    const both = "import { b } from './b.ts';\nimport { c } from './c.ts';";
    expect(files(['src/core/a.ts', both], ['src/core/b.ts', "import './c.ts';"], ['src/core/c.ts', ''])).toEqual([]);
  });
});

describe('banned calls', () => {
  const calling = (path: string, line: string) => rules.checkBannedCalls(tree({ [path]: line }));

  test.each([
    ['const at = Date.now();', 'world.clock.now()'],
    ['await Bun.sleep(5);', 'world.clock.after()'],
    ['const id = crypto.randomUUID();', 'world.random'],
    ['await Bun.write(path, text);', 'world.files'],
    ['Bun.spawn([program]);', 'world.processes'],
    ['const home = process.env.HOME;', 'World'],
    ['Bun.serve({ port: 0 });', 'rehearsal/scripted-api.ts'],
    [`const text = \`\${Date.now}\`;\nDate.now();`, 'world.clock.now()'],
    ["const quote = /'/;\nDate.now();\nconst end = '';", 'world.clock.now()'],
  ])('the call in %j is banned', (line, instead) => {
    const problems = calling('src/store/a.ts', line);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(`use ${instead}`);
  });

  test.each([
    '// Date.now() would be wrong here.',
    "const text = 'console.log(1)';",
    'const at = new Date(atMs);',
    'known.set(process.pid, process.identity);',
    'process.onExit(done);',
    '/* process.env\n process.argv */',
  ])('the code %j is allowed', (line) => expect(calling('src/store/a.ts', line)).toEqual([]));

  test('exceptions apply only to the calls that they name', () => {
    expect(calling('src/system/clock.ts', 'Date.now();')).toEqual([]);
    expect(calling('src/cli/a.ts', 'process.stdout.write(text);')).toEqual([]);
    expect(calling('src/cli/a.ts', 'Date.now();')).toHaveLength(1);
  });
});

describe('sizes', () => {
  const body = (lines: number, indent = '  ') => `${indent}step();\n`.repeat(lines);
  const problems = (text: string) => rules.checkSizes(tree({ 'src/a.ts': text }));

  test.each([
    ['a function', `function long(): void {\n${body(69)}}\n`],
    ['a callback', `items.forEach((item) => {\n${body(69)}});\n`],
    ['a test', `test('long', () => {\n${body(69)}});\n`],
  ])('%s of 71 lines', (_, text) => {
    expect(problems(text)).toHaveLength(1);
    expect(problems(text)[0]).toContain('71 lines, split the function');
    expect(problems(text.replace('  step();\n', ''))).toEqual([]);
  });

  test('size rules ignore describe, classes and objects', () => {
    expect(problems(`describe('all', () => {\n${body(100)}});\n`)).toEqual([]);
    expect(problems(`class A {\n${body(100)}}\n`)).toEqual([]);
    expect(problems(`const table = {\n${body(100)}};\n`)).toEqual([]);
  });

  test('braces in strings and comments do not count', () => {
    const short = "function short(): void {\n  // {\n  const a = '{';\n  const b = `{\n}`;\n}\n";
    const text = `${short}\nfunction next(): void {\n}\n`;
    expect(functionsOf(text).map(({ line, length }) => [line, length])).toEqual([
      [1, 6],
      [8, 2],
    ]);
  });

  test('a file of 701 lines of code and a line of 121 characters are found', () => {
    const reasons = '/**\n * Why.\n */\n\n// Because.\n';
    expect(problems(reasons + 'a;\n'.repeat(701))).toEqual(['src/a.ts: 701 lines of code, split the file']);
    expect(problems(reasons + 'a; // so\n'.repeat(700))).toEqual([]);
    expect(problems('a'.repeat(121))).toEqual(['src/a.ts:1: 121 characters, split the line']);
    expect(problems('a'.repeat(120))).toEqual([]);
  });
});

describe('other rules', () => {
  test('a module with most of src is found', () => {
    const files = tree({ 'src/core/a.ts': '', 'src/app/a.ts': '\n'.repeat(9) });
    expect(rules.checkShares(files).map((problem) => problem.split(':')[0])).toEqual(['src/app']);
  });

  test('heavy hooks are found', () => {
    const files = tree({
      'src/hook-main.ts': "import { a } from './a.ts';\nimport type { Z } from 'zod';",
      'src/a.ts': "import { z } from 'zod';",
    });
    expect(rules.checkWeight(files)).toEqual(['src/a.ts: zod is too heavy for src/hook-main.ts']);
  });

  test('missing headers are found', () => {
    expect(rules.checkHeaders(tree({ 'src/a.ts': 'const a = 1;' }))).toHaveLength(1);
    expect(rules.checkHeaders(tree({ 'src/a.ts': '#!/usr/bin/env bun\n/** A. */\n' }))).toEqual([]);
  });

  test('commands in texts are found', () => {
    const program = "['group resume', 'go on']";
    const problems = (line: string) => commandsInTexts(tree({ 'src/core/a.ts': line }), program);
    expect(problems("const next = 'Continue with: group resume.';")).toHaveLength(1);
    expect(problems('text.replaceAll(/\\bgroup resume\\b/g, line)')).toHaveLength(1);
    expect(problems("advise('Continue with', ['group', 'resume', id])")).toEqual([]);
    expect(problems("// As group resume does.\ncommand.description('As group resume.')")).toEqual([]);
  });

  test('leftovers are found', () => {
    const words = [
      ['TO', 'DO'],
      ['FIX', 'ME'],
      ['// a place', 'holder for'],
      ['not imple', 'mented'],
      ['@ts-ign', 'ore'],
    ];
    for (const [start, end] of words) {
      expect(rules.checkLeftovers(tree({ 'src/a.ts': `// ${start}${end} later` }))).toHaveLength(1);
    }
  });

  test('named files that do not exist are found', () => {
    const paths = new Set(['src/core/a.ts', 'docs/b.md']);
    const problems = (path: string, text: string) => rules.checkNamedFiles(tree({ [path]: text }), paths);
    expect(problems('src/core/c.ts', '// See core/a.ts, src/core/a.ts and docs/b.md.')).toEqual([]);
    expect(problems('src/core/c.ts', "const path = 'core/gone.ts';")).toEqual([]);
    expect(problems('src/core/c.ts', '/** See core/gone.ts. */')).toEqual([
      'src/core/c.ts:1: core/gone.ts is not here',
    ]);
    expect(problems('docs/b.md', 'see `docs/gone.md`')).toHaveLength(1);
    expect(problems('docs/b.md', `as ${'DES' + 'IGN'} says`)).toHaveLength(1);
  });

  test('words of the private dialect are found', () => {
    const words = (path: string, line: string) => rules.checkWords(tree({ [path]: line }));
    expect(words('src/core/a.ts', '// Nobody reads it.')).toHaveLength(1);
    expect(words('docs/a.md', 'It is made anew for whoever asks.')).toHaveLength(1);
    expect(words('tests/a.test.ts', "user.run('session', 'add', 'nobody')")).toEqual([]);
  });

  test('a name that is exported twice is found', () => {
    const files = tree({
      'src/a.ts': 'export const a = 1;\nexport const define = 1;',
      'src/b.ts': 'export type a = 1;',
    });
    expect(rules.checkNames(files)).toEqual(['a is declared in src/a.ts and src/b.ts, rename one of them']);
    expect(
      rules.checkNames(tree({ 'src/a.ts': 'export const define = 1;', 'src/b.ts': 'export const define = 2;' })),
    ).toEqual([]);
  });

  test('paths of one machine are found', () => {
    for (const folder of ['work', 'root', 'Users/bob', 'home/bob', 'tmp']) {
      expect(rules.checkMachinePaths(tree({ 'docs/a.md': `see ${['', folder, 'x'].join('/')}/y` }))).toHaveLength(1);
    }
    expect(rules.checkMachinePaths(tree({ 'docs/a.md': 'see ~/work/x and ./root/x' }))).toEqual([]);
  });

  test('long sentences are found', () => {
    const words = (count: number) => Array.from({ length: count }, (_, index) => `word${index}`).join(' ');
    const problems = (text: string, path = 'docs/a.md') => rules.checkSentences(tree({ [path]: text }));
    expect(problems(`${words(41)}.`)).toEqual([
      'docs/a.md:1: split the sentence "word0 word1 word2 word3 word4 word5 …"',
    ]);
    expect(problems(`# Title\n\n- ${words(20)}\n  ${words(21)}.`)).toHaveLength(1);
    expect(problems(`| a | ${words(41)} |`)).toHaveLength(1);
    expect(problems(`\`\`\`text\n${words(41)}\n\`\`\``, 'docs/reference/a.md')).toHaveLength(1);
    for (const text of [
      `${words(40)}. More.`,
      `| ${words(30)} | ${words(30)} |`,
      `- ${words(30)}\n- ${words(30)}`,
      `\`\`\`text\n${words(41)}\n\`\`\``,
      `<!-- ${words(41)} -->`,
      `${words(39)} \`${words(9)}\`.`,
    ]) {
      expect([text, problems(text)]).toEqual([text, []]);
    }
  });

  test('switched off tests are found', () => {
    for (const word of ['only', 'skip', 'todo']) {
      expect(rules.checkTestSwitches(tree({ 'tests/a.test.ts': `test.${word}('x', () => {});` }))).toHaveLength(1);
    }
    expect(rules.checkTestSwitches(tree({ 'tests/a.test.ts': "test.skipIf(!there)('x', () => {});" }))).toEqual([]);
  });
});

describe('reading', () => {
  test('blanked strings and comments keep code and lines', () => {
    const template = '`d $' + '{`e` + "}"} f`';
    const text = `a(/* b\n */ "c", ${template}); // g\nh / i / j;`;
    expect(blankOut(text)).toBe(`a(    \n       ,${' '.repeat(template.length + 1)});     \nh / i / j;`);
    expect(blankComments(text)).toBe(`a(    \n    "c", ${template});     \nh / i / j;`);
  });

  test('imports of every form are read', () => {
    const text = [
      "import a from './a.ts';",
      "import type { B } from '../b.ts';",
      "import {\n  c,\n  type D,\n} from 'c';",
      "import './e.ts';",
      "export { f } from './f.ts';",
      "const g = () => import('./g.ts');",
    ].join('\n');
    const found = readImports({ path: 'src/x/y.ts', text });
    expect(found.map(({ target }) => target)).toEqual([
      'src/x/a.ts',
      'src/b.ts',
      'c',
      'src/x/e.ts',
      'src/x/f.ts',
      'src/x/g.ts',
    ]);
    expect(found.map(({ typeOnly }) => typeOnly)).toEqual([false, true, false, false, false, false]);
  });
});
