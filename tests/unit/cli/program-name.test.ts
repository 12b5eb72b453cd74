/**
 * Promises: the program has two names, and help, usage errors, failures and completion use the one that was typed, or
 * that of any other link to it.
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

test('the package brings both names, for one program', () => {
  expect(manifest.bin).toEqual({ 'claude-code-agent': 'bin/claude-code-agent', cca: 'bin/claude-code-agent' });
});

test('help names the program as it was typed, in its usage and in its examples', async () => {
  typeAs('cca');
  for (const words of [['--help'], ['group', '--help'], ['group', 'show', '--help'], ['completion', '--help']]) {
    const help = await user.ok(...words);
    expect(help).toContain('Usage: cca ');
    expect(help).toMatch(/(?:\$|<\()\s?cca /);
    expect(help).not.toMatch(/\bclaude-code-agent /);
  }
});

test('what is mistyped or refused is said, and explained, under the name that was typed', async () => {
  typeAs('cca');
  expect(await user.run('group', 'shwo')).toMatchObject({
    code: 2,
    stderr: "cca: Unknown command 'shwo'. Did you mean show? See: cca group --help\n",
  });
  expect((await user.run('group', 'show', 'nothing')).stderr).toStartWith('cca: There is no group "nothing".');
});

test('completion is for the name that was typed', async () => {
  typeAs('cca');
  const script = await user.ok('completion', 'bash');
  expect(script).toContain('complete -F __cca_complete cca');
  expect(script).toContain('cca complete --');
  expect(script).not.toContain('claude-code-agent');
});

test('a link of a person’s own is a name as well; one that a shell would not take as it stands is not', async () => {
  typeAs('agent-2.0');
  expect((await user.run('nothing')).stderr).toStartWith('agent-2.0: ');
  typeAs('my agent');
  expect((await user.run('nothing')).stderr).toStartWith('claude-code-agent: ');
});

test('started by a path, as in a clone, it advises the whole path, which works from any folder', async () => {
  const started = Bun.spawnSync(['sh', '-c', 'bin/claude-code-agent group show none'], {
    cwd: dirname(dirname(launcher)),
    env: user.env,
  });
  expect(started.stderr.toString()).toBe(`claude-code-agent: There is no group "none". See: ${launcher} group list\n`);
});
