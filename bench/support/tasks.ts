/** Work for schedulers: tasks that take a set time and wait for others. */
import { join } from 'node:path';
import { seeded } from './seeded.ts';

export const tinyClaude = join(import.meta.dir, 'tiny-claude.sh');

export interface Task {
  /** Milliseconds. */
  readonly ms: number;
  /** Places in the list of the tasks that come first. */
  readonly after: readonly number[];
}

const shortestTaskMs = 200;
const longestTaskMs = 1_000;
const mostParents = 3;
/** A task waits for some of so many before it. */
const reach = 60;

/** Always the same for the same number of tasks. */
export function randomGraph(tasks: number): Task[] {
  const random = seeded(tasks);
  return Array.from({ length: tasks }, (_, index) => {
    const parents = Array.from({ length: Math.floor(random() * (mostParents + 1)) }, () =>
      Math.max(0, index - 1 - Math.floor(random() * reach)),
    );
    const ms = Math.round(shortestTaskMs + random() * (longestTaskMs - shortestTaskMs));
    return { ms, after: index === 0 ? [] : [...new Set(parents)] };
  });
}

/** No schedule is shorter: the longest chain, or all work divided by the slots. Milliseconds. */
export function shortestMs(tasks: readonly Task[], slots: number): number {
  const endsAt: number[] = [];
  for (const { ms, after } of tasks) endsAt.push(ms + Math.max(0, ...after.map((other) => endsAt[other] ?? 0)));
  const work = tasks.reduce((sum, { ms }) => sum + ms, 0);
  return Math.max(...endsAt, work / slots);
}
