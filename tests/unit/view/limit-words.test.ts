/**
 * Promises: no view calls throttling a usage limit or a usage limit throttling, and times in sentences have no
 * milliseconds.
 */
import { expect, test } from 'bun:test';
import { notify } from '../../../src/cli/commands/group/run.ts';
import type { Output } from '../../../src/cli/output.ts';
import type { EventBody } from '../../../src/core/event.ts';
import { decide } from '../../../src/core/plan/schedule.ts';
import { conditionOf } from '../../../src/view/wording.ts';
import { CoreLog, sessionDefinition, sid } from '../../support/core-events.ts';
import { fold, frame, layoutText, sceneEvents } from '../../support/tui/dashboard/scene.ts';
import { whyNot } from '../../support/verdicts.ts';

const resetsAt = '2026-01-04T15:30:22.308Z';
const throttled = { type: 'limit_reached', resetsAt, limitType: 'throttled' } as const;
const limited = { type: 'limit_reached', resetsAt, limitType: 'five_hour' } as const;
const capacity = { preparingMax: 9, nowMs: Date.parse('2026-01-04T14:30:22.000Z') };
const gate = { untilMs: Date.parse(resetsAt), mayProbe: false };

/** All views of a group that met this limit. */
function told(body: EventBody): string[] {
  const { state } = fold([...sceneEvents, { type: 'limit_lifted' }, body]);
  const log = new CoreLog().addSession(sessionDefinition(1)).run().add(body);
  const isThrottled = log.state.limitType === 'throttled';
  const [why] = whyNot(log.state, { ...capacity, gate: { ...gate, isThrottled } });
  let rung = '';
  const write = (text: string): void => {
    rung += text;
  };
  const event = { seq: 1, at: resetsAt, groupId: state.group.id, ...body };
  notify({ isTerminal: true, write } as Output, {}, event, state);
  return [conditionOf(state, capacity.nowMs) ?? '', layoutText(frame({ view: { state } })), rung, why?.message ?? ''];
}

test('every view calls throttling throttling', () => {
  for (const words of told(throttled)) {
    expect(words).toMatch(/throttl/);
    expect(words).not.toMatch(/(?<!no )usage limit/);
  }
});

test('every view calls a usage limit a usage limit, even after throttling', () => {
  for (const words of told(limited)) {
    expect(words).toMatch(/usage limit/i);
    expect(words).not.toMatch(/throttl/);
  }
  const { state } = fold([...sceneEvents, throttled, { type: 'limit_reached', resetsAt }]);
  expect(conditionOf(state, capacity.nowMs)).toStartWith('usage limit until');
  expect(fold([...sceneEvents, throttled, { type: 'limit_lifted' }]).state).not.toHaveProperty('limitType');
});

test('times in sentences have no milliseconds', () => {
  const log = new CoreLog({ onLimit: 'pause' }).addSession(sessionDefinition(1)).addSession(sessionDefinition(2));
  log.run().start(sid(1)).pause(sid(1));
  const [settled] = decide(log.state, { ...capacity, gate });
  expect(settled).toMatchObject({ message: expect.stringContaining('It resets at 2026-01-04T15:30:22Z.') });
  log.add({ type: 'group_frozen', until: resetsAt });
  expect(whyNot(log.state, capacity)[1]?.message).toContain('frozen until 2026-01-04T15:30:22Z and then paused');
});
