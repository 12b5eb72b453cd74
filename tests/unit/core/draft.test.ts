/**
 * Promise (F1): events are tried on a copy before they are written, which takes exactly what the state itself would
 * take, and nothing of the state changes. Both are asked about every kind of event in every stage of a group's life,
 * alone and after each other.
 */
import { expect, test } from 'bun:test';
import { draftOf } from '../../../src/core/draft.ts';
import type { EventBody, GroupEvent } from '../../../src/core/event.ts';
import { noUsage } from '../../../src/core/group.ts';
import { foldEvents, reduce } from '../../../src/core/reduce.ts';
import type { GroupState } from '../../../src/core/state.ts';
import {
  attemptId,
  CoreLog,
  groupDefinition,
  processIdentity,
  sessionDefinition,
  sid,
} from '../../support/core-events.ts';

const run = { id: 'run', runner: processIdentity };

function sessionBodies(number: number, attempt: number): EventBody[] {
  const sessionId = sid(number);
  const of = { sessionId, attemptId: attemptId(sessionId, attempt) };
  const live = { ...of, attempt, process: processIdentity };
  const session = sessionDefinition(number);
  const text = { message: 'm', usage: noUsage };
  return [
    { type: 'session_added', sessionId, session },
    { type: 'session_changed', sessionId, session },
    { type: 'session_removed', sessionId },
    { type: 'session_starting', sessionId, attempt: { id: of.attemptId, number: attempt, kind: 'start', offset: 0 } },
    { type: 'session_started', ...live },
    { type: 'session_adopted', ...live },
    { type: 'session_identified', ...of, claudeSessionId: 'c' },
    { type: 'session_stopping', ...of, reason: 'user' },
    { type: 'session_warning', sessionId, warning: { code: 'denied-tools', message: 'm' } },
    { type: 'session_completed', ...of, result: '', usage: noUsage },
    { type: 'session_failed', ...of, reason: 'no-result', next: '', ...text },
    { type: 'session_paused', ...of, reason: 'interrupted', ...text },
    { type: 'session_budget_warning', sessionId, usage: 1, limit: 1 },
  ];
}

const bodies: readonly EventBody[] = [
  { type: 'group_created', group: groupDefinition() },
  { type: 'group_changed', config: groupDefinition().config },
  { type: 'group_started', run },
  { type: 'group_resumed', run, retry: [] },
  { type: 'group_pausing', reason: 'user' },
  { type: 'group_paused', reason: 'user', message: '' },
  { type: 'group_completed' },
  { type: 'group_failed', reason: 'x', message: '' },
  { type: 'group_archived' },
  { type: 'request_answered', requestId: 'r', done: true, message: '', sessionId: sid(7) },
  ...sessionBodies(1, 1),
  ...sessionBodies(1, 2),
  ...sessionBodies(2, 1),
];

const stages: Readonly<Record<string, CoreLog>> = {
  created: new CoreLog().addSession(sessionDefinition(1)),
  empty: new CoreLog(),
  running: new CoreLog().addSession(sessionDefinition(1)).run(),
  working: new CoreLog().addSession(sessionDefinition(1)).run().start(sid(1)),
  again: new CoreLog().addSession(sessionDefinition(1)).run().start(sid(1)).pause(sid(1)).run().start(sid(1), 'resume'),
  failed: new CoreLog().addSession(sessionDefinition(1)).run().start(sid(1)).fail(sid(1)),
  completed: new CoreLog().addSession(sessionDefinition(1)).run().start(sid(1)).complete(sid(1)).add({
    type: 'group_completed',
  }),
};

/** The state of a stage in which every batch can be tried: the fold owns and changes what it is given. */
function copyOf(log: CoreLog): GroupState {
  return foldEvents(structuredClone(log.events) as GroupEvent[]) as GroupState;
}

/** The state after the batch; null when it cannot be folded. */
function folded(state: GroupState, log: CoreLog, batch: readonly EventBody[]): GroupState | null {
  try {
    for (const body of batch) reduce(state, { ...log.next(body), seq: state.lastSeq + 1 });
    return state;
  } catch {
    return null;
  }
}

/** Everything of a state, in one order; `touched` is a note of plan.ts about the state itself. */
function written(state: GroupState): string {
  const plain = (value: unknown): unknown =>
    value instanceof Map ? [...value].sort() : value instanceof Set ? [...value].sort() : value;
  const keys = Object.keys(state).sort() as (keyof typeof state)[];
  return JSON.stringify(keys.map((key) => [key, plain(state[key])]));
}

for (const [name, log] of Object.entries(stages)) {
  test(`in the stage "${name}" a draft takes the batches that can be folded, and the state stays`, () => {
    const state = copyOf(log);
    const before = written(state);
    const wrong: string[] = [];
    for (const first of bodies) {
      for (const second of [null, ...bodies]) {
        const batch = second === null ? [first] : [first, second];
        const tried = folded(draftOf(state), log, batch);
        const real = folded(copyOf(log), log, batch);
        const isSame = tried === null || real === null ? tried === real : written(tried) === written(real);
        if (!isSame || written(state) !== before) wrong.push(JSON.stringify(batch));
      }
    }
    expect(wrong).toEqual([]);
  });
}
