/**
 * control/watch/: what can be known of groups without changing them. This file: what a group is doing now, seen from
 * outside its runner: the log's state, and what the runner last wrote down.
 */

import { noTokens, roundUsd, type SessionId, type SessionSet, type Tokens, type Usage } from '../../core/group.ts';
import { isSlotCommand, type SlotUse, type SlotWait } from '../../core/plan/command-slot.ts';
import type { ApiRetry, Denied, LiveSession, SessionProgress } from '../../core/progress.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import type { LiveView } from '../../report/reporter.ts';
import { isObject, parseJson } from '../../store/shape.ts';
import type { World } from '../../world/world.ts';
import { liveRunner } from '../live-runner.ts';
import type { LoadedGroup } from '../resolve.ts';
import { attemptUsages } from './attempt-usage.ts';

export interface Standing {
  readonly live: LiveView;
  /** The log says running, but nobody runs it. */
  readonly isInterrupted: boolean;
  /** The time to count up to, ms since 1970: now, or when an interrupted run was last heard of. */
  readonly atMs: number;
}

/** How the group stands at this moment. */
export function standingOf(world: World, group: Pick<LoadedGroup, 'paths' | 'state' | 'hadRunner'>): Standing {
  const { state, paths, hadRunner } = group;
  const nowMs = world.clock.now();
  if (state.status !== 'running') return { live: new Map(), isInterrupted: false, atMs: nowMs };
  // Asked again, because one may have begun meanwhile.
  if (hadRunner || liveRunner(world, group) !== null) {
    return { live: readLive(world, paths.progress, state), isInterrupted: false, atMs: nowMs };
  }
  const live = withoutRunner(attemptUsages(world, paths, state));
  return { live, isInterrupted: true, atMs: Date.parse(state.updatedAt) };
}

/** What is known of attempts that nobody follows: only what they have used. */
export function withoutRunner(usages: ReadonlyMap<SessionId, Usage>): LiveView {
  return new Map([...usages].map(([id, usage]) => [id, { usage }]));
}

/** Running sessions of which a command waits for a slot. */
export function inQueueOf(live: LiveView): SessionSet {
  return { has: (id) => live.get(id)?.slot !== undefined };
}

/** The live figures in progress.json, for sessions that the log says are running. */
export function readLive(world: World, progressFile: string, state: GroupState): Map<SessionId, LiveSession> {
  const live = new Map<SessionId, LiveSession>();
  const progress = parseJson(world.files.readText(progressFile) ?? '');
  if (!isObject(progress) || progress.groupId !== state.group.id || !Array.isArray(progress.sessions)) return live;
  for (const session of progress.sessions) {
    if (!isObject(session) || typeof session.id !== 'string' || session.status !== 'running') continue;
    const record = state.sessions.get(session.id);
    if (record?.state.status !== 'running') continue;
    live.set(session.id, liveSession(session as Partial<SessionProgress>, record, world.clock.now()));
  }
  return live;
}

/** progress.json counts all attempts together; what ended attempts used is taken off again. */
function liveSession(session: Partial<SessionProgress>, record: SessionRecord, nowMs: number): LiveSession {
  const { usage } = record;
  const attempt = record.state.status === 'running' ? record.state.attempt : undefined;
  // While its work is accepted, its attempt is counted already.
  const startedAt = attempt === undefined || attempt.accepting !== undefined ? nowMs : Date.parse(attempt.startedAt);
  return {
    ...(typeof session.currentTool === 'string' ? { currentTool: session.currentTool } : {}),
    ...(typeof session.lastText === 'string' ? { lastText: session.lastText } : {}),
    ...retryIn(session.retry),
    ...deniedIn(session.denied),
    ...slotIn(session.slot),
    usage: {
      costUsd: Math.max(0, roundUsd(amount(session.cost) - usage.costUsd)),
      tokens: tokensSince(session.tokens, usage.tokens),
      durationMs: Math.max(0, nowMs - startedAt),
      turns: 0,
      ...(session.estimated === true ? { estimated: true as const } : {}),
      models: {},
    },
  };
}

/** Its writer may be of an older version, which knew nothing of it, or of a newer one. */
function retryIn(told: unknown): { readonly retry?: ApiRetry } {
  if (!isObject(told) || typeof told.error !== 'string') return {};
  const { attempt, attemptsMax, error, errorStatus } = told;
  const max = typeof attemptsMax === 'number' ? { attemptsMax } : {};
  const status = typeof errorStatus === 'number' ? errorStatus : null;
  return { retry: { attempt: amount(attempt), ...max, error, errorStatus: status } };
}

function deniedIn(told: unknown): { readonly denied?: Denied } {
  if (!isObject(told) || !Array.isArray(told.tools) || amount(told.calls) < 1) return {};
  return { denied: { calls: amount(told.calls), tools: told.tools.filter((name) => typeof name === 'string') } };
}

function slotIn(told: unknown): { readonly slot?: SlotWait } {
  if (!isObject(told) || !isSlotCommand(told.command) || !Array.isArray(told.heldBy)) return {};
  const heldBy = told.heldBy.flatMap((use: unknown): SlotUse[] => {
    if (!isObject(use) || typeof use.sessionId !== 'string' || !isSlotCommand(use.command)) return [];
    return [{ sessionId: use.sessionId, command: use.command }];
  });
  return { slot: { command: told.command, atOnce: amount(told.atOnce), heldBy } };
}

function tokensSince(now: Partial<Tokens> | undefined, before: Tokens): Tokens {
  const since = (name: keyof Tokens): number => Math.max(0, amount(now?.[name]) - before[name]);
  if (!isObject(now)) return noTokens;
  return {
    input: since('input'),
    output: since('output'),
    cacheRead: since('cacheRead'),
    cacheCreation: since('cacheCreation'),
  };
}

function amount(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}
