/**
 * system/processes/: what runs on this machine. This file: starting, finding, following and signalling processes, ours
 * and those an earlier runner left behind.
 */
import { accessSync, closeSync, constants, lstatSync, openSync } from 'node:fs';
import { defined } from '../../core/defined.ts';
import type { ProcessIdentity } from '../../core/event.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { hostName } from '../host-name.ts';
import { forgetEnded, inheritOrphans } from '../libc.ts';
import { ownCommand } from '../own-program.ts';
import { openPrivate } from '../private-file.ts';
import type {
  Containment,
  ExitStatus,
  LimitKind,
  Processes,
  RunningProcess,
  SignalName,
  SpawnOptions,
} from '../world.ts';
import { writeFailure } from '../write-failure.ts';
import { type Cgroups, joinCommand, openCgroups } from './cgroup.ts';
import { Containers } from './containers.ts';
import { createExitPoll, type ExitPoll } from './exit-poll.ts';
import { keeperCommand, keeperEnvironment } from './keeper.ts';
import { isOwnChild, isStartedHere, noteChild } from './own-children.ts';
import { pidNamespace } from './pid-namespace.ts';
import type { ProcEntry, ProcTable } from './proc-table.ts';
import { collectDescendants } from './process-tree.ts';
import { describeSpawnError, locateProgram } from './program.ts';
import { runProgram } from './program-run.ts';
import { Strays } from './strays.ts';
import { becomeManner, installSubreaper, releaseManner } from './subreaper-image.ts';

/** What can be set was asked for before, so that something has changed since. */
const limitsFailure = fail(
  'spawn-failed',
  'The limits of the session could not be set on its control group.',
  'See what `doctor` says of limits, then retry the session, or add it anew without --max-processes.',
);
/** How often the children of a process are read that change faster than we can look. */
const childrenTries = 20;
/** Of earlier versions: the parent of a program, to which the orphans came. A live run has such workers. */
const subreaperName = 'subreaper';

/** `cgroups` tries whether this process may make control groups; tests say that it may not. */
export function createProcesses(table: ProcTable, cgroups: () => Cgroups | null = openCgroups): Processes {
  return new SystemProcesses(table, new Containers(table, cgroups));
}

/** What has ended so long ago, and was not waited for, is no process of Bun's. */
const foreignMs = 400;
/** How often the inherited are looked at. */
const waitMs = 250;

class SystemProcesses implements Processes {
  readonly #table: ProcTable;
  readonly #containers: Containers;
  readonly #host = hostName();
  readonly #bootId: string;
  readonly #pidNamespace = pidNamespace();
  readonly #exits: ExitPoll;
  readonly #strays: Strays;
  #inheritsOrphans: boolean | null = null;
  /** When an inherited process was first seen to have ended, by pid; it keeps that until somebody waits for it. */
  #unwaited = new Map<number, number>();

  constructor(table: ProcTable, containers: Containers) {
    this.#table = table;
    this.#containers = containers;
    this.#bootId = table.bootId();
    this.#exits = createExitPoll((identities) => this.#living(identities));
    this.#strays = new Strays(table, () => this.#inherited());
  }

  spawn(options: SpawnOptions): Result<RunningProcess> {
    const program = locateProgram(options.program, options.cwd, options.env);
    if (!program.ok) return program;
    const opened: number[] = [];
    try {
      const files = openStandardFiles(options, opened);
      return files.ok ? this.#start(program.value, options, files.value) : files;
    } finally {
      // The child has its own copies; ours would keep the FIFO's reading side open after its end.
      for (const fd of opened) closeSync(fd);
    }
  }

  #start(program: string, options: SpawnOptions, files: StandardFiles): Result<RunningProcess> {
    const end = new Ending();
    if (options.keeper !== undefined) this.#inheritOrphans();
    try {
      const held = this.#contained(program, options);
      if (held === null) return limitsFailure;
      const { command, env, isKept, isGrouped } = held;
      const child = Bun.spawn([...command, ...options.args], {
        cwd: options.cwd,
        env,
        stdin: files.stdin,
        stdout: files.stdout,
        stderr: files.stderr,
        detached: true,
        onExit: ({ exitCode, signalCode }) => {
          if (options.contained !== undefined) this.#strays.noteEnd(options.contained, signalCode === 'SIGKILL');
          end.come(statusOf(exitCode, signalCode));
        },
      });
      child.unref();
      this.#table.forget();
      // Even if it has ended already it is a zombie until the event loop asks for its status, so it has an entry.
      const started = { pid: child.pid, startTime: this.#table.find([child.pid])[0]?.startTime ?? '' };
      noteChild(child, started.startTime);
      const found = isKept ? this.#kept(started) : started;
      if (isKept) this.#containers.noteKeeper(options.contained, started, found.pid);
      if (isKept && !isGrouped && options.contained !== undefined) {
        this.#strays.note(options.contained, found, options.env);
      }
      const letGo = [...new Set([child.pid, found.pid])].map((pid) => this.#table.keep(pid));
      const release = () => {
        for (const action of letGo) action();
      };
      child.exited.then(release, release);
      return ok({ identity: this.#name(found.pid, found.startTime), onExit: (action) => end.tell(action) });
    } catch (error) {
      return describeSpawnError(program, error);
    }
  }

  /**
   * The command by which the program is started, and what it is given; `isKept`: that command becomes its keeper. Null
   * when the limits cannot be set. Throws when it cannot be executed.
   */
  #contained(program: string, { contained: name, keeper, env, limits }: SpawnOptions) {
    const group = name === undefined ? null : this.#containers.makeGroup(name, limits);
    if (group === null && limits !== undefined) return null;
    const isGrouped = group !== null;
    const inner = [...(group === null ? [] : joinCommand(group.inner)), program];
    if (keeper === undefined || process.platform !== 'linux')
      return { command: inner, env: { ...env }, isKept: false, isGrouped };
    accessSync(program, constants.X_OK);
    const { become, release } = subreaper(keeper);
    if (!this.#containers.canKeep) return { command: [...become, ...inner], env: { ...env }, isKept: false, isGrouped };
    const shell = keeperCommand(process.pid, group?.folder ?? '', [...release, ...inner]);
    const command = [...become, ...shell];
    return { command, env: keeperEnvironment(name ?? null, env), isKept: true, isGrouped };
  }

  /** The program that this keeper has started; the keeper itself when it has ended before that was seen. */
  #kept(keeper: Pick<ProcEntry, 'pid' | 'startTime'>): Pick<ProcEntry, 'pid' | 'startTime'> {
    for (;;) {
      const [child] = this.#table.find(this.#table.children(keeper.pid, 'first') ?? []);
      if (child !== undefined) return child;
      const [entry] = this.#table.find([keeper.pid]);
      if (entry === undefined || entry.zombie) return keeper;
      Bun.sleepSync(1);
    }
  }

  run = runProgram;

  attach(identity: ProcessIdentity, contained?: string): RunningProcess | null {
    if (!this.isAlive(identity)) return null;
    const end = new Ending();
    const come = () => end.come({ kind: 'unknown' });
    const keeper = contained === undefined ? null : this.#containers.keeper(contained);
    if (keeper !== null) this.#containers.noteKeeper(contained, keeper, identity.pid);
    // A keeper ends what the program leaves, and is the last of it.
    const last = keeper === null ? identity : this.#name(keeper.pid, keeper.startTime);
    this.#exits.watch(last, come);
    return { identity, onExit: (action) => end.tell(action) };
  }

  identify(pid: number): ProcessIdentity | null {
    return this.#identities(this.#table.find([pid]))[0] ?? null;
  }

  isAlive(identity: ProcessIdentity): boolean {
    return this.#living([identity]).size === 1;
  }

  isHalted(identity: ProcessIdentity): boolean {
    return this.isAlive(identity) && this.#table.find([identity.pid])[0]?.halted === true;
  }

  findMarked(name: string, value: string): ProcessIdentity[] {
    const pids = this.#table.marked(name, value).filter((pid) => pid !== process.pid);
    return this.#identities(this.#table.find(pids));
  }

  findDescendants(pid: number): ProcessIdentity[] {
    const seen = new Map(collectDescendants(this.#table.all(), pid, process.pid).map((entry) => [entry.pid, entry]));
    const found = this.#table.find([...seen.keys()]);
    // What was seen may be a second old; a pid that names another process by now is none of them.
    return this.#identities(found.filter((entry) => entry.startTime === seen.get(entry.pid)?.startTime));
  }

  findBranches(identity: ProcessIdentity): ProcessIdentity[][] | null {
    // Its orphans come to its keeper.
    const keeper = this.#containers.keeperOf(identity.pid);
    const parent = keeper ?? identity.pid;
    const isParent = keeper === null && this.#table.find([identity.pid])[0]?.name === subreaperName;
    const children = () => this.#table.children(parent, parent === identity.pid ? 'all' : 'first');
    let before = children();
    // Where nothing was, nothing can have been left by what ended while we looked.
    if (before?.length === 0) return this.isAlive(identity) ? [] : null;
    let seen: ProcessIdentity[][] = [];
    for (let tries = 0; before !== null && tries < childrenTries; tries += 1) {
      // Orphans come after the one that it has started itself.
      const program = isParent ? before[0] : identity.pid;
      const branches = this.#branches(before, parent, program)?.filter(([child]) => child?.pid !== identity.pid);
      seen = branches?.filter((branch) => branch.length > 0) ?? seen;
      // What ended while we looked, at any depth, has left its children to this one.
      const now = children();
      const isWhole = branches !== undefined && now !== null && now.join() === before.join();
      if (isWhole) return this.#isThere(identity, parent === identity.pid ? now : []) ? seen : null;
      before = now;
    }
    // Something is there at any rate, even if more of it was started than could be read.
    return before !== null && seen.length > 0 && this.isAlive(identity) ? seen : null;
  }

  #isThere(identity: ProcessIdentity, children: readonly number[]): boolean {
    // The dead have no children, so that one of ours which has some lives.
    return (children.length > 0 && isOwnChild(identity.pid, identity.startTime)) || this.isAlive(identity);
  }

  /**
   * For each of these children of `parent` what lives of it and below it; null when one could not be asked. Those of
   * the child `program` count as children too.
   */
  #branches(pids: readonly number[], parent: number, program?: number): ProcessIdentity[][] | null {
    // A pid that the system has given to another process meanwhile is none of them.
    const children = this.#table.find(pids).filter((entry) => entry.parent === parent);
    const branches: ProcessIdentity[][] = [];
    for (const entry of children) {
      const below = this.#below(entry);
      if (below === null) return null;
      if (entry.pid === program) branches.push(this.#identities([entry]), ...below);
      else branches.push([...this.#identities([entry]), ...below.flat()]);
    }
    return branches;
  }

  #below(entry: ProcEntry): ProcessIdentity[][] | null {
    // The children of one that has ended went to another before it was a zombie.
    if (entry.zombie && entry.isSingle) return [];
    const children = this.#table.children(entry.pid, entry.isSingle ? 'first' : 'all');
    // One that has ended meanwhile has left them to another, which is asked again.
    if (children === null) return this.#table.find([entry.pid])[0]?.startTime === entry.startTime ? null : [];
    return this.#branches(children, entry.pid);
  }

  findOrphans(): ProcessIdentity[] | null {
    if (!this.#inheritsOrphans) return null;
    let before = this.#inherited();
    for (let tries = 0; before !== null && tries < childrenTries; tries += 1) {
      if (before.length === 0) return [];
      const entries = this.#table.find(before).filter(({ parent }) => parent === process.pid);
      this.#waitFor(entries.filter(({ zombie }) => zombie));
      // What ended while we looked has left its children to us.
      const now = this.#inherited();
      if (now?.join() === before.join()) return this.#identities(entries);
      before = now;
    }
    return null;
  }

  /** Whoever comes to a process comes to its first thread, by which we start all others too. */
  #inherited(): number[] | null {
    return this.#table.children(process.pid, 'first')?.filter((pid) => !isStartedHere(pid)) ?? null;
  }

  /** Nobody else does it for those that came here; one that Bun has started it would have waited for by now. */
  #waitFor(zombies: readonly ProcEntry[]): void {
    const now = performance.now();
    const before = this.#unwaited;
    this.#unwaited = new Map(zombies.map((zombie) => [zombie.pid, before.get(zombie.pid) ?? now]));
    for (const [pid, seenMs] of this.#unwaited) if (now - seenMs > foreignMs) forgetEnded(pid);
  }

  /** Once: what a program that keeps its orphans leaves behind is to come to us. */
  #inheritOrphans(): void {
    if (this.#inheritsOrphans !== null) return;
    this.#inheritsOrphans = inheritOrphans();
    this.#table.keep(process.pid);
    // Others may wait for a pid to be gone, and there are only so many.
    if (this.#inheritsOrphans) setInterval(() => this.#waitForOrphans(), waitMs).unref();
  }

  /** A system that cannot be asked now, with too many files open for example, is asked again: no run ends over it. */
  #waitForOrphans(): void {
    try {
      this.findOrphans();
    } catch {}
  }

  containment(): Containment {
    return this.#containers.containment;
  }

  limits(): ReadonlySet<LimitKind> {
    return this.#containers.limits();
  }

  limitsHit(name: string): LimitKind[] {
    return this.#containers.hits(name);
  }

  findContained(name: string): ProcessIdentity[] {
    const pids = this.#containers.members(name).filter((pid) => pid !== process.pid);
    return this.#identities([...this.#table.find(pids), ...this.#strays.find(name)]);
  }

  endContained(name: string): boolean {
    this.#table.forget();
    return this.#containers.end(name) && this.#strays.end(name);
  }

  signal(identity: ProcessIdentity, signal: SignalName): boolean {
    // One of ours that has ended is a zombie, which no signal can harm.
    const isOurs = this.#isHere(identity) && isOwnChild(identity.pid, identity.startTime);
    if (!isOurs && !this.isAlive(identity)) return false;
    try {
      this.#table.forget();
      return process.kill(identity.pid, signal);
    } catch {
      // ESRCH: it ended since we looked. EPERM: it became somebody else's.
      return false;
    }
  }

  #isHere({ bootId, pidNamespace = this.#pidNamespace }: ProcessIdentity): boolean {
    return bootId === this.#bootId && pidNamespace === this.#pidNamespace;
  }

  #living(identities: readonly ProcessIdentity[]): Set<ProcessIdentity> {
    // Not the host's name, which changes with the network a laptop is in: pid and start time are unique in a boot.
    const here = identities.filter((identity) => this.#isHere(identity));
    const entries = this.#table.find(here.map(({ pid }) => pid)).filter((entry) => !entry.zombie);
    const startTimes = new Map(entries.map((entry) => [entry.pid, entry.startTime]));
    return new Set(here.filter(({ pid, startTime }) => startTimes.get(pid) === startTime));
  }

  #identities(entries: readonly ProcEntry[]): ProcessIdentity[] {
    return entries.flatMap((entry) => (entry.zombie ? [] : [this.#name(entry.pid, entry.startTime)]));
  }

  #name(pid: number, startTime: string): ProcessIdentity {
    const here = { host: this.#host, bootId: this.#bootId };
    return {
      pid,
      startTime,
      ...here,
      ...defined({ pidNamespace: this.#pidNamespace }),
    };
  }
}

interface Subreaper {
  /** What comes before a command that is to get the orphans of what it starts. */
  readonly become: readonly string[];
  /** What comes before the program of a keeper. */
  readonly release: readonly string[];
}

/** By path of the image; a run asks for the same one every time. */
const subreapers = new Map<string, Subreaper>();

function subreaper(path: string): Subreaper {
  const known = subreapers.get(path);
  // A program that was removed since, or replaced by what is no program, is put there again.
  const isThere = () => lstatSync(path, { throwIfNoEntry: false })?.isFile() === true;
  if (known !== undefined && (known.become[0] !== path || isThere())) return known;
  const { program, args } = ownCommand('subreaper');
  const found = installSubreaper(path)
    ? { become: [path, becomeManner], release: [path, releaseManner] }
    : { become: [program, ...args, 'become'], release: [program, ...args, 'release'] };
  subreapers.set(path, found);
  return found;
}

const readWrite = constants.O_RDWR | constants.O_NOFOLLOW;

interface StandardFiles {
  readonly stdin: number | 'ignore';
  readonly stdout: number;
  readonly stderr: number;
}

/** Every file that was opened is noted in `opened`, also when a later one fails. */
function openStandardFiles(options: SpawnOptions, opened: number[]): Result<StandardFiles> {
  let path = options.stdinFifo ?? '';
  const open = (next: string, opener: (path: string) => number): number => {
    path = next;
    const fd = opener(next);
    opened.push(fd);
    return fd;
  };
  const flags = constants.O_WRONLY | constants.O_APPEND;
  const append = (file: string): number => openPrivate(file, flags);
  // The flag stays with the file, however the child hands it on.
  const synced = (file: string): number => openPrivate(file, flags | constants.O_DSYNC);
  try {
    const { stdinFifo, syncsStdout } = options;
    // Read-write, so that opening does not wait for a writer and the child never sees an end of input.
    const stdin = stdinFifo === undefined ? 'ignore' : open(stdinFifo, (fifo) => openSync(fifo, readWrite));
    const stdout = open(options.stdoutFile, syncsStdout ? synced : append);
    return ok({ stdin, stdout, stderr: open(options.stderrFile, append) });
  } catch (error) {
    return { ok: false, failure: { ...writeFailure(path, error), reason: 'spawn-failed' } };
  }
}

function statusOf(exitCode: number | null, signal: string | number | null): ExitStatus {
  if (signal !== null) return { kind: 'signalled', signal: String(signal) };
  return exitCode === null ? { kind: 'unknown' } : { kind: 'exited', code: exitCode };
}

/** An end that comes once and is told to everybody who asks, early or late, but never while they ask. */
class Ending {
  #status: ExitStatus | undefined;
  #waiting: ((status: ExitStatus) => void)[] = [];

  come(status: ExitStatus): void {
    this.#status ??= status;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const action of waiting) action(this.#status);
  }

  tell(action: (status: ExitStatus) => void): void {
    const status = this.#status;
    if (status === undefined) this.#waiting.push(action);
    else setTimeout(() => action(status), 0);
  }
}
