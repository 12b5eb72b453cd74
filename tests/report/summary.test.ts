/** Promises: the next step that is named gets the group on when it is typed as it stands. */
import { expect, test } from 'bun:test';
import { nextSteps } from '../../src/report/summary.ts';
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
