/** Groups in a temporary data root, of any size. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defaultGroupConfig, type SessionDefinition } from '../../src/core/group.ts';
import { makeGroupId, makeSessionId } from '../../src/core/id.ts';
import { createGroup } from '../../src/store/group-store.ts';
import type { World } from '../../src/system/world.ts';
import { memoryFolder } from './places.ts';

export const groupStartMs = Date.UTC(2026, 0, 2, 3, 4, 5);

export interface BenchFolder {
  readonly path: string;
  /** Data root. */
  readonly root: string;
  /** A project folder. */
  readonly project: string;
  /** The environment of a command that works on this data root. */
  readonly env: Readonly<Record<string, string>>;
  remove(): void;
  /**
   * The same for one in memory. On a disk it stays until the whole run is over: ext4 looks at all that was removed in
   * the last minutes before it makes a new file, which can take a hundred times as long, and the next round would be
   * measured by that.
   */
  removeFromMemory(): void;
}

export interface BenchGroup {
  readonly groupId: string;
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
}

/** A run starts nothing when the disk of its data root has less than half of that left. */
const neededBytes = 1e9;

/**
 * Where files are kept in memory and programs may be started from; the temporary folder where there is no such place.
 * What a disk takes for a write that must not be lost differs a hundredfold from machine to machine and hides what a
 * program takes.
 */
export function memoryPlace(): string {
  const place = process.env.BENCH_MEMORY ?? memoryFolder;
  try {
    const { bavail, bsize } = statfsSync(place);
    return bavail * bsize >= neededBytes && startsPrograms(place) ? place : tmpdir();
  } catch {
    return tmpdir();
  }
}

function startsPrograms(place: string): boolean {
  const folder = mkdtempSync(join(place, 'cca-try-'));
  try {
    const program = join(folder, 'try');
    writeFileSync(program, '#!/bin/sh\n', { mode: 0o700 });
    return Bun.spawnSync([program], { stdio: ['ignore', 'ignore', 'ignore'] }).success;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** An empty data root and what belongs to it, in a new folder in `place`. */
export function makeFolder(place = tmpdir()): BenchFolder {
  const path = realpathSync(mkdtempSync(join(place, 'cca-bench-')));
  const remove = () => rmSync(path, { recursive: true, force: true });
  const [home, root, project] = ['home', 'data', 'project'].map((name) => join(path, name)) as [string, string, string];
  for (const folder of [home, root, project]) mkdirSync(folder);
  return {
    path,
    root,
    project,
    env: { PATH: process.env.PATH ?? '', LANG: 'C.UTF-8', HOME: home, CLAUDE_CODE_AGENT_HOME: root },
    remove,
    removeFromMemory: () => {
      if (place !== tmpdir()) remove();
    },
  };
}

export interface GroupShape {
  readonly sessions: number;
  /** What all of them have besides. */
  readonly fields?: Partial<SessionDefinition>;
}

/** Creates a group. */
export function makeGroupOnDisk(
  world: World,
  folder: BenchFolder,
  { sessions: count, fields }: GroupShape,
): BenchGroup {
  const groupId = makeGroupId(groupStartMs, 'bench');
  const createdAt = new Date(groupStartMs).toISOString();
  const ids = Array.from({ length: count }, (_, index) => makeSessionId(index + 1, crypto.randomUUID()));
  const sessions = ids.map((id, index): SessionDefinition => {
    return {
      id,
      name: `session-${index + 1}`,
      description: '',
      projectPath: folder.project,
      prompt: `Do part ${index + 1} of the work.`,
      dependsOn: [],
      createdAt,
      ...fields,
    };
  });
  const definition = {
    id: groupId,
    name: 'Bench',
    description: 'A group to measure with.',
    slug: 'bench',
    createdAt,
    config: defaultGroupConfig,
  };
  const created = createGroup(world, folder.root, definition, sessions);
  if (!created.ok) throw new Error(created.failure.message);
  return { groupId, folder: folder.path, env: folder.env };
}
