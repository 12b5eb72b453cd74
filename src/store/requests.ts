/**
 * Requests of other processes to the live runner of a group: one file each, answered by an event in the log. The
 * runner logs the answer before it removes the file, so a sender is never left in doubt.
 */
import { join } from 'node:path';
import type { GroupEvent } from '../core/event.ts';
import { type Failure, fail } from '../core/failure.ts';
import type { SessionDefinition, SessionId } from '../core/group.ts';
import { isSessionId } from '../core/id.ts';
import type { World } from '../world/world.ts';
import { followLog, readLog } from './event-log.ts';
import { sessionFields } from './event-shape.ts';
import type { GroupPaths } from './paths.ts';
import { isRegularFile } from './regular-file.ts';
import { type Check, fields, isInstant, isNumber, isObject, isText, oneOf, optional, parseJson } from './shape.ts';

/** How often a sender looks whether its runner still lives, milliseconds. */
const lookEveryMs = 500;

/** A session as another process asks for it; the runner gives it its id. */
export type NewSession = Omit<SessionDefinition, 'id'>;

type OfSession = { readonly sessionId: SessionId };

export const pauseModes = ['now', 'drain', 'freeze'] as const;
export type PauseRequestMode = (typeof pauseModes)[number];

export type RequestBody =
  | { readonly kind: 'add-session'; readonly session: NewSession }
  | (OfSession & { readonly kind: 'remove-session' })
  /** Pauses the whole group: now, after running sessions have finished, or for a short break. */
  | { readonly kind: 'pause'; readonly mode: PauseRequestMode }
  /** Ends a freeze. */
  | { readonly kind: 'thaw' }
  | (OfSession & { readonly kind: 'pause-session' })
  /** Starts a paused session again when there is a slot; `maxBudgetUsd` is its own cap from now on. */
  | (OfSession & { readonly kind: 'resume-session'; readonly maxBudgetUsd?: number })
  /** Starts a failed session again; `prompt` is said to it. */
  | (OfSession & { readonly kind: 'retry-session'; readonly prompt?: string })
  | (OfSession & { readonly kind: 'say'; readonly text: string })
  /** Sets the group's cap, US dollars. */
  | { readonly kind: 'raise-budget'; readonly maxBudgetUsd: number };

export type Request = {
  /** A uuid; also the name of the file. */
  readonly id: string;
  /** The run that is asked; others drop the request. */
  readonly runId: string;
  /** ISO 8601, UTC. */
  readonly at: string;
} & RequestBody;

export type RequestAnswer = Extract<GroupEvent, { readonly type: 'request_answered' }>;

export interface PendingRequest {
  readonly request: Request;
  readonly path: string;
}

const aSessionId: Check = (value) => typeof value === 'string' && isSessionId(value);
const ofSession = fields({ sessionId: aSessionId });

const shapes: Readonly<Record<RequestBody['kind'], Check>> = {
  'add-session': fields({ session: fields(sessionFields) }),
  'remove-session': ofSession,
  pause: fields({ mode: oneOf(pauseModes) }),
  thaw: isObject,
  'pause-session': ofSession,
  'resume-session': fields({ sessionId: aSessionId, maxBudgetUsd: optional(isNumber) }),
  'retry-session': fields({ sessionId: aSessionId, prompt: optional(isText) }),
  say: fields({ sessionId: aSessionId, text: isText }),
  'raise-budget': fields({ maxBudgetUsd: isNumber }),
};

const anEnvelope = fields({
  id: isText,
  runId: isText,
  at: isInstant,
  kind: (value) => typeof value === 'string' && Object.hasOwn(shapes, value),
});

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
 * runs are removed, and so are malformed ones, which `onMalformed` is told.
 */
export function takeRequests(
  world: World,
  paths: GroupPaths,
  runId: string,
  onMalformed: (failure: Failure) => void = () => {},
): PendingRequest[] {
  const pending: PendingRequest[] = [];
  for (const path of requestFiles(world, paths)) {
    const text = readQuietly(world, path);
    if (text === null) continue;
    const request = parseRequest(text);
    if (request?.runId === runId && path === requestPath(paths, request.id)) {
      pending.push({ request, path });
      continue;
    }
    world.files.remove(path);
    if (request === null) {
      onMalformed(fail('usage', `The request ${path} was malformed.`, 'It was removed; send it again.').failure);
    }
  }
  return pending.sort((a, b) => Date.parse(a.request.at) - Date.parse(b.request.at));
}

/** Whether something lies there that a runner would answer, or remove. */
export function hasRequests(world: World, paths: GroupPaths): boolean {
  return requestFiles(world, paths).some((path) => readQuietly(world, path) !== null);
}

/** What lies there as a request, whoever it is from; all else is somebody else's and left alone. */
function requestFiles({ files }: World, { requests }: GroupPaths): string[] {
  return (
    files
      .list(requests)
      // Others are temporary files of a sender that is just writing.
      .filter((name) => !name.startsWith('.') && name.endsWith('.json'))
      .map((name) => join(requests, name))
      // Opening a FIFO would wait for a writer that may never come.
      .filter((path) => isRegularFile(files, path))
  );
}

/** What cannot be read must not end a run: nobody of ours has sent it. */
function readQuietly({ files }: World, path: string): string | null {
  try {
    return files.readText(path);
  } catch {
    return null;
  }
}

function parseRequest(text: string): Request | null {
  const value = parseJson(text);
  if (!isObject(value) || !anEnvelope(value)) return null;
  return shapes[value.kind as RequestBody['kind']](value) ? (value as unknown as Request) : null;
}

/** To be called after the answer was logged, not before: a file that is gone without an answer counts as dropped. */
export function removeRequest(world: World, path: string): void {
  world.files.remove(path);
}

/** It names a run that is over, so nobody would answer it even if the disk kept it. */
function withdraw(world: World, path: string): void {
  try {
    world.files.remove(path);
  } catch {}
}

/**
 * Waits for the answer to a request that was sent. `sinceSize` is the size of events.jsonl before that (bytes).
 * `runner-gone` when nobody will answer any more: the runner ended, another one dropped the request, or the group
 * was deleted. The request is withdrawn then, so the caller may act by itself.
 */
export function awaitAnswer(
  world: World,
  paths: GroupPaths,
  requestId: string,
  sinceSize: number,
): Promise<RequestAnswer | 'runner-gone'> {
  const path = requestPath(paths, requestId);
  return new Promise((resolve) => {
    let cancel = (): void => {};
    let isSettled = false;
    const settle = (answer: RequestAnswer | 'runner-gone'): void => {
      if (isSettled) return;
      isSettled = true;
      stop();
      cancel();
      if (answer === 'runner-gone') withdraw(world, path);
      resolve(answer);
    };
    const onEvents = (events: readonly GroupEvent[]): void => {
      const answer = events.find((event) => event.type === 'request_answered' && event.requestId === requestId);
      if (answer !== undefined) settle(answer as RequestAnswer);
    };
    const stop = followLog(world, paths.events, onEvents, () => settle('runner-gone'), sinceSize);
    const look = (): void => {
      if (world.files.info(path) === null || world.locks.holder(paths.lock) === null) {
        // Whatever was answered was logged before that, so this reading of the log is the last that is needed.
        const log = readLog(world, paths.events);
        if (log.ok) onEvents(log.value);
        settle('runner-gone');
      }
      if (!isSettled) cancel = world.clock.after(lookEveryMs, look);
    };
    cancel = world.clock.after(lookEveryMs, look);
  });
}
