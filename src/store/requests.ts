/**
 * Requests of other processes to the live runner of a group: one file each, answered by an event in the log. The runner
 * logs the answer before it removes the file, so a sender always gets a definite result.
 */

import { join } from 'node:path';
import type { GroupChanges, SessionChanges } from '../core/edit.ts';
import type { Conversed, GroupEvent, ProcessIdentity, WaveDecision } from '../core/event.ts';
import type { SessionDefinition, SessionId } from '../core/group.ts';
import type { GivenAnswer } from '../core/item.ts';
import type { ConversationChoice } from '../core/session-state.ts';
import type { World } from '../system/world.ts';
import { followLog } from './event-log.ts';
import { parseOwn } from './json.ts';
import type { GroupPaths } from './paths.ts';

const lookEveryMs = 500;

/** A session as requested by another process; the runner assigns its id. */
export type NewSession = Omit<SessionDefinition, 'id'>;

export type GroupEdit = GroupChanges & {
  /** Permission rules for all sessions, in addition to the group's. */
  readonly allow?: readonly string[];
  /** The ids connect the definitions of this request; their numbers in the group may differ. */
  readonly add?: readonly SessionDefinition[];
  readonly edit?: readonly { readonly sessionId: SessionId; readonly changes: SessionChanges }[];
};

type OfSession = { readonly sessionId: SessionId };
type OfTakeOver = OfSession & { readonly attachmentId: string };

export const pauseModes = ['now', 'drain', 'freeze'] as const;
export type PauseRequestMode = (typeof pauseModes)[number];

export type RequestBody =
  | { readonly kind: 'add-session'; readonly session: NewSession }
  /** Of a session that is not running. */
  | (OfSession & { readonly kind: 'edit-session'; readonly changes: SessionChanges })
  | ({ readonly kind: 'edit-group' } & GroupEdit)
  /** These permission rules in addition to its own; of a session that is not running. */
  | (OfSession & { readonly kind: 'allow-tools'; readonly rules: readonly string[] })
  | (OfSession & { readonly kind: 'remove-session' })
  /** Pauses the whole group: now, after running sessions have finished, or for a short break. */
  | { readonly kind: 'pause'; readonly mode: PauseRequestMode; readonly toDelete?: true }
  | { readonly kind: 'thaw' }
  | (OfSession & { readonly kind: 'pause-session' })
  /** Starts a paused session again when there is a slot; `maxBudgetUsd` is its new cap. */
  | (OfSession & { readonly kind: 'resume-session'; readonly maxBudgetUsd?: number })
  /** Starts a failed session again with `prompt` as a message. */
  | (OfSession & { readonly kind: 'retry-session'; readonly prompt?: string } & ConversationChoice)
  | (OfSession & { readonly kind: 'say'; readonly text: string })
  | (OfSession & { readonly kind: 'answer-item'; readonly item: string; readonly given: GivenAnswer })
  /** The user's decision on a wave. */
  | {
      readonly kind: 'decide-wave';
      readonly item: string;
      readonly decision: WaveDecision;
      readonly note?: string;
    }
  /** A user attaches from this process: the session is stopped and kept for them. */
  | (OfTakeOver & { readonly kind: 'attach-session'; readonly process: ProcessIdentity })
  /** claude is about to open for the user; their share of the budget is reserved. */
  | (OfTakeOver & { readonly kind: 'open-attached' })
  | (OfTakeOver & { readonly kind: 'detach-session' } & Conversed)
  /** The session's held money is spent, or free again. */
  | (OfSession & { readonly kind: 'settle-cost'; readonly isSpent: boolean });

export type Request = {
  readonly id: string;
  /** The addressed run; others drop the request. */
  readonly runId: string;
  /** ISO 8601, UTC. */
  readonly at: string;
} & RequestBody;

export type RequestAnswer = Extract<GroupEvent, { readonly type: 'request_answered' }>;

export interface PendingRequest {
  readonly request: Request;
  readonly path: string;
}

/** Leaves a request for the runner. Throws the system's error when it cannot be written. */
export function sendRequest(world: World, paths: GroupPaths, request: Request): void {
  world.files.makeFolder(paths.requests);
  world.files.writeAtomic(requestPath(paths, request.id), `${JSON.stringify(request)}\n`);
}

function requestPath(paths: GroupPaths, id: string): string {
  return join(paths.requests, `${id}.json`);
}

/**
 * The requests to this run, oldest first. They stay (and are returned again) until `removeRequest`. Those to earlier
 * runs are removed; unclear files stay. The sending command has checked its fields, but its kind may be that of another
 * program version.
 */
export function takeRequests(world: World, paths: GroupPaths, runId: string): PendingRequest[] {
  const sent = sentRequests(world, paths);
  for (const { request, path } of sent) if (request.runId !== runId) removeRequest(world, path);
  const ours = sent.filter(({ request }) => request.runId === runId);
  return ours.sort((a, b) => Date.parse(a.request.at) - Date.parse(b.request.at));
}

/** Whether a request to pause the group is pending for this run. No request is consumed. */
export function isPauseAsked(world: World, paths: GroupPaths, runId: string): boolean {
  return sentRequests(world, paths).some(({ request }) => request.runId === runId && request.kind === 'pause');
}

/** Whether there is a file that a runner would answer or remove. */
export function hasRequests(world: World, paths: GroupPaths): boolean {
  return sentRequests(world, paths).length > 0;
}

/** The request files. Others are ignored, such as the temporary file of a sender that is writing. */
function sentRequests({ files }: World, paths: GroupPaths): PendingRequest[] {
  const names = files.list(paths.requests).filter((name) => !name.startsWith('.') && name.endsWith('.json'));
  return names.flatMap((name) => {
    const path = join(paths.requests, name);
    const request = parseOwn<Request>(files.readText(path));
    return request !== null && path === requestPath(paths, request.id) ? [{ request, path }] : [];
  });
}

/** Call after the answer was logged, not before: a file that is gone without an answer counts as dropped. */
export function removeRequest({ files }: World, path: string): void {
  files.remove(path);
}

/**
 * Waits for the answer to a sent request. `sinceSize`: the size of events.jsonl before that (bytes). `runner-gone` when
 * no answer will come: the runner ended, another one dropped the request, or the group was deleted. The request is
 * withdrawn then, so the caller may act itself.
 */
export function awaitAnswer(
  world: World,
  paths: GroupPaths,
  { id: requestId }: Pick<Request, 'id'>,
  sinceSize: number,
): Promise<RequestAnswer | 'runner-gone'> {
  const path = requestPath(paths, requestId);
  return new Promise((resolve) => {
    let cancel = (): void => {};
    let isSettled = false;
    const settle = (answer: RequestAnswer | 'runner-gone'): void => {
      if (isSettled) return;
      isSettled = true;
      log.close();
      cancel();
      if (answer === 'runner-gone') removeRequest(world, path);
      resolve(answer);
    };
    const onEvents = (events: readonly GroupEvent[]): void => {
      const answer = events.find((event) => event.type === 'request_answered' && event.requestId === requestId);
      if (answer !== undefined) settle(answer as RequestAnswer);
    };
    const log = followLog(world, paths.events, onEvents, () => settle('runner-gone'), sinceSize);
    const look = (): void => {
      const isTaken = world.files.info(path) === null;
      const holder = world.locks.holder(paths.lock);
      if (isTaken || holder === null) {
        // Any answer was logged before that, so this is the last necessary read of the log.
        log.look();
        settle('runner-gone');
      }
      if (!isSettled) cancel = world.clock.after(lookEveryMs, look);
    };
    cancel = world.clock.after(lookEveryMs, look);
  });
}
