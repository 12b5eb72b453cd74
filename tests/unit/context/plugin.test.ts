/**
 * Promises: the plugin manifest names existing files, its hooks name existing systems and events, and its program
 * exits successfully on any input from any folder.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { hookEvents } from '../../../src/context/hook-call.ts';
import { contextNames } from '../../../src/core/definitions.ts';

const root = resolve(import.meta.dir, '../../..');
const json = (path: string) => JSON.parse(readFileSync(join(root, path), 'utf8'));
const manifest = json('.claude-plugin/plugin.json');
const { hooks } = json(manifest.hooks);
/** claude replaces the placeholder with the path of the plugin. */
const placeOfPlugin = '$' + '{CLAUDE_PLUGIN_ROOT}';

interface Hook {
  readonly event: string;
  readonly matcher: string | undefined;
  readonly type: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly timeout: number;
}

const all: Hook[] = Object.entries<{ matcher?: string; hooks: Hook[] }[]>(hooks).flatMap(([event, entries]) =>
  entries.flatMap(({ matcher, hooks: own }) => own.map((hook) => ({ ...hook, event, matcher }))),
);

test('the plugin manifest names existing paths within the package', () => {
  expect(manifest).toMatchObject({ name: 'cpm', version: json('package.json').version });
  const paths = [...manifest.skills, ...manifest.commands, manifest.hooks];
  expect(paths).toHaveLength(3);
  for (const path of paths) {
    expect(path).toStartWith('./');
    expect(existsSync(join(root, path))).toBe(true);
  }
});

test('plugin commands run the package’s own program, whatever is on PATH, and allow only that', () => {
  const commands = readdirSync(join(root, 'templates/plugin/commands')).toSorted();
  expect(commands).toEqual(['clean.md', 'prime-context.md', 'session-end.md', 'sessions.md', 'workflow-run.md']);
  for (const name of commands) {
    const text = readFileSync(join(root, 'templates/plugin/commands', name), 'utf8');
    const program = `"${placeOfPlugin}/bin/claude-code-agent"`;
    expect(text).toMatch(/^---\ndescription: .+\n(?:argument-hint: .+\n)?allowed-tools: .+\n---\n/);
    expect(text).toContain('$ARGUMENTS');
    const allowed = [...(/^allowed-tools: (.*)$/m.exec(text)?.[1] ?? '').matchAll(/Bash\(([^)]*)\)/g)];
    expect(allowed.length).toBeGreaterThan(0);
    for (const [, rule = ''] of allowed) {
      expect(rule).toMatch(/:\*$/);
      // Every allowed command is one that the text names or runs at once.
      expect(text.slice(text.indexOf('\n---\n'))).toContain(rule.replace(/:\*$/, ''));
    }
    expect(text.replaceAll(program, '')).not.toContain('claude-code-agent');
  }
});

test('FABER commands are the same under each of their names, in the config template and both plugins', () => {
  const template = 'templates/configs/faber/commands';
  const names = ['prime-context.md', 'session-end.md', 'workflow-run.md'];
  const places = [
    ['templates/plugin/commands', '/bin/claude-code-agent'],
    ['templates/fractary-faber/commands', '/../../bin/claude-code-agent'],
    [`${template}/fractary-faber`, null],
  ] as const;
  for (const [folder, program] of places) {
    expect(readdirSync(join(root, folder))).toEqual(expect.arrayContaining(names));
    for (const name of names) {
      const text = readFileSync(join(root, folder, name), 'utf8');
      const quoted = `"${placeOfPlugin}${program}"`;
      const plain = program === null ? text : text.replaceAll(quoted, 'claude-code-agent');
      const rule = /^allowed-tools: .*$/m;
      // The plugin allows what its text names; the template's settings allow more.
      expect(plain.replace(rule, '')).toBe(readFileSync(join(root, template, name), 'utf8').replace(rule, ''));
      if (program !== null) expect(rule.exec(text)?.[0]).toContain(quoted);
    }
  }
  for (const name of ['sessions.md', 'clean.md']) {
    const [template, plugin] = ['configs/cpm/commands/cpm', 'plugin/commands'].map((folder) =>
      readFileSync(join(root, 'templates', folder, name), 'utf8'),
    );
    expect(plugin?.replaceAll(`"${placeOfPlugin}/bin/claude-code-agent"`, 'claude-code-agent')).toBe(template);
  }
  const manifest = json('templates/fractary-faber/.claude-plugin/plugin.json');
  expect(manifest).toMatchObject({ name: 'fractary-faber', version: json('package.json').version });
  expect(existsSync(join(root, 'templates/fractary-faber', '../../bin/claude-code-agent'))).toBe(true);
});

test('every plugin hook runs the program by its full path, without a shell and with a timeout', () => {
  expect(all).toHaveLength(8);
  const spoken: Readonly<Record<string, string>> = {
    SessionStart: 'session-start',
    PreCompact: 'pre-compact',
    SessionEnd: 'session-end',
  };
  for (const { event, matcher, type, command, args, timeout } of all) {
    const [script = '', system, spokenEvent] = args;
    expect([type, command]).toEqual(['command', '/bin/sh']);
    expect(script).toStartWith(`${placeOfPlugin}/`);
    expect(existsSync(script.replace(placeOfPlugin, root))).toBe(true);
    expect(contextNames as readonly string[]).toContain(system as string);
    expect(hookEvents as readonly string[]).toContain(spokenEvent as string);
    expect(spokenEvent).toBe(spoken[event] as string);
    expect(matcher).toBe(event === 'SessionStart' ? 'startup|resume|clear|compact|fork' : undefined);
    expect(timeout).toBeGreaterThan(0);
  }
  const of = (event: string, ...systems: string[]) => systems.map((system) => `${event} ${system}`);
  expect(all.map(({ event, args }) => `${event} ${args[1]}`).toSorted()).toEqual(
    [
      ...of('SessionStart', 'cpm', 'faber', 'handover'),
      ...of('PreCompact', 'cpm', 'faber', 'handover'),
      ...of('SessionEnd', 'faber', 'handover'),
    ].toSorted(),
  );
});

test('claude waits up to ten seconds for each hook, also before a compaction', () => {
  expect(all.filter(({ event }) => event === 'PreCompact').length).toBeGreaterThan(0);
  expect(all.map(({ timeout }) => timeout)).toEqual(all.map(() => 10));
});

describe('hook.sh', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'cca plugin '));
    mkdirSync(join(folder, 'docs', 'plans'), { recursive: true });
    writeFileSync(join(folder, 'docs/plans/.cpm-progress-11.md'), '**Skill**: cpm:do\n\nBANANAS\n');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const start = '{"session_id":"11","hook_event_name":"SessionStart","source":"startup"}';

  function hook(args: readonly string[], stdin: string | null, env: object = {}, packageRoot = root) {
    const script = join(packageRoot, 'templates', 'plugin', 'hooks', 'hook.sh');
    const { exitCode, stdout, stderr } = Bun.spawnSync(['/bin/sh', script, ...args], {
      cwd: folder,
      env: { PATH: process.env.PATH ?? '', HOME: folder, CLAUDE_PROJECT_DIR: folder, ...env },
      stdin: stdin === null ? 'ignore' : Buffer.from(stdin),
    });
    return { exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
  }

  test.each(['{}', '', '{"session_id":', 'null', '\u0000', null])(
    'hook.sh exits successfully with %j on stdin',
    (stdin) => {
      const { exitCode, stdout } = hook(['cpm', 'session-start'], stdin);
      expect(exitCode).toBe(0);
      expect(stdout).toContain('BANANAS');
    },
  );

  test('hook.sh guides the summary before a compaction', () => {
    const { exitCode, stdout } = hook(['cpm', 'pre-compact'], '{"session_id":"11","trigger":"auto"}');
    expect(exitCode).toBe(0);
    expect(stdout).not.toBe('');
  });

  test.each([[[]], [['cpm']], [['nothing', 'session-start']], [['cpm', 'nothing']]])(
    'hook.sh exits successfully with %j',
    (args) => {
      expect(hook(args, start)).toMatchObject({ exitCode: 0, stdout: '' });
    },
  );

  test('no project file changes how hook.sh runs Bun', () => {
    writeFileSync(join(folder, 'bunfig.toml'), 'preload = ["./evil.ts"]\n');
    writeFileSync(join(folder, 'evil.ts'), "console.log('EVIL');");
    writeFileSync(join(folder, '.env'), 'CLAUDE_CODE_AGENT_ATTEMPT=x\n');
    const { stdout } = hook(['cpm', 'session-start'], start);
    expect(stdout).toContain('BANANAS');
    expect(stdout).not.toContain('EVIL');
  });

  test('hook.sh ignores a variable that turns a compiled program into Bun itself', () => {
    expect(hook(['cpm', 'session-start'], start, { BUN_BE_BUN: '1' }).stdout).toContain('BANANAS');
  });

  test.each([
    ['no file', 'nowhere', undefined],
    ['no program', 'program', 'text'],
  ])('with a Bun that is %s hook.sh prints one message and exits successfully', (_, name, text) => {
    const bun = join(folder, name);
    if (text !== undefined) writeFileSync(bun, text);
    const { exitCode, stdout } = hook(['cpm', 'session-start'], start, { CLAUDE_CODE_AGENT_BUN: bun });
    expect(exitCode).toBe(0);
    expect(stdout).toContain('no Bun was found');
    expect(hook(['faber', 'session-start'], start, { CLAUDE_CODE_AGENT_BUN: bun })).toMatchObject({
      exitCode: 0,
      stdout: '',
    });
  });

  test('a copied package works in its new place without node_modules', () => {
    const copy = join(folder, 'a copy');
    for (const part of ['bin', 'package.json', 'src', 'templates/plugin'])
      cpSync(join(root, part), join(copy, part), { recursive: true });
    const { exitCode, stdout } = hook(
      ['cpm', 'session-start'],
      start,
      { CLAUDE_CODE_AGENT_BUN: process.execPath },
      copy,
    );
    expect(exitCode).toBe(0);
    expect(stdout).toContain('BANANAS');
  });

  test('a package without its other parts exits successfully', () => {
    const copy = join(folder, 'a part');
    cpSync(join(root, 'templates/plugin'), join(copy, 'templates/plugin'), { recursive: true });
    expect(hook(['cpm', 'session-start'], start, {}, copy)).toMatchObject({ exitCode: 0 });
  });
});
