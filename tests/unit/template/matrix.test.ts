/**
 * Promises: a matrix becomes the same sessions in the same order wherever it is expanded; patterns find folders only,
 * never hidden ones or links that lead out, and give up in time. Not covered: folders that change while they are read.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { chmodSync, mkdirSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { globOf, isPattern, matchFolders } from '../../../src/template/workflow/glob.ts';
import { packageRoot } from '../../support/cli.ts';
import { fc } from '../../support/property.ts';
import { TemplateFolder, world } from '../../support/template/rig.ts';
import { WorkflowFolder } from '../../support/template/workflow-rig.ts';
import { unprivileged } from '../../support/unprivileged.ts';

let folder: WorkflowFolder;
beforeAll(() => {
  folder = new WorkflowFolder();
});
afterAll(() => folder.remove());

const projectsOf = (projects: string) =>
  folder.sessions(`  a:\n    prompt: "{{matrix.name}}"\n    matrix: { projects: ${projects} }`);
const namesOf = (projects: string) => projectsOf(projects).map(({ definition }) => definition.prompt);
const faultsOf = (projects: string) => folder.faults(`  a:\n    prompt: hi\n    matrix: { projects: ${projects} }`);

describe('projects', () => {
  test('by pattern, sorted, without hidden ones and files', () => {
    folder.write('services/readme.txt', 'x');
    expect(namesOf('"../services/*"')).toEqual(['api', 'core', 'web']);
    expect(namesOf('{ glob: "../services/*" }')).toEqual(['api', 'core', 'web']);
    expect(namesOf('"../services/.h*"')).toEqual(['.hidden']);
    expect(namesOf('"../services/???"')).toEqual(['api', 'web']);
    expect(namesOf('"../services/{web,api,none}"')).toEqual(['api', 'web']);
    expect(namesOf('"../{services/{api,web},nowhere/*}"')).toEqual(['api', 'web']);
  });

  test('by path and by list, in the order of the list, each once', () => {
    expect(namesOf('../services/web')).toEqual(['web']);
    expect(namesOf('[../services/web, "../services/*", ../services/web/]')).toEqual(['web', 'api', 'core']);
    expect(namesOf('{ glob: ["../services/w*", "../services/a*"] }')).toEqual(['web', 'api']);
  });

  test('by file, with comments, patterns and Windows line ends', () => {
    folder.write('flow/list.txt', '\ufeff# ours\r\n../services/web\r\n\r\n  ../services/a*  \r\n');
    expect(namesOf('{ file: list.txt }')).toEqual(['web', 'api']);
  });

  test('by the home folder', () => {
    folder.write('home/mine/x', '');
    expect(projectsOf('"~/mine"')[0]?.definition.projectPath).toBe(folder.at('home/mine'));
    expect(projectsOf('"~/m*"')[0]?.definition.projectPath).toBe(folder.at('home/mine'));
  });

  test('in a file that names wrong ones, at its lines', () => {
    folder.write('flow/bad.txt', '../services/web\n../services/nope\n\n../none/*\n');
    const loaded = folder.load('version: 1\nsessions: { a: { prompt: hi, matrix: { projects: { file: bad.txt } } } }');
    expect(loaded.ok ? [] : loaded.problems.map(({ file, line }) => `${file}:${line}`)).toEqual([
      `${folder.at('flow/bad.txt')}:2`,
      `${folder.at('flow/bad.txt')}:4`,
    ]);
  });

  test('that are none', () => {
    folder.write('flow/empty.txt', '# nothing\n');
    const cases: readonly (readonly [string, RegExp])[] = [
      ['"../none/*"', /^5:25 the pattern "..\/none\/\*" fits no folder, seen from .*flow$/],
      ['../services/nope', /^5:25 the project .*services\/nope does not exist$/],
      ['../services/readme.txt', /^5:25 the project .*readme.txt is not a folder$/],
      ['{ file: none.txt }', /^5:33 the list "none.txt" does not exist$/],
      ['{ file: empty.txt }', /^5:33 the list "empty.txt" names no project$/],
      ['{ file: .. }', /^5:33 the list ".." is a folder$/],
      ['"../*/../x"', /has ".." after a part with/],
      ['""', /is empty/],
      ['"~other/*"', /only your own home is known/],
      ['"a\\0*"', /NUL/],
    ];
    for (const [projects, message] of cases) expect(faultsOf(projects)).toEqual([expect.stringMatching(message)]);
  });

  test('their folder may be another one than that of the session', () => {
    const [session] = folder.sessions(
      '  a:\n    project: ..\n    prompt: "{{matrix.project}} {{project.path}}"\n    matrix: { ' +
        'projects: ../services/api }',
    );
    expect(session?.definition.prompt).toBe(`${folder.at('services/api')} ${folder.path}`);
  });

  test('a folder whose name looks like a pattern is found by its name', () => {
    mkdirSync(folder.at('odd/a{b,c}'), { recursive: true });
    expect(namesOf('"../odd/a{b,c}"')).toEqual(['a{b,c}']);
  });
});

describe('names of sessions', () => {
  const keysOf = (text: string) => folder.sessions(text).map(({ key }) => key);

  test('are made of the values and stay unique', () => {
    expect(keysOf('  a: { project: .., prompt: hi, matrix: { x: [v 1, V-1, "v_1", "日本", "??"] } }')).toEqual([
      'a-v-1',
      'a-v-1-2',
      'a-v-1-3',
      'a-2',
      'a-3',
    ]);
  });

  test('leave the names that the file gives to others', () => {
    const text = '  a: { project: .., prompt: hi, matrix: { x: [b, c] } }\n  a-b: { project: .., prompt: hi }';
    expect(keysOf(text)).toEqual(['a-b-2', 'a-c', 'a-b']);
  });

  test('have at most 64 characters', () => {
    const long = 'x'.repeat(80);
    const keys = keysOf(`  ${'k'.repeat(60)}: { project: .., prompt: hi, matrix: { x: [${long}1, ${long}2] } }`);
    expect(keys).toEqual([`${'k'.repeat(60)}-xxx`, `${'k'.repeat(60)}-x-2`.slice(0, 64)]);
    expect(keys.every((key) => key.length <= 64)).toBe(true);
  });

  test('the last key changes fastest', () => {
    expect(keysOf('  a: { project: .., prompt: hi, matrix: { x: [1, 2], y: [true, b] } }')).toEqual([
      ...['a-1-true', 'a-1-b', 'a-2-true', 'a-2-b'],
    ]);
  });

  test('twice the same value', () => {
    expect(folder.faults('  a: { project: .., prompt: hi, matrix: { x: [1, "1", " "] } }')).toEqual([
      '3:50 "1" is there twice',
      '3:55 the value is blank',
    ]);
  });
});

/** What somebody else runs to look through a closed folder. */
const matchClosed = `
  import { matchFolders } from ${JSON.stringify(join(packageRoot, 'src/template/workflow/glob.ts'))};
  import { createRealWorld } from ${JSON.stringify(join(packageRoot, 'src/system/real-world.ts'))};
  const start = (path) => ({ ok: true, path: process.argv[1] + '/' + path });
  console.log(matchFolders(createRealWorld(), 'closed/*', start, { folders: 0, entries: 0 }).trouble);`;

describe('patterns', () => {
  let temp: TemplateFolder;
  beforeAll(() => {
    temp = new TemplateFolder();
    for (const path of ['a/b/c', 'a/.git/x', 'd/c', 'd/e']) mkdirSync(temp.at(path), { recursive: true });
    temp.write('d/file', '');
    symlinkSync(temp.at('a'), temp.at('d/inside'));
    symlinkSync(temp.path, temp.at('d/loop'));
    symlinkSync('/', temp.at('d/outside'));
    symlinkSync(temp.at('nowhere'), temp.at('d/dead'));
    symlinkSync(temp.at('d/self'), temp.at('d/self'));
  });
  afterAll(() => temp.remove());

  const match = (pattern: string) => {
    const start = (path: string) => ({ ok: true as const, path: resolve(temp.path, path) });
    const matched = matchFolders(world, pattern, start, { folders: 0, entries: 0 });
    return matched.ok ? matched.folders.map((path) => path.slice(temp.path.length + 1)) : matched.trouble;
  };

  test('any depth', () => {
    expect(match('**')).toEqual(['a', 'a/b', 'a/b/c', 'd', 'd/c', 'd/e', 'd/inside']);
    expect(match('**/c')).toEqual(['a/b/c', 'd/c']);
    expect(match('a/**/c')).toEqual(['a/b/c']);
    expect(match('**/**/c')).toEqual(['a/b/c', 'd/c']);
    expect(match('a/**')).toEqual(['a/b', 'a/b/c']);
    expect(match('**/b/*')).toEqual(['a/b/c']);
  });

  test('links count while they stay below the beginning of the pattern, and never lead in circles', () => {
    expect(match('*/inside')).toEqual(['d/inside']);
    expect(match('d/*')).toEqual(['d/c', 'd/e']);
    expect(match('?/*')).toEqual(['a/b', 'd/c', 'd/e', 'd/inside']);
    expect(match('*/outside/*')).toEqual([]);
  });

  test('hidden folders only where the dot is written', () => {
    expect(match('a/*')).toEqual(['a/b']);
    expect(match('a/.*')).toEqual(['a/.git']);
    expect(match('*/.git/*')).toEqual(['a/.git/x']);
  });

  test('dots and slashes that say nothing', () => {
    expect(match('./a/./*/')).toEqual(['a/b']);
    expect(match('a//*')).toEqual(['a/b']);
  });

  test('too long a pattern, or too many folders', () => {
    expect(match('x'.repeat(5_000))).toBe('is longer than 4096 characters');
    const start = (path: string) => ({ ok: true as const, path: resolve(temp.path, path) });
    const almost = { folders: 9_999, entries: 0 };
    expect(matchFolders(world, '**', start, almost)).toEqual({
      ok: false,
      trouble: 'looks through more than 10000 folders',
    });
  });

  test.skipIf(!unprivileged.isPossible)('a folder that is closed', () => {
    mkdirSync(temp.at('closed/x'), { recursive: true });
    chmodSync(temp.at('closed'), 0);
    chmodSync(temp.path, 0o755);
    const matched = Bun.spawnSync([...unprivileged.prefix, process.execPath, '-e', matchClosed, temp.path], {
      env: { PATH: process.env.PATH ?? '' },
    });
    expect(matched.stdout.toString()).toBe('cannot be looked through (EACCES)\n');
    chmodSync(temp.at('closed'), 0o700);
  });

  test('a star takes any letters, also none, and never long', () => {
    expect(globOf('a*b').match('ab')).toBe(true);
    expect(globOf('a*b*').match('a-b')).toBe(true);
    expect(globOf('a*b').match('abc')).toBe(false);
    expect(globOf('?').match('😀')).toBe(true);
    expect(globOf('*a'.repeat(60)).match(`${'a'.repeat(255)}b`)).toBe(false);
  });

  test('a segment fits as the regular expression that it stands for', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b', '*', '?', '.', '['), maxLength: 8 });
    const names = fc.string({ unit: fc.constantFrom('a', 'b', '.', '['), maxLength: 8 });
    fc.assert(
      fc.property(letters, names, (pattern, name) => {
        const source = pattern.replace(/[.[]/g, '\\$&').replaceAll('?', '.').replace(/\*+/g, '.*');
        expect(globOf(pattern).match(name)).toBe(new RegExp(`^${source}$`).test(name));
      }),
    );
  });

  test('braces', () => {
    expect(match('{a/{b,none},d/c}')).toEqual(['a/b', 'd/c']);
    expect(match('{a,d}/**/{c,e}')).toEqual(['a/b/c', 'd/c', 'd/e']);
    expect(match('{.git,a}/{b,.git}')).toEqual(['a/.git', 'a/b']);
    expect(match('{a,b}'.repeat(20))).toEqual([]);
    expect(isPattern('{a}')).toBe(false);
    expect(isPattern(`${'{'.repeat(4_000)}`)).toBe(false);
  });

  test('what is found does not depend on where the pattern begins', () => {
    const pattern = fc
      .array(fc.constantFrom('*', '**', 'a', 'd', 'c', '?', '.*', 'b'), { minLength: 1, maxLength: 4 })
      .map((parts) => parts.join('/'));
    fc.assert(
      fc.property(pattern, (text) => {
        expect(match(join(temp.path, text))).toEqual(match(text));
      }),
    );
  });
});
