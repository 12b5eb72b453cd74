/**
 * system/processes/: processes of this machine. This file starts, finds, follows and signals processes, our own and
 * those that an earlier runner left running.
 */
import { accessSync, closeSync, constants, openSync } from 'node:fs';
import type { ProcessIdentity } from '../../core/event.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { hostName } from '../machine.ts';
import { openPrivate } from '../private-file.ts';
import { writeFailure } from '../system-error.ts';
import type {
  Containment,
  ExitStatus,
  LimitKind,
  Processes,
  RunningProcess,
  SignalName,
  SpawnOptions,
} from '../world.ts';
import { type Cgroups, joinCommand, openCgroups } from './cgroup.ts';
import { Containers } from './containers.ts';
import type { ProcEntry, ProcTable } from './proc-table.ts';
import { collectDescendants } from './proc-table.ts';
import { describeSpawnError, isOwnChild, locateProgram, noteChild, runProgram } from './program.ts';

const limitsFailure = fail(
  'spawn-failed',
  'The limits of the session could not be set on its control group.',
  'See what `doctor` says of limits, then retry the session, or add it again without --max-processes.',
);
export interface ProcessOptions {
  readonly cgroups?: () => Cgroups | null;
  /** False: this process never becomes the parent of orphans. */
  readonly adoptsOrphans?: boolean;
}

export function createProcesses(
  table: ProcTable,
  { cgroups = openCgroups, adoptsOrphans = true }: ProcessOptions = {},
): Processes {
  return new SystemProcesses(table, new Containers(table, cgroups, adoptsOrphans));
}

/** Its methods are own properties, so that a wrapper can spread it and replace some. */
class SystemProcesses implements Processes {
  readonly #table: ProcTable;
  readonly #containers: Containers;
  readonly #host = hostName();
  readonly #bootId: string;
  readonly #exits: ExitPoll;

  constructor(table: ProcTable, containers: Containers) {
    this.#table = table;
    this.#containers = containers;
    this.#bootId = table.bootId();
    this.#exits = createExitPoll((identities) => this.#living(identities));
  }

  readonly spawn = (options: SpawnOptions): Result<RunningProcess> => {
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
  };

  #start(program: string, options: SpawnOptions, files: StandardFiles): Result<RunningProcess> {
    const { contained: name, limits, cwd, env } = options;
    const group = name === undefined ? null : this.#containers.makeGroup(name, limits);
    if (group === null && limits !== undefined) return limitsFailure;
    if (group === null && name !== undefined) this.#containers.prepare();
    const end = new Ending();
    try {
      // A shell would report a program that cannot be executed only by its exit code.
      if (group !== null) accessSync(program, constants.X_OK);
      const join = group === null ? [] : joinCommand(group.inner);
      const child = Bun.spawn([...join, program, ...options.args], {
        cwd,
        env: { ...env },
        stdin: files.stdin,
        stdout: files.stdout,
        stderr: files.stderr,
        detached: true,
        onExit: ({ exitCode, signalCode }) => end.come(statusOf(exitCode, signalCode)),
      });
      child.unref();
      // Even an ended child is a zombie until the event loop reaps it, so it has an entry.
      const startTime = this.#table.find([child.pid])[0]?.startTime ?? '';
      noteChild(child, startTime);
      if (group === null && name !== undefined) this.#containers.hold(name, { pid: child.pid, startTime }, env);
      return ok({ identity: this.#name(child.pid, startTime), onExit: (action) => end.tell(action) });
    } catch (error) {
      return describeSpawnError(program, error);
    }
  }

  readonly run = runProgram;

  readonly attach = (identity: ProcessIdentity, contained?: string): RunningProcess | null => {
    if (!this.isAlive(identity)) return null;
    const end = new Ending();
    if (contained !== undefined && this.#containers.find(contained).length === 0)
      this.#containers.hold(contained, identity);
    this.#exits.watch(identity, () => end.come({ kind: 'unknown' }));
    return { identity, onExit: (action) => end.tell(action) };
  };

  readonly identify = (pid: number): ProcessIdentity | null => {
    return this.#identities(this.#table.find([pid]))[0] ?? null;
  };

  readonly isAlive = (identity: ProcessIdentity): boolean => {
    return this.#living([identity]).size === 1;
  };

  readonly isHalted = (identity: ProcessIdentity): boolean => {
    return this.isAlive(identity) && this.#table.find([identity.pid])[0]?.halted === true;
  };

  readonly findMarked = (name: string, value: string): ProcessIdentity[] => {
    const pids = this.#table.marked(name, value).filter((pid) => pid !== process.pid);
    return this.#identities(this.#table.find(pids));
  };

  readonly findDescendants = (roots: readonly ProcessIdentity[]): ProcessIdentity[] => {
    const here = roots.filter((root) => this.#isHere(root));
    const entries = this.#table.all();
    const startTimes = new Map(entries.map(({ pid, startTime }) => [pid, startTime]));
    // A reused pid leads nowhere.
    const same = here.filter(({ pid, startTime }) => (startTimes.get(pid) ?? startTime) === startTime);
    const pids = same.map(({ pid }) => pid);
    return this.#identities(collectDescendants(entries, pids, process.pid));
  };

  readonly containment = (): Containment => {
    return this.#containers.containment;
  };

  readonly isGrouped = (name: string): boolean => {
    return this.#containers.isGrouped(name);
  };

  readonly limits = (): ReadonlySet<LimitKind> => {
    return this.#containers.limits();
  };

  readonly limitsHit = (name: string): LimitKind[] => {
    return this.#containers.hits(name);
  };

  readonly findContained = (name: string): ProcessIdentity[] => {
    return this.#identities(this.#containers.find(name));
  };

  readonly endContained = (name: string): boolean => {
    return this.#containers.end(name);
  };

  readonly signal = (identity: ProcessIdentity, signal: SignalName): boolean => {
    // An ended child of ours is a zombie, which no signal can harm.
    const isOurs = this.#isHere(identity) && isOwnChild(identity.pid, identity.startTime);
    if (!isOurs && !this.isAlive(identity)) return false;
    try {
      return process.kill(identity.pid, signal);
    } catch {
      // ESRCH: it ended meanwhile. EPERM: it changed its user.
      return false;
    }
  };

  #isHere({ bootId }: ProcessIdentity): boolean {
    return bootId === this.#bootId;
  }

  #living(identities: readonly ProcessIdentity[]): Set<ProcessIdentity> {
    // Not the host's name, which changes with a laptop's network: pid and start time are unique within a boot.
    const here = identities.filter((identity) => this.#isHere(identity));
    const entries = this.#table.find(here.map(({ pid }) => pid)).filter((entry) => !entry.zombie);
    const startTimes = new Map(entries.map((entry) => [entry.pid, entry.startTime]));
    return new Set(here.filter(({ pid, startTime }) => startTimes.get(pid) === startTime));
  }

  #identities(entries: readonly ProcEntry[]): ProcessIdentity[] {
    return entries.flatMap((entry) => (entry.zombie ? [] : [this.#name(entry.pid, entry.startTime)]));
  }

  #name(pid: number, startTime: string): ProcessIdentity {
    return { pid, startTime, host: this.#host, bootId: this.#bootId };
  }
}

const readWrite = constants.O_RDWR | constants.O_NOFOLLOW;

interface StandardFiles {
  readonly stdin: number | 'ignore';
  readonly stdout: number;
  readonly stderr: number;
}

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
  // The flag stays with the open file, however the child passes it on.
  const synced = (file: string): number => openPrivate(file, flags | constants.O_DSYNC);
  try {
    const { stdinFifo, syncsStdout } = options;
    // Read-write, so that opening does not wait for a writer and the child never reads an end of input.
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

/** An end that happens once and is reported to every listener, early or late, but never synchronously. */
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

/** Adopted workers run for minutes; their files are followed separately and change first. */
const pollMs = 200;

export interface ExitPoll {
  /** Calls `action` once after the process has ended; never synchronously. */
  watch(identity: ProcessIdentity, action: () => void): void;
}

export function createExitPoll(living: (identities: readonly ProcessIdentity[]) => Set<ProcessIdentity>): ExitPoll {
  const watched = new Map<ProcessIdentity, () => void>();
  let timer: ReturnType<typeof setInterval> | undefined;

  const look = (): void => {
    const alive = living([...watched.keys()]);
    const ended = [...watched].filter(([identity]) => !alive.has(identity));
    for (const [identity] of ended) watched.delete(identity);
    if (watched.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
    for (const [, action] of ended) action();
  };

  return {
    watch(identity, action) {
      // A copy as the key: two followers of the same process are both notified.
      watched.set({ ...identity }, action);
      if (timer !== undefined) return;
      timer = setInterval(look, pollMs);
      timer.unref();
    },
  };
}
