/**
 * Promises: memory for new workers is counted within the limits of the surrounding control groups, version 1 and 2.
 */
import { expect, test } from 'bun:test';
import { freeMemoryBytes, freeWithinLimits } from '../../../src/system/machine.ts';

const within = (files: Readonly<Record<string, string>>) => freeWithinLimits((path) => files[path] ?? null);
const mb = 1024 ** 2;

test('without control groups, or without a limit in them, memory is not limited', () => {
  expect(within({})).toBe(Number.POSITIVE_INFINITY);
  const unlimited = { '/sys/fs/cgroup/a/memory.max': 'max\n', '/sys/fs/cgroup/a/memory.current': '12\n' };
  expect(within({ '/proc/self/cgroup': '0::/a\n', ...unlimited })).toBe(Number.POSITIVE_INFINITY);
});

test('the lowest memory limit of all parent control groups counts, and caches count as free', () => {
  const files = {
    '/proc/self/cgroup': '0::/user.slice/job.scope\n',
    '/sys/fs/cgroup/user.slice/job.scope/memory.max': `${900 * mb}\n`,
    '/sys/fs/cgroup/user.slice/job.scope/memory.current': `${100 * mb}\n`,
    '/sys/fs/cgroup/user.slice/memory.max': `${1000 * mb}\n`,
    '/sys/fs/cgroup/user.slice/memory.current': `${700 * mb}\n`,
  };
  expect(within(files)).toBe(300 * mb);
  const stat = { '/sys/fs/cgroup/user.slice/memory.stat': `anon 5\ninactive_file ${200 * mb}\nactive_file 9\n` };
  expect(within({ ...files, ...stat })).toBe(500 * mb);
});

test('a container that sees its own control group as the root is limited by it', () => {
  const root = { '/sys/fs/cgroup/memory.max': `${512 * mb}`, '/sys/fs/cgroup/memory.current': `${500 * mb}` };
  expect(within({ '/proc/self/cgroup': '0::/', ...root })).toBe(12 * mb);
  expect(within({ '/proc/self/cgroup': '0::/../../docker/abc\n', ...root })).toBe(12 * mb);
});

test('a control group above its limit has no free memory, and invalid limits are ignored', () => {
  const over = { '/sys/fs/cgroup/a/memory.max': '10', '/sys/fs/cgroup/a/memory.current': '20' };
  expect(within({ '/proc/self/cgroup': '0::/a', ...over })).toBe(0);
  const odd = { '/sys/fs/cgroup/a/memory.max': 'lots', '/sys/fs/cgroup/a/memory.current': '20' };
  expect(within({ '/proc/self/cgroup': 'what\n0::/a', ...odd })).toBe(Number.POSITIVE_INFINITY);
});

test('this host reports some free memory', () => {
  expect(freeMemoryBytes()).toBeGreaterThan(0);
  expect(Number.isFinite(freeMemoryBytes())).toBe(true);
});
