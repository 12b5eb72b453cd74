/**
 * Promises about the real claude: `/prime-context`, `/session-end` and `/workflow-run` from the config template and the
 * plugins reach the model with the command to run. That command needs no permission, and its effects are in the state
 * of the run.
 */
import { afterEach, expect, test } from 'bun:test';
import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { newState, phasesDefault } from '../../../src/context/faber/state.ts';
import type { Step } from '../../../src/rehearsal/script.ts';
import { claudeBinary, openRig, type Rig, stepLimitMs } from '../../support/claude/rig.ts';
import { checkoutRoot } from '../../support/cli.ts';
import { statePathOf } from '../../support/context/faber/rig.ts';
import { sampled } from '../../support/long.ts';

let rig: Rig;
afterEach(() => rig.close());

const runId = 'run-258';
const id = '00000001-0000-4000-8000-000000000000';

interface Brought {
  readonly prefix: string;
  /** What the model is told to run. */
  readonly program: (rig: Rig) => string;
  /** Options of claude and required files of the config dir. */
  bring(rig: Rig): string[];
}

const template = {
  program: () => 'claude-code-agent',
  bring({ configDir }: Rig): string[] {
    cpSync(join(checkoutRoot, 'templates/configs/faber/commands'), join(configDir, 'commands'), { recursive: true });
    return [];
  },
};

/** The package is at a path with a space. */
const pluginAt = (folder: string, program: string) => ({
  program: ({ project }: Rig) => `"${join(project, 'the package', folder)}${program}"`,
  bring({ project }: Rig): string[] {
    symlinkSync(checkoutRoot, join(project, 'the package'));
    return ['--plugin-dir', join(project, 'the package', folder)];
  },
});

const ways: readonly (readonly [string, Brought])[] = [
  ['the config template', { prefix: '/', ...template }],
  ['S6: the config template, first name', { prefix: '/fractary-faber:', ...template }],
  ['the plugin', { prefix: '/cpm:', ...pluginAt('', '/bin/claude-code-agent') }],
  [
    'S6: the plugin of the first names',
    { prefix: '/fractary-faber:', ...pluginAt('templates/fractary-faber', '/../../bin/claude-code-agent') },
  ],
];

/** One prompt to a claude in its usual permission mode, in which only the command's allowed tools may run. */
async function ask(brought: Brought, prompt: string, steps: readonly Step[], more: object = {}): Promise<string> {
  rig = openRig(steps);
  const run = { runId, workId: '258', workflowId: 'fractary-faber:default', phases: phasesDefault, nowMs: Date.now() };
  rig.write(`project/${statePathOf(runId)}`, { ...newState(run), ...more });
  rig.write('project/.fractary/faber/.active-run-id', `${runId}\n`);
  const bin = join(rig.folder, 'bin');
  mkdirSync(bin);
  symlinkSync(join(checkoutRoot, 'bin', 'claude-code-agent'), join(bin, 'claude-code-agent'));
  const args = [
    '-p',
    '--output-format',
    'stream-json',
    '--verbose',
    '--session-id',
    id,
    ...brought.bring(rig),
    '--',
    prompt,
  ];
  const child = Bun.spawn([claudeBinary as string, ...args], {
    cwd: rig.project,
    env: { ...rig.env, PATH: `${bin}:${rig.env.PATH}`, CLAUDE_CODE_AGENT_BUN: process.execPath },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  rig.children.push(child);
  const text = await new Response(child.stdout).text();
  expect(await child.exited).toBe(0);
  const last = JSON.parse(text.trim().split('\n').at(-1) as string);
  expect(last).toMatchObject({ type: 'result', is_error: false, permission_denials: [] });
  return text;
}

const said = () => JSON.stringify(rig.api.requests[0]?.body.messages);
const state = () => JSON.parse(readFileSync(join(rig.project, statePathOf(runId)), 'utf8'));
const inJson = (text: string) => JSON.stringify(text).slice(1, -1);
const command = ({ program }: Brought, rest: string): Step => {
  const project = '{{project}}';
  return { tool: 'Bash', input: { command: `${program({ project } as Rig)} ${rest}` } };
};

const withClaude = test.skipIf(claudeBinary === undefined);

withClaude.each(sampled(ways, 4))(
  '"/fractary-faber:prime-context command works with --run-id and --trigger parameters": that of %s',
  async (_, brought) => {
    const options = `--run-id ${runId} --trigger session_start`;
    const rest = `faber prime-context ${options}`;
    const text = await ask(brought, `${brought.prefix}prime-context ${options}`, [
      command(brought, rest),
      { text: 'ok' },
    ]);
    expect(said()).toContain(inJson(`\`${brought.program(rig)} ${rest}\``));
    expect(text).toContain('FABER ARTIFACT workflow-state');
    expect(state().context_metadata.artifacts_in_context).toContainEqual(
      expect.objectContaining({ artifact_id: 'orchestration-protocol', load_trigger: 'session_start' }),
    );
    expect(state().sessions.current_session_id).toBe(id);
  },
  stepLimitMs,
);

withClaude.each(sampled(ways.toReversed(), 4))(
  '"/fractary-faber:session-end command saves session metadata": that of %s',
  async (_, brought) => {
    const record = { session_id: id, started_at: '2026-01-04T10:00:00Z', artifacts_loaded: ['workflow-state'] };
    const sessions = { current_session_id: id, total_sessions: 1, current_session: record, session_history: [] };
    const rest = 'faber session-end --reason compaction';
    await ask(brought, `${brought.prefix}session-end --reason compaction`, [command(brought, rest), { text: 'ok' }], {
      sessions,
      phases: { frame: { status: 'completed' } },
    });
    expect(said()).toContain(inJson(`\`${brought.program(rig)} ${rest}\``));
    const ended = state().sessions.session_history[0];
    // The plugin's own hook records the end of claude too.
    expect(ended).toMatchObject({ session_id: id, started_at: record.started_at, phases_completed: ['frame'] });
    if (brought.program === template.program) expect(ended.end_reason).toBe('compaction');
    expect(ended.artifacts_loaded).toContain('workflow-state');
    expect(Date.parse(ended.ended_at)).toBeGreaterThan(Date.parse(record.started_at));
  },
  stepLimitMs,
);

withClaude.each(sampled(ways, 2))(
  'S6: "workflow-run command writes .fractary/faber/.active-run-id": that of %s',
  async (_, brought) => {
    const steps = [
      command(brought, 'faber start --work-id 259'),
      command(brought, 'faber phase frame'),
      { text: 'ok' },
    ];
    // The earlier run is over.
    const text = await ask(brought, `${brought.prefix}workflow-run --work-id 259`, steps, { status: 'completed' });
    expect(said()).toContain('What was given: `--work-id 259`');
    expect(said()).toContain(inJson(`\`${brought.program(rig)} faber start\``));
    // Context loaded before the first phase reaches the model through the command.
    expect(text).toContain('FABER ARTIFACT orchestration-protocol');
    const active = readFileSync(join(rig.project, '.fractary/faber/.active-run-id'), 'utf8').trim();
    expect(active).toStartWith('fractary-faber-259-');
    const begun = JSON.parse(readFileSync(join(rig.project, statePathOf(active)), 'utf8'));
    expect(begun).toMatchObject({ work_id: '259', phases: { frame: { status: 'completed', session_id: id } } });
    expect(begun.sessions).toMatchObject({ current_session_id: id, total_sessions: 1 });
  },
  stepLimitMs,
);
