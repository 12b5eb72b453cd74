/** This machine: its name, ports and free memory. */

import { readFileSync } from 'node:fs';
import { freemem, hostname } from 'node:os';
import { posix } from 'node:path';

export function hostName(): string {
  return hostname();
}

export function isPortFree(port: number): boolean {
  try {
    Bun.listen({ hostname: '0.0.0.0', port, socket: { data() {} } }).stop(true);
    return true;
  } catch {
    return false;
  }
}

export const platform: string = process.platform;

// macOS keeps logins in a keychain, which belongs to the user whatever HOME is.

export const hasKeychain = process.platform === 'darwin';

export type ReadText = (path: string) => string | null;

/**
 * Linux counts reclaimable caches as available; elsewhere only unused memory is known. A container or a service may
 * have less than the machine: beyond the limit of its control group processes are killed. Bytes.
 */
export function freeMemoryBytes(): number {
  return Math.min(availableBytes(readText) ?? freemem(), freeWithinLimits(readText));
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function availableBytes(read: ReadText): number | null {
  const match = /^MemAvailable:\s+(\d+) kB$/m.exec(read('/proc/meminfo') ?? '');
  return match ? Number(match[1]) * 1024 : null;
}

/** Where version 2 of the control groups may be mounted. */
export const cgroupMounts = ['/sys/fs/cgroup', '/sys/fs/cgroup/unified'];

/**
 * The free memory under the tightest limit of this process's control groups (version 2) and their parents: bytes, never
 * negative, infinite without a limit. Reclaimable file caches count as free, as for the whole machine.
 */
export function freeWithinLimits(read: ReadText): number {
  const path = /^0::(.*)$/m.exec(read('/proc/self/cgroup') ?? '')?.[1];
  if (path === undefined) return Number.POSITIVE_INFINITY;
  const folders = cgroupMounts.flatMap((mount) => upwards(path).map((folder) => posix.join(mount, folder)));
  return Math.min(...folders.map((folder) => freeIn(read, folder)));
}

/** The folder and all its parents. In a container the path may not be visible as a whole. */
function upwards(path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '' && part !== '..');
  return [...parts.keys(), parts.length].map((count) => `/${parts.slice(0, count).join('/')}`);
}

function freeIn(read: ReadText, folder: string): number {
  const most = bytes(read(posix.join(folder, 'memory.max')));
  const used = bytes(read(posix.join(folder, 'memory.current')));
  if (most === null || used === null) return Number.POSITIVE_INFINITY;
  const cached = Number(/^inactive_file (\d+)$/m.exec(read(posix.join(folder, 'memory.stat')) ?? '')?.[1] ?? 0);
  return Math.max(0, most - Math.max(0, used - cached));
}

function bytes(text: string | null): number | null {
  return text !== null && /^\d+\s*$/.test(text) ? Number(text) : null;
}
