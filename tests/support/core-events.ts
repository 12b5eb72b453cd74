/**
 * Hand-made groups and logs for tests of core: short names become session ids, events get numbers and times, and every
 * event is reduced at once, so that a test reads as the history of a run.
 */
import type { AttemptKind, EventBody, GroupEvent, PauseReason, ProcessIdentity } from '../../src/core/event.ts';
import type { SessionFailureReason } from '../../src/core/failure.ts';
import {
  defaultGroupConfig,
  type GroupConfig,
  type GroupDefinition,
  noUsage,
  type SessionDefinition,
  type SessionId,
  type Usage,
} from '../../src/core/group.ts';
import { reduce } from '../../src/core/reduce.ts';
import { type GroupState, initialState } from '../../src/core/state.ts';

export const groupId = '20260102-030405-test';
const beganMs = Date.UTC(2026, 0, 2, 3, 4, 5);

/** The session id of a number; the uuid part is derived from it. */
export function sid(number: number): SessionId {
  const digits = String(number).padStart(3, '0');
  return `${digits}-00000000-0000-4000-8000-${digits.padStart(12, '0')}`;
}

export function groupDefinition(config: Partial<GroupConfig> = {}): GroupDefinition {
  return {
    id: groupId,
    name: 'Test',
    description: '',
    slug: 'test',
    createdAt: new Date(beganMs).toISOString(),
    config: { ...defaultGroupConfig, ...config },
  };
}

export function sessionDefinition(
  number: number,
  dependsOn: readonly number[] = [],
  more: Partial<SessionDefinition> = {},
): SessionDefinition {
  return {
    id: sid(number),
    description: '',
    projectPath: '/projects/one',
    prompt: 'Do it.',
    dependsOn: dependsOn.map(sid),
    createdAt: new Date(beganMs).toISOString(),
    ...more,
  };
}

export function usage(costUsd: number, output = 0): Usage {
  return { ...noUsage, costUsd, tokens: { ...noUsage.tokens, output } };
}

export const runnerIdentity: ProcessIdentity = { pid: 100, startTime: '7', host: 'here', bootId: 'boot' };

/** The id of the `attempt`th attempt of `sid(number)`. */
export function attemptId(sessionId: SessionId, attempt: number): string {
  return `${sessionId.slice(0, 3)}#${attempt}`;
}

export type AttemptOutcome = 'completed' | 'failed' | 'paused';

/** A log and its reduced state. One second passes with every event. */
export class CoreLog {
  readonly events: GroupEvent[] = [];
  readonly state: GroupState;

  constructor(config: Partial<GroupConfig> = {}) {
    const first = this.next({ type: 'group_created', group: groupDefinition(config) });
    this.events.push(first);
    this.state = initialState(first);
  }

  /** The next event, without applying it. */
  next(body: EventBody): GroupEvent {
    const seq = this.events.length + 1;
    return { seq, at: new Date(beganMs + seq * 1000).toISOString(), groupId, ...body };
  }

  add(...bodies: EventBody[]): this {
    for (const body of bodies) {
      const event = this.next(body);
      reduce(this.state, event);
      this.events.push(event);
    }
    return this;
  }

  addSession(definition: SessionDefinition): this {
    return this.add({ type: 'session_added', sessionId: definition.id, session: definition });
  }

  /** Starts the first run, or a later one in which the sessions of `retry` start again. */
  run(retry: readonly SessionId[] = []): this {
    const run = { id: 'run', runner: runnerIdentity };
    if (this.state.status === 'created') return this.add({ type: 'group_started', run });
    return this.add({ type: 'group_resumed', run, retry });
  }

  /** The whole start of an attempt, up to the line in which claude identifies itself. */
  start(sessionId: SessionId, kind: AttemptKind = 'start', reservedUsd?: number): this {
    const attempt = this.intend(sessionId, kind, reservedUsd);
    const type = { start: 'session_started', resume: 'session_resumed', retry: 'session_retrying' } as const;
    const of = { sessionId, attemptId: attemptId(sessionId, attempt) };
    return this.add(
      { type: type[kind], ...of, attempt, process: runnerIdentity },
      { type: 'session_identified', ...of, claudeSessionId: sessionId.slice(4), model: 'some-model' },
    );
  }

  /** Only the intent of an attempt; returns its number. */
  intend(sessionId: SessionId, kind: AttemptKind = 'start', reservedUsd?: number): number {
    const number = (this.state.sessions.get(sessionId)?.attempts ?? 0) + 1;
    const id = attemptId(sessionId, number);
    const reserved = reservedUsd === undefined ? {} : { reservedUsd };
    this.add({ type: 'session_starting', sessionId, attempt: { id, number, kind, offset: 0, ...reserved } });
    return number;
  }

  /** Only the intent of an attempt on another host. */
  intendAt(sessionId: SessionId, host = 'one', reservedUsd?: number): this {
    const number = (this.state.sessions.get(sessionId)?.attempts ?? 0) + 1;
    const id = attemptId(sessionId, number);
    const place = { host, token: `${host}:1:${number}`, job: `slots-any/${number}` };
    const kind = number === 1 ? 'start' : 'resume';
    const reserved = reservedUsd === undefined ? {} : { reservedUsd };
    const attempt = { id, number, kind, offset: 0, isolated: true, place, ...reserved } as const;
    return this.add({ type: 'session_starting', sessionId, attempt });
  }

  /** The host of the running attempt is lost, and with it the attempt. */
  loseHost(sessionId: SessionId, used: Usage): this {
    const of = this.attemptOf(sessionId);
    this.add({ type: 'session_host_lost', ...of, host: 'one', held: used.heldUsd ?? 0 });
    return this.pause(sessionId, used, 'host-lost');
  }

  complete(sessionId: SessionId, used: Usage = noUsage): this {
    return this.add({ type: 'session_completed', ...this.attemptOf(sessionId), result: 'Done.', usage: used });
  }

  fail(sessionId: SessionId, used: Usage = noUsage, reason: SessionFailureReason = 'claude-error'): this {
    const text = { message: 'It went wrong.', next: 'Try again.' };
    return this.add({ type: 'session_failed', ...this.attemptOf(sessionId), reason, ...text, usage: used });
  }

  pause(sessionId: SessionId, used: Usage = noUsage, reason: PauseReason = 'user'): this {
    return this.add({ type: 'session_paused', ...this.attemptOf(sessionId), reason, message: 'Paused.', usage: used });
  }

  private attemptOf(sessionId: SessionId): { sessionId: SessionId; attemptId: string } {
    return { sessionId, attemptId: attemptId(sessionId, this.state.sessions.get(sessionId)?.attempts ?? 0) };
  }
}
