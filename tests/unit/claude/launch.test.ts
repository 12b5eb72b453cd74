/**
 * Promises: a worker starts with the right arguments and environment. Arguments contain neither prompt nor secret,
 * the environment contains exactly one login and no trace of a surrounding claude, the user's commands get no login,
 * and each message on stdin is one line.
 */
import { describe, expect, test } from 'bun:test';
import { interruptRequest, isSlashCommand, usageRequest, userMessage } from '../../../src/claude/control.ts';
import { type WorkerArgsInput, workerArgs } from '../../../src/claude/launch/argv.ts';
import { commandEnvironment, droppedVariables, workerEnvironment } from '../../../src/claude/launch/environment.ts';
import { repeatPrompt, resumePrompt } from '../../../src/claude/launch/instructions.ts';
import { chooseLogin } from '../../../src/claude/launch/login.ts';

import { fc } from '../../support/property.ts';

const unattended = ['--forward-subagent-text', '--include-hook-events', '--permission-prompts', 'none'];

const args: WorkerArgsInput = {
  conversation: { kind: 'new', claudeSessionId: 'ID' },
  name: 'api',
  permissionMode: 'acceptEdits',
  settingsFile: '/s/worker-settings.json',
  systemPromptFile: '/s/system-prompt.md',
};

describe('workerArgs', () => {
  test('workerArgs of a first start contain all settings', () => {
    expect(workerArgs(args)).toEqual([
      ...['-p', '--verbose', '--output-format', 'stream-json', '--input-format', 'stream-json', '--session-id', 'ID'],
      ...['--name=api', '--permission-mode', 'acceptEdits', '--settings', '/s/worker-settings.json'],
      '--append-system-prompt-file=/s/system-prompt.md',
      ...['--strict-mcp-config', '--exclude-dynamic-system-prompt-sections'],
      ...unattended,
    ]);
  });

  test('workerArgs of a resume repeat all settings', () => {
    const words = workerArgs({
      ...args,
      conversation: { kind: 'resume', claudeSessionId: 'ID' },
      model: 'claude-opus-4-8[1m]',
      allowedTools: ['Bash(git commit:*)', 'Write'],
      mcpConfigFile: '/s/mcp.json',
      reservedUsd: 1.23456,
    });
    expect(words.slice(6)).toEqual([
      ...['--resume', 'ID', '--model=claude-opus-4-8[1m]', '--name=api'],
      ...['--allowedTools=Bash(git commit:*)', '--allowedTools=Write', '--mcp-config=/s/mcp.json'],
      ...['--system-prompt-snapshot', 'off'],
      ...['--permission-mode', 'acceptEdits', '--settings', '/s/worker-settings.json'],
      ...['--append-system-prompt-file=/s/system-prompt.md', '--strict-mcp-config'],
      '--exclude-dynamic-system-prompt-sections',
      ...['--max-budget-usd', '1.234561'],
      ...unattended,
    ]);
  });

  test.each([
    [0, '0.001001'],
    [-1, '0.001001'],
    [0.00001, '0.001001'],
    [2, '2.000001'],
  ])('a budget of %p is passed as %p', (reservedUsd, word) => {
    expect(workerArgs({ ...args, reservedUsd })).toContain(word);
  });
});

describe('workerEnvironment', () => {
  const fixed = { attemptId: 'A1', configDir: '/s/claude-config', tmpDir: '/s/tmp' };
  const environment = (caller: Record<string, string | undefined>) =>
    workerEnvironment({ ...fixed, caller, login: chooseLogin(caller) });

  test('the environment of a worker is the caller’s plus the mark and fixed extras', () => {
    expect(
      environment({ PATH: '/bin', HOME: '/h', NODE_ENV: 'test', GONE: undefined, ANTHROPIC_API_KEY: 'k' }),
    ).toEqual({
      PATH: '/bin',
      HOME: '/h',
      NODE_ENV: 'test',
      ANTHROPIC_API_KEY: 'k',
      CLAUDE_CODE_AGENT_ATTEMPT: 'A1',
      CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST: '1',
      CLAUDE_CONFIG_DIR: '/s/claude-config',
      CLAUDE_SECURESTORAGE_CONFIG_DIR: '/s/claude-config',
      CLAUDE_CODE_TMPDIR: '/s/tmp',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      CLAUDE_CODE_MAX_RETRIES: '6',
      CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: '1',
      CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: '1',
      CLAUDE_CODE_ENABLE_TODO_TOOLS: '1',
      CLAUDE_CODE_EXIT_AFTER_STOP_DELAY: '60000',
      CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS: '5000',
    });
  });

  test.each([
    ...['CLAUDECODE', 'CLAUDECODE_X', 'AI_AGENT', 'CLAUDE_EFFORT', 'CLAUDE_CODE_ENTRYPOINT', 'CLAUDE_CODE_SESSION_ID'],
    ...['CLAUDE_CODE_CHILD_SESSION', 'CLAUDE_CODE_EXECPATH', 'CLAUDE_CODE_SIMPLE', 'CLAUDE_PROJECT_DIR'],
    ...['CLAUDE_PLUGIN_ROOT', 'CLAUDE_ENV_FILE', 'BUN_OPTIONS', 'BUN_INSPECT', 'CLAUDE_CODE_SSE_PORT'],
    ...['BUN_INSPECT_PRELOAD', 'BUN_CONFIG_VERBOSE_FETCH', 'CLAUDE_CODE_DISABLE_CLAUDE_MDS'],
  ])('the variable %s is a trace of a surrounding claude and is removed', (name) => {
    expect(environment({ [name]: '1' })[name]).toBeUndefined();
  });

  test.each([
    ...['CLAUDE_CODE_MAX_OUTPUT_TOKENS', 'CLAUDE_CODE_SUBAGENT_MODEL', 'CLAUDE_CODE_USE_BEDROCK', 'AWS_PROFILE'],
    ...['CLAUDE_CODE_MAX_RETRIES', 'CLAUDE_CODE_SHELL', 'CLAUDE_CODE_AGENT_HOME', 'ANTHROPIC_MODEL', 'BUN_INSTALL'],
    ...['ANTHROPIC_BASE_URL', 'HTTPS_PROXY', 'DISABLE_AUTO_COMPACT', 'CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS'],
  ])('the variable %s is set by the user and is kept', (name) => {
    expect(environment({ [name]: '1' })[name]).toBe('1');
  });

  test('claude variables set by the user are kept, and inside claude only those that users set', () => {
    const set = { CLAUDE_CODE_SOMETHING_NEW: '1', CLAUDE_CODE_PROMPT_CACHE_TTL: '1h' };
    expect(environment(set)).toMatchObject(set);
    const within = environment({ ...set, CLAUDECODE: '1' });
    expect(within).toMatchObject({ CLAUDE_CODE_PROMPT_CACHE_TTL: '1h' });
    expect(within.CLAUDE_CODE_SOMETHING_NEW).toBeUndefined();
  });

  test('variables removed from the environment are named', () => {
    const caller = {
      ...{ CLAUDE_CODE_SIMPLE: '1', CLAUDE_CODE_TMPDIR: '/big', CLAUDE_CODE_SSE_PORT: '5', CLAUDE_CODE_NEW: '1' },
      ...{ CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', CLAUDE_CODE_AGENT_FLEET: 'x', CLAUDE_CODE_OAUTH_TOKEN: 't' },
    };
    expect(droppedVariables(caller, environment(caller))).toEqual(['CLAUDE_CODE_SIMPLE', 'CLAUDE_CODE_TMPDIR']);
    expect(droppedVariables({ ...caller, CLAUDECODE: '1' }, {})).toEqual([]);
  });

  test('a stored login works, although claude’s switch for other logins would forbid it', () => {
    const stored = environment({ HOME: '/h' });
    expect(stored.CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST).toBeUndefined();
    expect(stored.CLAUDE_CODE_HOST_AUTH_ENV_VAR).toBe('CLAUDE_CODE_AGENT_NO_LOGIN_HERE');
    expect(stored.CLAUDE_CODE_AGENT_NO_LOGIN_HERE).toBeUndefined();
    expect(environment({ CLAUDE_CODE_OAUTH_TOKEN: 't' })).toMatchObject({ CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST: '1' });
  });

  test('the environment of a rehearsal starts empty', () => {
    const caller = {
      PATH: '/bin',
      HOME: '/home/me',
      LANG: 'C.UTF-8',
      IS_SANDBOX: '1',
      ANTHROPIC_API_KEY: 'real',
      CLAUDE_CODE_OAUTH_TOKEN: 'real',
      CLAUDE_CODE_USE_BEDROCK: '1',
      HTTPS_PROXY: 'http://proxy',
      CLAUDE_CODE_MAX_RETRIES: '9',
      MY_SECRET: 'x',
    };
    const rehearsal = { baseUrl: 'http://127.0.0.1:1', home: '/s/home' };
    const env = workerEnvironment({ ...fixed, caller, login: chooseLogin(caller), rehearsal });
    expect(env).toMatchObject({
      PATH: '/bin',
      HOME: '/s/home',
      LANG: 'C.UTF-8',
      IS_SANDBOX: '1',
      ANTHROPIC_BASE_URL: 'http://127.0.0.1:1',
      ANTHROPIC_API_KEY: 'rehearsal',
      CLAUDE_SECURESTORAGE_CONFIG_DIR: '/s/claude-config',
      CLAUDE_CODE_MAX_RETRIES: '6',
    });
    for (const name of ['CLAUDE_CODE_OAUTH_TOKEN', 'CLAUDE_CODE_USE_BEDROCK', 'HTTPS_PROXY', 'MY_SECRET']) {
      expect(env[name]).toBeUndefined();
    }
  });
});

describe('a caller inside a repository', () => {
  const call = {
    ...{ GIT_DIR: '.git', GIT_WORK_TREE: '/x', GIT_INDEX_FILE: '.git/index', GIT_COMMON_DIR: '/x', GIT_PREFIX: 'a/' },
    ...{ GIT_OBJECT_DIRECTORY: '/x', GIT_ALTERNATE_OBJECT_DIRECTORIES: '/x', GIT_QUARANTINE_PATH: '/x' },
    ...{ GIT_NAMESPACE: 'x', GIT_IMPLICIT_WORK_TREE: '0', GIT_GRAFT_FILE: '/x', GIT_SHALLOW_FILE: '/x' },
  };
  const wishes = { GIT_AUTHOR_NAME: 'Ann', GIT_SSH_COMMAND: 'ssh -v', GIT_CONFIG_COUNT: '0', GIT_EDITOR: 'vi' };

  test('a git hook’s repository variables reach no worker and no command, but its settings do', () => {
    const caller = { ...call, ...wishes, ANTHROPIC_API_KEY: 'k' };
    const paths = { attemptId: 'A', configDir: '/c', tmpDir: '/t' };
    for (const env of [
      workerEnvironment({ ...paths, caller, login: chooseLogin(caller) }),
      commandEnvironment(caller),
    ]) {
      expect(env).toMatchObject(wishes);
      expect(Object.keys(call).filter((name) => name in env)).toEqual([]);
    }
  });
});

describe('chooseLogin', () => {
  const all = {
    ANTHROPIC_API_KEY: 'k',
    ANTHROPIC_AUTH_TOKEN: 't',
    CLAUDE_CODE_OAUTH_TOKEN: 'o',
    CLAUDE_CONFIG_DIR: '/mine',
  };

  test('chooseLogin prefers provider, key, OAuth token and store, in this order', () => {
    expect(chooseLogin({ ...all, CLAUDE_CODE_USE_VERTEX: 'true' })).toMatchObject({
      kind: 'provider',
      source: 'CLAUDE_CODE_USE_VERTEX',
    });
    expect(chooseLogin({ ...all, CLAUDE_CODE_USE_VERTEX: '0' })).toEqual({
      kind: 'api-key',
      source: 'ANTHROPIC_API_KEY',
      variables: { ANTHROPIC_API_KEY: 'k', ANTHROPIC_AUTH_TOKEN: 't' },
      helpers: {},
    });
    expect(chooseLogin({ ANTHROPIC_AUTH_TOKEN: 't' })).toMatchObject({
      kind: 'api-key',
      source: 'ANTHROPIC_AUTH_TOKEN',
    });
    expect(chooseLogin({ ...all, ANTHROPIC_API_KEY: '', ANTHROPIC_AUTH_TOKEN: '' })).toEqual({
      kind: 'oauth-token',
      source: 'CLAUDE_CODE_OAUTH_TOKEN',
      variables: { CLAUDE_CODE_OAUTH_TOKEN: 'o' },
      helpers: {},
    });
    expect(chooseLogin({ CLAUDE_CONFIG_DIR: '/mine' })).toMatchObject({ kind: 'store', storeDir: '/mine' });
    expect(chooseLogin({})).toMatchObject({ kind: 'store', storeDir: '' });
    const helpers = { apiKeyHelper: 'print-key' };
    expect(chooseLogin({}, helpers)).toMatchObject({ kind: 'helper', source: 'apiKeyHelper', helpers });
    expect(chooseLogin(all, helpers)).toMatchObject({ kind: 'api-key', helpers });
  });
});

describe('credentials of other logins', () => {
  const credentials = Object.fromEntries(
    [
      ...['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'CLAUDE_CODE_OAUTH_TOKEN', 'CLAUDE_CODE_OAUTH_REFRESH_TOKEN'],
      ...['CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR', 'CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR'],
      ...['CLAUDE_CODE_SESSION_ACCESS_TOKEN', 'CLAUDE_SESSION_INGRESS_TOKEN_FILE'],
      ...['ANTHROPIC_IDENTITY_TOKEN', 'ANTHROPIC_IDENTITY_TOKEN_FILE'],
      ...['ANTHROPIC_FOUNDRY_API_KEY', 'ANTHROPIC_AWS_API_KEY', 'ANTHROPIC_BEDROCK_MANTLE_API_KEY'],
    ].map((name) => [name, 'secret']),
  );
  const aws = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b', AWS_BEARER_TOKEN_BEDROCK: 'c' };
  const general = { ...aws, GITHUB_TOKEN: 'd' };
  const caller = { ...credentials, ...general };
  const without = (...names: string[]) =>
    Object.fromEntries(Object.entries(caller).filter(([name]) => !names.includes(name)));
  /** Names of the credentials that a worker of this caller gets. */
  const left = (of: Readonly<Record<string, string>>) => {
    const paths = { attemptId: 'A', configDir: '/c', tmpDir: '/t' };
    const env = workerEnvironment({ ...paths, caller: of, login: chooseLogin(of) });
    expect(env).toMatchObject(general);
    return Object.keys(credentials).filter((name) => env[name] !== undefined);
  };
  const keys = ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN'];
  const refresh = 'CLAUDE_CODE_OAUTH_REFRESH_TOKEN';
  const besideStore = [
    ...['CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR', 'CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR'],
    ...['ANTHROPIC_IDENTITY_TOKEN', 'ANTHROPIC_IDENTITY_TOKEN_FILE'],
  ];

  test('a worker with a key gets no other login', () => {
    expect(left(caller)).toEqual(keys);
  });

  test('a worker with an OAuth token keeps the variables that renew it', () => {
    expect(left(without(...keys))).toEqual(['CLAUDE_CODE_OAUTH_TOKEN', refresh]);
  });

  test('a worker with the user’s own login keeps credentials that claude may use instead of the store', () => {
    expect(left(without(...keys, 'CLAUDE_CODE_OAUTH_TOKEN'))).toEqual([refresh, ...besideStore]);
  });

  test.each([
    ['CLAUDE_CODE_USE_BEDROCK', []],
    ['CLAUDE_CODE_USE_VERTEX', []],
    ['CLAUDE_CODE_USE_FOUNDRY', ['ANTHROPIC_FOUNDRY_API_KEY']],
    ['CLAUDE_CODE_USE_ANTHROPIC_AWS', ['ANTHROPIC_AWS_API_KEY']],
    ['CLAUDE_CODE_USE_MANTLE', ['ANTHROPIC_BEDROCK_MANTLE_API_KEY']],
    ['CLAUDE_CODE_USE_GATEWAY', besideStore],
  ])('a worker with %s keeps the keys of that provider', (provider, own) => {
    expect(left({ ...caller, [provider]: '1' })).toEqual([...keys, ...own]);
  });

  test.each(['CLAUDE_CODE_USE_BEDROCK', 'CLAUDE_CODE_USE_GATEWAY', 'UNRELATED'])(
    'the user’s commands get no credentials, even with %s',
    (name) => {
      const more = { ANTHROPIC_CUSTOM_HEADERS: 'x-auth: secret', CLAUDE_CODE_CLIENT_KEY_PASSPHRASE: 'secret' };
      const later = { ANTHROPIC_NEW_SECRET: 'secret', CLAUDE_BRIDGE_OAUTH_TOKEN: 'secret' };
      const plain = { PATH: '/bin', [name]: '1', CLAUDE_CODE_MAX_OUTPUT_TOKENS: '9', ANTHROPIC_MODEL: 'opus' };
      const env = commandEnvironment({ ...caller, ...more, ...later, ...plain });
      expect(env).toEqual({ ...general, ...plain });
    },
  );
});

describe('stdin lines', () => {
  test('a message on stdin is one line, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const line = userMessage(text);
        expect(line).not.toMatch(/[\r\n]/);
        const { content } = JSON.parse(line).message;
        expect(content.endsWith(text)).toBe(true);
        expect(content.startsWith('/')).toBe(isSlashCommand(text));
        expect(usageRequest(text) + interruptRequest(text)).not.toMatch(/[\r\n]/);
      }),
    );
  });
});

test('a slash command is sent unchanged, and a path as plain text', () => {
  for (const text of ['/fix-issue 12', '/plugin:deploy', '/deploy\nnow']) {
    expect(JSON.parse(userMessage(text)).message.content).toBe(text);
    expect(resumePrompt({ task: text, kind: 'start', continues: false })).toBe(text);
  }
  for (const text of ['/etc/hosts is wrong', '/', ' /fix-issue 12']) {
    expect(JSON.parse(userMessage(text)).message.content).toBe(`\n${text}`);
  }
});

describe('resumePrompt', () => {
  test('resumePrompt of a first attempt is the task itself', () => {
    expect(resumePrompt({ task: 'T', kind: 'start', continues: false })).toBe('The task of this session:\n\nT');
  });

  test('every new conversation begins with the same 21 characters, because claude starts with a digest of them', () => {
    const prompts = (['start', 'resume', 'retry'] as const).map((kind) =>
      resumePrompt({ task: `${kind} this`, kind, continues: false }),
    );
    const [first = ''] = prompts;
    for (const prompt of prompts) expect(prompt.slice(0, 21)).toBe(first.slice(0, 21));
    expect(resumePrompt({ task: 'T', kind: 'resume', continues: true })).not.toContain(first.slice(0, 21));
  });

  test('in a new conversation the task comes after its announcement, followed by what happened before', () => {
    const opening = 'The task of this session:\n\nT\n\n';
    const end = '\n\nYou do not have the earlier conversation, but its changes may be in the files already.';
    const fresh = { task: 'T', continues: false } as const;
    const retried = resumePrompt({ ...fresh, kind: 'retry', failure: 'The API answered 529.', messages: ['Hurry.'] });
    expect(retried).toStartWith(`${opening}The previous attempt at this task failed`);
    expect(retried).toContain(`The reason: The API answered 529.${end}`);
    expect(retried).toEndWith('\n\nThe user adds:\n\nHurry.');
    const resumed = resumePrompt({ ...fresh, kind: 'resume' });
    expect(resumed).toStartWith(`${opening}The session runner paused this session and has now resumed it.${end}`);
    const rejection = { message: 'The tests failed.', output: '' };
    expect(resumePrompt({ ...fresh, kind: 'resume', rejection })).toStartWith(
      `${opening}You said that the task is done`,
    );
  });

  test('in a resumed conversation only text that claude has not received is sent', () => {
    expect(repeatPrompt({ messages: ['Hurry.'] })).toMatch(
      /^The API did not answer[\s\S]*still holds[\s\S]*adds:\n\nHurry\.$/,
    );
  });

  test('a prompt lists existing work if the conversation has an outdated view of its worktree', () => {
    const resume = { task: 'T', kind: 'resume', continues: true } as const;
    const remadeFrom = 'b';
    const words = resumePrompt({ ...resume, remadeFrom });
    expect(words).toMatch(/was gone.* branch b\. .*in no commit are lost.*do again what is missing[\s\S]*\n\nT$/);
    expect(resumePrompt({ ...resume, continues: false, remadeFrom })).toContain('branch b. ');
    expect(repeatPrompt({ remadeFrom })).toContain('branch b. ');
    expect(resumePrompt(resume)).not.toContain('was gone');
  });

  test('in a known conversation the prompt says what happened and ends with the task', () => {
    const resumed = resumePrompt({ task: 'T', kind: 'resume', continues: true });
    expect(resumed).toMatch(/No one rejected anything[\s\S]*may have taken effect[\s\S]*\n\nT$/);
    const retry = resumePrompt({ task: 'T', kind: 'retry', continues: true, failure: 'The API answered 529.' });
    expect(retry).toMatch(/failed.*The reason: The API answered 529\.[\s\S]*\n\nT$/);
  });

  test('a prompt mentions that the end of the conversation is missing, except in a new one', () => {
    const cut = { task: 'T', kind: 'resume', isCutOff: true } as const;
    const missing = 'The end of the conversation was not written down';
    expect(resumePrompt({ ...cut, continues: true })).toContain(missing);
    expect(resumePrompt({ ...cut, continues: true, isCutOff: false })).not.toContain(missing);
    expect(resumePrompt({ ...cut, continues: false })).not.toContain(missing);
  });
});
