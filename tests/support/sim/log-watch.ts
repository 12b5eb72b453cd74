/** Reads and reduces the group's log like any other process, and reports the latest decisions. */
import { basename, dirname, join } from 'node:path';
import type { GroupEvent, StopReason } from '../../../src/core/event.ts';
import { reduce } from '../../../src/core/reduce.ts';
import { type GroupState, initialState } from '../../../src/core/state.ts';
import { invariants } from './checks.ts';
import type { DecisionKind } from './coverage.ts';
import type { Disk, FileNode } from './virtual-disk.ts';
import type { Violation } from './virtual-machine.ts';

/** Every new reason must be classified here. */
const stopKinds: Readonly<Record<StopReason, DecisionKind>> = {
  user: 'stop',
  signal: 'stop',
  'error-threshold': 'stop',
  deleted: 'stop',
  'top-up': 'stop-top-up',
  disk: 'stop-disk',
  budget: 'stop-budget',
  stall: 'stop-stall',
  'waits-for-answer': 'stop',
  timeout: 'stop-timeout',
};
const plainKinds: Readonly<Record<string, DecisionKind>> = {
  budget_warning: 'warn-budget',
  budget_exceeded: 'exceed-budget',
  session_budget_warning: 'warn-own-budget',
  session_budget_exceeded: 'exceed-own-budget',
  group_completed: 'settle-completed',
  group_failed: 'settle-failed',
  group_frozen: 'freeze',
  group_thawed: 'thaw',
  limit_reached: 'wait-limit',
  session_accepting: 'accept',
};

/** The decisions that a batch of log lines executes; `before`: the state before it is logged. */
export function decisionsIn(text: string, before: GroupState | null): DecisionKind[] {
  const found: DecisionKind[] = [];
  for (const line of text.split('\n')) {
    const type = /"type":"(\w+)"/.exec(line)?.[1] ?? '';
    const plain = plainKinds[type];
    if (plain !== undefined) found.push(plain);
    else if (type === 'session_starting') {
      found.push((/"kind":"(\w+)"/.exec(line)?.[1] ?? 'start') as DecisionKind);
      if (before?.limitResetsAt !== undefined) found.push('probe');
    } else if (type === 'session_stopping')
      found.push(isJudged(line, before) ? 'stop-accept' : stopKinds[reasonIn(line) as StopReason]);
    else if (type === 'session_paused' && line.includes('"retryAt"')) found.push('wait-backoff');
    else if (/^session_(?:paused|failed)$/.test(type) && reasonIn(line) === 'not-accepted') found.push('reject');
    else if (type === 'session_completed' && isJudged(line, before)) found.push('approve');
    else if (type === 'group_pausing' && line.includes('"drain"')) found.push('drain');
    else if (type === 'group_paused') {
      found.push('settle-paused');
      if (reasonIn(line) === 'limit') found.push('settle-limit');
    }
  }
  return found;
}

/** Whether the session of the line was being accepted. */
function isJudged(line: string, before: GroupState | null): boolean {
  const session = before?.sessions.get(/"sessionId":"([^"]+)"/.exec(line)?.[1] ?? '')?.state;
  return session?.status === 'running' && session.attempt.accepting !== undefined;
}

function reasonIn(line: string): string {
  return /"reason":"([\w-]+)"/.exec(line)?.[1] ?? '';
}

export class LogWatch {
  readonly path: string;
  readonly metaPath: string;
  /** The state by the log on disk; null before the first event. */
  state: GroupState | null = null;
  /** Events read since the last `takeNew`. */
  #fresh: GroupEvent[] = [];
  readonly #disk: Disk;
  readonly #violate: (violation: Violation) => void;
  /** Attempts started during a logged usage limit. */
  readonly #probes = new Set<string>();
  #offset = 0;
  #isReplay = false;
  #node: FileNode | null = null;
  readonly #decoder = new TextDecoder();

  constructor(disk: Disk, path: string, violate: (violation: Violation) => void) {
    this.#disk = disk;
    this.path = path;
    this.metaPath = join(dirname(path), 'meta.json');
    this.#violate = violate;
  }

  /** Reads from the start again: after a power cut the log may have lost its end. */
  forget(): void {
    this.#offset = 0;
    this.state = null;
    this.#fresh = [];
    this.#isReplay = this.#node !== null;
  }

  /** Whether the events of the last `takeNew` were read before; call after it. */
  takeReplay(): boolean {
    const isReplay = this.#isReplay;
    this.#isReplay = false;
    return isReplay;
  }

  /** True when everything in the log would survive a power cut. */
  get isDurable(): boolean {
    const node = this.#disk.file(this.path);
    return node !== null && node.durableSize === node.size;
  }

  /** Reads what was added since the last call. */
  catchUp(): void {
    const node = this.#disk.file(this.path);
    if (node === null) return;
    if (node !== this.#node || node.size < this.#offset) {
      this.forget();
      this.#node = node;
    }
    if (node.size === this.#offset) return;
    const bytes = node.read(this.#offset, Number.MAX_SAFE_INTEGER);
    const length = bytes.lastIndexOf(10) + 1;
    const isStart = this.#offset === 0;
    const lines = this.#decoder
      .decode(bytes.subarray(0, length))
      .split('\n')
      .slice(isStart ? 1 : 0, -1);
    this.#offset += length;
    for (const line of lines) if (!this.#take(line)) return;
  }

  /** The events read since the last call. */
  takeNew(): GroupEvent[] {
    const fresh = this.#fresh;
    this.#fresh = [];
    return fresh;
  }

  /** The last decision about a running attempt: how it started, or that it must stop. */
  decisionsOfAttempt(attemptId: string): DecisionKind[] {
    this.catchUp();
    for (const id of this.state?.running ?? []) {
      const session = this.state?.sessions.get(id)?.state;
      if (session?.status !== 'running' || session.attempt.id !== attemptId) continue;
      const { kind, stopping, accepting } = session.attempt;
      if (accepting !== undefined) return [stopping === undefined ? 'accept' : 'stop-accept'];
      if (stopping !== undefined) return [stopKinds[stopping]];
      return this.#probes.has(attemptId) ? [kind, 'probe'] : [kind];
    }
    return [];
  }

  decisionsOfSession(folder: string): DecisionKind[] {
    this.catchUp();
    const session = this.state?.sessions.get(basename(folder))?.state;
    return session?.status === 'running' ? this.decisionsOfAttempt(session.attempt.id) : [];
  }

  /** What the group waits for, by the log and the wall clock. */
  waits(wallMs: number): DecisionKind[] {
    const { state } = this;
    if (state?.status !== 'running') return [];
    if (state.frozenUntil !== undefined) return ['freeze'];
    const records = [...state.sessions.values()];
    const delayed = records.some(
      ({ notBeforeMs, state: { status } }) => status === 'paused' && (notBeforeMs ?? 0) > wallMs,
    );
    return [
      ...(Date.parse(state.limitResetsAt ?? '') > wallMs ? ['wait-limit' as const] : []),
      ...(delayed ? ['wait-backoff' as const] : []),
    ];
  }

  #take(line: string): boolean {
    try {
      const event = JSON.parse(line) as GroupEvent;
      this.#fresh.push(event);
      if (event.type === 'session_starting' && this.state?.limitResetsAt !== undefined) {
        this.#probes.add(event.attempt.id);
      }
      this.state = this.state === null ? initialState(event) : reduce(this.state, event);
      return true;
    } catch (error) {
      // Zeros and partial lines left by a crash are cut off by the next writer.
      if (error instanceof SyntaxError) this.#offset = Math.min(this.#offset, this.#disk.file(this.path)?.size ?? 0);
      else this.#violate({ invariant: invariants.folds, message: `${error}: ${line}` });
      return false;
    }
  }
}
