/**
 * system/: the only code that touches the operating system. This file is the seam: everything that decides, stores or
 * supervises takes a World; tests hand in a virtual one. Calls are synchronous where the system's are fast: order
 * stays obvious and a crash has few places.
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
  /** Calls `action` once, never at once, after `delayMs` (monotonic); the returned function cancels it. */
  after(delayMs: number, action: () => void): () => void;
}

export interface FileInfo {
  readonly kind: 'file' | 'folder' | 'fifo' | 'other';
  readonly size: number;
  readonly mtimeMs: number;
  /** Both together tell one file from another that has its path later. */
  readonly device: number;
  readonly inode: number;
  /** Everybody on the machine may write to it; absent = not known. */
  readonly isOpenToAll?: boolean;
  /** Only its owner may read or write it; absent = not known. */
  readonly isPrivate?: boolean;
}

export type EntryKind = 'file' | 'folder' | 'link' | 'other';

/**
 * Who may read what is written. `private`, the default: the owner alone. `project`: it belongs to a person's project,
 * so a file that is replaced keeps its mode, and what is new gets the mode any other program of theirs would give it.
 */
export type FileAccess = 'private' | 'project';

export interface WriteOptions {
  readonly durable?: boolean;
  readonly access?: FileAccess;
}

/** Created for the owner alone (0600, 0700) unless another access is given. Methods throw the system's error. */
export interface Files {
  /** The whole file as UTF-8; null when it does not exist, or, unless a `pipe` is wanted, is no file but has no end. */
  readText(path: string, what?: 'file' | 'pipe'): string | null;
  /** Up to `maxBytes` bytes from `offset`; empty at the end or when the file does not exist. */
  readBytes(path: string, offset: number, maxBytes: number): Uint8Array;
  /** Replaces the file as a whole: temporary file beside it, rename; with `durable` both are fsynced. */
  writeAtomic(path: string, text: string, options?: WriteOptions): void;
  /**
   * Makes a new file, whole or not at all; with `durable` it is fsynced. Throws EEXIST when anything, a link too, has
   * that name. With `like` it gets the mode, and where we may the owner, of that file; with `mode` that one.
   */
  writeBytes(
    path: string,
    bytes: Uint8Array,
    options?: WriteOptions & { readonly like?: string; readonly mode?: number },
  ): void;
  /** Opens for reading, a FIFO without waiting for its writer; null when nothing is there. */
  openRead(path: string): ReadFile | null;
  /** Opens for appending (created when missing); throws ENXIO for what is no regular file. */
  openAppend(path: string): AppendFile;
  /** Cuts the file to `size` bytes and fsyncs it. */
  truncate(path: string, size: number): void;
  /** Makes the folder and its missing parents; false when it is there, and nothing happens. */
  makeFolder(path: string, access?: FileAccess): boolean;
  syncFolder(path: string): void;
  /** Names in a folder, sorted; empty when it does not exist. */
  list(path: string): string[];
  /** Absolute paths below the folder that fit `*`, `?`, `**` and `{a,b}`, sorted; hidden ones only by a written dot. */
  match(folder: string, pattern: string): string[];
  info(path: string): FileInfo | null;
  entryKind(path: string): EntryKind | null;
  realPath(path: string): string | null;
  rename(from: string, to: string): void;
  /** Makes a symlink at `path`; throws EEXIST when anything has that name. */
  link(target: string, path: string): void;
  /** Removes a file or a folder with all it holds; nothing happens when it does not exist. */
  remove(path: string): void;
  freeBytes(path: string): number;
  /**
   * Calls `onChange` soon after something in the folder changed. Only a hint: changes may be reported late, twice or
   * never, so callers also look for themselves from time to time. The returned function ends it.
   */
  watch(folder: string, onChange: () => void): () => void;
}

export interface ReadFile {
  /** Up to `maxBytes` of what is there from `offset` on, maybe fewer; empty only at the end. */
  read(offset: number, maxBytes: number): Uint8Array;
  close(): void;
}

export interface AppendFile {
  /** File size after what was appended so far. */
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
  /** Path of a FIFO, opened read-write for the child so that it never sees an end of input; absent = no input. */
  readonly stdinFifo?: string;
  readonly stdoutFile: string;
  readonly stderrFile: string;
  /**
   * Whatever is written to stdout survives a power cut as soon as its write has returned, whether we live or not; that
   * the file has its name is up to the caller.
   */
  readonly syncsStdout?: true;
  /**
   * It and everything it starts are held together under this name, as far as the system can (`containment`). This
   * process finds them by the name; where they have a control group, any other process does too.
   */
  readonly contained?: string;
  /** What it and all that it starts may take together; with `contained` only. It is not started without them. */
  readonly limits?: Limits;
}

/** `memory`: bytes, without swap. `processes`: how many at once, threads counted. */
export type LimitKind = 'memory' | 'processes';
export type Limits = { readonly [K in LimitKind]?: number };

/**
 * How `contained` is kept. `cgroup`: the kernel holds everything together. `tree`: this process is a subreaper, to
 * which orphans come. `mark`: neither; only what was seen below the program, sessions and marks lead to a process.
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
   * Calls `action` once when the process has ended, at once-but-later if it already has. For processes that are not
   * our children the status is `unknown`.
   */
  onExit(action: (status: ExitStatus) => void): void;
}

export type SignalName = 'SIGINT' | 'SIGTERM' | 'SIGKILL' | 'SIGSTOP' | 'SIGCONT';

export interface Processes {
  /**
   * Starts a process in a session of its own (it outlives us). Fails with `claude-missing` when the program, with
   * `project-missing` when the folder is not there, else `spawn-failed`.
   */
  spawn(options: SpawnOptions): Result<RunningProcess>;
  /** Runs a short program to its end and returns what it printed; `timeoutMs` ends it. */
  run(options: CommandOptions): Promise<Result<RunOutput>>;
  /**
   * Follows a process that another process started, and the processes held under the name `contained`; null when that
   * very process no longer lives.
   */
  attach(identity: ProcessIdentity, contained?: string): RunningProcess | null;
  /** Who `pid` is now; null when no such process lives (a zombie does not live). */
  identify(pid: number): ProcessIdentity | null;
  /** True while that very process (pid and start time) lives on this machine since this boot. */
  isAlive(identity: ProcessIdentity): boolean;
  isHalted(identity: ProcessIdentity): boolean;
  /** Living processes whose environment holds `name=value`, this process left out. */
  findMarked(name: string, value: string): ProcessIdentity[];
  /** Living descendants of the given processes and the members of their sessions, the processes themselves left out. */
  findDescendants(roots: readonly ProcessIdentity[]): ProcessIdentity[];
  /** Tried when it is first asked for. */
  containment(): Containment;
  /** Whether a control group holds everything that runs under that name. */
  isGrouped(name: string): boolean;
  /** The limits that `spawn` can set here. Tried when it is first asked for; this process may change its group then. */
  limits(): ReadonlySet<LimitKind>;
  /** Which of its limits were reached by what is held under that name; to be asked before `endContained`. */
  limitsHit(name: string): LimitKind[];
  /**
   * Living processes that are held under that name. What this call has seen below a program stays known after it left
   * the tree, so it is called from time to time.
   */
  findContained(name: string): ProcessIdentity[];
  /**
   * Kills everything that is held under the name; false while something of it is ending, and to be called again then.
   * An orphan that may belong to several names is killed with the last of them.
   */
  endContained(name: string): boolean;
  /** Sends a signal if that very process still lives; false when it does not. EPERM counts as not sent. */
  signal(identity: ProcessIdentity, signal: SignalName): boolean;
}

export interface CommandOptions {
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** How its output is read; absent = utf8. With latin1 each character is one byte, whatever the bytes say. */
  readonly encoding?: 'latin1';
  readonly input?: Uint8Array;
  /** Is told each line of its standard error when that is whole. */
  readonly onStderrLine?: (line: string) => void;
}

export interface RunOutput {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Fifos {
  /** Makes a new FIFO (0600) at `path`, replacing what is there: nothing unread of an earlier worker remains. */
  create(path: string): void;
  /** Opens the writing side without waiting; null when no process has it open for reading. */
  openWriter(path: string): FifoWriter | null;
}

export interface FifoWriter {
  /** Queues one line, or several with newlines between; the last newline is added. They go as fast as they are read. */
  writeLine(line: string): void;
  /** Drops what was not taken and closes. */
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
  /** Takes the lock file unless a living process holds it; null then. The holder is written into the file. */
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
  /** Nothing listens on the port, and this process may. */
  isPortFree(port: number): boolean;
  /** This process. */
  readonly self: ProcessIdentity;
}
