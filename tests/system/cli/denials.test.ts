/**
 * Promises, with the real claude: calls denied by a hook, by a project rule, for safety, or in spite of their exact
 * rule get no rule offered but the fix that helps. All other denied calls are allowed by one command, with which the
 * session continues.
 */
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RehearsalScript, Step } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { stepLimitMs } from '../../support/claude/rig.ts';
import { User } from '../../support/cli/user.ts';
import { pinnedClaude } from '../../support/cli.ts';

setDefaultTimeout(stepLimitMs);

const bash = (command: string): Step => ({ tool: 'Bash', input: { command } });
const risky = "sed -i 's/(a)/$(b)/e' a.txt";
const calls: Step[] = [
  bash('make all'),
  bash('rm -rf denied'),
  bash(risky),
  { tool: 'Write', input: { file_path: '.git/config', content: 'x' } },
  bash('python3 -c "print(1)"'),
];
const script: RehearsalScript = { version: 1, sessions: { '*': { steps: [...calls, { text: 'done' }] } } };

let api: ScriptedApi;
let user: User;
afterEach(async () => {
  await api.stop();
  user.remove();
});

test('denied by a hook, a rule, for safety or in spite of its rule: no rule is offered', async () => {
  api = startScriptedApi({ script, nameOf: () => undefined });
  const env = { ANTHROPIC_BASE_URL: api.url, ANTHROPIC_API_KEY: 'test-key' };
  user = new User({ ...env, CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude() });
  const project = user.project('api');
  mkdirSync(join(project, '.claude'), { recursive: true });
  const deny = { hookEventName: 'PreToolUse', permissionDecision: 'deny', permissionDecisionReason: 'No make here' };
  const said = JSON.stringify({ hookSpecificOutput: deny });
  const command = `if grep -q 'make all'; then echo '${said}'; fi`;
  writeFileSync(
    join(project, '.claude/settings.json'),
    JSON.stringify({
      hooks: { PreToolUse: [{ matcher: 'Bash', hooks: [{ type: 'command', command }] }] },
      permissions: { deny: ['Bash(rm -rf denied)'] },
    }),
  );
  writeFileSync(join(project, 'a.txt'), 'a\n');
  const group = await user.ok('group', 'create', 'auth', '--allowed-tools', 'Edit', '--retries', '0');
  const rules = ['--allowed-tools', 'Bash(rm -rf denied)', '--allowed-tools', `Bash(${risky})`];
  await user.add(group, 'api', ...rules, '--permission-mode', 'acceptEdits');
  await user.run('group', 'run', group, '--output', 'quiet');
  const shown = await user.ok('group', 'allow', group);
  expect(shown).toContain('denied: Bash make all\n     no rule helps: a hook denied it. PreToolUse:Bash hook');
  expect(shown).toMatch(/denied: Bash rm -rf denied\n {5}no rule helps: a rule in its settings/);
  expect(shown).toContain(`no rule helps: it was denied although Bash(${risky}) was set`);
  expect(shown).toMatch(/denied: Write .*\.git\/config\n {5}no rule helps/);
  expect(shown).toContain('   1 Bash(python3 -c "print(1)")');
  expect(shown).not.toContain('   2 ');
  expect(shown).not.toContain('--permission-mode acceptEdits');
  expect(shown).toContain(`session edit ${group}/api --permission-mode bypassPermissions`);
});
