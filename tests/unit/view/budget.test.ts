/**
 * Promises: spent, reserved and free money add up to the cap at any moment. The cost of removed sessions stays
 * counted, estimates are marked, and special states of a running group are described.
 */
import { expect, test } from 'bun:test';
import type { EventBody } from '../../../src/core/event.ts';
import type { GroupConfig, Usage } from '../../../src/core/group.ts';
import { foldEvents } from '../../../src/core/reduce.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { budgetLines, budgetReport } from '../../../src/view/budget.ts';
import { plainStyle } from '../../../src/view/format.ts';
import { conditionOf } from '../../../src/view/wording.ts';
import {
  creation,
  ids,
  sampleAttemptId,
  sampleGroupId,
  sampleUsage,
  session,
  started,
} from '../../support/view/sample-run.ts';

function stateAfter(config: Partial<GroupConfig>, more: readonly EventBody[]): GroupState {
  const sessions = [session(ids.api, { name: 'api', maxBudgetUsd: 1 }), session(ids.web, { name: 'web' })];
  const bodies = [...creation(config, sessions), started, ...more];
  const at = '2026-01-04T14:30:22.000Z';
  const state = foldEvents(bodies.map((body, index) => ({ seq: index + 1, at, groupId: sampleGroupId, ...body })));
  if (state === null) throw new Error('no events');
  return state;
}

const model = 'claude-opus-4-8';
const withModel = (costUsd: number, more: Partial<Usage> = {}): Usage => {
  const plain = sampleUsage(costUsd, 10, 20, 1000);
  return { ...plain, models: { [model]: { costUsd, tokens: plain.tokens } }, ...more };
};
const attempt = (id: string) => ({ sessionId: id, attemptId: sampleAttemptId(id) });
const starting = (id: string, reservedUsd: number): EventBody => ({
  type: 'session_starting',
  sessionId: id,
  attempt: { id: attempt(id).attemptId, number: 1, kind: 'start', offset: 0, reservedUsd },
});

test('live cost reduces the reservation, and all amounts add up to the cap', () => {
  const state = stateAfter({ maxBudgetUsd: 5 }, [starting(ids.api, 1), starting(ids.web, 2)]);
  const live = new Map([
    [ids.api, withModel(0.25, { estimated: true })],
    [ids.web, withModel(2.5)],
  ]);
  const report = budgetReport(state, live);
  expect(report).toMatchObject({ limitUsd: 5, spentUsd: 2.75, reservedUsd: 0.75, leftUsd: 1.5, estimated: true });
  expect(report.sessions).toMatchObject([
    { id: ids.api, spentUsd: 0.25, reservedUsd: 0.75, limitUsd: 1, estimated: true },
    // One message may exceed a reservation, which is then used up.
    { id: ids.web, spentUsd: 2.5, reservedUsd: 0 },
  ]);
  const lines = budgetLines(report, plainStyle);
  expect(lines.slice(0, 4)).toEqual(['Cap: $5.00 (then pause)', 'Spent: ~$2.75', 'Reserved: $0.75', 'Left: ~$1.50']);
  expect(lines).toContain('001 api  running  ~$0.25     $0.75  $1.00');
  expect(lines.join('\n')).toMatch(/claude-opus-4-8 +~\$2\.75 +20 +40 +0 +0/);
});

test('cost without a known model has its own row, and the sum is the total spent', () => {
  const held = withModel(1, { heldUsd: 0.5, costUsd: 1.5, estimated: true });
  const paused = { ...attempt(ids.web), type: 'session_paused', reason: 'user', message: 'Paused.' } as const;
  const lines = budgetLines(
    budgetReport(stateAfter({}, [starting(ids.web, 2), { ...paused, usage: held }]), new Map()),
    plainStyle,
  );
  expect(lines.join('\n')).toMatch(/claude-opus-4-8 +~\$1\.00.*\n\(unknown\) +\$0\.50\nall +~\$1\.50 +10/);
});

test('the cost of a removed session stays counted, and without a cap no rest is shown', () => {
  const state = stateAfter({}, [
    starting(ids.web, 2),
    { type: 'session_paused', ...attempt(ids.web), reason: 'user', message: 'Paused.', usage: withModel(0.5) },
    { type: 'session_removed', sessionId: ids.web },
  ]);
  const report = budgetReport(state, new Map());
  expect(report).toMatchObject({ spentUsd: 0.5, removedUsd: 0.5, reservedUsd: 0, models: [{ model, costUsd: 0.5 }] });
  expect(report).not.toHaveProperty('leftUsd');
  const lines = budgetLines(report, plainStyle);
  expect(lines[0]).toBe('Cap: none');
  expect(lines.some((line) => line.startsWith('(removed)'))).toBe(true);
});

test.each<[string | null, EventBody[]]>([
  [null, []],
  ['pausing: user', [{ type: 'group_pausing', reason: 'user' }]],
  ['pausing: running sessions finish first', [{ type: 'group_pausing', reason: 'user', mode: 'drain' }]],
  ['frozen until', [{ type: 'group_frozen', until: '2026-01-04T14:31:22.000Z' }]],
  ['usage limit until', [{ type: 'limit_reached', resetsAt: '2026-01-04T19:00:00.000Z' }]],
  ['throttled until', [{ type: 'limit_reached', resetsAt: '2026-01-04T19:00:00.000Z', limitType: 'throttled' }]],
  [null, [{ type: 'group_paused', reason: 'user', message: 'Paused.' }]],
])('the state of a running group is shown as %p', (words, more) => {
  const condition = conditionOf(stateAfter({}, more), Date.parse('2026-01-04T14:30:22.000Z'));
  if (words === null) expect(condition).toBeNull();
  else expect(condition).toStartWith(words);
});
