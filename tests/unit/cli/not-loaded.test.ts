/** Promises: the plan prints a command for each thing that sessions do not load, and that command works. */
import { expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { user, withUser } from '../../support/cli/user.ts';

withUser();

test('the plan prints a working command for each thing that sessions do not load', async () => {
  const project = user.project('web');
  mkdirSync(join(project, '.claude'));
  writeFileSync(join(project, '.claude/settings.json'), '{"permissions":{"allow":["Bash(make:*)"]}}');
  writeFileSync(join(project, '.mcp.json'), '{"mcpServers":{"docs":{"command":"node"}}}');
  const group = await user.ok('group', 'create', 'auth');
  await user.add(group, 'web');
  const plan = async () => (await user.run('group', 'plan', group)).stdout;
  for (const [option, what] of [
    ['--trust', 'is not trusted'],
    ['--project-mcp all', 'have not approved it'],
  ] as const) {
    const command = `group edit ${group} ${option}`;
    expect(await plan()).toMatch(new RegExp(`${what}.*with: claude-code-agent ${command}$`, 'm'));
    await user.ok(...command.split(' '));
    expect(await plan()).not.toContain(what);
  }
});

test('session show --config lists instructions above the project, those of the user only if inherited', async () => {
  const project = join(user.home, 'shop/web');
  for (const folder of [project, join(user.home, '.claude')]) mkdirSync(folder, { recursive: true });
  for (const name of ['.claude', 'shop', 'shop/web']) writeFileSync(join(user.home, name, 'CLAUDE.md'), 'Be brief.');
  const group = await user.ok('group', 'create', 'auth');
  await user.ok('session', 'add', group, '--project', project, '--name', 'web', '--prompt', 'x');
  const shown = () => user.ok('session', 'show', `${group}/web`, '--config');
  expect(await shown()).toContain(
    `Instructions of the project\n  ${user.home}/shop/CLAUDE.md\n  ${user.home}/shop/web/CLAUDE.md\n`,
  );
  expect(await shown()).not.toContain(`${user.home}/.claude/CLAUDE.md`);
  await user.ok('group', 'edit', group, '--inherit', 'user');
  expect(await shown()).toContain(`  ${user.home}/.claude/CLAUDE.md\n`);
});
