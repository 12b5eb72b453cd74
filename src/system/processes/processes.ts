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
import type { ExitStatus, Processes, SpawnOptions } from '../world.ts';
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
  const containers = new Containers(table, cgroups, adoptsOrphans);
  const { identityOf, identities, isHere, living, isAlive } = identifier(table);
  const exits = createExitPoll(living);

  return {
    spawn(options) {
      const program = locateProgram(options.program, options.cwd, options.env);
      if (!program.ok) return program;
      const opened: number[] = [];
      try {
        const files = openStandardFiles(options, opened);
        if (!files.ok) return files;
        const started = startProgram(table, containers, program.value, options, files.value);
        if (!started.ok) return started;
        const { end, key } = started.value;
        return ok({ identity: identityOf(key), onExit: (action) => end.tell(action) });
      } finally {
        // The child has its own copies; ours would keep the FIFO's reading side open after its end.
        for (const fd of opened) closeSync(fd);
      }
    },
    run: runProgram,
    attach(identity, contained) {
      if (!isAlive(identity)) return null;
      const end = new Ending();
      if (contained !== undefined && containers.find(contained).length === 0) containers.hold(contained, identity);
      exits.watch(identity, () => end.come({ kind: 'unknown' }));
      return { identity, onExit: (action) => end.tell(action) };
    },
    identify: (pid) => identities(table.find([pid]))[0] ?? null,
    isAlive,
    isHalted: (identity) => isAlive(identity) && table.find([identity.pid])[0]?.halted === true,
    findMarked: (name, value) => identities(table.find(table.marked(name, value).filter((pid) => pid !== process.pid))),
    findDescendants(roots) {
      const entries = table.all();
      const startTimes = new Map(entries.map(({ pid, startTime }) => [pid, startTime]));
      // A reused pid leads nowhere.
      const same = roots
        .filter(isHere)
        .filter(({ pid, startTime }) => (startTimes.get(pid) ?? startTime) === startTime);
      const pids = same.map(({ pid }) => pid);
      return identities(collectDescendants(entries, pids, process.pid));
    },
    containment: () => containers.containment,
    isGrouped: (name) => containers.isGrouped(name),
    limits: () => containers.limits(),
    limitsHit: (name) => containers.hits(name),
    findContained: (name) => identities(containers.find(name)),
    endContained: (name) => containers.end(name),
    signal(identity, signal) {
      // An ended child of ours is a zombie, which no signal can harm.
      const isOurs = isHere(identity) && isOwnChild(identity.pid, identity.startTime);
      if (!isOurs && !isAlive(identity)) return false;
      try {
        return process.kill(identity.pid, signal);
      } catch {
        // ESRCH: it ended meanwhile. EPERM: it changed its user.
        return false;
      }
    },
  };
}

function identifier(table: ProcTable) {
  const host = hostName();
  const bootId = table.bootId();
  const identityOf = ({ pid, startTime }: Pick<ProcEntry, 'pid' | 'startTime'>) => ({ pid, startTime, host, bootId });
  const identities = (entries: readonly ProcEntry[]): ProcessIdentity[] =>
    entries.filter(({ zombie }) => !zombie).map(identityOf);
  // Not the host's name, which changes with a laptop's network: pid and start time are unique within a boot.
  const isHere = (identity: ProcessIdentity) => identity.bootId === bootId;
  const living = (wanted: readonly ProcessIdentity[]): Set<ProcessIdentity> => {
    const here = wanted.filter(isHere);
    const entries = table.find(here.map(({ pid }) => pid)).filter((entry) => !entry.zombie);
    const startTimes = new Map(entries.map((entry) => [entry.pid, entry.startTime]));
    return new Set(here.filter(({ pid, startTime }) => startTimes.get(pid) === startTime));
  };
  const isAlive = (identity: ProcessIdentity) => living([identity]).size === 1;
  return { identityOf, identities, isHere, living, isAlive };
}

interface Started {
  readonly key: Pick<ProcEntry, 'pid' | 'startTime'>;
  readonly end: Ending;
}

function startProgram(
  table: ProcTable,
  containers: Containers,
  program: string,
  { contained: name, limits, cwd, env, args }: SpawnOptions,
  files: StandardFiles,
): Result<Started> {
  const group = name === undefined ? null : containers.makeGroup(name, limits);
  if (group === null && limits !== undefined) return limitsFailure;
  if (group === null && name !== undefined) containers.prepare();
  const end = new Ending();
  try {
    // A shell would report a program that cannot be executed only by its exit code.
    if (group !== null) accessSync(program, constants.X_OK);
    const join = group === null ? [] : joinCommand(group);
    const child = Bun.spawn([...join, program, ...args], {
      cwd,
      env: { ...env },
      ...files,
      detached: true,
      onExit: ({ exitCode, signalCode }) => end.come(statusOf(exitCode, signalCode)),
    });
    child.unref();
    // Even an ended child is a zombie until the event loop reaps it, so it has an entry.
    const key = { pid: child.pid, startTime: table.find([child.pid])[0]?.startTime ?? '' };
    noteChild(child, key.startTime);
    if (group === null && name !== undefined) containers.hold(name, key, env);
    return ok({ key, end });
  } catch (error) {
    return describeSpawnError(program, error);
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

function createExitPoll(living: (identities: readonly ProcessIdentity[]) => Set<ProcessIdentity>) {
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
    /** Calls `action` once after the process has ended; never synchronously. */
    watch(identity: ProcessIdentity, action: () => void): void {
      // A copy as the key: two followers of the same process are both notified.
      watched.set({ ...identity }, action);
      if (timer !== undefined) return;
      timer = setInterval(look, pollMs);
      timer.unref();
    },
  };
}
