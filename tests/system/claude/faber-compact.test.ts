/**
 * Promises, with the real claude and hooks written by `hook install`: a session of a project with an active FABER run
 * is informed at its start. It gets the run's state after an automatic compaction, a resume and /compact, and the run
 * records all of them. Two sessions keep their own identities.
 */
import { afterEach, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { newState, phasesDefault } from '../../../src/context/faber/state.ts';
import { installHooks } from '../../../src/context/install.ts';
import type { Step } from '../../../src/rehearsal/script.ts';
import { claudeBinary, openRig, type Rig, stepLimitMs } from '../../support/claude/rig.ts';
import { checkoutRoot } from '../../support/cli.ts';
import { statePathOf } from '../../support/context/faber/rig.ts';

let rig: Rig;
afterEach(() => rig?.close());

const runId = 'run-258';
const withClaude = test.skipIf(claudeBinary === undefined);

/** A project in the build phase of a run, which compacts above 67,000 tokens. */
function open(steps: readonly Step[]): Rig {
  rig = openRig(steps);
  const launcher = join(checkoutRoot, 'bin', 'claude-code-agent');
  rig.write('config/settings.json', installHooks({ autoCompactWindow: 100_000 }, launcher, ['faber']));
  const run = { runId, workId: '258', workflowId: 'fractary-faber:default', phases: phasesDefault, nowMs: Date.now() };
  const artifacts = { spec_path: '{project_root}/specs/WORK-00258.md' };
  const phases = { frame: { status: 'completed' }, architect: { status: 'completed' } };
  rig.write(`project/${statePathOf(runId)}`, { ...newState(run), artifacts, phases });
  rig.write('project/.fractary/faber/.active-run-id', `${runId}\n`);
  rig.write('project/specs/WORK-00258.md', 'SPECIFICATION of 258');
  return rig;
}

/** Runs claude to its end, which must be a success. */
async function run({ project, env, children }: Rig, ...args: string[]): Promise<void> {
  const flags = ['-p', '--model', 'claude-sonnet-4-5', '--permission-mode', 'acceptEdits', '--allowed-tools', 'Bash'];
  const child = Bun.spawn([claudeBinary as string, ...flags, ...args], {
    cwd: project,
    env,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  children.push(child);
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) !== 0) throw new Error(`claude ended with ${child.exitCode}: ${stdout}${stderr}`);
}

/** The request that claude sent to the model for the next step or for a summary. */
function asked(kind: 'step' | 'summary'): string[] {
  return rig.api.requests.filter((request) => request.kind === kind).map(({ body }) => JSON.stringify(body.messages));
}

interface Sessions {
  readonly current_session_id: string;
  readonly current_session?: { readonly session_id: string };
  readonly total_sessions: number;
  readonly session_history: readonly {
    readonly session_id: string;
    readonly ended_at: string;
    readonly phases_completed: readonly string[];
    readonly environment: { readonly hostname: string };
    readonly artifacts_loaded: readonly string[];
  }[];
}

function sessions(): Sessions {
  return JSON.parse(readFileSync(join(rig.project, statePathOf(runId)), 'utf8')).sessions;
}

function expectRun(text: string | undefined, event: string, sessionId: string): void {
  expect(text).toContain(`SessionStart:${event}`);
  expect(text).toContain('Finished phases: frame, architect. Continue with the phase build.');
  expect(text).toContain('SPECIFICATION of 258');
  expect(text).toContain(`(session_start) for ${sessionId}, session`);
}

withClaude(
  '"SessionStart hook restores context after compaction": an automatic one, a resume and /compact',
  async () => {
    const used = open([
      { tool: 'Bash', input: { command: 'echo one' } },
      { tool: 'Bash', input: { command: 'echo two' }, usage: { input: 70_000 } },
      { text: 'done' },
      { text: 'more' },
      { text: 'and more' },
    ]);
    const id = crypto.randomUUID();
    await run(used, '--session-id', id, '--', 'Continue with the work item.');
    expect(asked('summary')).toHaveLength(1);
    // PreCompact names what the summary must keep, and saves the state first.
    expect(asked('summary')[0]).toContain(`FABER run ${runId}`);
    // It may belong to another request.
    expect(asked('step')[0]).toContain(`FABER: the run ${runId} for the work item 258 is in progress here.`);
    expect(asked('step')[0]).not.toContain('Continue with the phase');
    expectRun(asked('step').at(-1), 'compact', id);

    await run(used, '--resume', id, '--', 'Go on.');
    expectRun(asked('step').at(-1), 'resume', id);

    await run(used, '--resume', id, '--', '/compact');
    expect(asked('summary')).toHaveLength(2);
    await run(used, '--resume', id, '--', 'And on.');
    const last = asked('step').at(-1);
    expectRun(last, 'compact', id);
    // The earlier messages are gone: the run does not come from them.
    expect(last).not.toContain('Continue with the work item.');

    // Each compaction is a boundary.
    const { session_history, total_sessions, current_session_id } = sessions();
    expect({ total_sessions, current_session_id }).toEqual({ total_sessions: 3, current_session_id: id });
    expect(session_history).toHaveLength(3);
    const compacted = { end_reason: 'compaction' };
    expect(session_history).toMatchObject([
      compacted,
      { part: 2, resumed_from: id, ...compacted },
      { part: 3, resumed_from: id },
    ]);
    for (const record of session_history) {
      expect(record).toMatchObject({
        session_id: id,
        phases_completed: ['frame', 'architect'],
        environment: { hostname: hostname() },
      });
    }
    const loaded = session_history.map(({ artifacts_loaded }) => artifacts_loaded.toSorted());
    const all = ['orchestration-protocol', 'specification', 'workflow-state'];
    expect(loaded.map((ids) => all.every((id) => ids.includes(id)))).toEqual([false, true, true]);
  },
  stepLimitMs,
);
