/** Converts decisions to log events, before they are executed. */
import { createHash } from 'node:crypto';
import { answersLeft } from '../claude/conversation.ts';
import { defined } from '../core/defined.ts';
import { type EventBody, thisMachine } from '../core/event.ts';
import { unreachable } from '../core/failure.ts';
import type { SessionId } from '../core/group.ts';
import { sessionNumber } from '../core/id.ts';
import { leftAnswers } from '../core/item.ts';
import type { Decision, Start } from '../core/plan/decision.ts';
import { type Attempt, conversationId, type SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import type { GroupWriter } from '../store/group-writer.ts';
import { LogLost } from '../store/log-lost.ts';
import { type GroupPaths, sessionPaths } from '../store/paths.ts';
import type { World } from '../system/world.ts';
import type { Worker } from '../worker/attempt/worker.ts';
import type { HostedAttempt } from '../worker/host.ts';
import { terminatePartialLine } from '../worker/session-files.ts';

export function decisionEvents(
  world: World,
  paths: GroupPaths,
  state: GroupState,
  decisions: readonly Decision[],
): EventBody[] {
  let newPorts: ReturnType<typeof portRanges> | undefined;
  return decisions.flatMap((decision): EventBody[] => {
    switch (decision.do) {
      case 'start':
        newPorts ??= portRanges(world, state);
        return [...movedEvents(state, decision), startingEvent(world, paths, state, decision, newPorts)];
      case 'stop': {
        const { sessionId, reason } = decision;
        return [{ type: 'session_stopping', sessionId, attemptId: runningAttempt(state, sessionId).id, reason }];
      }
      case 'wait':
      case 'wish':
        return [];
      case 'warn-budget': {
        const { usage, limit } = decision;
        return [{ type: 'budget_warning', usage, limit }];
      }
      case 'exceed-budget': {
        const { usage, limit, action } = decision;
        return [{ type: 'budget_exceeded', action, usage, limit }];
      }
      case 'warn-own-budget': {
        const { sessionId, usage, limit } = decision;
        return [{ type: 'session_budget_warning', sessionId, usage, limit }];
      }
      case 'exceed-own-budget': {
        const { sessionId, usage, limit, action } = decision;
        return [{ type: 'session_budget_exceeded', sessionId, action, usage, limit }];
      }
      case 'finish-wave': {
        const { wave, accepted, cost } = decision;
        return [{ type: 'wave_finished', wave, accepted, cost }];
      }
      case 'continue-wave':
        return [{ type: 'wave_decided', wave: decision.wave, decision: 'continue', by: 'rule' }];
      case 'ask-wave': {
        const { wave, text } = decision;
        const item = world.random.uuid().slice(0, 8);
        return [{ type: 'item_opened', item, kind: 'wave', wave, text, options: ['continue', 'stop'] }];
      }
      case 'settle': {
        if (decision.status === 'completed') return [{ type: 'group_completed' }];
        const { reason, message } = decision;
        return [{ type: decision.status === 'failed' ? 'group_failed' : 'group_paused', reason, message }];
      }
      default:
        return unreachable(decision);
    }
  });
}

function movedEvents(state: GroupState, { sessionId, place }: Start): EventBody[] {
  const record = state.sessions.get(sessionId) as SessionRecord;
  const from = record.host ?? (record.attempts > 0 ? thisMachine : undefined);
  const to = place?.host ?? thisMachine;
  if (to === (from ?? thisMachine)) return [];
  return [{ type: 'session_moved', sessionId, ...defined({ from }), to }];
}

function startingEvent(
  world: World,
  paths: GroupPaths,
  state: GroupState,
  decision: Start,
  newPorts: ReturnType<typeof portRanges>,
): EventBody {
  const { sessionId, kind, reserveUsd, isolated, place } = decision;
  const record = state.sessions.get(sessionId) as SessionRecord;
  const { config } = sessionPaths(paths, sessionId);
  const left = answersLeft(world, config, conversationId(record), leftAnswers(record));
  const attempt = {
    id: world.random.uuid(),
    number: record.attempts + 1,
    kind,
    offset: terminatePartialLine(world, sessionPaths(paths, sessionId)),
    ...defined({ reservedUsd: reserveUsd, isolated, place, portBase: newPorts(record) }),
    ...(left.length > 0 ? { answers: left } : {}),
  };
  return { type: 'session_starting', sessionId, attempt };
}

const [firstPort, rangeSize, rangesMax] = [20_000, 10, 1_000];

/** Reserves free port ranges. The first range depends on the group, so that groups rarely collide. */
function portRanges(world: World, { group, sessions }: GroupState): (record: SessionRecord) => number | undefined {
  const taken = new Set([...sessions.values()].flatMap(({ portBase }) => portBase ?? []));
  const first = createHash('sha256').update(group.id).digest().readUInt32BE(0);
  return ({ definition, portBase }) => {
    if (portBase !== undefined) return undefined;
    for (let tried = sessionNumber(definition.id); tried < rangesMax + sessionNumber(definition.id); tried += 1) {
      const base = firstPort + ((first + tried) % rangesMax) * rangeSize;
      const ports = Array.from({ length: rangeSize }, (_, index) => base + index);
      if (taken.has(base) || !ports.every((port) => world.machine.isPortFree(port))) continue;
      taken.add(base);
      return base;
    }
    return undefined;
  };
}

export function runningAttempt(state: GroupState, sessionId: SessionId): Attempt {
  const session = state.sessions.get(sessionId)?.state;
  if (session?.status !== 'running') throw new Error(`Internal error: session ${sessionId} is not running`);
  return session.attempt;
}

/** Throws LogLost when the log can no longer be written. */
export function assertLog({ lost }: GroupWriter): void {
  if (lost !== null) throw lost;
}

/** Ends all running attempts and resolves to the error for the user. The workers emit no facts afterwards. */
export async function endWorkers(
  state: GroupState,
  workers: ReadonlyMap<SessionId, { readonly worker: Worker }>,
  hosted: (sessionId: SessionId, attemptId: string) => HostedAttempt,
  { failure }: LogLost,
): Promise<LogLost> {
  const endings = [...state.running].map((sessionId) => {
    const ended = workers.get(sessionId)?.worker ?? hosted(sessionId, runningAttempt(state, sessionId).id);
    return ended.endNow();
  });
  const isAllGone = (await Promise.all(endings)).every(Boolean);
  const rest = isAllGone ? 'Its workers were stopped.' : 'Some of its workers could not be stopped.';
  return new LogLost({ ...failure, message: `${failure.message} ${rest}` });
}
