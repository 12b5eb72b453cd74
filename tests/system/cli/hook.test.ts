/**
 * Promises, through the real launcher: `hook install` merges into user or project settings, keeps their content and a
 * copy, and changes nothing when repeated. `hook uninstall` removes exactly that. Faulty files are reported in one
 * sentence and unchanged. The real claude runs the installed hooks. A hook called by hand prints help.
 */
import { beforeEach, describe, expect, test } from 'bun:test';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { claudeBinary, openRig, stepLimitMs } from '../../support/claude/rig.ts';
import { user, withUser } from '../../support/cli/user.ts';
import { checkoutRoot } from '../../support/cli.ts';

let project: string;
let settings: string;
withUser();
beforeEach(() => {
  project = user.project('api');
  settings = join(project, '.claude', 'settings.json');
});

interface Hook {
  readonly command: string;
  readonly args: readonly string[];
  readonly timeout: number;
}
type Written = { hooks: Record<string, { matcher?: string; hooks: Hook[] }[]> };
const read = (path = settings) => readFileSync(path, 'utf8');
const written = (path = settings) => JSON.parse(read(path)) as Written;
const backups = (folder = dirname(settings)) => readdirSync(folder).filter((name) => name.endsWith('.bak'));

function write(text: string): void {
  mkdirSync(dirname(settings), { recursive: true });
  writeFileSync(settings, text);
}

describe('install and uninstall', () => {
  test('in a project without settings, twice, and removed again', async () => {
    const first = await user.run('hook', 'install', '--project', project);
    expect(first).toEqual({
      code: 0,
      stdout: `Installed the hooks of cpm, faber, handover in ${settings}\n`,
      stderr: '',
    });
    const after = read();
    expect(Object.keys(written().hooks)).toEqual(['SessionStart', 'PreCompact', 'SessionEnd']);
    const hooks = Object.values(written().hooks).flatMap((groups) => groups.flatMap((group) => group.hooks));
    expect(hooks).toHaveLength(9);
    for (const { command, args, timeout } of hooks) {
      expect(command).toBe(join(checkoutRoot, 'bin', 'claude-code-agent'));
      expect(args?.[0]).toBe('hook');
      expect(timeout).toBe(10);
    }
    expect((await user.runWith({ cwd: project }, 'hook', 'install')).stdout).toStartWith('Already installed');
    expect(read()).toBe(after);
    expect(backups()).toEqual([]);
    expect(await user.ok('hook', 'uninstall', '--project', project)).toStartWith('Removed the hooks of');
    expect(read()).toBe('{}\n');
    expect(await user.ok('hook', 'uninstall', '--project', project)).toStartWith('There are no hooks of');
    // There was no file, so there is nothing to copy.
    expect(readdirSync(dirname(settings))).toEqual(['settings.json']);
  });

  test('other hooks and settings keep their bytes, and a copy is kept', async () => {
    const before =
      '{\n    "model": "opus",\n    "hooks": {\n        "Stop": [{"hooks": ' +
      '[{"type": "command", "command": "say done"}]}]\n    },\n' +
      '    "big": 12345678901234567890, "env": {"A": "\\u00e4"}\n}\n';
    write(before);
    expect(await user.ok('hook', 'install', '--project', project, '--systems', 'cpm,handover')).toStartWith(
      'Installed',
    );
    expect(read()).toContain('"big": 12345678901234567890, "env": {"A": "\\u00e4"}\n}\n');
    expect(written()).toMatchObject({ hooks: { Stop: [{ hooks: [{ command: 'say done' }] }] } });
    expect(written().hooks.SessionStart).toHaveLength(2);
    expect(backups().map((name) => read(join(dirname(settings), name)))).toEqual([before]);
    const said = await user.run('hook', 'uninstall', '--project', project);
    expect(said).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(read())).toEqual(JSON.parse(before));
    expect(backups().map((name) => read(join(dirname(settings), name)))).toEqual([before]);
  });

  test('one copy at most: of the state before our hooks', async () => {
    const kept = `${settings}.claude-code-agent.bak`;
    write('{"model":"opus"}');
    const { stderr } = await user.run('hook', 'install', '--project', project, '--systems', 'cpm');
    expect(stderr).toBe(`The previous settings are kept in ${kept}\n`);
    for (const systems of ['faber', 'handover']) {
      expect(await user.run('hook', 'install', '--project', project, '--systems', systems)).toMatchObject({
        code: 0,
        stderr: '',
      });
    }
    expect(read(kept)).toBe('{"model":"opus"}');
    const edited = read().replace('opus', 'sonnet');
    write(edited);
    const again = await user.run('hook', 'uninstall', '--project', project, '--systems', 'faber');
    expect(again).toMatchObject({ code: 0, stderr: '' });
    expect(read(kept)).toBe('{"model":"opus"}');
    await user.ok('hook', 'uninstall', '--project', project);
    expect(read()).toBe('{"model":"sonnet"}');
    expect(readdirSync(dirname(settings)).toSorted()).toEqual(['settings.json', 'settings.json.claude-code-agent.bak']);
  });
});

describe('a file that cannot be changed stays', () => {
  test.each([
    ['a comma too many', '{"a": 1,}', 'settings.json:1:9 is not valid JSON'],
    ['a comment', '{\n  // mine\n}', 'settings.json:2:3 is not valid JSON'],
    ['a list', '[]', 'settings.json:1:1 is not valid JSON'],
    ['a key twice', '{"hooks": {}, "hooks": {}}', 'settings.json:1:15'],
    ['a byte order mark', '\ufeff{}', 'settings.json:1:1 is not valid JSON'],
    ['hooks of a wrong type', '{"hooks": "none"}', 'hooks must be a map ("name: value"), not a text'],
    ['a hook that voids the file', '{"hooks": {"Stop": [{"hooks": [{"type": "command"}]}]}}', 'a command is missing'],
  ])('%s', async (_, text, sentence) => {
    write(text);
    for (const command of ['install', 'uninstall', 'status']) {
      const { code, stdout, stderr } = await user.run('hook', command, '--project', project);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toContain(sentence);
      expect(stderr.trim().split('\n')).toHaveLength(1);
    }
    expect(read()).toBe(text);
    expect(readdirSync(dirname(settings))).toEqual(['settings.json']);
  });

  test('impossible folders and options', async () => {
    const wrong: [string[], string][] = [
      [['--project', join(user.folder, 'none')], 'does not exist'],
      [['--project', ''], 'is empty'],
      [['--project', project, '--config-dir', project], '--project and --config-dir cannot be combined'],
      [['--systems', 'cpm,none'], '--systems'],
      [['--systems', 'none'], 'No system is named'],
      [['--systems', 'task'], '--systems'],
      [['--config-dir', '/dev/null'], 'is not a folder'],
    ];
    for (const [args, sentence] of wrong) {
      const { code, stderr } = await user.run('hook', 'install', ...args);
      expect([code, stderr]).toEqual([2, expect.stringContaining(sentence)]);
    }
    mkdirSync(settings, { recursive: true });
    expect((await user.run('hook', 'install', '--project', project)).stderr).toContain('is not a regular file');
    const other = user.project('other');
    mkdirSync(join(other, '.claude'));
    symlinkSync(join(user.folder, 'nowhere'), join(other, '.claude', 'settings.json'));
    expect((await user.run('hook', 'install', '--project', other)).stderr).toContain('is a broken symlink');
    Bun.spawnSync(['mkfifo', join(user.project('third'), 'settings.json')]);
    const fifo = await user.run('hook', 'status', '--config-dir', user.project('third'));
    expect(fifo).toMatchObject({ code: 2, stderr: expect.stringContaining('is not a regular file') });
  });
});

test('hook status: installed hooks, whether their program exists, and what disables them', async () => {
  type Status = { exists: boolean; disableAllHooks: boolean; hooks: { installed: boolean; trouble?: string }[] };
  const status = () => user.json<Status>('hook', 'status', '--project', project);
  expect(await status()).toMatchObject({ exists: false, disableAllHooks: false });
  expect((await status()).hooks.map(({ installed }) => installed)).toEqual(Array(9).fill(false));
  write('{"disableAllHooks": true}');
  const installed = await user.run('hook', 'install', '--project', project, '--systems', 'handover');
  expect(installed.stderr).toContain('They will not run: "disableAllHooks" is true');
  expect((await status()).hooks.filter((hook) => hook.installed)).toHaveLength(3);
  expect((await status()).hooks.some(({ trouble }) => trouble !== undefined)).toBe(false);
  write(read().replaceAll(checkoutRoot, join(user.folder, 'moved')));
  const text = await user.run('hook', 'status', '--project', project);
  expect(text.stdout).toMatch(/handover +session-start +.*does not exist: install again/);
  expect(text.stderr).toContain('None of them runs');
  await user.ok('hook', 'install', '--project', project, '--systems', 'handover');
  expect((await status()).hooks.some(({ trouble }) => trouble !== undefined)).toBe(false);
  expect(written().hooks.SessionStart).toHaveLength(1);
});

describe.skipIf(claudeBinary === undefined)('the real claude', () => {
  test(
    'runs the installed hooks, each system by itself, and passes the project on',
    async () => {
      const rig = openRig([{ text: 'done' } as never]);
      try {
        await user.ok('hook', 'install', '--project', rig.project);
        await user.ok('hook', 'install', '--config-dir', rig.configDir);
        const plan = join(rig.project, '02-projects', '28-parser');
        await user.ok('handover', 'init', plan, '--root', rig.project, '--name', 'The parser');
        const child = Bun.spawn(
          [claudeBinary as string, '-p', '--verbose', '--output-format', 'stream-json', '--', 'go on'],
          { cwd: rig.project, env: rig.env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
        );
        const lines = (await new Response(child.stdout).text()).trim().split('\n');
        expect(await child.exited).toBe(0);
        const answers = lines
          .map((line) => JSON.parse(line) as { subtype?: string; outcome?: string; stdout?: string })
          .filter(({ subtype }) => subtype === 'hook_response');
        // The same entry in both files runs once.
        expect(answers.map(({ outcome }) => outcome)).toEqual(['success', 'success', 'success']);
        const said = answers.filter(({ stdout }) => stdout?.includes('HANDOVER: project 28-parser "The parser"'));
        expect(said).toHaveLength(1);
      } finally {
        await rig.close();
      }
    },
    stepLimitMs,
  );
});

test('in a worker, whose generated settings have the same hooks, an installed hook is silent', async () => {
  await user.ok('handover', 'init', project);
  await user.ok('hook', 'install', '--project', project, '--systems', 'handover');
  const [hook] = written().hooks.SessionStart?.[0]?.hooks ?? [];
  const say = (env: Readonly<Record<string, string>>) =>
    Bun.spawnSync([hook?.command as string, ...(hook?.args ?? [])], {
      cwd: user.folder,
      env: { CLAUDE_PROJECT_DIR: project, ...env },
      stdin: Buffer.from('{"session_id":"aaa111","source":"startup"}'),
    }).stdout.toString();
  expect(say({})).toStartWith('HANDOVER: project api');
  expect(say({ CLAUDE_CODE_AGENT_ATTEMPT: 'a' })).toBe('');
});

describe('called by hand', () => {
  const events = '<session-start|pre-compact|session-end>';
  /** Always a process of its own: src/main.ts decides what is a hook. */
  const hook = (...args: string[]) => user.runWith({ stdin: '', cwd: project }, 'hook', ...args);

  test.each([
    [['--help']],
    [['cpm', '--help']],
    [['faber', 'session-end', '--help']],
    [['handover', 'sesion-end', '--help']],
  ])('%j prints what is known', async (args) => {
    const { code, stdout, stderr } = await hook(...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toStartWith('Usage: claude-code-agent hook ');
    expect(stdout).toContain(`claude-code-agent hook <task|cpm|faber|handover|all> ${events}`);
    expect(stdout).toMatch(/\nExample:\n {2}\$ /);
  });

  const give = 'Give one of session-start, pre-compact, session-end.\n';
  test.each([
    [['cpm', 'sesion-start'], `There is no event "sesion-start". ${give}`],
    [['all', 'SessionStart'], `There is no event "SessionStart". ${give}`],
    [['task', 'a\u001b[2Jb'], `There is no event "a\\u001b[2Jb". ${give}`],
    [['handover'], `There is no event "". ${give}`],
  ])('%j lists the events, and blocks no session', async (args, sentence) => {
    expect(await hook(...args)).toEqual({ code: 0, stdout: '', stderr: `claude-code-agent hook: ${sentence}` });
  });

  test.each([
    [['--sorce', 'x'], '--sorce'],
    [['--source=startup'], '--source=startup'],
    [['--installed', 'a\u001b[2Jb'], 'a\\u001b[2Jb'],
  ])('the option in %j is named, and blocks no session', async (options, wrong) => {
    const stderr = `claude-code-agent hook: There is no option "${wrong}". Give --source and its value.\n`;
    expect(await hook('cpm', 'session-start', ...options)).toEqual({ code: 0, stdout: '', stderr });
  });
});
