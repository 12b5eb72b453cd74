/** Promises of `faber …` as claude's Bash tool runs it: the session is recorded in the run, and gets what it needs. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { FaberUser } from './faber-ground.ts';

let user: FaberUser;
beforeEach(() => {
  user = new FaberUser();
});
afterEach(() => user.remove());

test('S4: is recorded from then on, so that its end is, too', async () => {
  const { code, stdout } = await user.asSession('s1', 'start', '--work-id', '258');
  expect(code).toBe(0);
  const run = stdout.trim();
  expect(user.stateOf(run).sessions).toMatchObject({ total_sessions: 1, current_session: { session_id: 's1' } });
  await user.hook('session-end', { session_id: 's1', reason: 'other' });
  expect(user.stateOf(run).sessions.session_history).toMatchObject([{ session_id: 's1', end_reason: 'other' }]);
  await user.asSession('s2', 'resume', run);
  await user.hook('session-end', { session_id: 's2', reason: 'other' });
  expect(user.stateOf(run).sessions.session_history).toMatchObject([
    { session_id: 's1' },
    { session_id: 's2', end_reason: 'other' },
  ]);
  // In a work tree beside its own it takes no part.
  const beside = (await user.asSession('s3', 'start', '--work-id', '259', '--worktree')).stdout.trim();
  expect(user.stateOf(beside, `${user.shop}-issue-259`).sessions.total_sessions).toBe(0);
});

test('S7: what a workflow wants before a phase is done or told, and only before that phase', async () => {
  const loads = 'FABER ARTIFACT orchestration-protocol';
  const begun = await user.asSession('s1', 'start', '--work-id', '258');
  const run = begun.stdout.trim();
  expect(begun.stdout).toBe(`${run}\n`);
  expect(begun.stderr).toContain(loads);
  expect(user.stateOf(run).context_metadata).toMatchObject({ reload_count: 1 });
  expect(user.stateOf(run).sessions.current_session.artifacts_loaded).toContain('orchestration-protocol');
  expect((await user.asSession('s1', 'phase', 'frame')).stderr).not.toContain(loads);
  // A person has no conversation it could be loaded into.
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
