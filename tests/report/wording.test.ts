/** Promises: in sentences commands can be typed, and times are told as a person at this place and moment reads them. */
import { expect, test } from 'bun:test';
import { formatClock, formatDate, formatMoment } from '../../src/report/format.ts';
import { conditionOf, withCommands, withLocalTimes } from '../../src/report/wording.ts';
import { fold, sceneEvents } from './dashboard/scene.ts';

const nowMs = new Date(2026, 0, 4, 14, 30, 0).getTime();
const after = (ms: number): string => new Date(nowMs + ms).toISOString();
const dayMs = 24 * 3_600_000;

test('another day has its date', () => {
  expect(formatMoment(after(60_000), nowMs)).toBe(formatClock(after(60_000)));
  expect(formatMoment(after(dayMs), nowMs)).toBe(formatDate(after(dayMs)));
});

test('what is to come says how long it takes', () => {
  const soon = after(21_000);
  expect(withLocalTimes(`It is lifted at ${soon}, then it goes on.`, nowMs)).toBe(
    `It is lifted at ${formatClock(soon)} (in 21s), then it goes on.`,
  );
  const past = after(-21_000).replace('.000Z', 'Z');
  expect(withLocalTimes(`Lifted at ${past}.`, nowMs)).toBe(`Lifted at ${formatClock(past)}.`);
  expect(withLocalTimes('It waits for 001.', nowMs)).toBe('It waits for 001.');
});

test.each([false, true])('commands can be typed as they stand, in a rehearsal: %p', (rehearsal) => {
  const { state } = fold(
    sceneEvents.map((body) =>
      body.type === 'group_started' ? { ...body, run: { ...body.run, ...(rehearsal ? { rehearsal } : {}) } } : body,
    ),
  );
  const more = rehearsal ? ' --rehearse' : '';
  const { id } = state.group;
  expect(withCommands(state, 'Log in, then run `group resume`.')).toBe(
    `Log in, then run \`claude-code-agent group resume ${id}${more}\`.`,
  );
  expect(withCommands(state, 'See: group show. Then: group run --retry-failed.')).toBe(
    `See: claude-code-agent group show ${id}. Then: claude-code-agent group run ${id} --retry-failed${more}.`,
  );
  const typed = `claude-code-agent group resume ${id}`;
  expect(withCommands(state, typed)).toBe(typed);
});

test('what raises a budget names an amount, and no full stop follows it', () => {
  const { state } = fold(sceneEvents);
  const { id, config } = state.group;
  const dry = { ...state, reason: 'budget', group: { ...state.group, config: { ...config, maxBudgetUsd: 2.5 } } };
  expect(withCommands(dry, 'Go on with: group resume --max-budget-usd.')).toBe(
    `Go on with: claude-code-agent group resume ${id} --max-budget-usd 5`,
  );
  const [record] = [...state.sessions.values()];
  if (record === undefined) throw new Error('The scene has no sessions.');
  const definition = { ...record.definition, name: 'api', maxBudgetUsd: 0.4 };
  const capped = { ...record, definition, usage: { ...record.usage, costUsd: 0.4 } };
  expect(withCommands(state, 'Go on with: session resume --max-budget-usd.', capped)).toBe(
    `Go on with: claude-code-agent session resume ${id}/api --max-budget-usd 0.8`,
  );
  expect(withCommands(state, 'Then try again with: session retry.', capped)).toBe(
    `Then try again with: claude-code-agent session retry ${id}/api.`,
  );
});

test('a limit that is lifted today is told by the clock, one of another day with its date', () => {
  const { state } = fold(sceneEvents);
  const resetsAt = state.limitResetsAt ?? '';
  const atMs = Date.parse(resetsAt);
  expect(conditionOf(state, atMs)).toBe(`usage limit until ${formatClock(resetsAt)}`);
  expect(conditionOf(state, atMs - dayMs)).toBe(`usage limit until ${formatDate(resetsAt)}`);
});
