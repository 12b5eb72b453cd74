/** Promises of `faber …` as claude's Bash tool runs it: the session is recorded in the run and gets what it needs. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FaberUser } from '../../support/cli/faber-ground.ts';

let user: FaberUser;
beforeEach(() => {
  user = new FaberUser();
});
afterEach(() => user.remove());

test('what a workflow requires before a phase is done or announced, and only before that phase', async () => {
  const loads = 'FABER ARTIFACT orchestration-protocol';
  const begun = await user.asSession('s1', 'start', '--work-id', '258');
  const run = begun.stdout.trim();
  expect(begun.stdout).toBe(`${run}\n`);
  expect(begun.stderr).toContain(loads);
  expect(user.stateOf(run).context_metadata).toMatchObject({ reload_count: 1 });
  expect(user.stateOf(run).sessions.current_session.artifacts_loaded).toContain('orchestration-protocol');
  expect((await user.asSession('s1', 'phase', 'frame')).stderr).not.toContain(loads);
  // A person has no conversation to load it into.
  expect((await user.faber('start', '--work-id', '260', '--take-over')).stderr).not.toContain(loads);

  const step = (prompt: string) => ({ id: 'x', name: 'X', prompt });
  const phases = {
    frame: {},
    architect: { pre_steps: [step('/fractary-faber:prime-context'), step('/review the plan')] },
  };
  user.write('.fractary/faber/workflows/mine.json', JSON.stringify({ id: 'mine', phases }));
  await user.asSession('s2', 'start', '--work-id', '261', '--workflow', 'mine', '--take-over');
  const { stderr } = await user.asSession('s2', 'phase', 'frame');
  expect(stderr).toContain('FABER run fractary-faber-261');
  expect(stderr).toContain('Before the phase architect (x): /review the plan');

  user.write('.fractary/faber/workflows/mine.json', '{"phases":{"frame":{"pre_steps":[{"id":"x"}]}}}');
  const wrong = await user.faber('start', '--work-id', '262', '--workflow', 'mine', '--take-over');
  expect(wrong.code).toBe(1);
  expect(wrong.stderr).toContain('mine.json:1:34: pre_steps: expected an object with the texts id and prompt');
});

test('the reload between two phases happens for the trigger that names them, and for no other', async () => {
  const artifact = (id: string, ...triggers: string[]) => ({
    id,
    type: 'json',
    path: '{project_root}/facts.json',
    description: id,
    required: false,
    reload_triggers: triggers,
  });
  const critical_artifacts = {
    always_load: [
      artifact('between', 'phase_transition:architect->build'),
      artifact('at-start', 'session_start'),
      artifact('elsewhere', 'phase_transition:build->release'),
    ],
  };
  user.write('facts.json', '{}');
  user.write(
    '.fractary/faber/workflows/mine.json',
    JSON.stringify({ id: 'mine', phases: { architect: {}, build: {}, release: {} }, critical_artifacts }),
  );
  const run = await user.begin('258', '--workflow', 'mine');
  const loaded = async (trigger: string): Promise<string[]> => {
    const { stdout } = await user.asSession('s1', 'prime-context', '--trigger', trigger, '--json');
    const { artifacts } = JSON.parse(stdout) as { artifacts: { id: string; action: string }[] };
    return artifacts.filter(({ action }) => action === 'load').map(({ id }) => id);
  };
  expect(await loaded('session_start')).toEqual(['at-start']);
  expect(await loaded('phase_transition:architect->build')).toEqual(['between']);
  expect(await loaded('phase_transition:release->build')).toEqual([]);
  expect(user.stateOf(run).sessions.current_session.artifacts_loaded).toEqual(['at-start', 'between']);
  expect((await user.asSession('s1', 'prime-context', '--trigger', 'phase_transition:build')).code).toBe(2);
});

describe('S10', () => {
  test('an artifact may be given as it is stored, with placeholders', async () => {
    const run = await user.begin('258');
    user.write('specs/WORK-258.md', '# Spec');
    const phase = (value: string) => user.faber('phase', 'architect', '--artifact', `spec_path=${value}`);
    for (const value of ['{project_root}/specs/WORK-258.md', 'specs/WORK-{work_id}.md']) {
      expect(await phase(value)).toMatchObject({ code: 0 });
      expect(user.stateOf(run).artifacts).toEqual({ spec_path: '{project_root}/specs/WORK-258.md' });
    }
    for (const [value, why] of [
      ['{project_root}/..', 'is not in the project'],
      ['{plan_id}.md', 'holds {plan_id}, which nothing gives a value'],
    ] as const) {
      const { code, stderr } = await phase(value);
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(why) });
    }
  });

  test('every command that needs an active run reports that there is none', async () => {
    user.write('.fractary/faber/.active-run-id', 'gone-1\n');
    const said = /\.active-run-id names the run gone-1, which is not in .*\.fractary\/runs\./;
    const trigger = ['prime-context', '--trigger', 'session_start'];
    for (const words of [['prime-context'], trigger, ['phase', 'frame'], ['session-end'], ['status']]) {
      const { code, stderr } = await user.faber(...words);
      expect([words, code === 0]).toEqual([words, words.length > 2 || /end|status/.test(words.join())]);
      expect(stderr).toMatch(said);
    }
    // What a session without a run got before is unchanged.
    user.write('.fractary/faber/.active-run-id', '');
    expect((await user.faber('prime-context')).stderr).not.toContain('names the run');
  });

  test("hooks in a person's own session write to hooks.log of the data folder, which stays small", async () => {
    const log = join(user.data, 'hooks.log');
    const run = await user.begin('258');
    await user.hook('session-start', { session_id: 's1', source: 'resume' });
    await user.hook('session-end', { session_id: 's1', reason: 'other' });
    const lines = readFileSync(log, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines).toMatchObject([
      { system: 'faber', event: 'session-start', source: 'resume', sessionId: 's1', project: user.shop, run },
      { system: 'faber', event: 'session-end', source: 'other', ended: 's1' },
    ]);
    writeFileSync(log, 'x'.repeat(1024 ** 2 + 1));
    await user.hook('session-start', { session_id: 's1', source: 'resume' });
    expect(readFileSync(log, 'utf8').trim().split('\n')).toHaveLength(1);
    expect(statSync(`${log}.1`).size).toBe(1024 ** 2 + 1);
    expect(statSync(log).mode & 0o777).toBe(0o600);
    // Neither delays a session.
    rmSync(log);
    expect(Bun.spawnSync(['mkfifo', log]).exitCode).toBe(0);
    expect(await user.hook('session-start', { session_id: 's1', source: 'resume' })).toContain(run);
  });
});
