/**
 * Promises, with the real claude: a session is not offered tools that cannot work unattended, and in a worktree none
 * that would create another one in the user's checkout. Branches and worktrees that appear anyway are named at its end.
 * A session may run its own acceptance and set-up commands.
 */
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Step } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { pinnedClaude, TestHome } from '../../support/cli.ts';
import { type FileTree, git, Repository } from '../../support/git/repository.ts';

setDefaultTimeout(60_000);

let api: ScriptedApi | null = null;
let machine: TestHome | null = null;
afterEach(async () => {
  await api?.stop();
  machine?.remove();
});

interface Wish {
  readonly steps: readonly Step[];
  readonly agents?: readonly Step[];
  readonly options?: readonly string[];
  readonly tree?: FileTree;
}

/** Runs a group of one session in a repository to its end. */
async function runSession({ steps, agents = [], options = [], tree = {} }: Wish) {
  const script = { steps: [...steps], agents: [...agents] };
  const served = startScriptedApi({ script: { version: 1, sessions: { '*': script } }, nameOf: () => 'a' });
  api = served;
  const user = new TestHome({
    ANTHROPIC_BASE_URL: served.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
  });
  machine = user;
  const project = user.project('shop');
  new Repository(project).commit({ 'README.md': 'shop\n', ...tree });
  const group = await user.ok('group', 'create', 'tools');
  const session = ['session', 'add', group, '--name', 'a', '--project', project, '--prompt', 'go'];
  const id = await user.ok(...session, ...options);
  const { code } = await user.run('group', 'run', group);
  const shown = await user.json<{ status: string; warnings: { code: string; message: string }[] }>(
    ...['session', 'show', `${group}/${id}`],
  );
  const requests = served.requests.filter(({ kind }) => kind === 'step').map(({ body }) => JSON.stringify(body));
  return { code, project, shown, last: requests.at(-1) ?? '' };
}

const call = (tool: string, input: object = {}): Step => ({ tool, input: { ...input } });
const agent = { description: 'look', prompt: 'Look around.' };

test('tools that act after the session ends are not offered', async () => {
  const steps = [
    call('ScheduleWakeup', { delaySeconds: 60, reason: 'wait', prompt: 'go on' }),
    call('CronCreate', { cron: '* * * * *', prompt: 'go on' }),
    { text: 'done' },
  ];
  const { code, last } = await runSession({ steps });
  expect(code).toBe(0);
  expect(last).toContain('No such tool available: ScheduleWakeup');
  expect(last).toContain('No such tool available: CronCreate');
});

test('in a worktree neither the session nor its agents can create another one', async () => {
  const isolated = { ...agent, subagent_type: 'general-purpose', isolation: 'worktree' };
  const tried = [call('EnterWorktree', { name: 'mine' }), call('Agent', isolated)];
  const steps = [...tried, call('Bash', { command: 'ls' }), { text: 'done' }];
  const { code, project, shown, last } = await runSession({ steps, options: ['--isolate', 'worktree'] });
  expect(code).toBe(0);
  expect(last).toContain('No such tool available: EnterWorktree');
  expect(last).toContain('Permission to use Agent with isolation:worktree has been denied');
  expect(existsSync(join(project, '.claude'))).toBe(false);
  expect(shown.warnings.map(({ code }) => code)).not.toContain('workspace');
});

const ownAgent = '---\nname: apart\ndescription: works apart\nisolation: worktree\n---\nWork.\n';
const apart: Wish = {
  steps: [call('Agent', { ...agent, subagent_type: 'apart' }), { text: 'done' }],
  agents: [call('Bash', { command: 'echo found > note.txt' }), { text: 'I wrote it down.' }],
  options: ['--allowed-tools', 'Bash(echo:*)', '--allowed-tools', 'Agent'],
  tree: { '.claude/agents/apart.md': ownAgent },
};

test.each([
  ['in place', []],
  ['in a worktree', ['--isolate', 'worktree']],
])("a branch left by a project's agent is named: %s", async (_, options) => {
  const { project, shown } = await runSession({ ...apart, options: [...(apart.options ?? []), ...options] });
  const branch = git(project, 'branch', '--format=%(refname:short)', '--list', 'worktree-*');
  expect(branch).not.toBe('');
  expect(shown.status).toBe('completed');
  const named = shown.warnings.filter(({ code }) => code === 'workspace').map(({ message }) => message);
  expect(named).toEqual([expect.stringContaining(`branch ${branch}`)]);
  expect(named[0]).toContain('worktree /');
  expect(named[0]).not.toContain('cca/');
});

test('a session may run its acceptance and set-up commands', async () => {
  const commands = ['sh check.sh 2>&1 | tail -5', 'sh prepare.sh', 'sh other.sh'];
  const steps = [...commands.map((command) => call('Bash', { command })), { text: 'done' }];
  const tree = { 'check.sh': 'echo good\n', 'prepare.sh': 'echo ready\n', 'other.sh': 'echo other\n' };
  const options = ['--isolate', 'worktree', '--accept', 'sh check.sh', '--setup', 'sh prepare.sh'];
  const { code, shown } = await runSession({ steps, tree, options });
  expect(code).toBe(0);
  const denied = shown.warnings.filter(({ code }) => code === 'denied-tools').map(({ message }) => message);
  expect(denied).toEqual(['1 tool call was denied: Bash sh other.sh.']);
});
