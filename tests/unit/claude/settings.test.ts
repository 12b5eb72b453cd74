/**
 * Promises: the two settings files of a worker state its settings and contain no secret, and a file that claude would
 * silently ignore is refused. Their effect on claude is tested in `payer.test.ts`.
 */
import { describe, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  inCleanEnvironment,
  mergedSettings,
  readBackCheck,
  unprotectedVariables,
  workerSettings,
} from '../../../src/claude/launch/settings.ts';

/** Variables that a shell sets by itself. */
const shellNames = new Set(['PWD', 'OLDPWD', 'SHLVL', '_']);

const env = {
  CLAUDE_CODE_AGENT_ATTEMPT: 'A1',
  CLAUDE_CONFIG_DIR: '/s/claude-config',
  ANTHROPIC_BASE_URL: 'https://gateway.example',
  ANTHROPIC_API_KEY: 'secret-key',
  ANTHROPIC_CUSTOM_HEADERS: 'x-auth: secret-header',
  HTTPS_PROXY: 'http://me:secret-word@proxy:8080',
  HTTP_PROXY: 'http://proxy:8080',
  AWS_PROFILE: 'work',
  AWS_SECRET_ACCESS_KEY: 'secret-aws',
};
const stated = (settings: Readonly<Record<string, unknown>>) => settings.env as Record<string, string>;

describe('workerSettings', () => {
  test('worker settings state both set and unset options', () => {
    expect(stated(workerSettings(env))).toMatchObject({
      CLAUDE_CODE_AGENT_ATTEMPT: 'A1',
      CLAUDE_CONFIG_DIR: '/s/claude-config',
      ANTHROPIC_BASE_URL: 'https://gateway.example',
      HTTP_PROXY: 'http://proxy:8080',
      ANTHROPIC_AUTH_TOKEN: '',
      CLAUDE_CODE_OAUTH_TOKEN: '',
      CLAUDE_CODE_USE_BEDROCK: '',
      CLAUDE_CODE_USE_VERTEX: '',
      NODE_OPTIONS: '',
      ALL_PROXY: '',
    });
  });

  test('worker settings send telemetry where the user or a template says, and otherwise disable it', () => {
    const telemetry = (settings: object) =>
      Object.fromEntries(Object.entries(settings).filter(([name]) => /OTEL|TELEMETRY|TRACING/.test(name)));
    const off = telemetry(stated(workerSettings(env)));
    expect(off).toEqual({
      CLAUDE_CODE_ENABLE_TELEMETRY: '',
      CLAUDE_CODE_ENHANCED_TELEMETRY_BETA: '',
      ENABLE_ENHANCED_TELEMETRY_BETA: '',
      ENABLE_BETA_TRACING_DETAILED: '',
      BETA_TRACING_ENDPOINT: '',
    });
    const on = { CLAUDE_CODE_ENABLE_TELEMETRY: '1', OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector.example' };
    const secret = { OTEL_EXPORTER_OTLP_HEADERS: 'authorization=secret' };
    expect(telemetry(stated(workerSettings({ ...env, ...on, ...secret })))).toEqual({ ...off, ...on });
    expect(telemetry(stated(workerSettings(env, { base: { env: on } })))).toEqual({ ...off, ...on });
    const withOwn = workerSettings({ ...env, ...on }, { base: { env: { CLAUDE_CODE_ENABLE_TELEMETRY: '0' } } });
    expect(telemetry(stated(withOwn))).toEqual({ ...off, ...on, CLAUDE_CODE_ENABLE_TELEMETRY: '0' });
  });

  test('a proxy is set in both spellings, because some tools read only one', () => {
    const proxies = { HTTPS_PROXY: 'http://proxy:1', no_proxy: 'localhost' };
    expect(stated(workerSettings(proxies))).toMatchObject({
      ...{ HTTPS_PROXY: 'http://proxy:1', https_proxy: 'http://proxy:1', NO_PROXY: 'localhost', no_proxy: 'localhost' },
      ...{ HTTP_PROXY: '', http_proxy: '', ALL_PROXY: '', all_proxy: '' },
    });
    // A proxy with a password is not written in either spelling, and projects cannot set either.
    const secret = { HTTPS_PROXY: 'http://me:word@proxy:1' };
    expect(Object.keys(stated(workerSettings(secret)))).not.toContain('https_proxy');
    expect(unprotectedVariables(secret)).toEqual(expect.arrayContaining(['HTTPS_PROXY', 'https_proxy']));
  });

  test('worker settings contain no secret and omit empty values', () => {
    const settings = workerSettings({ ...env, CLAUDE_CODE_USE_BEDROCK: '1' });
    expect(JSON.stringify(settings)).not.toContain('secret');
    for (const name of ['ANTHROPIC_API_KEY', 'ANTHROPIC_CUSTOM_HEADERS', 'HTTPS_PROXY', 'AWS_SECRET_ACCESS_KEY']) {
      expect(Object.keys(stated(settings))).not.toContain(name);
    }
  });

  test('cloud variables are set only for a provider, because tools fail on empty ones', () => {
    expect(stated(workerSettings(env)).AWS_PROFILE).toBeUndefined();
    const provider = stated(workerSettings({ ...env, CLAUDE_CODE_USE_BEDROCK: '1' }));
    expect([provider.AWS_PROFILE, provider.AWS_REGION]).toEqual(['work', undefined]);
  });

  test('only the user can preload a library or disable compaction', () => {
    const users = workerSettings({ ...env, LD_PRELOAD: '/lib/jemalloc.so', DISABLE_AUTO_COMPACT: '1' });
    expect(stated(users)).toMatchObject({ LD_PRELOAD: '/lib/jemalloc.so', DISABLE_AUTO_COMPACT: '1' });
    expect(stated(workerSettings(env))).toMatchObject({ LD_PRELOAD: '', DISABLE_AUTO_COMPACT: '' });
    expect(workerSettings(env).autoCompactEnabled).toBe(true);
    expect(workerSettings(env, { base: { autoCompactEnabled: false } }).autoCompactEnabled).toBe(false);
  });

  test('worker settings keep the program’s hooks on, silence credential programs, and deny rules', () => {
    const settings = workerSettings(env, { deny: ['Bash(git push:*)'] });
    expect(settings).toMatchObject({
      disableAllHooks: false,
      apiKeyHelper: '',
      awsAuthRefresh: '',
      permissions: { deny: ['Bash(git push:*)'] },
    });
    expect(workerSettings(env).permissions).toBeUndefined();
    expect(readBackCheck('f', JSON.stringify(settings)).ok).toBe(true);
  });
});

describe('unprotected variables', () => {
  test('unprotected variables are a socket, the user’s secrets, and unset cloud variables of a provider', () => {
    expect(unprotectedVariables({})).toEqual(['ANTHROPIC_UNIX_SOCKET', 'LD_TRACE_LOADED_OBJECTS']);
    expect(unprotectedVariables(env)).toContain('ANTHROPIC_CUSTOM_HEADERS');
    // claude refuses proxies from settings files only if its host has chosen the provider.
    expect(unprotectedVariables(env)).toContain('HTTPS_PROXY');
    expect(unprotectedVariables({ ...env, CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST: '1' })).not.toContain('HTTPS_PROXY');
    const provider = unprotectedVariables({ ...env, CLAUDE_CODE_USE_BEDROCK: '1' });
    expect(provider).toContain('AWS_REGION');
    expect(provider).toContain('AWS_SECRET_ACCESS_KEY');
    expect(provider).not.toContain('AWS_PROFILE');
  });
});

describe('inCleanEnvironment', () => {
  test('a clean environment command replaces a missing program and works in a deleted folder', () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'cca clean ')));
    try {
      const place = join(folder, 'place');
      const [program, instead] = ['first', 'second'].map((name) => {
        writeFileSync(join(folder, name), `#!/bin/sh\necho ${name} "$@"\n`, { mode: 0o755 });
        return join(folder, name);
      }) as [string, string];
      mkdirSync(place);
      const hook = inCleanEnvironment({ program, args: ['a b', 'c'], instead }, {}, '/p');
      const said = (before = '') => {
        const line = `cd '${place}'; ${before} exec "$@"`;
        const { stdout } = Bun.spawnSync(['sh', '-c', line, 'sh', hook.program, ...hook.args], { stderr: 'ignore' });
        return stdout.toString();
      };
      expect(said()).toBe('first a b c\n');
      expect(said(`rmdir '${place}';`)).toBe('second a b c\n');
      mkdirSync(place);
      rmSync(program);
      expect(said()).toBe('second a b c\n');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('a clean environment passes the mark, the config folder and the variables for loading programs', () => {
    const worker = { ...env, BUN_INSPECT_PRELOAD: '/x', LD_LIBRARY_PATH: '/a=b lib' };
    const program = { program: process.execPath, args: ['-e', 'console.log(JSON.stringify(process.env))'] };
    const hook = inCleanEnvironment(program, worker, '/my project');
    const ran = Bun.spawnSync([hook.program, ...hook.args], { env: { BUN_INSPECT_PRELOAD: '/x', STRAY: '1' } });
    const seen = Object.entries(JSON.parse(ran.stdout.toString())).filter(([name]) => !shellNames.has(name));
    expect(Object.fromEntries(seen)).toEqual({
      CLAUDE_CODE_AGENT_ATTEMPT: 'A1',
      CLAUDE_CONFIG_DIR: '/s/claude-config',
      CLAUDE_PROJECT_DIR: '/my project',
      LD_LIBRARY_PATH: '/a=b lib',
    });
  });
});

describe('configSettings', () => {
  const program = { program: '/bun', args: ['--no-install', '/app/hook-main.ts', 'task', 'session-start'] };
  const hooks = [{ event: 'SessionStart', program }] as const;

  test('config settings contain the program’s hook in exec form for every way a conversation starts', () => {
    expect(mergedSettings({ hooks })).toEqual({
      hooks: {
        SessionStart: [
          {
            matcher: 'startup|resume|clear|compact|fork',
            hooks: [{ type: 'command', command: '/bun', args: program.args, timeout: 10 }],
          },
        ],
      },
    });
    expect(mergedSettings({})).toEqual({});
  });

  test('the program’s hooks come after those of a template', () => {
    const theirs = { hooks: [{ type: 'command', command: 'x', timeout: 1 }] };
    const base = {
      model: 'opus',
      permissions: { allow: ['Read'], defaultMode: 'plan' },
      hooks: { SessionStart: [theirs], Stop: [theirs] },
    };
    const settings = mergedSettings({ base, hooks, allow: ['Write'], deny: ['WebFetch'] });
    expect(settings).toMatchObject({
      model: 'opus',
      permissions: { allow: ['Read', 'Write'], deny: ['WebFetch'], defaultMode: 'plan' },
      hooks: { Stop: [theirs] },
    });
    const { SessionStart } = settings.hooks as { SessionStart: unknown[] };
    expect([SessionStart.length, SessionStart[0]]).toEqual([2, theirs]);
    expect(readBackCheck('f', JSON.stringify(settings)).ok).toBe(true);
  });
});

describe('readBackCheck', () => {
  const hook = (entry: unknown) => ({ hooks: { Stop: [{ hooks: [entry] }] } });
  const faults: [unknown, string][] = [
    [[1], 'is not a JSON object'],
    [{ model: 1 }, 'is invalid: model'],
    [{ env: { A: 1 } }, 'is invalid: env.A'],
    [{ permissions: { deny: 'Bash' } }, 'is invalid: permissions.deny'],
    [{ permissions: { defaultMode: 'x' } }, 'is invalid: permissions.defaultMode'],
    [{ hooks: { Stop: {} } }, 'is invalid: hooks.Stop'],
    [{ hooks: { Stop: [{ matcher: 1, hooks: [] }] } }, 'is invalid: hooks.Stop.0.matcher'],
    [hook({ type: 'magic' }), 'is invalid: hooks.Stop.0.hooks.0.type'],
    [hook({ type: 'command' }), 'a command is missing'],
    [hook({ type: 'command', command: 'x', timeout: 0 }), '.timeout'],
  ];
  test.each(faults)('a settings file with %j is refused', (settings, what) => {
    const checked = readBackCheck('/f', JSON.stringify(settings));
    expect(checked).toMatchObject({ ok: false, failure: { reason: 'write-failed' } });
    expect(!checked.ok && checked.failure.message).toContain(what);
  });

  test('a settings file that is missing or no JSON is refused', () => {
    expect(readBackCheck('/f', '{"a":1,}')).toMatchObject({ ok: false });
    expect(readBackCheck('/f', null)).toMatchObject({ ok: false });
  });
});
