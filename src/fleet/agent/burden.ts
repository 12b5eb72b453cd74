/** How busy and how full this machine is. */
import type { Files } from '../../system/world.ts';
import type { FleetPaths } from '../fleet-paths.ts';
import type { HostEntry } from '../wire.ts';

/** As for a session that starts where its group runs. */
const diskBytesMin = 500_000_000;

/** It would take one wish after another, and could start none of them. */
export function isFull(files: Files, { folder }: FleetPaths): boolean {
  return files.freeBytes(folder) < diskBytesMin;
}

/** What it tells of that. */
export function burdenOf(files: Files, paths: FleetPaths): Pick<HostEntry, 'isFull' | 'freeDiskBytes' | 'load'> {
  const load = Number.parseFloat(files.readText('/proc/loadavg') ?? '');
  return {
    ...(isFull(files, paths) ? { isFull: true } : {}),
    freeDiskBytes: files.freeBytes(paths.folder),
    ...(Number.isFinite(load) ? { load } : {}),
  };
}
