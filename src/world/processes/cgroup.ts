/**
 * Control groups of Linux (cgroups(7), version 2): a folder of the kernel's. Whatever a process does, all that it
 * starts stays in its group, and the kernel ends all of it at once, without a gap for what is being started.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const prefix = 'claude-code-agent-';
/** An empty group that is older was left by a runner that died; a younger one may be waiting for its first process. */
const abandonedMs = 60_000;
const seenForMs = 1_000;

interface Hierarchy {
  /** Folder of the group that this process is in. */
  readonly own: string;
  /** Where the file system of the groups is mounted: all that we can see are below. */
  readonly root: string;
}

/** `proc` is /proc/self. Null where version 2 is not mounted, or this process is in a group that cannot be seen. */
export function findHierarchy(proc: string): Hierarchy | null {
  const path = /^0::(.*)$/m.exec(readQuietly(join(proc, 'cgroup')))?.[1];
  if (path === undefined) return null;
  for (const line of readQuietly(join(proc, 'mountinfo')).split('\n')) {
    const [mount = '', kind = ''] = line.split(' - ');
    const [, , , top = '', place = ''] = mount.split(' ').map(unescapeOctal);
    if (!kind.startsWith('cgroup2 ') || !`${path}/`.startsWith(top === '/' ? top : `${top}/`)) continue;
    return { own: join(place, top === '/' ? path : path.slice(top.length)), root: place };
  }
  return null;
}

/** Groups that this process may make, once that was tried; null where it may not, or the kernel lacks cgroup.kill. */
export function openCgroups(hierarchy = findHierarchy('/proc/self')): Cgroups | null {
  if (hierarchy === null) return null;
  const folder = join(hierarchy.own, `${prefix}try-${process.pid}`);
  try {
    mkdirSync(folder);
    if (!existsSync(join(folder, 'cgroup.kill'))) return null;
    const [program = '', ...args] = joinCommand(folder);
    const streams = { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' } as const;
    const tried = Bun.spawnSync([program, ...args, '/bin/sh', '-c', ':'], { env: {}, ...streams });
    return tried.exitCode === 0 ? new Cgroups(hierarchy) : null;
  } catch {
    // Somebody else's, read-only, or as many groups as there may be.
    return null;
  } finally {
    removeQuietly(folder);
  }
}

/** Comes before the command of a program that is to be in the group before its first instruction. */
export function joinCommand(folder: string): string[] {
  return ['/bin/sh', '-c', 'echo 0 >"$0" && exec "$@"', join(folder, 'cgroup.procs')];
}

/** Ends all of a group at once and removes it; false while something of it is still ending. */
export function endGroup(folder: string): boolean {
  try {
    if (isPopulated(folder)) writeFileSync(join(folder, 'cgroup.kill'), '1');
    if (isPopulated(folder)) return false;
    removeTree(folder);
    return true;
  } catch {
    // Gone, or somebody else's by now.
    return !existsSync(folder);
  }
}

export class Cgroups {
  readonly #hierarchy: Hierarchy;
  /** Of those made here, by name; null = it is gone. */
  readonly #folders = new Map<string, string | null>();
  #seen: { readonly atMs: number; readonly folders: ReadonlyMap<string, string> } | null = null;

  constructor(hierarchy: Hierarchy) {
    this.#hierarchy = hierarchy;
    removeAbandoned(hierarchy.own);
  }

  /** Makes the group and returns its folder; null when it cannot be made. */
  make(name: string): string | null {
    const folder = join(this.#hierarchy.own, `${prefix}${name}`);
    try {
      if (!existsSync(folder)) mkdirSync(folder);
      this.#folders.set(name, folder);
      return folder;
    } catch {
      return null;
    }
  }

  /** Pids of what is in the group of that name, which another runner may have made, wherever that was. */
  members(name: string): number[] {
    const folder = this.#find(name);
    return folder === null ? [] : membersOf(folder);
  }

  /** Ends all of it at once and removes the group; false while something of it is still ending. */
  end(name: string): boolean {
    const folder = this.#find(name);
    if (folder === null) return true;
    if (!endGroup(folder)) return false;
    this.#folders.set(name, null);
    return true;
  }

  #find(name: string): string | null {
    const known = this.#folders.get(name);
    if (known !== undefined) return known;
    // Asked for many names at once, all groups of the machine are looked at once.
    if (this.#seen === null || performance.now() - this.#seen.atMs > seenForMs) {
      this.#seen = { atMs: performance.now(), folders: foldersBelow(this.#hierarchy.root) };
    }
    return this.#seen.folders.get(`${prefix}${name}`) ?? null;
  }
}

/** Folders of our groups, by their names. */
function foldersBelow(folder: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const path of foldersIn(folder)) {
    if (basename(path).startsWith(prefix)) found.set(basename(path), path);
    for (const [name, deeper] of foldersBelow(path)) found.set(name, deeper);
  }
  return found;
}

/** A runner that a session started has groups of its own in the session's. */
function membersOf(folder: string): number[] {
  const own = readQuietly(join(folder, 'cgroup.procs')).split('\n').map(Number);
  // 0: of another namespace of pids, where nobody here can name it.
  return [...own.filter((pid) => pid > 0), ...foldersIn(folder).flatMap(membersOf)];
}

/** Throws when the group is gone. Those that have ended and were not waited for do not count. */
function isPopulated(folder: string): boolean {
  return /^populated 1$/m.test(readFileSync(join(folder, 'cgroup.events'), 'latin1'));
}

/** Its files are the kernel's and go with it. */
function removeTree(folder: string): void {
  for (const path of foldersIn(folder)) removeTree(path);
  rmdirSync(folder);
}

function removeAbandoned(own: string): void {
  for (const folder of foldersIn(own)) {
    if (!basename(folder).startsWith(prefix)) continue;
    try {
      if (Date.now() - statSync(folder).mtimeMs > abandonedMs && !isPopulated(folder)) removeTree(folder);
    } catch {
      // Another runner has removed it.
    }
  }
}

function foldersIn(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => join(folder, entry.name));
  } catch {
    return [];
  }
}

function removeQuietly(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {}
}

function readQuietly(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** proc(5): blanks and the like in a path are written as three octal digits. */
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
