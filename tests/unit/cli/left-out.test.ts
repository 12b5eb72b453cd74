/** Promises: what a plan says is left out can be brought in with the command that it prints. */
import { expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { user, withUser } from '../../support/cli/user.ts';

withUser();

test('the plan of a group names the command that brings in what is left out, and it does', async () => {
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
