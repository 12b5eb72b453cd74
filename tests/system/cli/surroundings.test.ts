/**
 * Promises: files in the current folder cannot change what runs. A closed pipe is no error. Colours appear only on a
 * terminal. Completion offers commands, options, groups and sessions.
 */
import { expect, test } from 'bun:test';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import manifest from '../../../package.json' with { type: 'json' };
import { launcher, user, withUser } from '../../support/cli/user.ts';

withUser();

/** A program that leaves a trace when it runs. */
function trap(): { readonly code: string; wasSprung(): boolean } {
  const trace = join(user.folder, 'sprung');
  return {
    code: `require('node:fs').writeFileSync(${JSON.stringify(trace)}, 'x');`,
    wasSprung: () => existsSync(trace),
  };
}

test('bunfig.toml, .env, package.json and node_modules of the current folder are ignored', async () => {
  const cwd = join(user.folder, 'hostile');
  const { code, wasSprung } = trap();
  mkdirSync(join(cwd, 'node_modules', 'commander'), { recursive: true });
  writeFileSync(join(cwd, 'trap.js'), code);
  writeFileSync(join(cwd, 'node_modules', 'commander', 'index.js'), code);
  writeFileSync(join(cwd, 'bunfig.toml'), 'preload = ["./trap.js"]\n[run]\npreload = ["./trap.js"]\n');
  const stolen = join(user.folder, 'stolen');
  writeFileSync(join(cwd, '.env'), `CLAUDE_CODE_AGENT_HOME=${stolen}\nANTHROPIC_API_KEY=stolen\n`);
  writeFileSync(join(cwd, 'package.json'), '{"name":"x","imports":{"#x":"./trap.js"}}');
  const { CLAUDE_CODE_AGENT_HOME: _, ...env } = user.env;
  const child = Bun.spawn([launcher, 'group', 'create', 'x'], { cwd, env, stdout: 'pipe', stderr: 'pipe' });
  expect(await new Response(child.stderr).text()).toBe('');
  expect({ code: await child.exited, sprung: wasSprung() }).toEqual({ code: 0, sprung: false });
  expect(existsSync(stolen)).toBe(false);
  expect(existsSync(join(user.home, '.local', 'claude-code-agent', 'session-groups'))).toBe(true);
});

// Bun looks for these upwards from the current folder, and applies `paths` even to programs elsewhere.
test.each(['tsconfig.json', 'jsconfig.json'])('%s of the current folder or one above is ignored', async (name) => {
  const cwd = join(user.folder, 'hostile', 'deeper');
  const { code, wasSprung } = trap();
  mkdirSync(cwd, { recursive: true });
  writeFileSync(join(cwd, '..', 'trap.js'), code);
  writeFileSync(join(cwd, '..', name), '{"compilerOptions":{"paths":{"*":["./trap.js"]}}}');
  const { stdout } = await user.runWith({ cwd }, '--version');
  expect({ sprung: wasSprung(), stdout }).toEqual({ sprung: false, stdout: expect.stringMatching(/^\d/) });
});

test('the launcher works through a chain of symbolic links', async () => {
  symlinkSync(launcher, join(user.folder, 'one'));
  symlinkSync('one', join(user.folder, 'two'));
  const child = Bun.spawn([join(user.folder, 'two'), '--version'], { env: user.env, stdout: 'pipe' });
  expect(await new Response(child.stdout).text()).toBe(`${manifest.version}\n`);
});

test('a reader that stops reading ends the output without an error', async () => {
  const group = await user.ok('group', 'create', 'big');
  const prompt = 'x'.repeat(900_000);
  for (const name of ['a', 'b', 'c']) {
    const args = ['session', 'add', group, '--project', user.folder, '--name', name, '--prompt', '-'];
    expect(await user.runWith({ stdin: prompt }, ...args)).toMatchObject({ code: 0 });
  }
  // More than a pipe holds, so the writer certainly meets the closed end.
  const show = '"$0" session show big/a';
  const line = `${show} --json | head -c 10; ${show} | head -n 1; exit \${PIPESTATUS[0]}`;
  const child = Bun.spawn(['bash', '-c', line, launcher], {
    env: user.env,
    stdout: 'pipe',
    stderr: 'pipe',
  });
  expect(await new Response(child.stderr).text()).toBe('');
  expect(await child.exited).toBe(0);
  expect(await new Response(child.stdout).text()).toStartWith('{\n  "id":');
});

test('colours appear on a terminal, and not with NO_COLOR', async () => {
  await user.makeGroup();
  const onTerminal = async (env: Record<string, string>): Promise<string> => {
    const chunks: Uint8Array[] = [];
    const child = Bun.spawn([launcher, 'group', 'list'], {
      env: { ...user.env, TERM: 'xterm-256color', ...env },
      terminal: { cols: 120, rows: 40, data: (_terminal, data) => chunks.push(data) },
    });
    expect(await child.exited).toBe(0);
    return Buffer.concat(chunks).toString('utf8');
  };
  expect(await onTerminal({})).toContain('\u001b[');
  expect(await onTerminal({ NO_COLOR: '1' })).not.toContain('\u001b[');
  expect(await onTerminal({ TERM: 'dumb' })).not.toContain('\u001b[');
  expect(await user.ok('group', 'list')).not.toContain('\u001b[');
});

test.each([
  ['n\r', true],
  ['y\r', false],
])('delete asks on a terminal: after the answer %j the group is there: %p', async (answer, stays) => {
  const group = await user.makeGroup();
  let shown = '';
  let isAnswered = false;
  const child = Bun.spawn([launcher, 'group', 'delete', group], {
    env: user.env,
    terminal: {
      cols: 200,
      rows: 10,
      data: (terminal, data) => {
        shown += Buffer.from(data).toString('utf8');
        if (isAnswered || !shown.includes('?')) return;
        isAnswered = true;
        terminal.write(answer);
      },
    },
  });
  expect(await child.exited).toBe(0);
  expect(shown).toContain(`Delete group ${group} with 2 sessions and all transcripts?`);
  expect(existsSync(join(user.data, 'session-groups', group))).toBe(stays);
});

test.each(['bash', 'zsh', 'fish'])('the completion script of %s names the program', async (shell) => {
  const script = await user.ok('completion', shell);
  expect(script).toContain('claude-code-agent complete --');
});

test('completion offers commands, options, values, groups and sessions', async () => {
  const group = await user.makeGroup();
  await user.makeGroup('other');
  const offered = async (...words: string[]): Promise<string[]> => {
    const lines = (await user.ok('complete', '--', ...words)).split('\n');
    return lines.filter((line) => !line.startsWith(':')).map((line) => line.split('\t')[0] as string);
  };
  expect(await offered('gr')).toEqual(['group', 'graph']);
  expect(await offered('group', 're')).toEqual(['resume', 'report']);
  expect((await offered('group', 'show', '')).sort()).toEqual(['auth', 'other']);
  expect(await offered('session', 'logs', 'auth/')).toEqual(['auth/api', 'auth/web']);
  expect(await offered('group', 'run', '--retry')).toEqual(['--retry-failed']);
  expect(await offered('group', 'run', 'auth', '--output', '')).toEqual(['tui', 'text', 'json', 'quiet']);
  expect(await offered('session', 'add', group, '--depends-on', '')).toEqual(['api', 'web']);
});
