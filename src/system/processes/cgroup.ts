/**
 * Linux control groups (cgroups(7), version 2): kernel folders. All descendants of a process stay in its group, and the
 * kernel kills them at once, without missing processes that are being started.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { cgroupMounts } from '../machine.ts';
import type { LimitKind, Limits } from '../world.ts';

const prefix = 'claude-code-agent-';
/**
 * Prefix of the group into which a runner moves, because a group with limited child groups may contain no process
 * itself.
 */
const runnerPrefix = `${prefix}runner-`;
/** Within a limited group, the one for claude: the groups that claude creates are next to it. */
const innerName = 'session';
/** An older empty group was left by a dead runner; a younger one may be waiting for its first process. */
const abandonedMs = 60_000;
const seenForMs = 1_000;
/** `off`: processes are tracked as if no control group could be created. */
const cgroupsVariable = 'CLAUDE_CODE_AGENT_CGROUPS';

/**
 * What each kind of limit is to the kernel; `hits` counts in `events` how often it was reached. Of memory that are only
 * its own: below it claude limits its commands. Older kernels count processes where they were to be started.
 */
const controllers = {
  memory: {
    name: 'memory',
    file: 'memory.max',
    events: 'memory.events.local',
    hits: /^oom (\d+)$/m,
    isCountedBelow: false,
  },
  processes: { name: 'pids', file: 'pids.max', events: 'pids.events', hits: /^max (\d+)$/m, isCountedBelow: true },
} as const;
const limitKinds = Object.keys(controllers) as LimitKind[];

/** Processes may fork while they are moved, but not for ever. */
const movesMax = 20;

/** Changes of groups; each throws as the system does. */
export interface CgroupSystem {
  write(path: string, text: string): void;
  makeFolder(path: string): void;
  removeFolder(path: string): void;
}

const kernel: CgroupSystem = {
  write: (path, text) => writeFileSync(path, text),
  makeFolder: mkdirSync,
  removeFolder: rmdirSync,
};

interface Hierarchy {
  /** Folder of this process's group. */
  readonly own: string;
  /** Mount point of the group file system: all visible groups are below. */
  readonly root: string;
}

/** Null where version 2 is not mounted, or this process is in an invisible group. */
function findHierarchy(): Hierarchy | null {
  const path = /^0::(.*)$/m.exec(readQuietly('/proc/self/cgroup'))?.[1];
  const root = cgroupMounts.find((mount) => existsSync(join(mount, 'cgroup.controllers')));
  if (path === undefined || root === undefined) return null;
  const group = join(root, path);
  // A runner has moved there, and is an ancestor of this process.
  return { own: basename(group).startsWith(runnerPrefix) ? dirname(group) : group, root };
}

/**
 * Groups that this process may create, determined by trying; null where it may not, or the kernel lacks cgroup.kill.
 */
export function openCgroups(hierarchy = findHierarchy()): Cgroups | null {
  if (hierarchy === null || process.env[cgroupsVariable] === 'off') return null;
  const folder = join(hierarchy.own, `${prefix}try-${process.pid}`);
  try {
    mkdirSync(folder);
    if (!existsSync(join(folder, 'cgroup.kill'))) return null;
    const [program = '', ...args] = joinCommand(folder);
    const streams = { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' } as const;
    const tried = Bun.spawnSync([program, ...args, '/bin/sh', '-c', ':'], { env: {}, ...streams });
    return tried.exitCode === 0 ? new Cgroups(hierarchy) : null;
  } catch {
    // Owned by another user, read-only, or at the limit of groups.
    return null;
  } finally {
    removeQuietly(folder);
  }
}

/** Command prefix that puts a program into the group before its first instruction. */
export function joinCommand(folder: string): string[] {
  return ['/bin/sh', '-c', 'echo 0 >"$0" && exec "$@"', join(folder, 'cgroup.procs')];
}

export class Cgroups {
  readonly #hierarchy: Hierarchy;
  /** Groups created here, by name; null = it is gone. */
  readonly #folders = new Map<string, string | null>();
  readonly #system: CgroupSystem;
  #limits: ReadonlySet<LimitKind> | null = null;
  #seen: { readonly atMs: number; readonly folders: ReadonlyMap<string, string> } | null = null;

  constructor(hierarchy: Hierarchy, system: CgroupSystem = kernel) {
    this.#hierarchy = hierarchy;
    this.#system = system;
    removeAbandoned(hierarchy.own, system);
  }

  /**
   * Creates the group. Returns the folder for its first process: an inner one, or the group itself; null when it cannot
   * be created or limited.
   */
  make(name: string, limits: Limits = {}): string | null {
    const folder = join(this.#hierarchy.own, folderNameOf(name));
    try {
      if (!existsSync(folder)) this.#system.makeFolder(folder);
      this.#folders.set(name, folder);
      return this.#limit(folder, limits);
    } catch {
      this.end(name);
      return null;
    }
  }

  /** The folder for the processes of a limited group. */
  #limit(folder: string, limits: Limits): string {
    const kinds = limitKinds.filter((kind) => limits[kind] !== undefined);
    if (kinds.length === 0) return folder;
    for (const kind of kinds) this.#system.write(join(folder, controllers[kind].file), String(limits[kind]));
    // Otherwise the excess would be swapped out, and slow down the whole machine.
    const swap = join(folder, 'memory.swap.max');
    if (limits.memory !== undefined && existsSync(swap)) this.#system.write(swap, '0');
    for (const kind of kinds) enable(folder, kind, this.#system);
    const inner = join(folder, innerName);
    if (!existsSync(inner)) this.#system.makeFolder(inner);
    return inner;
  }

  /**
   * Which limits groups can have, determined once: for that, this process moves into its own group. Other processes are
   * never moved: where there are more than `ours` next to it, only limits that were already enabled exist.
   */
  limits(ours: () => ReadonlySet<number>): ReadonlySet<LimitKind> {
    this.#limits ??= new Set(this.#prepare(ours));
    return this.#limits;
  }

  #prepare(ours: () => ReadonlySet<number>): LimitKind[] {
    const { own } = this.#hierarchy;
    const missing = limitKinds.filter((kind) => !isEnabled(own, kind) && has(own, kind));
    if (missing.length > 0 && this.#makeRoom(ours)) {
      for (const kind of missing) {
        try {
          enable(own, kind, this.#system);
        } catch {
          // Not delegated, or another process has joined this group meanwhile.
        }
      }
    }
    return limitKinds.filter((kind) => isEnabled(own, kind));
  }

  /** Moves all processes out of our own group; true when there is none left. The root group may contain some. */
  #makeRoom(ours: () => ReadonlySet<number>): boolean {
    const { own } = this.#hierarchy;
    if (!existsSync(join(own, 'cgroup.type'))) return true;
    const leaf = join(own, `${runnerPrefix}${process.pid}`);
    for (let moves = 0; moves < movesMax; moves += 1) {
      const pids = pidsIn(own);
      if (pids.length === 0) return true;
      const known = ours();
      if (!pids.every((pid) => known.has(pid))) return false;
      for (const pid of pids) {
        try {
          if (!existsSync(leaf)) this.#system.makeFolder(leaf);
          this.#system.write(join(leaf, 'cgroup.procs'), String(pid));
        } catch {
          // It has ended, or we may not move it.
        }
      }
    }
    return false;
  }

  has(name: string): boolean {
    return this.#find(name) !== null;
  }

  /** Which limits the group of that name has reached. Call before its end. */
  hits(name: string): LimitKind[] {
    const folder = this.#find(name);
    return folder === null ? [] : hitsOf(folder);
  }

  /** Pids in the group of that name, which another runner may have created elsewhere. */
  members(name: string): number[] {
    const folder = this.#find(name);
    return folder === null ? [] : membersOf(folder);
  }

  /** Kills all of it at once and removes the group; false while something is still ending. */
  end(name: string): boolean {
    const folder = this.#find(name);
    if (folder === null) return true;
    if (!this.#isRemoved(folder)) {
      this.#killAll(folder);
      if (!this.#isRemoved(folder)) return false;
    }
    this.#folders.set(name, null);
    return true;
  }

  /** The kernel refuses to remove a group with a live process. */
  #isRemoved(folder: string): boolean {
    try {
      removeTree(folder, this.#system);
      return true;
    } catch {
      return !existsSync(folder);
    }
  }

  #killAll(folder: string): void {
    try {
      this.#system.write(join(folder, 'cgroup.kill'), '1');
    } catch {
      // It is gone, or belongs to another user.
    }
  }

  #find(name: string): string | null {
    const known = this.#folders.get(name);
    if (known !== undefined) return known;
    // For many names at once, all groups of the machine are read once.
    if (this.#seen === null || performance.now() - this.#seen.atMs > seenForMs) {
      this.#seen = { atMs: performance.now(), folders: foldersBelow(this.#hierarchy.root) };
    }
    return this.#seen.folders.get(folderNameOf(name)) ?? null;
  }
}

/** A name that is no valid path part, such as that of an onEvent command, is replaced by its hash. */
function folderNameOf(name: string): string {
  const part = /^[\w-]{1,100}$/.test(name) ? name : new Bun.CryptoHasher('sha256').update(name).digest('hex');
  return `${prefix}${part}`;
}

/** Folders of our groups, by their names. */
function foldersBelow(folder: string): Map<string, string> {
  return new Map(treeOf(folder).map((path) => [basename(path), path]));
}

/** A runner started by a session has its groups in the session's. */
function membersOf(folder: string): number[] {
  // 0: a process of another pid namespace, which has no pid here.
  return treeOf(folder)
    .flatMap(pidsIn)
    .filter((pid) => pid > 0);
}

function pidsIn(folder: string): number[] {
  return readQuietly(join(folder, 'cgroup.procs')).split('\n').filter(Boolean).map(Number);
}

/** Whether the groups in this one can have this limit. */
function isEnabled(folder: string, kind: LimitKind): boolean {
  return wordsOf(join(folder, 'cgroup.subtree_control')).includes(controllers[kind].name);
}

/** Whether that could be enabled. */
function has(folder: string, kind: LimitKind): boolean {
  return wordsOf(join(folder, 'cgroup.controllers')).includes(controllers[kind].name);
}

function enable(folder: string, kind: LimitKind, system: CgroupSystem): void {
  system.write(join(folder, 'cgroup.subtree_control'), `+${controllers[kind].name}`);
}

function wordsOf(path: string): string[] {
  return readQuietly(path).trim().split(' ');
}

/** The limits of its own that the group has reached. */
function hitsOf(folder: string): LimitKind[] {
  if (!existsSync(join(folder, innerName))) return [];
  return limitKinds.filter((kind) => {
    const { file, events, hits, isCountedBelow } = controllers[kind];
    const limit = readQuietly(join(folder, file)).trim();
    if (limit === '' || limit === 'max') return false;
    return (isCountedBelow ? treeOf(folder) : [folder]).some(
      (path) => Number(hits.exec(readQuietly(join(path, events)))?.[1] ?? 0) > 0,
    );
  });
}

/** The folder and all below it, each before those in it. */
function treeOf(folder: string): string[] {
  return [folder, ...foldersIn(folder).flatMap(treeOf)];
}

/** Throws when the group is gone. Zombies do not count. */
function isPopulated(folder: string): boolean {
  return /^populated 1$/m.test(readFileSync(join(folder, 'cgroup.events'), 'latin1'));
}

/** Its files are virtual and go with it. */
function removeTree(folder: string, system: CgroupSystem): void {
  for (const path of treeOf(folder).reverse()) system.removeFolder(path);
}

function removeAbandoned(own: string, system: CgroupSystem): void {
  for (const folder of foldersIn(own)) {
    if (!basename(folder).startsWith(prefix)) continue;
    try {
      if (Date.now() - statSync(folder).mtimeMs > abandonedMs && !isPopulated(folder)) removeTree(folder, system);
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
