/**
 * The real world with a fault that a test requests: the process kills itself by SIGKILL at a named moment, or processes
 * are looked up by ps(1). Moments are named `before X` and `after X`, where X is one of the calls below: `log TYPE`,
 * `write NAME`, `spawn`, `prompt`, `signal SIGTERM` ... A program that is waited for, such as in `run git merge`, also
 * has a moment `during X`.
 */
import { basename } from 'node:path';
import type { ProcessIdentity } from '../../src/core/event.ts';
import { createPsTable } from '../../src/system/processes/proc-table.ts';
import { createProcesses } from '../../src/system/processes/processes.ts';
import type { AppendFile, Fifos, Files, Locks, Processes, World } from '../../src/system/world.ts';

export interface Alteration {
  /** The moment at which the process ends itself; `nth` (default 1) of those with that name. */
  readonly at?: string;
  readonly nth?: number;
  /** Moments before this one do not count. */
  readonly since?: string;
  /** `frozen`: the last spawned worker is stopped first, so that it prints nothing. */
  readonly how?: 'kill' | 'frozen';
  /** `blind`: ps shows no environment of other processes. */
  readonly table?: 'ps' | 'blind';
  /** As after a reboot. */
  readonly bootId?: string;
}

export function alterWorld(real: World, alteration: Alteration): World {
  const moments = new Moments(alteration);
  const { table, bootId = real.machine.bootId } = alteration;
  const processes = table === undefined ? real.processes : createProcesses(psTable(real.machine.bootId, table));
  return {
    ...real,
    files: watchedFiles(real.files, moments),
    processes: watchedProcesses(processes, moments),
    fifos: watchedFifos(real.fifos, moments),
    locks: watchedLocks(real.locks, moments),
    machine: { ...real.machine, bootId, self: { ...(processes.identify(process.pid) ?? real.machine.self), bootId } },
  };
}

/** The macOS queries, answered on Linux by its own ps. `bootId` replaces sysctl. */
function psTable(bootId: string, sight: 'ps' | 'blind') {
  const table = createPsTable((program, args) => {
    const spoken = process.platform === 'linux' && args[0] === '-axEww' ? ['axeww', ...args.slice(1)] : args;
    return Bun.spawnSync([program, ...spoken], { env: { ...process.env, LC_ALL: 'C', TZ: 'UTC' } }).stdout.toString();
  });
  return { ...table, bootId: () => bootId, ...(sight === 'blind' ? { marked: () => [] } : {}) };
}

class Moments {
  readonly #alteration: Alteration;
  #named = 0;
  #counts: boolean;
  worker: ProcessIdentity | undefined;

  constructor(alteration: Alteration) {
    this.#alteration = alteration;
    this.#counts = alteration.since === undefined;
  }

  reach(moment: string): void {
    const { at, nth = 1, since } = this.#alteration;
    this.#counts ||= moment === since;
    if (!this.#counts || moment !== at) return;
    this.#named += 1;
    if (this.#named === nth) this.#end();
  }

  around<T>(call: string, action: () => T): T {
    this.reach(`before ${call}`);
    const value = action();
    this.reach(`after ${call}`);
    return value;
  }

  #end(): void {
    if (this.#alteration.how === 'frozen' && this.worker !== undefined) process.kill(this.worker.pid, 'SIGSTOP');
    process.kill(process.pid, 'SIGKILL');
    // The signal takes a moment; nothing of this process runs any more.
    for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  }
}

function watchedFiles(real: Files, moments: Moments): Files {
  const named = <T>(call: string, path: string, action: () => T) => moments.around(`${call} ${basename(path)}`, action);
  const reached = (path: string, bytes: Uint8Array): Uint8Array => {
    if (bytes.length > 0) moments.reach(`after read ${basename(path)}`);
    return bytes;
  };
  return {
    ...real,
    writeAtomic: (path, text, options) => named('write', path, () => real.writeAtomic(path, text, options)),
    truncate: (path, size) => named('truncate', path, () => real.truncate(path, size)),
    makeFolder: (path) => named('folder', path, () => real.makeFolder(path)),
    remove: (path) => named('remove', path, () => real.remove(path)),
    openAppend: (path) =>
      watchedAppend(
        named('open', path, () => real.openAppend(path)),
        path,
        moments,
      ),
    readBytes: (path, offset, maxBytes) => reached(path, real.readBytes(path, offset, maxBytes)),
    openRead: (path) => {
      const file = real.openRead(path);
      return file && { read: (offset, most) => reached(path, file.read(offset, most)), close: () => file.close() };
    },
  };
}

function watchedAppend(file: AppendFile, path: string, moments: Moments): AppendFile {
  let pending: string[] = [];
  return {
    get size() {
      return file.size;
    },
    append(text) {
      const lines = text.trimEnd().split('\n');
      pending = basename(path) === 'events.jsonl' ? lines.map((line) => JSON.parse(line).type) : [];
      for (const type of pending) moments.reach(`before log ${type}`);
      file.append(text);
      for (const type of pending) moments.reach(`before sync ${type}`);
    },
    appendBytes: (bytes) => file.appendBytes(bytes),
    sync() {
      file.sync();
      for (const type of pending) moments.reach(`after log ${type}`);
    },
    close: () => file.close(),
  };
}

function watchedProcesses(real: Processes, moments: Moments): Processes {
  return {
    ...real,
    spawn: (options) =>
      moments.around('spawn', () => {
        const spawned = real.spawn(options);
        if (spawned.ok) moments.worker = spawned.value.identity;
        return spawned;
      }),
    run: async (options) => {
      const call = `run ${basename(options.program)} ${subcommand(options.args)}`;
      moments.reach(`before ${call}`);
      const running = real.run(options);
      moments.reach(`during ${call}`);
      const ran = await running;
      moments.reach(`after ${call}`);
      return ran;
    },
    signal: (identity, signal) => moments.around(`signal ${signal}`, () => real.signal(identity, signal)),
  };
}

/** The subcommand of a program such as git: its first argument that is no option. */
function subcommand(args: readonly string[]): string {
  return args.find((arg, index) => !arg.startsWith('-') && args[index - 1] !== '-c') ?? '';
}

function watchedFifos(real: Fifos, moments: Moments): Fifos {
  return {
    create: (path) => moments.around('fifo', () => real.create(path)),
    openWriter: (path) => {
      const writer = real.openWriter(path);
      if (writer === null) return null;
      return {
        writeLine: (line) =>
          moments.around(line.includes('"type":"user"') ? 'prompt' : 'request', () => writer.writeLine(line)),
        close: () => writer.close(),
      };
    },
  };
}

function watchedLocks(real: Locks, moments: Moments): Locks {
  return {
    tryLock: (path, holder) => {
      const lock = moments.around('lock', () => real.tryLock(path, holder));
      return lock === null ? null : { ...lock, release: () => moments.around('unlock', () => lock.release()) };
    },
    holder: (path) => real.holder(path),
  };
}
