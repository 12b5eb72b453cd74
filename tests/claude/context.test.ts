/**
 * Promises, through the runner and with the real claude, for each context system: after an automatic compaction, after
 * a pause and after the runner and the worker were killed, the next request of the model holds the session's own state
 * and its task; two sessions of one project get their own.
 */
import { afterEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ContextName } from '../../src/core/group.ts';
import type { Step } from '../../src/rehearsal/script.ts';
import { type CapturedRequest, type ScriptedApi, startScriptedApi } from '../../src/rehearsal/scripted-api.ts';
import { pinnedClaude, until } from '../support/cli.ts';
import { type GroupFixture, makeGroup } from '../support/group-fixture.ts';

let group: GroupFixture;
let api: ScriptedApi;
let env: Record<string, string>;

afterEach(async () => {
  await api.stop();
  group.remove();
});

interface Setting {
  readonly systems: readonly ContextName[];
  readonly steps: readonly Step[];
  readonly names?: readonly string[];
}

function open({ systems, steps, names = ['a'] }: Setting): void {
  // Above 67,000 tokens a window of 100,000 is compacted.
  const config = { settingsOverride: { autoCompactWindow: 100_000 } };
  const fields = { allowedTools: ['Bash'], context: systems, model: 'claude-sonnet-4-5', config };
  group = makeGroup(names.map((name) => ({ name, project: 'shared', fields })));
  const nameOf = (id: string) => names.find((name) => group.claudeId(name) === id);
  const sessions = { '*': { steps: [...steps] } };
  api = startScriptedApi({ script: { version: 1, sessions }, nameOf });
  env = {
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
  };
}

function write(path: string, text: string): void {
  const whole = join(group.project('shared'), path);
  mkdirSync(dirname(whole), { recursive: true });
  writeFileSync(whole, text);
}

/** State of each system as it lies on disk while a session works; `mark` is what must come back. */
const places: Readonly<Record<ContextName, (mark: string, claudeId: string) => void>> = {
  cpm: (mark, claudeId) =>
    write(`docs/plans/.cpm-progress-${claudeId}.md`, `# CPM Session State\n\n**Skill**: do\n**Phase**: 2\n\n${mark}\n`),
  faber: (mark) => {
    write('.fractary/faber/.active-run-id', 'run-1');
    write('notes/architecture.md', mark);
    const now = new Date().toISOString();
    const state = {
      run_id: 'run-1',
      work_id: '7',
      workflow_id: 'default',
      status: 'in_progress',
      current_phase: 'build',
      phases: [{ name: 'frame', status: 'completed' }],
      artifacts: { spec_path: 'notes/architecture.md' },
      sessions: { history: [] },
      context_metadata: { note: mark },
      created_at: now,
      updated_at: now,
    };
    write('.fractary/runs/run-1/state.json', JSON.stringify(state));
  },
  handover: (mark, claudeId) =>
    write(
      '02-projects/28-move/01-planning/resume-context.md',
      `---\nresume_schema_version: "2.0"\nsession_ids: ["${claudeId}"]\nnext_action: "${mark}"\n---\n`,
    ),
};

const said = (request: CapturedRequest | undefined): string => JSON.stringify(request?.body.messages);
const stepsOf = (name: string) => api.requests.filter((request) => request.name === name && request.kind === 'step');
const bash = (command: string, more: Partial<Step> = {}): Step => ({ tool: 'Bash', input: { command }, ...more });

test.each(['cpm', 'handover', 'faber'] as const)(
  '%s: state and task come back after a compaction',
  async (system) => {
    open({
      systems: [system],
      steps: [bash('echo one'), bash('echo two', { usage: { input: 70_000 } }), { text: 'done' }],
    });
    const mark = `the ${system} state of a`;
    places[system](mark, group.claudeId('a'));
    expect(await group.run(env).result).toMatchObject({ kind: 'settled', status: 'completed' });
    expect(api.requests.filter(({ kind }) => kind === 'summary')).toHaveLength(1);
    const after = said(stepsOf('a').at(-1));
    expect(after).toContain('The conversation was compacted. Your task');
    expect(after).toContain(mark);
    const { warnings } = group.state().sessions.get(group.id('a')) ?? { warnings: [] };
    expect(warnings).toEqual([]);
  },
  60_000,
);

test.each(['cpm', 'handover', 'faber'] as const)(
  '%s: state and task come back after a pause, and after a kill',
  async (system) => {
    const wait = (name: string) => bash(`touch ${name}; [ -e go-${name} ] || sleep 60`);
    open({ systems: [system], steps: [wait('first'), wait('second'), { text: 'done' }] });
    const mark = `the ${system} state of a`;
    places[system](mark, group.claudeId('a'));
    const begun = (name: string) => until(() => existsSync(join(group.project('shared'), name)));
    const run = group.run(env);
    await begun('first');
    await run.ask({ kind: 'pause', mode: 'now' });
    expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
    write('go-first', '');

    const before = api.requests.length;
    const second = group.run(env);
    await begun('second');
    const resumed = said(api.requests[before]);
    expect(resumed).toContain('do a');
    expect(resumed).toContain(mark);
    // Both at once, as when the machine is switched off.
    const session = group.state().sessions.get(group.id('a'))?.state;
    if (session?.status !== 'running' || !session.attempt.process) throw new Error('nothing runs');
    second.signal('SIGHUP');
    await second.result;
    process.kill(session.attempt.process.pid, 'SIGKILL');
    write('go-second', '');

    const asked = api.requests.length;
    expect(await group.run(env).result).toMatchObject({ kind: 'settled', status: 'completed' });
    expect(said(api.requests[asked])).toContain('do a');
    expect(said(api.requests[asked])).toContain(mark);
  },
  60_000,
);

test('two sessions of one project get their own state', async () => {
  const steps = [bash('echo one'), bash('echo two', { usage: { input: 70_000 } }), { text: 'done' }];
  open({ systems: ['cpm'], names: ['a', 'b'], steps });
  for (const name of ['a', 'b']) places.cpm(`state of ${name} alone`, group.claudeId(name));
  expect(await group.run(env).result).toMatchObject({ kind: 'settled', status: 'completed' });
  for (const [name, other] of [
    ['a', 'b'],
    ['b', 'a'],
  ] as const) {
    const after = said(stepsOf(name).at(-1));
    expect(after).toContain(`state of ${name} alone`);
    expect(after).not.toContain(`state of ${other} alone`);
  }
}, 60_000);

test('CLAUDE.md names the progress file, and hooks.log tells of every call', async () => {
  open({ systems: ['cpm', 'handover'], steps: [{ text: 'done' }] });
  expect(await group.run(env).result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(said(api.requests[0])).toContain(`docs/plans/.cpm-progress-${group.claudeId('a')}.md`);
  const lines = readFileSync(join(group.session('a').folder, 'hooks.log'), 'utf8')
    .trim()
    .split('\n');
  const calls = lines.map((line) => JSON.parse(line) as { system: string; event: string });
  for (const system of ['task', 'cpm', 'handover']) {
    expect(calls).toContainEqual(expect.objectContaining({ system, event: 'session-start', source: 'startup' }));
  }
}, 60_000);
