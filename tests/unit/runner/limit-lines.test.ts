/** Promises: a limit that ends on another day is shown with its date, and throttling is not called a usage limit. */
import { expect, test } from 'bun:test';
import type { EventBody } from '../../../src/core/event.ts';
import { plainStyle } from '../../../src/view/format.ts';
import { createTextReporter } from '../../../src/view/text-reporter.ts';
import { CoreLog } from '../../support/core-events.ts';

function told(body: EventBody): string {
  const { state } = new CoreLog({});
  let text = '';
  const write = (more: string) => {
    text += more;
  };
  const reporter = createTextReporter({ write, style: plainStyle, now: () => 0 });
  const at = new Date(2026, 0, 4, 14, 30).toISOString();
  reporter.event({ seq: 2, at, groupId: state.group.id, ...body }, state, new Map());
  return text;
}

const today = new Date(2026, 0, 4, 19, 5, 6).toISOString();
const nextWeek = new Date(2026, 0, 11, 14, 30, 22).toISOString();

test('a reset of today is shown without its date', () => {
  expect(told({ type: 'limit_reached', resetsAt: today })).toContain('nothing starts before 19:05:06\n');
  expect(told({ type: 'limit_reached', resetsAt: nextWeek })).toContain('nothing starts before 2026-01-11 14:30\n');
});

test('throttling is not called a usage limit', () => {
  expect(told({ type: 'limit_reached', resetsAt: today, limitType: 'throttled' })).toContain('the server throttles');
  expect(told({ type: 'limit_reached', resetsAt: today, limitType: 'five_hour' })).toContain('usage limit reached');
});
