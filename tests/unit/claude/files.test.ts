/**
 * Promises: the files of a worker are right: its config folder, the claude program, and which project settings are
 * refused. Uses the real file system.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type ConfigDirInput, prepareConfigDir } from '../../../src/claude/launch/config-dir.ts';
import { gitGuidance } from '../../../src/claude/launch/instructions.ts';
import { checkLogin } from '../../../src/claude/launch/login.ts';
import { findClaude, forRehearsal } from '../../../src/claude/launch/program.ts';
import { checkFound, findSettings, modelOfSettings } from '../../../src/claude/launch/project-settings.ts';
import { groupPathsIn, sessionPaths } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';

const world = createRealWorld();
let folder = '';
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'cca-files-')));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, content = ''): string {
  const full = join(folder, path);
  mkdirSync(dirname(full), { recursive: true });
  writeFileSync(full, content);
  return full;
}

const group = { name: 'Upgrade', description: 'Bring all services to version 2.' };
const session = { name: 'api', description: 'The API', projectPath: '/somewhere/api', task: 'Upgrade it.' };

describe('prepareConfigDir', () => {
  const input = (): ConfigDirInput => ({
    paths: sessionPaths(groupPathsIn(folder), '001-7f9d6f34-0f3c-4a39-8b30-5e4b8a0c1d2e'),
    env: { CLAUDE_CODE_AGENT_ATTEMPT: 'A1' },
    instructions: { group, session, dependencies: [], shared: [], own: true, rules: [], git: null },
    settings: {
      base: { permissions: { deny: ['WebFetch'] } },
      hooks: [{ event: 'SessionStart', program: { program: '/bun', args: ['x'] } }],
    },
    files: [],
    mcp: null,
  });

  test('prepareConfigDir writes three files readable by the owner only and replaces earlier ones', () => {
    const { paths } = input();
    mkdirSync(paths.config, { recursive: true });
    writeFileSync(join(paths.config, 'settings.json'), '{"disableAllHooks":true}');
    expect(prepareConfigDir(world, input())).toEqual({ ok: true, value: undefined });
    const files = [join(paths.config, 'CLAUDE.md'), join(paths.config, 'settings.json'), paths.workerSettings];
    for (const file of files) expect(statSync(file).mode & 0o777).toBe(0o600);
    const [text, config, settings] = files.map((file) => readFileSync(file, 'utf8')) as [string, string, string];
    expect(text).toContain('Upgrade it.');
    expect(JSON.parse(config)).toMatchObject({ permissions: { deny: ['WebFetch'] }, hooks: { SessionStart: [{}] } });
    expect(JSON.parse(config).disableAllHooks).toBeUndefined();
    expect(JSON.parse(settings)).toMatchObject({
      env: { CLAUDE_CODE_AGENT_ATTEMPT: 'A1' },
      permissions: { deny: ['WebFetch'] },
    });
  });

  test('claude’s own Git instructions are off only where the program gives its own', () => {
    const written = (more: Partial<ConfigDirInput['instructions']>, base = {}) => {
      const { paths, instructions, ...rest } = input();
      mkdirSync(paths.config, { recursive: true });
      const all = { ...rest, paths, instructions: { ...instructions, ...more }, settings: { base } };
      expect(prepareConfigDir(world, all)).toMatchObject({ ok: true });
      return JSON.parse(readFileSync(join(paths.config, 'settings.json'), 'utf8'));
    };
    const git = gitGuidance({});
    expect(written({ git })).toEqual({ includeGitInstructions: false });
    expect(written({ git }, { includeGitInstructions: true })).toEqual({ includeGitInstructions: true });
    expect(written({ git: null })).toEqual({});
    expect(written({ git, own: false })).toEqual({});
  });

  test('without generateClaudeMd there is no CLAUDE.md, and text of templates goes into the system prompt', () => {
    const { paths, instructions, ...rest } = input();
    const file = join(paths.config, 'CLAUDE.md');
    mkdirSync(paths.config, { recursive: true });
    writeFileSync(file, 'of an earlier attempt');
    const said = { ...instructions, shared: ['Use tabs.', ' '], rules: ['Be brief.'], own: false };
    expect(prepareConfigDir(world, { ...rest, paths, instructions: said })).toMatchObject({ ok: true });
    expect(existsSync(file)).toBe(false);
    expect(readFileSync(paths.systemPrompt, 'utf8')).toBe('Be brief.\n\nUse tabs.\n');
  });
});

describe('findClaude', () => {
  const packageRoot = () => join(folder, 'app');
  const pin = () => write('app/node_modules/@anthropic-ai/claude-code-linux-x64/claude');

  test('findClaude prefers the configured path, then PATH, then the home folder, then the package’s own', () => {
    const pinned = pin();
    const onPath = write('bin/claude');
    const chosen = write('mine/claude');
    const PATH = `:relative:${join(folder, 'nothing')}:${join(folder, 'bin')}`;
    const find = (caller: Record<string, string>, preferPinned = false) =>
      findClaude(world, caller, { packageRoot: packageRoot(), preferPinned });
    const found = (program: string, origin: string) => ({ ok: true, value: { program, origin } });
    expect<unknown>(find({ PATH })).toEqual(found(onPath, 'PATH'));
    expect<unknown>(find({ PATH }, true)).toEqual(found(pinned, 'package'));
    expect<unknown>(find({})).toEqual(found(pinned, 'package'));
    const atHome = write('home/.local/bin/claude');
    const HOME = join(folder, 'home');
    expect<unknown>(find({ PATH, HOME })).toEqual(found(onPath, 'PATH'));
    expect<unknown>(find({ PATH: '/nowhere', HOME })).toEqual(found(atHome, 'home folder'));
    expect<unknown>(find({ HOME }, true)).toEqual(found(pinned, 'package'));
    const CLAUDE_CODE_AGENT_CLAUDE = chosen;
    expect<unknown>(find({ PATH, CLAUDE_CODE_AGENT_CLAUDE }, true)).toEqual(found(chosen, 'CLAUDE_CODE_AGENT_CLAUDE'));
  });

  test('findClaude reports the install command when claude is missing', () => {
    const found = findClaude(world, {}, { packageRoot: packageRoot(), ...forRehearsal });
    expect(found).toMatchObject({ ok: false, failure: { reason: 'claude-missing' } });
    expect(found).toMatchObject({
      failure: { next: { sentence: expect.stringContaining('npm install -g @anthropic-ai/claude-code.') } },
    });
  });

  test('findClaude uses no other program when the configured one is missing', () => {
    pin();
    const caller = { CLAUDE_CODE_AGENT_CLAUDE: '/nowhere/claude' };
    const found = findClaude(world, caller, { packageRoot: packageRoot() });
    expect(found).toMatchObject({ ok: false, failure: { reason: 'claude-missing' } });
    expect(!found.ok && found.failure.message).toContain('CLAUDE_CODE_AGENT_CLAUDE names /nowhere/claude');
    expect(findClaude(world, {}, { packageRoot: '/nowhere' })).toMatchObject({ ok: false });
  });
});

test('the model of the settings applies where neither the project nor the environment names one', () => {
  const model = (settings: object, env = {}) =>
    modelOfSettings(settings as Parameters<typeof modelOfSettings>[0], findSettings(world, folder), env);
  expect([model({ model: 'opus' }), model({}), model({ model: '' }), model({ model: 3 })]).toEqual([
    'opus',
    ...[undefined, undefined, undefined],
  ]);
  expect(model({ model: 'opus' }, { ANTHROPIC_MODEL: 'sonnet' })).toBeUndefined();
  write('.claude/settings.local.json', '{"model":"haiku"}');
  expect(model({ model: 'opus' })).toBeUndefined();
});

describe('project settings', () => {
  const check = (env: Record<string, string> = {}) => checkFound(world, findSettings(world, folder), env);

  test.each(['settings.json', 'settings.local.json'])(
    'a project setting in %s that cannot be overridden is refused',
    (name) => {
      expect(check().ok).toBe(true);
      write(`.claude/${name}`, JSON.stringify({ env: { ANTHROPIC_UNIX_SOCKET: '/s' } }));
      expect(check()).toMatchObject({ ok: false, failure: { reason: 'spawn-failed' } });
      expect(check({ ANTHROPIC_UNIX_SOCKET: '/s' }).ok).toBe(true);
    },
  );

  test('project settings that the program overrides or claude cannot read are accepted', () => {
    write('.claude/settings.json', JSON.stringify({ env: { ANTHROPIC_BASE_URL: 'http://x', AWS_PROFILE: 'p' } }));
    write('.claude/settings.local.json', '{ broken');
    expect(check().ok).toBe(true);
    expect(check({ CLAUDE_CODE_USE_BEDROCK: '1' }).ok).toBe(false);
    expect(check({ CLAUDE_CODE_USE_BEDROCK: '1', AWS_PROFILE: 'mine' }).ok).toBe(true);
  });

  test('project settings that disable compaction are refused unless the user disables it too', () => {
    const saying = (value: string) => {
      write('.claude/settings.json', JSON.stringify({ env: { DISABLE_COMPACT: value } }));
      return [check().ok, check({ DISABLE_COMPACT: '1' }).ok];
    };
    expect(['1', 'true', ' YES '].map(saying)).toEqual([
      [false, true],
      [false, true],
      [false, true],
    ]);
    expect(['', '0', 'false', 'x'].map(saying)).toEqual(Array(4).fill([true, true]));
  });

  describe('project settings in a repository', () => {
    const attack = JSON.stringify({ env: { LD_TRACE_LOADED_OBJECTS: '1' } });
    const refuses = (path: string) => !checkFound(world, findSettings(world, join(folder, path)), {}).ok;
    const git = (...args: string[]) => {
      const who = ['-c', 'user.name=a', '-c', 'user.email=a@localhost', '-c', 'commit.gpgSign=false'];
      const ran = Bun.spawnSync(['git', ...who, ...args], { cwd: join(folder, 'repo') });
      if (ran.exitCode !== 0) throw new Error(ran.stderr.toString());
    };

    // claude reads them in every folder and worktree of the repository.
    test('refused settings in the main checkout’s settings.local.json apply to its folders and worktrees', () => {
      write('repo/sub/deep/file', '');
      git('init', '--quiet');
      git('add', '.');
      git('commit', '--quiet', '--message', 'x');
      git('worktree', 'add', '--quiet', '../wt');
      const places = ['repo', 'repo/sub/deep', 'wt', 'wt/sub'];
      expect(places.filter(refuses)).toEqual([]);
      write('repo/.claude/settings.local.json', attack);
      expect(places.filter(refuses)).toEqual(places);
      // Folders below do not read these.
      rmSync(join(folder, 'repo/.claude/settings.local.json'));
      write('repo/.claude/settings.json', attack);
      write('.claude/settings.local.json', attack);
      expect(places.filter(refuses)).toEqual(['repo']);
    });
  });

  test('a project’s telemetry collector is refused only where telemetry is on', () => {
    write('.claude/settings.json', JSON.stringify({ env: { OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: 'http://x' } }));
    const on = { CLAUDE_CODE_ENABLE_TELEMETRY: '1' };
    const [same, another] = ['http://x', 'http://y'].map((OTEL_EXPORTER_OTLP_LOGS_ENDPOINT) => ({
      ...on,
      OTEL_EXPORTER_OTLP_LOGS_ENDPOINT,
    }));
    // The user's value is set again in the worker's settings and wins.
    expect([{}, on, same, another].map((env) => check(env).ok)).toEqual([true, false, true, true]);
  });

  const hides = (pattern: unknown) => {
    write('.claude/settings.json', JSON.stringify({ claudeMdExcludes: ['**/other.md', pattern] }));
    return !check({ CLAUDE_CONFIG_DIR: '/data/.s/claude-config' }).ok;
  };

  test.each([
    ...['**/CLAUDE.md', '/**/*.md', '**', '/data/**', '/data/.s/claude-config/CLAUDE.md', '/data/?s/**/CLAUDE.md'],
    ...[
      '\\data\\**',
      '**/{CLAUDE,AGENTS}.md',
      '/data/[.]s/**',
      './**/CLAUDE.md',
      '/data//**',
      '/data/.s/**/CLAUDE.md/',
    ],
    ...['!/nothing', 'x|/**/CLAUDE.md', '**/"CLAUDE.md"', '**/@(CLAUDE|x).md', '**/[[:upper:]]*.md', '**/{a,{b,c}}'],
  ])('the project setting %s, which may hide the program’s instructions, is refused', (pattern) => {
    expect(hides(pattern)).toBe(true);
  });

  test.each([
    ...['CLAUDE.md', '**/vendor/CLAUDE.md', '/other/**', '**/{a,b}/AGENTS.md', '**/claude.md', '/data/.s', 5, ''],
    '**/node_modules/**',
  ])('the project setting %p, which cannot hide the program’s instructions, is accepted', (pattern) => {
    expect(hides(pattern)).toBe(false);
  });

  test('symlinks in the fixed part of a pattern are followed, as claude does', () => {
    mkdirSync(join(folder, 'data'));
    symlinkSync(join(folder, 'data'), join(folder, 'link'));
    const env = { CLAUDE_CONFIG_DIR: join(realpathSync(folder), 'data') };
    for (const pattern of ['link/**', 'link/CLAUDE.md', 'link/C*']) {
      write('.claude/settings.json', JSON.stringify({ claudeMdExcludes: [join(folder, pattern)] }));
      expect(check(env).ok).toBe(false);
    }
  });
});

describe('checkLogin', () => {
  function answering(script: string): string {
    const program = write('claude', `#!/bin/sh\n${script}\n`);
    chmodSync(program, 0o700);
    return program;
  }
  const check = (script: string) => checkLogin(world, answering(script), { PATH: process.env.PATH ?? '' }, folder);

  test('checkLogin runs one status command and reads its answer', async () => {
    const asked = await check(
      'test "$*" = "auth status --json" && echo \'{"loggedIn":true,"authMethod":"oauth_token"}\'',
    );
    expect(asked).toEqual({ ok: true, value: { method: 'oauth_token' } });
  });

  test('checkLogin names the next step when claude is logged out', async () => {
    const answer = await check('echo \'{"loggedIn":false,"authMethod":"none"}\'; exit 1');
    expect(answer).toMatchObject({
      ok: false,
      failure: { reason: 'not-logged-in', message: 'claude is not logged in.' },
    });
  });

  test('checkLogin passes on an unexpected answer', async () => {
    const answer = await check('echo "unknown command auth" >&2; exit 2');
    const message = '`claude auth status` ended with exit code 2: unknown command auth.';
    expect(answer).toMatchObject({ ok: false, failure: { reason: 'not-logged-in', message } });
  });
});
