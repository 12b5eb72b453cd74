/** A small group and a hand-made list of events with fixed times, and a way to send them to a reporter. */
import type { EventBody, GroupEvent } from '../../../src/core/event.ts';
import {
  defaultGroupConfig,
  type GroupConfig,
  noUsage,
  type SessionDefinition,
  type Usage,
} from '../../../src/core/group.ts';
import type { LiveSession } from '../../../src/core/progress.ts';
import { reduce } from '../../../src/core/reduce.ts';
import { type GroupState, initialState } from '../../../src/core/state.ts';
import type { Reporter } from '../../../src/view/reporter.ts';

export const sampleGroupId = '20260104-143022-auth';
export const ids = {
  api: '001-11111111-1111-4111-8111-111111111111',
  web: '002-22222222-2222-4222-8222-222222222222',
  docs: '003-33333333-3333-4333-8333-333333333333',
} as const;

const runner = { pid: 4711, startTime: '1', host: 'here', bootId: 'boot' };
const worker = { ...runner, pid: 4712 };

export function sampleUsage(costUsd: number, input: number, output: number, durationMs: number): Usage {
  return {
    ...noUsage,
    costUsd,
    tokens: { input, output, cacheRead: 0, cacheCreation: 0 },
    durationMs,
    turns: 3,
  };
}

export function session(id: string, extra: Partial<SessionDefinition> = {}): SessionDefinition {
  return {
    id,
    description: '',
    projectPath: '/projects/shop',
    prompt: 'Do it.',
    dependsOn: [],
    createdAt: '2026-01-04T14:30:22.000Z',
    ...extra,
  };
}

/** group_created and one session_added each. */
export function creation(config: Partial<GroupConfig>, sessions: readonly SessionDefinition[]): EventBody[] {
  return [
    {
      type: 'group_created',
      group: {
        id: sampleGroupId,
        name: 'Auth',
        description: '',
        slug: 'auth',
        createdAt: '2026-01-04T14:30:22.000Z',
        config: { ...defaultGroupConfig, ...config },
      },
    },
    ...sessions.map((one): EventBody => ({ type: 'session_added', sessionId: one.id, session: one })),
  ];
}

export const started: EventBody = { type: 'group_started', run: { id: 'run-1', runner } };

/** Intent and process of one attempt. */
export function sampleAttempt(sessionId: string, attempt = 1): EventBody[] {
  const attemptId = `attempt-${sessionId.slice(0, 3)}-${attempt}`;
  const kind = attempt === 1 ? 'start' : 'retry';
  const intent = { id: attemptId, number: attempt, kind, offset: 0 } as const;
  const type = attempt === 1 ? 'session_started' : 'session_retrying';
  return [
    { type: 'session_starting', sessionId, attempt: intent },
    { type, sessionId, attemptId, attempt, process: worker },
    { type: 'session_identified', sessionId, attemptId, claudeSessionId: sessionId.slice(4), model: 'opus' },
  ];
}

export function sampleAttemptId(sessionId: string, attempt = 1): string {
  return `attempt-${sessionId.slice(0, 3)}-${attempt}`;
}

/** A run in which one session completes, one fails, and a third is blocked by it; with a budget warning. */
export const eventfulRun: readonly EventBody[] = [
  ...creation({ maxBudgetUsd: 1 }, [
    session(ids.api, { name: 'api' }),
    session(ids.web, { name: 'web', projectPath: '/projects/web' }),
    session(ids.docs, { name: 'docs', dependsOn: [ids.web] }),
  ]),
  started,
  ...sampleAttempt(ids.api),
  ...sampleAttempt(ids.web),
  {
    type: 'session_completed',
    sessionId: ids.api,
    attemptId: sampleAttemptId(ids.api),
    result: 'Done.',
    usage: sampleUsage(0.25, 12_000, 2500, 65_000),
  },
  { type: 'budget_warning', usage: 0.85, limit: 1 },
  {
    type: 'session_failed',
    sessionId: ids.web,
    attemptId: sampleAttemptId(ids.web),
    reason: 'no-result',
    message: 'claude ended without a result.',
    next: 'Look at its log.',
    usage: sampleUsage(0.6, 90_000, 400, 8000),
  },
  { type: 'group_failed', reason: 'sessions-failed', message: '1 session failed and 1 blocked by it.' },
];

/** Gives the events numbers and times, one second apart, and sends them to the reporter. */
export function play(
  reporter: Reporter,
  bodies: readonly EventBody[],
  live = new Map<string, LiveSession>(),
): GroupState {
  let state: GroupState | undefined;
  for (const [index, body] of bodies.entries()) {
    const at = new Date(Date.parse('2026-01-04T14:30:22.000Z') + index * 1000).toISOString();
    const event: GroupEvent = { seq: index + 1, at, groupId: sampleGroupId, ...body };
    state = state === undefined ? initialState(event) : reduce(state, event);
    reporter.event(event, state, live);
  }
  if (state === undefined) throw new Error('no events');
  return state;
}
