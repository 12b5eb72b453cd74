/**
 * Promises: nothing in the folder where a command is typed can change what runs; a reader that goes away is no
 * trouble; colours only on a terminal; completion offers commands, options, groups and sessions.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { launcher, User } from './user.ts';

let user: User;
beforeEach(() => {
  user = new User();
});
afterEach(() => user.remove());

test('bunfig.toml, .env, package.json and tsconfig.json of the current folder are not obeyed', async () => {
  const cwd = join(user.folder, 'hostile');
  mkdirSync(join(cwd, 'node_modules', 'commander'), { recursive: true });
  const trap = `require('node:fs').writeFileSync(${JSON.stringify(join(user.folder, 'trapped'))}, 'x');`;
  writeFileSync(join(cwd, 'trap.js'), trap);
  writeFileSync(join(cwd, 'node_modules', 'commander', 'index.js'), trap);
  writeFileSync(join(cwd, 'bunfig.toml'), 'preload = ["./trap.js"]\n[run]\npreload = ["./trap.js"]\n');
  writeFileSync(join(cwd, '.env'), `CLAUDE_CODE_AGENT_HOME=${join(user.folder, 'stolen')}\nANTHROPIC_API_KEY=stolen\n`);
  writeFileSync(join(cwd, 'package.json'), '{"name":"x","imports":{"#x":"./trap.js"}}');
  writeFileSync(join(cwd, 'tsconfig.json'), '{"compilerOptions":{"paths":{"*":["./trap.js"]}}}');
  const { CLAUDE_CODE_AGENT_HOME: _, ...env } = user.env;
  const child = Bun.spawn([launcher, 'group', 'create', 'x'], { cwd, env, stdout: 'pipe', stderr: 'pipe' });
  expect({ code: await child.exited, stderr: await new Response(child.stderr).text() }).toEqual({ code: 0, stderr: '' });
  expect(existsSync(join(user.folder, 'trapped'))).toBe(false);
  expect(existsSync(join(user.folder, 'stolen'))).toBe(false);
  expect(existsSync(join(user.home, '.local', 'claude-code-agent', 'session-groups'))).toBe(true);
});

test('the launcher works through a chain of symbolic links', async () => {
  const { symlinkSync } = await import('node:fs');
  symlinkSync(launcher, join(user.folder, 'one'));
  symlinkSync('one', join(user.folder, 'two'));
  const child = Bun.spawn([join(user.folder, 'two'), '--version'], { env: user.env, stdout: 'pipe' });
  expect(await new Response(child.stdout).text()).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test('a reader that stops reading ends the output, not the manners', async () => {
  const group = await user.ok('group', 'create', 'big');
  const prompt = 'x'.repeat(900_000);
  for (const name of ['a', 'b', 'c']) {
    const args = ['session', 'add', group, '--project', user.folder, '--name', name, '--prompt', '-'];
    expect(await user.runWith({ stdin: prompt }, ...args)).toMatchObject({ code: 0 });
  }
  // More than a pipe holds, so the writer meets the closed end for certain.
  const line = `"$0" session show big/a --json | head -c 10; "$0" session show big/a | head -n 1; exit \${PIPESTATUS[0]}`;
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
  expect(await offered('gr')).toEqual(['group']);
  expect(await offered('group', 're')).toEqual(['resume']);
  expect((await offered('group', 'show', '')).sort()).toEqual(['auth', 'other']);
  expect(await offered('session', 'logs', 'auth/')).toEqual(['auth/api', 'auth/web']);
  expect(await offered('group', 'run', '--retry')).toEqual(['--retry-failed']);
  expect(await offered('group', 'run', 'auth', '--output', '')).toEqual(['text', 'json', 'quiet']);
  expect(await offered('session', 'add', group, '--depends-on', '')).toEqual(['api', 'web']);
});
