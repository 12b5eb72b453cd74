/** A small history of a group as event bodies, for tests that need a log with many kinds of events. */
import type { EventBody } from '../../src/core/event.ts';
import { noUsage } from '../../src/core/group.ts';
import { attemptId, runnerIdentity, sessionDefinition, sid, usage } from './core-events.ts';

const first = { sessionId: sid(1), attemptId: attemptId(sid(1), 1) };
const second = { sessionId: sid(2), attemptId: attemptId(sid(2), 1) };

/** Sixteen events after creation, with names and texts of multi-byte characters. */
export const storyBodies: readonly EventBody[] = [
  {
    type: 'session_added',
    sessionId: sid(1),
    session: sessionDefinition(1, [], { name: 'bücher', prompt: 'Prüfe „alles“.\nDann 🚀\u2028weiter.' }),
  },
  { type: 'session_added', sessionId: sid(2), session: sessionDefinition(2, [1], { maxBudgetUsd: 0.5 }) },
  { type: 'group_started', run: { id: 'run-1', runner: runnerIdentity } },
  {
    type: 'session_starting',
    sessionId: sid(1),
    attempt: { id: first.attemptId, number: 1, kind: 'start', offset: 0 },
  },
  { type: 'session_started', ...first, attempt: 1, process: runnerIdentity },
  { type: 'session_identified', ...first, claudeSessionId: 'claude-1', model: 'some-model' },
  { type: 'session_warning', sessionId: sid(1), warning: { code: 'denied-tools', message: 'Bash(rm) – denied' } },
  { type: 'session_completed', ...first, result: 'Done \ud800 {"a":"\n"}', usage: usage(0.25, 2_500) },
  { type: 'budget_warning', usage: 0.25, limit: 0.3 },
  {
    type: 'session_starting',
    sessionId: sid(2),
    attempt: { id: second.attemptId, number: 1, kind: 'start', offset: 0, reservedUsd: 0.05 },
  },
  { type: 'session_started', ...second, attempt: 1, process: runnerIdentity },
  { type: 'session_stopping', ...second, reason: 'user' },
  { type: 'session_paused', ...second, reason: 'user', message: 'Paused on request.', usage: noUsage },
  { type: 'request_answered', requestId: 'request-1', done: true, message: '' },
  { type: 'group_paused', reason: 'user', message: 'Paused on request.' },
];
