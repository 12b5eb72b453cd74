/**
 * Promises: the launcher never runs a compiled program older than its sources. A failed compilation is not an error.
 * The compiled program works wherever the package is, and files of the current folder influence it as little as they do
 * the sources.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { checkoutRoot } from '../../support/cli.ts';

const compiledPlace = 'dist/claude-code-agent';
/** A package with the real launcher and a program that prints which form of it runs. */
let root = '';
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'cca compiled ')));
  cpSync(join(checkoutRoot, 'bin'), join(root, 'bin'), { recursive: true });
  cpSync(join(checkoutRoot, 'scripts', 'build.sh'), join(root, 'scripts', 'build.sh'));
  cpSync(join(checkoutRoot, 'scripts', 'build.ts'), join(root, 'scripts', 'build.ts'));
  write('package.json', '{"version": "1"}');
  write('src/main.ts', "import { form } from './core/form.ts';\nconsole.log(form, ...process.argv.slice(2));\n");
  write('src/core/form.ts', "export const form = import.meta.dir.startsWith('/$bunfs') ? 'compiled' : 'sources';\n");
  symlinkSync(join(checkoutRoot, 'node_modules'), join(root, 'node_modules'));
  write('tools/bun', `#!/bin/sh\nexec '${process.execPath}' "$@"\n`, 0o755);
  withBun = `${join(root, 'tools')}:${process.env.PATH}`;
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(path: string, text: string, mode = 0o644): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text, { mode });
}

function sh(words: readonly string[], env: object = {}) {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...words], {
    cwd: root,
    env: { PATH: process.env.PATH ?? '', HOME: root, ...env },
    stdin: 'ignore',
  });
  return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

/** Where the launcher finds a Bun outside the package. */
let withBun = '';
const run = (env: object = {}) => sh([join(root, 'bin', 'claude-code-agent'), 'a b', 'c'], env).stdout;
const build = (env: object = {}) => sh(['sh', join(root, 'scripts', 'build.sh')], env);
const changedMs = (path: string) => lstatSync(join(root, path)).ctimeMs;

/** Stands in for the compiled program: slightly newer than the newest source. */
function putCompiled(): number {
  // A separate folder for packages, because this package's files have other times.
  rmSync(join(root, 'node_modules'), { recursive: true });
  write('node_modules/.package-lock.json', '{}');
  write(compiledPlace, '#!/bin/sh\necho compiled "$@" "$BUN_BE_BUN"\n', 0o755);
  const paths = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) => !path.startsWith('dist'));
  // A whole millisecond, the finest that can be set: nothing may be newer by a fraction.
  const at = new Date(Math.floor(Math.max(...paths.map(changedMs))) + 1);
  utimesSync(join(root, compiledPlace), at, at);
  later(at.getTime(), compiledPlace, () => chmodSync(join(root, compiledPlace), 0o755));
  return at.getTime();
}

/** Repeats `action` until the file system's clock shows that it came later. */
function later(thanMs: number, path: string, action: () => void): void {
  do action();
  while (changedMs(path) <= thanMs);
}

describe('the launcher', () => {
  test('runs the compiled program with the given arguments, and not as Bun', () => {
    putCompiled();
    expect(run()).toBe('compiled a b c \n');
    expect(run({ BUN_BE_BUN: '1' })).toBe('compiled a b c \n');
  });

  test.each([
    ['a changed source', 'src/core/form.ts', (path: string) => write(path, "export const form = 'new';")],
    ['a new source', 'src/core/new.ts', (path: string) => write(path, '')],
    [
      'a removed source',
      'src/core',
      () => {
        write('src/core/old.ts', '');
        rmSync(join(root, 'src/core/old.ts'));
      },
    ],
    ['a source added with an old time', 'src/main.ts', (path: string) => utimesSync(join(root, path), 1, 1)],
    [
      'a source with an old time moved into the tree',
      'src/main.ts',
      (path: string) => {
        renameSync(join(root, path), join(root, 'elsewhere'));
        renameSync(join(root, 'elsewhere'), join(root, path));
      },
    ],
    ['another version', 'package.json', (path: string) => write(path, '{"version": "2"}')],
    ['other packages', 'node_modules/.package-lock.json', (path: string) => write(path, '{"b": 1}')],
    ['a changed build script', 'scripts/build.ts', (path: string) => write(path, '')],
  ])('runs the sources after %s', (_, path, change) => {
    const since = putCompiled();
    later(since, path, () => change(path));
    expect(sh(['sh', '-c', `. bin/find-compiled.sh; find_compiled "$PWD" || echo older`]).stdout).toBe('older\n');
    expect(run({ PATH: withBun })).toMatch(/^(?:sources|new)/);
  });

  test('does not exit with 2 when a part is missing, because a hook would then block a compaction', () => {
    rmSync(join(root, 'bin', 'find-compiled.sh'));
    expect(run({ PATH: withBun })).toBe('sources a b c\n');
    rmSync(join(root, 'bin', 'find-bun.sh'));
    expect(sh([join(root, 'bin', 'claude-code-agent'), 'hook', 'cpm', 'pre-compact']).code).toBe(127);
  });

  test('runs the published program where there are no sources, and a release through its symlink', () => {
    putCompiled();
    rmSync(join(root, 'src'), { recursive: true });
    write('dist/program/main.js', "console.log('published', ...process.argv.slice(2));\n");
    expect(run({ PATH: withBun })).toBe('published a b c\n');
    // A release has no published files beside it.
    rmSync(join(root, 'dist/program'), { recursive: true });
    renameSync(join(root, compiledPlace), join(root, 'released'));
    symlinkSync(join(root, 'released'), join(root, compiledPlace));
    expect(run()).toBe('compiled a b c \n');
  });

  test('names the next step when Bun is missing', () => {
    const tools = join(root, 'only');
    mkdirSync(tools);
    for (const tool of ['sh', 'uname', 'find']) symlinkSync(Bun.which(tool) ?? '', join(tools, tool));
    rmSync(join(root, 'node_modules'));
    const { code, stderr } = sh([join(root, 'bin', 'claude-code-agent'), 'ls'], { PATH: tools });
    expect({ code, stderr }).toMatchObject({ code: 127, stderr: expect.stringContaining('https://bun.sh') });
  });

  test('runs the sources when nothing is compiled, and where find(1) has no -cnewer', () => {
    putCompiled();
    const bun = { CLAUDE_CODE_AGENT_BUN: process.execPath };
    expect(run(bun)).toBe('sources a b c\n');
    write('tools/find', '#!/bin/sh\necho "unknown predicate" >&2\nexit 1\n', 0o755);
    expect(run({ PATH: withBun })).toBe('sources a b c\n');
    rmSync(join(root, 'dist'), { recursive: true });
    expect(run(bun)).toBe('sources a b c\n');
  });
});

describe('build.sh', () => {
  test('leaves one file that runs, and does nothing until a source changes', () => {
    expect(build()).toEqual({ code: 0, stdout: '', stderr: '' });
    expect(readdirSync(join(root, 'dist'))).toEqual(['claude-code-agent']);
    expect(run()).toBe('compiled a b c\n');
    const { ino, mtimeMs } = statSync(join(root, compiledPlace));
    build();
    expect(statSync(join(root, compiledPlace)).ino).toBe(ino);
    later(mtimeMs, 'src/core/form.ts', () => write('src/core/form.ts', "export const form = 'changed';"));
    expect(run()).toBe('changed a b c\n');
    build();
    expect(statSync(join(root, compiledPlace)).ino).not.toBe(ino);
    expect(run()).toBe('changed a b c\n');
  });

  test('reports a failed compilation, keeps the earlier program and does not fail the installation', () => {
    build();
    const { ino, mtimeMs } = statSync(join(root, compiledPlace));
    later(mtimeMs, 'src/core/form.ts', () => write('src/core/form.ts', 'export const form = ;'));
    const { code, stderr } = build();
    expect(code).toBe(0);
    expect(stderr).toMatch(/^The program was not compiled and runs from its sources, .*form\.ts/s);
    expect(readdirSync(join(root, 'dist'))).toEqual(['claude-code-agent']);
    expect(statSync(join(root, compiledPlace)).ino).toBe(ino);
    expect(sh(['sh', '-c', '. bin/find-compiled.sh; find_compiled "$PWD" || echo older']).stdout).toBe('older\n');
  });
});

const real = join(checkoutRoot, compiledPlace);
const finder = join(checkoutRoot, 'bin', 'find-compiled.sh');
const isCurrent = Bun.spawnSync(['sh', '-c', '. "$1"; find_compiled "$2"', 'sh', finder, checkoutRoot]).exitCode === 0;

describe.skipIf(!isCurrent)('the compiled program', () => {
  test('finds its templates next to itself, wherever that is', () => {
    cpSync(real, join(root, compiledPlace));
    write('templates/prompts/only-here.md', '---\ndescription: found\n---\nHello\n');
    const { code, stdout } = sh([join(root, compiledPlace), 'template', 'list', '--json']);
    expect(code).toBe(0);
    expect(stdout).toContain('only-here');
    expect(stdout).not.toContain('code-review');
  });

  test('ignores files of the current folder', () => {
    write('bunfig.toml', 'preload = ["./evil.ts"]\n');
    write('evil.ts', "console.log('EVIL');\n");
    write('.env', 'CLAUDE_CODE_AGENT_HOME=relative\n');
    write('tsconfig.json', '{"compilerOptions": {"paths": {"commander": ["./evil.ts"]}}}');
    write('package.json', '{"imports": {"#a": "./evil.ts"}}');
    const listed = sh([real, 'group', 'list']);
    expect(listed).toMatchObject({ code: 0, stdout: '' });
    expect(listed.stderr).toStartWith('There are no groups.');
  });

  test('works as a hook', () => {
    write('docs/plans/.cpm-progress-11.md', '**Skill**: cpm:do\n\nBANANAS\n');
    const input = Buffer.from('{"session_id":"11","source":"startup"}');
    const { exitCode, stdout } = Bun.spawnSync([real, 'hook', 'cpm', 'session-start'], {
      cwd: root,
      env: { CLAUDE_PROJECT_DIR: root, HOME: root },
      stdin: input,
    });
    expect({ exitCode, isLoaded: stdout.toString().includes('BANANAS') }).toEqual({ exitCode: 0, isLoaded: true });
  });
});
