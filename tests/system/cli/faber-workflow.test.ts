/**
 * Promises of the workflow `faber`, with the real claude in rehearsal: five sessions, one after the other, share one
 * run; each records its phase; only the first loads the context itself, the others get it from their hooks.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { claudeBinary } from '../../support/claude/rig.ts';
import { launcher, User } from '../../support/cli/user.ts';
import { Repository } from '../../support/git/repository.ts';

let user: User;
beforeEach(() => {
  user = new User();
});
afterEach(() => user.remove());

const bash = (command: string) => ({ tool: 'Bash', input: { command } });
const phases = ['frame', 'architect', 'build', 'evaluate', 'release'];

test.if(claudeBinary !== undefined)(
  'frame, architect, build, evaluate and release share one run',
  async () => {
    const repository = new Repository(user.project('shop'));
    repository.commit({ 'README.md': '# Shop\n' });
    const bin = join(user.folder, 'bin');
    mkdirSync(bin);
    symlinkSync(launcher, join(bin, 'claude-code-agent'));
    const steps = (phase: string) => [
      ...(phase === 'frame'
        ? [bash('claude-code-agent faber start --work-id 258'), bash('claude-code-agent faber prime-context')]
        : []),
      bash(`claude-code-agent faber phase ${phase}`),
      { text: `The phase ${phase} is done.` },
    ];
    const script = join(user.folder, 'script.json');
    const sessions = Object.fromEntries(phases.map((phase) => [phase, { steps: steps(phase) }]));
    writeFileSync(script, JSON.stringify({ version: 1, sessions }));
    const env = { PATH: `${bin}:${user.env.PATH}` };
    const args = ['run', 'faber', '--var', 'work_id=258', '--var', 'work=Reset passwords', '--rehearse', script];
    const ran = await user.runWith({ cwd: repository.folder, env }, ...args, '--output', 'json');
    if (ran.code !== 0) throw new Error(`${ran.stderr}${ran.stdout}`);

    const runs = join(repository.folder, '.fractary/runs');
    expect(readdirSync(runs)).toHaveLength(1);
    const state = JSON.parse(readFileSync(join(runs, readdirSync(runs)[0] as string, 'state.json'), 'utf8'));
    expect(state).toMatchObject({ status: 'completed', work_id: '258', sessions: { total_sessions: 5 } });
    const history: Record<string, unknown>[] = state.sessions.session_history;
    expect(history.map(({ phases_completed }) => (phases_completed as string[]).at(-1))).toEqual(phases);
    for (const record of history) expect(record.ended_at).toBeString();
    // Each record is that of a session of its own, with the id that its worker was given.
    const byPhase = phases.map((phase) => state.phases[phase].session_id);
    expect(byPhase).toEqual(history.map(({ session_id }) => session_id));
    expect(new Set(byPhase).size).toBe(5);

    const [group = ''] = readdirSync(join(user.data, 'session-groups'));
    const folder = join(user.data, 'session-groups', group, 'sessions');
    const transcripts = readdirSync(folder)
      .sort()
      .map((name) => readFileSync(join(folder, name, 'transcript.jsonl'), 'utf8'));
    const [frame = '', ...others] = transcripts;
    expect(frame).toContain('FABER ARTIFACT workflow-state');
    for (const other of others) {
      expect(other).not.toContain('faber prime-context"');
      const hooks = other.split('\n').filter((line) => line.includes('"hook_response"'));
      expect(hooks.join('\n')).toContain('FABER ARTIFACT workflow-state');
    }
    const init = JSON.parse(frame.split('\n').find((line) => line.includes('"subtype":"init"')) as string);
    expect(init.slash_commands).toEqual(expect.arrayContaining(['prime-context', 'session-end']));
  },
  240_000,
);
