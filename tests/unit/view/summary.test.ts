/**
 * Promises: the suggested next step works as printed, and the table of sessions fits the terminal and shows automatic
 * resumes.
 */
import { expect, test } from 'bun:test';
import { loggedContext, type Verdicts } from '../../../src/core/plan/decision.ts';
import { verdictsAtRest, verdictsOf } from '../../../src/core/plan/verdicts.ts';
import { formatClock, plainStyle } from '../../../src/view/format.ts';
import { nextSteps, sessionTable } from '../../../src/view/summary.ts';
import {
  attemptId,
  CoreLog,
  groupId,
  runnerIdentity,
  sessionDefinition,
  sid,
  usage,
} from '../../support/core-events.ts';

test.each([
  { cap: 3, spent: 27.5, advised: '30.5' },
  { cap: 3, spent: 2.99, advised: '6' },
  { cap: 0.1, spent: 0.1, advised: '0.2' },
])('%o: the next step raises the cap above what was spent', ({ cap, spent, advised }) => {
  const log = new CoreLog({ maxBudgetUsd: cap }).addSession(sessionDefinition(1)).run();
  log.start(sid(1)).pause(sid(1), usage(spent), 'budget');
  log.add({ type: 'group_paused', reason: 'budget', message: 'The budget is used up.' });
  const resume = `claude-code-agent group resume ${groupId}`;
  expect(nextSteps(log.state)).toEqual([
    'The budget is used up.',
    `Continue with: ${resume} --max-budget-usd ${advised}`,
  ]);
});

test('the next step raises a session’s own cap if the group has money left', () => {
  const capped = { ...sessionDefinition(1), maxBudgetUsd: 0.25 };
  const log = new CoreLog({ maxBudgetUsd: 5 }).addSession(capped).run();
  log.start(sid(1)).pause(sid(1), usage(0.3), 'budget');
  log.add({ type: 'group_paused', reason: 'budget', message: 'Session 001 has used up its own budget.' });
  const [, next] = nextSteps(log.state);
  expect(next).toMatch(/^Continue with: claude-code-agent session resume \S+\/\S+ --max-budget-usd 0\.55$/);
});

test('the next step of a group that no host can run finds the cause', () => {
  const log = new CoreLog({ where: 'fleet' }).addSession(sessionDefinition(1)).run();
  log.add({ type: 'group_paused', reason: 'no-host', message: 'The login was refused on gpu1.' });
  expect(nextSteps(log.state)).toEqual([
    'The login was refused on gpu1.',
    'List the problems of the hosts, or continue, with: claude-code-agent doctor --hosts',
    `Or: claude-code-agent group resume ${groupId}`,
  ]);
});

test('the next step is to review and merge worktrees until that is done', () => {
  const log = new CoreLog().addSession(sessionDefinition(1)).run().start(sid(1));
  const of = { sessionId: sid(1), attemptId: attemptId(sid(1), 1) };
  const place = { path: '/w', folder: '/w', repository: '/app/.git' };
  const workspace = { ...place, branch: 'cca/auth/001', base: 'a'.repeat(40) };
  log.add({ type: 'session_isolated', ...of, workspace });
  const work = { commit: 'b'.repeat(40), files: 1, insertions: 1, deletions: 0 };
  log.add({ type: 'session_completed', ...of, result: 'Done.', work, usage: usage(1) });
  log.add({ type: 'group_completed' });
  const merge = `Then: claude-code-agent group merge ${groupId}`;
  expect(nextSteps(log.state)).toEqual([`Next: claude-code-agent review ${groupId}`, merge]);
  log.add({ type: 'session_cleaned', sessionId: sid(1) });
  expect(nextSteps(log.state)).toEqual([expect.stringContaining('session logs')]);
});

test('the next step allows denied tools before a retry of failed sessions', () => {
  const log = new CoreLog();
  for (const number of [1, 2, 3]) log.addSession(sessionDefinition(number));
  log.run().start(sid(1)).start(sid(2)).start(sid(3)).fail(sid(1), usage(1), 'permission').fail(sid(2), usage(1));
  log.fail(sid(3), usage(1), 'permission');
  log.add({ type: 'group_failed', reason: 'sessions-failed', message: '3 sessions failed.' });
  const allow = (number: string) => `claude-code-agent session allow ${groupId}/${number} --denied`;
  expect(nextSteps(log.state)).toEqual([
    '3 sessions failed.',
    `Allow the denied calls, then retry: ${allow('001')} && ${allow('003')} && ` +
      `claude-code-agent group run ${groupId} --retry-failed`,
  ]);
});

test('the next step after a completed rehearsal is to read it and run for real', () => {
  const log = new CoreLog().addSession(sessionDefinition(1));
  log.add({ type: 'group_started', run: { id: 'run', runner: runnerIdentity, rehearsal: true } });
  log.start(sid(1)).complete(sid(1), usage(1)).add({ type: 'group_completed' });
  expect(nextSteps(log.state)).toEqual([
    expect.stringMatching(/^Next: claude-code-agent session logs /),
    `For real: claude-code-agent group copy ${groupId} --real && claude-code-agent group run @`,
  ]);
});

test('the closing table fits a terminal of 80 columns, and is complete without a terminal', () => {
  const log = new CoreLog();
  for (const number of [1, 2]) {
    const name = `update-library-${number}`;
    log.addSession(sessionDefinition(number, [], { name, projectPath: '/projects/a-long-project-name' }));
  }
  log.run().start(sid(1)).start(sid(2)).complete(sid(1), usage(12.5, 20_000)).fail(sid(2), usage(0.25, 300));
  const table = (columns?: number) =>
    sessionTable(log.state, { live: new Map(), verdicts: verdictsAtRest(log.state) }, [...log.state.sessions.keys()], {
      style: plainStyle,
      columns,
      nowMs: 0,
    });
  expect(Math.max(...table().map((line) => line.length))).toBeGreaterThan(80);
  const narrow = table(80);
  expect(Math.max(...narrow.map((line) => line.length))).toBeLessThanOrEqual(80);
  expect(narrow[2]).toMatch(/002 update-library-2 .*failed .*claude-error .*\$0\.25/);
});

test('the closing table shows automatic resume times while a runner is alive', () => {
  const log = new CoreLog().addSession(sessionDefinition(1)).addSession(sessionDefinition(2)).run();
  const of = { sessionId: sid(1), attemptId: attemptId(sid(1), 1) };
  const retryAt = new Date(Date.parse(log.state.updatedAt) + 60_000).toISOString();
  log.start(sid(1)).start(sid(2));
  log.add({ type: 'session_paused', ...of, reason: 'transient', message: 'x', usage: usage(1), retryAt });
  const nowMs = Date.parse(log.state.updatedAt);
  const table = (verdicts: Verdicts) =>
    sessionTable(log.state, { live: new Map(), verdicts }, [sid(1), sid(2)], { style: plainStyle, nowMs }).join('\n');
  const told = table(verdictsOf(log.state, loggedContext(log.state, nowMs)));
  expect(told).toMatch(/REASON +RESUMES AT +/);
  expect(told).toMatch(new RegExp(`001 .* backoff +${formatClock(retryAt)} +1 `));
  expect(told.split('\n').at(-1)).not.toContain(formatClock(retryAt));
  const left = table(verdictsAtRest(log.state));
  expect(left).toMatch(/001 .* runner-gone +1 /);
  expect(left).not.toContain('RESUMES AT');
});
