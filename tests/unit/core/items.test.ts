/**
 * Promises: in any order of events, an item is closed once, a session with an open item does not start, and a parked
 * session continues with its last answer. Every sequence of a few steps is checked against a simple model.
 */
import { expect, test } from 'bun:test';
import type { EventBody } from '../../../src/core/event.ts';
import { earlierAnswer, leftAnswers, openItems } from '../../../src/core/item.ts';
import { decide } from '../../../src/core/plan/schedule.ts';
import { foldEvents } from '../../../src/core/reduce.ts';
import { IllegalEvent } from '../../../src/core/session-state.ts';
import { attemptId, CoreLog, sessionDefinition, sid } from '../../support/core-events.ts';
import { forEveryChoice } from '../../support/core-exhaustive.ts';

const sessionId = sid(1);
const call = { kind: 'permission', text: 'Bash: ls', options: ['allow', 'deny'], tool: 'Bash' } as const;
const steps = ['open', 'open other', 'answer', 'answer other', 'withdraw', 'park', 'pause', 'fail', 'resume'] as const;
type Step = (typeof steps)[number];

function opened(item: string, attempt: number, input = { command: item }): EventBody {
  const request = { ...call, requestId: `r-${item}`, toolUseId: `t-${item}`, input };
  return { type: 'item_opened', sessionId, attemptId: attemptId(sessionId, attempt), item, ...request };
}

function answered(item: string, more: object = {}): EventBody {
  return { type: 'item_answered', sessionId, item, by: 'user', answer: { text: 'allow' }, ...more };
}

/** The model's state of a session that may have created two items. */
class Books {
  readonly log = new CoreLog().addSession(sessionDefinition(1)).run().start(sessionId);
  readonly open = new Set<string>();
  readonly known = new Set<string>();
  status: 'running' | 'paused' | 'failed' = 'running';
  isByUser = false;
  attempts = 1;

  /** False when the step is not possible now. */
  take(step: Step): boolean {
    const { log, open, known } = this;
    const item = step.endsWith('other') ? 'two' : 'one';
    switch (step) {
      case 'open':
      case 'open other':
        if (this.status !== 'running' || known.has(item)) return this.refused(opened(item, this.attempts));
        log.add(opened(item, this.attempts));
        open.add(item);
        known.add(item);
        return true;
      case 'answer':
      case 'answer other':
        if (!open.delete(item)) return this.refused(answered(item));
        log.add(answered(item));
        return true;
      case 'withdraw':
        if (!open.delete('one')) return this.refused({ type: 'item_withdrawn', sessionId, item: 'one' });
        log.add({ type: 'item_withdrawn', sessionId, item: 'one' });
        return true;
      case 'park':
      case 'pause':
      case 'fail':
        if (this.status !== 'running') return false;
        this.isByUser = step === 'pause';
        if (step === 'fail') log.fail(sessionId);
        else log.pause(sessionId, undefined, step === 'park' ? 'waits-for-answer' : 'user');
        this.status = step === 'fail' ? 'failed' : 'paused';
        if (step === 'fail') open.clear();
        return true;
      case 'resume':
        return this.goOn();
    }
  }

  /** Whether the session starts, by itself or at a user's request. It never starts with an open item. */
  private goOn(): boolean {
    const { log } = this;
    if (this.status === 'running') return false;
    const starts = decide(log.state, { preparingMax: 9 }).filter((decision) => decision.do === 'start');
    const goesOnAlone = this.status === 'paused' && !this.isByUser && this.open.size === 0;
    expect([log.events.map(({ type }) => type), starts.length]).toEqual([expect.anything(), goesOnAlone ? 1 : 0]);
    if (!goesOnAlone) {
      log.add({ type: 'group_paused', reason: 'user', message: 'Paused.' }).run([sessionId]);
      const later = decide(log.state, { preparingMax: 9 }).filter((decision) => decision.do === 'start');
      expect(later.length).toBe(this.open.size === 0 ? 1 : 0);
      if (this.open.size > 0) return true;
    }
    log.start(sessionId, this.status === 'failed' ? 'retry' : 'resume');
    this.status = 'running';
    this.attempts += 1;
    return true;
  }

  private refused(event: EventBody): false {
    expect(() => this.log.add(event)).toThrow(IllegalEvent);
    return false;
  }
}

test('in every sequence of six steps an item is closed once, and a session with an open item does not start', () => {
  const runs = forEveryChoice((choices) => {
    const books = new Books();
    for (let step = 0; step < 6; step += 1) if (!books.take(steps[choices.choose(steps.length)] as Step)) return;
    const record = books.log.state.sessions.get(sessionId);
    expect(openItems(record ?? {}).map(({ id }) => id)).toEqual([...books.open]);
    expect(books.log.state).toStrictEqual(foldEvents(books.log.events) as never);
  });
  expect(runs).toBeGreaterThan(1_000);
});

test('an answer that is missing from the conversation goes to the next attempt, for one tool call', () => {
  const log = new CoreLog().addSession(sessionDefinition(1)).run().start(sessionId);
  const record = () => log.state.sessions.get(sessionId) ?? {};
  log.add(opened('one', 1), answered('one'));
  const request = { ...call, requestId: 'r2', toolUseId: 't2', input: { command: 'one' } };
  expect(earlierAnswer(record(), attemptId(sessionId, 1), request)).toBeUndefined();
  log.pause(sessionId, undefined, 'interrupted');
  const attempt = { id: attemptId(sessionId, 2), number: 2, kind: 'resume', offset: 0 } as const;
  log.add({ type: 'session_starting', sessionId, attempt: { ...attempt, answers: [{ item: 'one', left: 'call' }] } });
  expect(earlierAnswer(record(), attempt.id, { ...request, input: { command: 'other' } })).toBeUndefined();
  expect(earlierAnswer(record(), attempt.id, request)?.id).toBe('one');
  log.add(opened('again', 2, { command: 'one' }), answered('again', { by: 'earlier', from: 'one' }));
  expect(earlierAnswer(record(), attempt.id, request)).toBeUndefined();
  log.pause(sessionId, undefined, 'interrupted').start(sessionId, 'resume');
  expect(leftAnswers(record())).toEqual([]);
});
