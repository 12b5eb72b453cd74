/**
 * system/: the only code that uses the operating system. This file is the seam: everything that decides, stores or
 * supervises takes a World, and tests pass a virtual one. Calls are synchronous where the system's are fast, so that
 * the order is obvious and a crash has few positions.
 */
import type { ProcessIdentity } from '../core/event.ts';
import type { Result } from '../core/failure.ts';

export interface World {
  readonly clock: Clock;
  readonly files: Files;
  readonly processes: Processes;
  readonly fifos: Fifos;
  readonly locks: Locks;
  readonly random: Random;
  readonly machine: Machine;
}

export interface Clock {
  /** Milliseconds since 1970, UTC. May jump. */
  now(): number;
  /** Calls `action` once, never synchronously, after `delayMs` (monotonic); the returned function cancels it. */
  after(delayMs: number, action: () => void): () => void;
}

export interface FileInfo {
  readonly kind: 'file' | 'folder' | 'fifo' | 'other';
  readonly size: number;
  readonly mtimeMs: number;
  /** Both together distinguish a file from a later one at the same path. */
  readonly device: number;
  readonly inode: number;
  /** Every user of the machine may write to it; absent = unknown. */
  readonly isOpenToAll?: boolean;
  /** Only its owner may read or write it; absent = unknown. */
  readonly isPrivate?: boolean;
}

export type EntryKind = 'file' | 'folder' | 'link' | 'other';

/**
 * Who may read what is written. `private`, the default: the owner only. `project`: it belongs to a user's project, so a
 * replaced file keeps its mode, and a new one gets the usual mode.
 */
export type FileAccess = 'private' | 'project';

export interface WriteOptions {
  readonly durable?: boolean;
  readonly access?: FileAccess;
}

/** Created for the owner alone (0600, 0700) unless another access is given. Methods throw the system's error. */
export interface Files {
  /** The whole file as UTF-8; null when it does not exist, or, unless a `pipe` is wanted, is not a regular file. */
  readText(path: string, what?: 'file' | 'pipe'): string | null;
  /** Up to `maxBytes` bytes from `offset`; empty at the end or when the file does not exist. */
  readBytes(path: string, offset: number, maxBytes: number): Uint8Array;
  /** Replaces the file atomically: temporary file next to it, rename; with `durable` both are fsynced. */
  writeAtomic(path: string, text: string, options?: WriteOptions): void;
  /**
   * Creates a new file, complete or not at all; with `durable` it is fsynced. Throws EEXIST when anything, including a
   * symlink, has that name. With `like` it gets the mode, and where possible the owner, of that file; with `mode` that
   * one.
   */
  writeBytes(
    path: string,
    bytes: Uint8Array,
    options?: WriteOptions & { readonly like?: string; readonly mode?: number },
  ): void;
  /** Opens for reading, a FIFO without waiting for its writer; null when nothing is there. */
  openRead(path: string): ReadFile | null;
  /** Opens for appending (created when missing); throws ENXIO for anything but a regular file. */
  openAppend(path: string): AppendFile;
  /** Cuts the file to `size` bytes and fsyncs it. */
  truncate(path: string, size: number): void;
  /** Creates the folder and its missing parents; false when it exists. */
  makeFolder(path: string, access?: FileAccess): boolean;
  syncFolder(path: string): void;
  /** Names in a folder, sorted; empty when it does not exist. */
  list(path: string): string[];
  /**
   * Absolute paths below the folder that match `*`, `?`, `**` and `{a,b}`, sorted; hidden ones only by an explicit dot.
   */
  match(folder: string, pattern: string): string[];
  info(path: string): FileInfo | null;
  entryKind(path: string): EntryKind | null;
  realPath(path: string): string | null;
  rename(from: string, to: string): void;
  /** Creates a symlink at `path`; throws EEXIST when anything has that name. */
  link(target: string, path: string): void;
  /** Removes a file, or a folder with its content; no error when it does not exist. */
  remove(path: string): void;
  freeBytes(path: string): number;
  /**
   * Calls `onChange` soon after something in the folder changed. Only a hint: changes may be reported late, twice or
   * never, so callers also poll. The returned function ends it.
   */
  watch(folder: string, onChange: () => void): () => void;
}

export interface ReadFile {
  /** Up to `maxBytes` from `offset`, possibly fewer; empty only at the end. */
  read(offset: number, maxBytes: number): Uint8Array;
  close(): void;
}

export interface AppendFile {
  /** File size including all appended bytes. */
  readonly size: number;
  append(text: string): void;
  appendBytes(bytes: Uint8Array): void;
  sync(): void;
  close(): void;
}

export interface SpawnOptions {
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Path of a FIFO, opened read-write for the child so that it never reads an end of input; absent = no input. */
  readonly stdinFifo?: string;
  readonly stdoutFile: string;
  readonly stderrFile: string;
  /**
   * Output survives a power cut as soon as its write has returned, whether we are alive or not; the caller syncs the
   * file's directory entry.
   */
  readonly syncsStdout?: true;
  /**
   * The process and all its descendants are tracked under this name, as far as the system can (`containment`). This
   * process finds them by the name; with a control group, any other process does too.
   */
  readonly contained?: string;
  /** Limits of the process and its descendants together; only with `contained`. It is not started without them. */
  readonly limits?: Limits;
}

/** `memory`: bytes, without swap. `processes`: how many at once, including threads. */
export type LimitKind = 'memory' | 'processes';
export type Limits = { readonly [K in LimitKind]?: number };

/**
 * How `contained` works. `cgroup`: the kernel tracks everything. `tree`: this process is a subreaper, which receives
 * orphans. `mark`: neither; only processes seen below the program, sessions and marks are found.
 */
export type Containment = 'cgroup' | 'tree' | 'mark';

/** How a process ended. `unknown`: it was not our child, so the system did not report its status to us. */
export type ExitStatus =
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'signalled'; readonly signal: string }
  | { readonly kind: 'unknown' };

export interface RunningProcess {
  readonly identity: ProcessIdentity;
  /**
   * Calls `action` once when the process has ended, asynchronously if it already has. For processes that are not our
   * children the status is `unknown`.
   */
  onExit(action: (status: ExitStatus) => void): void;
}

export type SignalName = 'SIGINT' | 'SIGTERM' | 'SIGKILL' | 'SIGSTOP' | 'SIGCONT';

export interface Processes {
  /**
   * Starts a process in its own session (it outlives us). Fails with `claude-missing` without the program,
   * `project-missing` without the folder, otherwise `spawn-failed`.
   */
  spawn(options: SpawnOptions): Result<RunningProcess>;
  /** Runs a short program to its end and returns its output; `timeoutMs` ends it. */
  run(options: CommandOptions): Promise<Result<RunOutput>>;
  /**
   * Follows a process that another process started, and the processes tracked under `contained`; null when that exact
   * process is not alive.
   */
  attach(identity: ProcessIdentity, contained?: string): RunningProcess | null;
  /** The identity of `pid`; null when no such process is alive (a zombie is not). */
  identify(pid: number): ProcessIdentity | null;
  /** True while exactly this process (pid and start time) is alive on this machine since this boot. */
  isAlive(identity: ProcessIdentity): boolean;
  isHalted(identity: ProcessIdentity): boolean;
  /** Live processes whose environment has `name=value`, without this process. */
  findMarked(name: string, value: string): ProcessIdentity[];
  /** Live descendants of the given processes and the members of their sessions, without the processes themselves. */
  findDescendants(roots: readonly ProcessIdentity[]): ProcessIdentity[];
  /** Determined at the first call. */
  containment(): Containment;
  /** Whether a control group tracks everything under that name. */
  isGrouped(name: string): boolean;
  /** The limits that `spawn` can set here. Determined at the first call; this process may change its group then. */
  limits(): ReadonlySet<LimitKind>;
  /** Which limits were reached under that name; call before `endContained`. */
  limitsHit(name: string): LimitKind[];
  /**
   * Live processes tracked under that name. Processes seen by this call stay known after they leave the tree, so it is
   * called from time to time.
   */
  findContained(name: string): ProcessIdentity[];
  /**
   * Kills everything tracked under the name; false while something is still ending, and to be called again then. An
   * orphan that may belong to several names is killed with the last of them.
   */
  endContained(name: string): boolean;
  /** Sends a signal if exactly this process is alive; false otherwise. EPERM counts as not sent. */
  signal(identity: ProcessIdentity, signal: SignalName): boolean;
}

export interface CommandOptions {
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Encoding of its output; absent = utf8. With latin1 each character is one byte. */
  readonly encoding?: 'latin1';
  readonly input?: Uint8Array;
  /** Called for each complete line of its standard error. */
  readonly onStderrLine?: (line: string) => void;
  /** Interrupts it like Ctrl-C. */
  readonly interrupt?: AbortSignal;
}

export interface RunOutput {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Fifos {
  /** Creates a new FIFO (0600) at `path`, replacing what is there: no unread data of an earlier worker remains. */
  create(path: string): void;
  /** Opens the writing side without waiting; null when no process has it open for reading. */
  openWriter(path: string): FifoWriter | null;
}

export interface FifoWriter {
  /**
   * Queues one line, or several separated by newlines; the last newline is added. They are written as fast as they are
   * read.
   */
  writeLine(line: string): void;
  /** Drops what was not written and closes. */
  close(): void;
}

export interface LockHolder {
  readonly identity: ProcessIdentity;
  readonly runId: string;
}

export interface Lock {
  release(): void;
}

export interface Locks {
  /** Takes the lock file unless a live process holds it; null then. The holder is written into the file. */
  tryLock(path: string, holder: LockHolder): Lock | null;
  /** The holder of the lock; null when it is free. */
  holder(path: string): LockHolder | null;
}

export interface Random {
  uuid(): string;
  /** At least 0, less than 1. */
  fraction(): number;
}

export interface Machine {
  readonly host: string;
  /** Changes with every boot of the machine. */
  readonly bootId: string;
  readonly cores: number;
  /** Memory that new processes could use without swapping, bytes. */
  freeMemoryBytes(): number;
  /** No process listens on the port, and this process may use it. */
  isPortFree(port: number): boolean;
  /** This process. */
  readonly self: ProcessIdentity;
}
