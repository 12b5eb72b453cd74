/** Who has locked a file, as the system tells it of its processes: a disk that has died opens no file any more. */
import { readdirSync, readFileSync, readlinkSync, type Stats, statSync } from 'node:fs';
import { basename } from 'node:path';

/** Their pids; null where the system does not tell. */
export function lockersOf(path: string): number[] | null {
  if (quietly(() => readdirSync('/proc/self/fdinfo')) === null) return null;
  const wanted = quietly(() => statSync(path));
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => filesOf(pid).some((fd) => isLocked(pid, fd, path, wanted))).map(Number);
}

/** None of a process that has ended, or that we may not look into. */
function filesOf(pid: string): string[] {
  return quietly(() => readdirSync(`/proc/${pid}/fd`)) ?? [];
}

function isLocked(pid: string, fd: string, path: string, wanted: Stats | null): boolean {
  const open = `/proc/${pid}/fd/${fd}`;
  const target = quietly(() => readlinkSync(open)) ?? '';
  // Most are something else, which this tells without asking any disk.
  if (basename(target) !== basename(path)) return false;
  const there = quietly(() => statSync(open));
  // The folder may have another name here.
  const isSame = there?.ino === wanted?.ino && there?.dev === wanted?.dev;
  if (there === null || wanted === null ? target !== path : !isSame) return false;
  return /^lock:.* FLOCK +\S+ +WRITE /m.test(quietly(() => readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8')) ?? '');
}

function quietly<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
