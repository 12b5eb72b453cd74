/**
 * Promises: help, usage errors, failures and completion use the name by which the program was called: one of its two
 * names or any other link.
 */
import { expect, test } from 'bun:test';
import { symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import manifest from '../../../package.json' with { type: 'json' };
import { launcher, user, withUser } from '../../support/cli/user.ts';

withUser();

function typeAs(name: string): void {
  user.program = join(user.folder, name);
  symlinkSync(launcher, user.program);
}

test('the package installs both names of the program', () => {
  expect(manifest.bin).toEqual({ 'claude-code-agent': 'bin/claude-code-agent', cca: 'bin/claude-code-agent' });
});

test('help uses the typed program name in usage and examples', async () => {
  typeAs('cca');
  for (const words of [['--help'], ['group', '--help'], ['group', 'show', '--help'], ['completion', '--help']]) {
    const help = await user.ok(...words);
    expect(help).toContain('Usage: cca ');
    expect(help).toMatch(/(?:\$|<\()\s?cca /);
    expect(help).not.toMatch(/\bclaude-code-agent /);
  }
});

test('usage errors and failures use the typed program name', async () => {
  typeAs('cca');
  expect(await user.run('group', 'shwo')).toMatchObject({
    code: 2,
    stderr: "cca: Unknown command 'shwo'. Did you mean show? See: cca group --help\n",
  });
  expect((await user.run('group', 'show', 'nothing')).stderr).toStartWith('cca: There is no group "nothing".');
});

test('completion is for the typed program name', async () => {
  typeAs('cca');
  const script = await user.ok('completion', 'bash');
  expect(script).toContain('complete -F __cca_complete cca');
  expect(script).toContain('cca complete --');
  expect(script).not.toContain('claude-code-agent');
});

test('a user’s own link counts as a program name unless the shell would have to quote it', async () => {
  typeAs('agent-2.0');
  expect((await user.run('nothing')).stderr).toStartWith('agent-2.0: ');
  typeAs('my agent');
  expect((await user.run('nothing')).stderr).toStartWith('claude-code-agent: ');
});

test('a program started by its path suggests commands with the whole path', async () => {
  const started = Bun.spawnSync(['sh', '-c', 'bin/claude-code-agent group show none'], {
    cwd: dirname(dirname(launcher)),
    env: user.env,
  });
  expect(started.stderr.toString()).toBe(`claude-code-agent: There is no group "none". See: ${launcher} group list\n`);
});
