/** Promises: the next step that is named gets the group on when it is typed as it stands. */
import { expect, test } from 'bun:test';
import { plainStyle } from '../../src/report/format.ts';
import { nextSteps, sessionTable } from '../../src/report/summary.ts';
import { CoreLog, groupId, sessionDefinition, sid, usage } from '../support/core-events.ts';

test.each([
  { cap: 3, spent: 27.5, advised: '30.5' },
  { cap: 3, spent: 2.99, advised: '6' },
  { cap: 0.1, spent: 0.1, advised: '0.2' },
])('%o: the cap is to be raised above what was spent', ({ cap, spent, advised }) => {
  const log = new CoreLog({ maxBudgetUsd: cap }).addSession(sessionDefinition(1)).run();
  log.start(sid(1)).pause(sid(1), usage(spent), 'budget');
  log.add({ type: 'group_paused', reason: 'budget', message: 'The budget is used up.' });
  const resume = `claude-code-agent group resume ${groupId}`;
  expect(nextSteps(log.state)).toEqual(['The budget is used up.', `Next: ${resume} --max-budget-usd ${advised}`]);
});

test('the closing table fits on a terminal of 80 columns, and is whole where there is none', () => {
  const log = new CoreLog();
  for (const number of [1, 2]) {
    const name = `update-library-${number}`;
    log.addSession(sessionDefinition(number, [], { name, projectPath: '/projects/a-long-project-name' }));
  }
  log.run().start(sid(1)).start(sid(2)).complete(sid(1), usage(12.5, 20_000)).fail(sid(2), usage(0.25, 300));
  const table = (columns?: number) =>
    sessionTable(log.state, new Map(), [...log.state.sessions.keys()], plainStyle, columns);
  expect(Math.max(...table().map((line) => line.length))).toBeGreaterThan(80);
  const narrow = table(80);
  expect(Math.max(...narrow.map((line) => line.length))).toBeLessThanOrEqual(80);
  expect(narrow[2]).toMatch(/002 update-library-2 .*failed .*claude-error .*\$0\.25/);
});
