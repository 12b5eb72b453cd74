/**
 * A user with a data root full of groups in every status, made through the store itself so that each log is one that
 * really happens; and a record of every byte in it, to notice what a refused command has changed.
 */
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import type { EventBody, ProcessIdentity } from '../../../../src/core/event.ts';
import { defaultGroupConfig, noUsage, type SessionDefinition } from '../../../../src/core/group.ts';
import { slugOf } from '../../../../src/core/id.ts';
import { createGroup } from '../../../../src/store/group-store.ts';
import { openGroupWriter } from '../../../../src/store/group-writer.ts';
import { type GroupPaths, groupPaths } from '../../../../src/store/paths.ts';
import { createRealWorld } from '../../../../src/system/real-world.ts';
import { User } from '../user.ts';

const createdAt = '2026-01-02T03:04:05.000Z';
const elsewhere: ProcessIdentity = { pid: 1, startTime: '1', host: 'elsewhere', bootId: 'gone' };

/** The session id behind a number, the same in every group. */
export function numberedSessionId(number: number): string {
  const digits = String(number).padStart(3, '0');
  return `${digits}-aaaa${digits}0-0000-4000-8000-${digits.padStart(12, '0')}`;
}

export interface SessionPlan {
  readonly name?: string;
  readonly needs?: readonly number[];
}

export class Ground extends User {
  readonly world = createRealWorld();
  readonly #groups: string[] = [];

  /** Ids of all groups made here. */
  get groups(): readonly string[] {
    return this.#groups;
  }

  paths(groupId: string): GroupPaths {
    return groupPaths(this.data, groupId);
  }

  /** A group with sessions; every group gets the next second in its id. */
  make(slug: string, sessions: readonly SessionPlan[] = [], bodies: readonly EventBody[] = []): string {
    const second = String(this.#groups.length).padStart(2, '0');
    const id = `20260102-0304${second}-${slug}`;
    const group = { id, name: slug, description: '', slug: slugOf(id), createdAt, config: defaultGroupConfig };
    const made = createGroup(this.world, this.data, group, sessions.map(this.#define));
    if (!made.ok) throw new Error(made.failure.message);
    this.#groups.push(id);
    this.tell(id, bodies);
    return id;
  }

  /** Logs what happened to a group. */
  tell(groupId: string, bodies: readonly EventBody[]): void {
    const opened = openGroupWriter(this.world, this.data, groupId, 'command-test');
    if (!opened.ok) throw new Error(opened.failure.message);
    opened.value.record(bodies);
    opened.value.close();
  }

  readonly #define = ({ name, needs = [] }: SessionPlan, index: number): SessionDefinition => ({
    id: numberedSessionId(index + 1),
    ...(name === undefined ? {} : { name }),
    description: '',
    projectPath: this.project('one'),
    prompt: 'Do it.',
    dependsOn: needs.map(numberedSessionId),
    createdAt,
  });

  /** Some folders here are closed to their owner, who could not remove them. */
  override remove(): void {
    Bun.spawnSync(['chmod', '-R', 'u+rwX', this.folder]);
    super.remove();
  }

  /** Every file, folder and link of the data root with its mode and a hash of its contents. */
  record(): Record<string, string> {
    const found: Record<string, string> = {};
    const walk = (folder: string): void => {
      for (const name of unlessRefused(() => readdirSync(folder), [])) {
        const path = join(folder, name);
        const stats = lstatSync(path);
        // Looking whether a group is free takes its lock; the file stays, empty.
        if (name === 'runner.lock') continue;
        if (stats.isDirectory()) walk(path);
        found[path.slice(this.data.length + 1)] = `${stats.mode.toString(8)} ${fingerprint(path, stats)}`;
      }
    };
    walk(this.data);
    return found;
  }
}

function fingerprint(path: string, stats: Stats): string {
  if (stats.isSymbolicLink()) return readlinkSync(path);
  if (!stats.isFile()) return '';
  const contents = unlessRefused(() => readFileSync(path), 'refused');
  return createHash('sha256').update(contents).digest('hex');
}

/** Some files here are closed to their owner, too. */
function unlessRefused<T, F>(read: () => T, fallback: F): T | F {
  try {
    return read();
  } catch (error) {
    if ((error as { code?: unknown }).code === 'EACCES') return fallback;
    throw error;
  }
}

/** Stories of a session's first attempt and of its group. */
export const story = {
  started: { type: 'group_started', run: { id: 'run', runner: elsewhere } },
  intended: {
    type: 'session_starting',
    sessionId: numberedSessionId(1),
    attempt: { id: 'first', number: 1, kind: 'start', offset: 0 },
  },
  spawned: {
    type: 'session_started',
    sessionId: numberedSessionId(1),
    attemptId: 'first',
    attempt: 1,
    process: elsewhere,
  },
  completed: {
    type: 'session_completed',
    sessionId: numberedSessionId(1),
    attemptId: 'first',
    result: 'Done.',
    usage: noUsage,
  },
  paused: {
    type: 'session_paused',
    sessionId: numberedSessionId(1),
    attemptId: 'first',
    reason: 'user',
    message: 'Paused.',
    usage: noUsage,
  },
  failed: {
    type: 'session_failed',
    sessionId: numberedSessionId(1),
    attemptId: 'first',
    reason: 'claude-error',
    message: 'It went wrong.',
    next: 'Try again.',
    usage: noUsage,
  },
  groupCompleted: { type: 'group_completed' },
  groupPaused: { type: 'group_paused', reason: 'user', message: 'Paused.' },
  groupFailed: { type: 'group_failed', reason: 'sessions-failed', message: 'One session failed.' },
  groupArchived: { type: 'group_archived' },
} as const satisfies Record<string, EventBody>;

const begun: readonly EventBody[] = [story.started, story.intended, story.spawned];

/** One group of every status. */
export function makeEveryStatus(ground: Ground): void {
  ground.make('auth', [{ name: 'api' }, { name: 'web', needs: [1] }, {}]);
  ground.make('empty');
  ground.make('done', [{ name: 'lib' }], [...begun, story.completed, story.groupCompleted]);
  ground.make('broken', [{ name: 'one' }, { name: 'two', needs: [1] }], [...begun, story.failed, story.groupFailed]);
  ground.make('held', [{ name: 'one' }], [...begun, story.paused, story.groupPaused]);
  ground.make('old', [{ name: 'one' }], [...begun, story.paused, story.groupPaused, story.groupArchived]);
  ground.make('lost', [{ name: 'one' }, { name: 'two' }], begun);
  ground.make('twin');
  ground.make('twin');
  ground.make('live', [{ name: 'one' }]);
}
