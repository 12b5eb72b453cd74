/**
 * Promises: a matrix expands to the same sessions in the same order everywhere. Patterns find only folders, never
 * hidden ones or symlinks that lead out. Folders that change meanwhile are not tested.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdirSync, symlinkSync } from 'node:fs';
import { TemplateFixture } from '../../support/template/rig.ts';
import { WorkflowFolder } from '../../support/template/workflow-rig.ts';

let folder: WorkflowFolder;
beforeAll(() => {
  folder = new WorkflowFolder();
});
afterAll(() => folder.remove());

const projectsOf = (projects: string) =>
  folder.sessions(`  a:\n    prompt: "{{matrix.name}}"\n    matrix: { projects: ${projects} }`);
const namesOf = (projects: string) => projectsOf(projects).map(({ definition }) => definition.prompt);
const faultsOf = (projects: string) => folder.faults(`  a:\n    prompt: hi\n    matrix: { projects: ${projects} }`);

describe('projects of a matrix', () => {
  test('matrix projects from a pattern are sorted, without hidden folders and files', () => {
    folder.write('services/readme.txt', 'x');
    expect(namesOf('"../services/*"')).toEqual(['api', 'core', 'web']);
    expect(namesOf('{ glob: "../services/*" }')).toEqual(['api', 'core', 'web']);
    expect(namesOf('"../services/.h*"')).toEqual(['.hidden']);
    expect(namesOf('"../services/???"')).toEqual(['api', 'web']);
    expect(namesOf('"../services/{web,api,none}"')).toEqual(['api', 'web']);
  });

  test('matrix projects from paths and lists keep their order, each once', () => {
    expect(namesOf('../services/web')).toEqual(['web']);
    expect(namesOf('[../services/web, "../services/*", ../services/web/]')).toEqual(['web', 'api', 'core']);
    expect(namesOf('{ glob: ["../services/w*", "../services/a*"] }')).toEqual(['web', 'api']);
  });

  test('a matrix file may have comments, patterns and Windows line ends', () => {
    folder.write('flow/list.txt', '\ufeff# ours\r\n../services/web\r\n\r\n  ../services/a*  \r\n');
    expect(namesOf('{ file: list.txt }')).toEqual(['web', 'api']);
  });

  test('wrong projects in a matrix file are reported with their lines', () => {
    folder.write('flow/bad.txt', '../services/web\n../services/nope\n\n../none/*\n');
    const loaded = folder.load('version: 1\nsessions: { a: { prompt: hi, matrix: { projects: { file: bad.txt } } } }');
    expect(loaded.ok ? [] : loaded.problems.map(({ file, line }) => `${file}:${line}`)).toEqual([
      `${folder.at('flow/bad.txt')}:2`,
      `${folder.at('flow/bad.txt')}:4`,
    ]);
  });

  test('matrix projects that do not exist are refused', () => {
    folder.write('flow/empty.txt', '# nothing\n');
    const cases: readonly (readonly [string, RegExp])[] = [
      ['"../none/*"', /^5:25 the pattern "..\/none\/\*" matches no folder, searched from .*flow$/],
      ['../services/nope', /^5:25 the project .*services\/nope does not exist$/],
      ['../services/readme.txt', /^5:25 the project .*readme.txt is not a folder$/],
      ['{ file: none.txt }', /^5:33 the list "none.txt" does not exist$/],
      ['{ file: empty.txt }', /^5:33 the list "empty.txt" names no project$/],
      ['{ file: .. }', /^5:33 the list ".." is a folder$/],
      ['""', /is empty/],
      ['"~other/*"', /only your own home folder is supported/],
    ];
    for (const [projects, message] of cases) expect(faultsOf(projects)).toEqual([expect.stringMatching(message)]);
  });

  test('a folder whose name looks like a pattern is found by its name', () => {
    mkdirSync(folder.at('odd/a{b,c}'), { recursive: true });
    expect(namesOf('"../odd/a{b,c}"')).toEqual(['a{b,c}']);
  });
});

describe('session names of a matrix', () => {
  const keysOf = (text: string) => folder.sessions(text).map(({ key }) => key);

  test('matrix session names are made of the values and are unique', () => {
    expect(keysOf('  a: { project: .., prompt: hi, matrix: { x: [v 1, V-1, "v_1", "日本", "??"] } }')).toEqual([
      'a-v-1',
      'a-v-1-2',
      'a-v-1-3',
      'a-2',
      'a-3',
    ]);
  });

  test('matrix session names leave other names of the file free', () => {
    const text = '  a: { project: .., prompt: hi, matrix: { x: [b, c] } }\n  a-b: { project: .., prompt: hi }';
    expect(keysOf(text)).toEqual(['a-b-2', 'a-c', 'a-b']);
  });

  test('matrix session names have at most 64 characters', () => {
    const long = 'x'.repeat(80);
    const keys = keysOf(`  ${'k'.repeat(60)}: { project: .., prompt: hi, matrix: { x: [${long}1, ${long}2] } }`);
    expect(keys).toEqual([`${'k'.repeat(60)}-xxx`, `${'k'.repeat(60)}-x-2`.slice(0, 64)]);
    expect(keys.every((key) => key.length <= 64)).toBe(true);
  });

  test('the last matrix key changes fastest', () => {
    expect(keysOf('  a: { project: .., prompt: hi, matrix: { x: [1, 2], y: [true, b] } }')).toEqual([
      ...['a-1-true', 'a-1-b', 'a-2-true', 'a-2-b'],
    ]);
  });

  test('a repeated matrix value is refused', () => {
    expect(folder.faults('  a: { project: .., prompt: hi, matrix: { x: [1, "1", " "] } }')).toEqual([
      '3:50 "1" appears twice',
      '3:55 the value is blank',
    ]);
  });
});

describe('folder patterns', () => {
  let temp: TemplateFixture;
  beforeAll(() => {
    temp = new TemplateFixture();
    for (const path of ['a/b/c', 'a/.git/x', 'd/c', 'd/e']) mkdirSync(temp.at(path), { recursive: true });
    temp.write('d/file', '');
    symlinkSync(temp.at('a'), temp.at('d/inside'));
    symlinkSync(temp.path, temp.at('d/loop'));
    symlinkSync('/', temp.at('d/outside'));
    symlinkSync(temp.at('nowhere'), temp.at('d/dead'));
  });
  afterAll(() => temp.remove());

  test.each([
    // Symlinks are followed below the start of the pattern, and never in circles.
    ['**', ['a', 'a/b', 'a/b/c', 'd', 'd/c', 'd/e', 'd/inside']],
    ['**/c', ['a/b/c', 'd/c']],
    ['**/b/*', ['a/b/c']],
    ['d/*', ['d/c', 'd/e']],
    ['*/inside', ['d/inside']],
    ['*/outside/*', []],
    // Hidden folders match only where the dot is written.
    ['a/*', ['a/b']],
    ['a/.*', ['a/.git']],
    ['*/.git/*', ['a/.git/x']],
    ['a//*', ['a/b']],
    ['{a,d}/**/{c,e}', ['a/b/c', 'd/c', 'd/e']],
  ] as const)('the folder pattern %s finds its folders', (pattern, found) => {
    const text = `"${temp.at(pattern)}"`;
    const names = found.length === 0 ? [] : projectsOf(text).map(({ definition }) => definition.projectPath);
    const real = found.map((path) => (path === 'd/inside' ? 'a' : path));
    expect(names).toEqual([...new Set(real)].map((path) => temp.at(path)));
    if (found.length === 0) expect(faultsOf(text)).toEqual([expect.stringContaining('matches no folder')]);
  });
});
