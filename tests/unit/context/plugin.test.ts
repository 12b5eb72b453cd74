/**
 * Promises of the plugin that this package is: its manifest names what is there, its hooks name systems and events that
 * exist, and the program behind them ends well whatever it is given and wherever it is called from.
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
/** claude puts the path of the plugin in its place. */
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

test('the manifest names paths within the package, which are there', () => {
  expect(manifest).toMatchObject({ name: 'cpm', version: json('package.json').version });
  const paths = [...manifest.skills, ...manifest.commands, manifest.hooks];
  expect(paths).toHaveLength(3);
  for (const path of paths) {
    expect(path).toStartWith('./');
    expect(existsSync(join(root, path))).toBe(true);
  }
});

test('its commands run the program of the package itself, whatever is on PATH, and only what they are for', () => {
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
      // What is allowed is what the text tells the model to run, or runs at once.
      expect(text.slice(text.indexOf('\n---\n'))).toContain(rule.replace(/:\*$/, ''));
    }
    expect(text.replaceAll(program, '')).not.toContain('claude-code-agent');
  }
});

test("S6: FABER's commands say the same under each of their names, in the config template and both plugins", () => {
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
      // What the plugin allows is what it says to run; the template's settings allow more.
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

test('every hook runs our program, by its full path, without a shell line and with a time limit', () => {
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

test('claude waits ten seconds for each of its hooks, also before a compaction', () => {
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
    'ends well with %j on its standard input',
    (stdin) => {
      const { exitCode, stdout } = hook(['cpm', 'session-start'], stdin);
      expect(exitCode).toBe(0);
      expect(stdout).toContain('BANANAS');
    },
  );

  test('guides the summary before a compaction', () => {
    const { exitCode, stdout } = hook(['cpm', 'pre-compact'], '{"session_id":"11","trigger":"auto"}');
    expect(exitCode).toBe(0);
    expect(stdout).not.toBe('');
  });

  test.each([[[]], [['cpm']], [['nothing', 'session-start']], [['cpm', 'nothing']]])('ends well with %j', (args) => {
    expect(hook(args, start)).toMatchObject({ exitCode: 0, stdout: '' });
  });

  test('no file of the project decides how Bun runs', () => {
    writeFileSync(join(folder, 'bunfig.toml'), 'preload = ["./evil.ts"]\n');
    writeFileSync(join(folder, 'evil.ts'), "console.log('EVIL');");
    writeFileSync(join(folder, '.env'), 'CLAUDE_CODE_AGENT_ATTEMPT=x\n');
    const { stdout } = hook(['cpm', 'session-start'], start);
    expect(stdout).toContain('BANANAS');
    expect(stdout).not.toContain('EVIL');
  });

  test('a variable that turns what is compiled into Bun itself has no effect', () => {
    expect(hook(['cpm', 'session-start'], start, { BUN_BE_BUN: '1' }).stdout).toContain('BANANAS');
  });

  test.each([
    ['no file', 'nowhere', undefined],
    ['no program', 'program', 'text'],
  ])('a Bun that is %s: says so once, and ends well', (_, name, text) => {
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

  test('a copy of the package works from where it was put, without its node_modules', () => {
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

  test('a package without its other parts ends well', () => {
    const copy = join(folder, 'a part');
    cpSync(join(root, 'templates/plugin'), join(copy, 'templates/plugin'), { recursive: true });
    expect(hook(['cpm', 'session-start'], start, {}, copy)).toMatchObject({ exitCode: 0 });
  });
});
