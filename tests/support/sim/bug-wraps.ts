/** Ways to insert a bug between the program and the machine: a World that returns wrong results, or does too little. */
import type { ProcessIdentity } from '../../../src/core/event.ts';
import type {
  AppendFile,
  Files,
  Processes,
  RunningProcess,
  SignalName,
  SpawnOptions,
  World,
} from '../../../src/system/world.ts';
import type { Wrap } from './user.ts';

export const log = '/events.jsonl';
export const transcript = '/transcript.jsonl';

/** The bug changes what is read: replacements keep the length, so that offsets stay right. */
export function reading(suffix: string, change: (text: string) => string): Wrap {
  const changed = (path: string, bytes: Uint8Array): Uint8Array => {
    // Partial characters would not survive decoding, but are never part of the searched text.
    if (!path.endsWith(suffix) || bytes.length < 2) return bytes;
    return Buffer.from(change(Buffer.from(bytes).toString('latin1')), 'latin1');
  };
  return (world) => ({
    ...world,
    files: {
      ...world.files,
      readBytes: (path, offset, most) => changed(path, world.files.readBytes(path, offset, most)),
      openRead: (path) => {
        const file = world.files.openRead(path);
        const read = (offset: number, most: number) => changed(path, file?.read(offset, most) ?? new Uint8Array(0));
        return file && { read, close: () => file.close() };
      },
    },
  });
}

/**
 * The bug is in what is appended to the log. A writer checks whether others have written too, so to that runner
 * the log seems to be what it wanted to write.
 */
export function appending(change: (text: string) => string): Wrap {
  return (world) => {
    let meant: Buffer | null = null;
    const { files } = world;
    return withFiles(world, {
      openAppend: (path) => {
        const file = files.openAppend(path);
        if (!path.endsWith(log)) return file;
        meant = Buffer.from(files.readBytes(path, 0, Number.MAX_SAFE_INTEGER));
        const append = (text: string): void => {
          file.append(change(text));
          meant = Buffer.concat([meant ?? Buffer.alloc(0), Buffer.from(text)]);
        };
        return { ...file, append, sync: () => file.sync() };
      },
      readBytes: (path, offset, most) =>
        meant !== null && path.endsWith(log)
          ? meant.subarray(offset, Math.min(meant.length, offset + most))
          : files.readBytes(path, offset, most),
      info: (path) => {
        const info = files.info(path);
        return meant !== null && info !== null && path.endsWith(log) ? { ...info, size: meant.length } : info;
      },
    });
  };
}

export function withLog(change: (file: AppendFile) => AppendFile): Wrap {
  return (world) => ({
    ...world,
    files: {
      ...world.files,
      openAppend: (path) => (path.endsWith(log) ? change(world.files.openAppend(path)) : world.files.openAppend(path)),
    },
  });
}

export function withFiles(world: World, files: Partial<Files>): World {
  return { ...world, files: { ...world.files, ...files } };
}

export function withProcesses(world: World, processes: Partial<Processes>): World {
  return { ...world, processes: { ...world.processes, ...processes } };
}

export function withSpawned(change: (process: RunningProcess) => RunningProcess): Wrap {
  return (world) =>
    withProcesses(world, {
      spawn: (options) => {
        const spawned = world.processes.spawn(options);
        return spawned.ok ? { ok: true, value: change(spawned.value) } : spawned;
      },
    });
}

const shell = '/bin/sh';

/** The bug changes reports about commands. */
export function ofCommands(change: (process: RunningProcess) => RunningProcess): Wrap {
  return (world) =>
    withProcesses(world, {
      spawn: (options) => {
        const spawned = world.processes.spawn(options);
        return spawned.ok && options.program === shell ? { ok: true, value: change(spawned.value) } : spawned;
      },
    });
}

/** The claude started last executes each command again. */
export const asksClaude: Wrap = (world) => {
  let last: SpawnOptions | null = null;
  return withProcesses(world, {
    spawn: (options) => {
      if (options.program !== shell) last = options;
      else if (last !== null) return world.processes.spawn({ ...last, env: { ...last.env, ...options.env } });
      return world.processes.spawn(options);
    },
  });
};

/** No process of an attempt is found. */
export const findsNothing: Partial<World['processes']> = {
  findMarked: () => [],
  findDescendants: () => [],
  findContained: () => [],
  endContained: () => true,
};

/** No command is seen or ended. */
export const overlooksCommands: Wrap = (world, { machine }) => {
  const isCommand = (identity: ProcessIdentity) => machine.table.find(identity)?.kind === 'command';
  const { processes } = world;
  return withProcesses(world, {
    isAlive: (identity) => !isCommand(identity) && processes.isAlive(identity),
    findMarked: (name, value) => processes.findMarked(name, value).filter((identity) => !isCommand(identity)),
    findDescendants: (roots) => processes.findDescendants(roots).filter((identity) => !isCommand(identity)),
    findContained: (name) => processes.findContained(name).filter((identity) => !isCommand(identity)),
    endContained: () => true,
    signal: (identity, signal) => !isCommand(identity) && processes.signal(identity, signal),
  });
};

/** A worker with output looks silent, and cannot be ended. */
export const forgetsWorkers: Wrap = (world) =>
  withProcesses(
    withFiles(world, {
      info: (path) => {
        const info = world.files.info(path);
        return info !== null && path.endsWith(transcript) ? { ...info, size: 0 } : info;
      },
    }),
    { isAlive: () => false, ...findsNothing },
  );

/** The session starts in the log after the line in which `pattern` is found. */
export function beginsAfter(pattern: RegExp): Wrap {
  let lastSession = '';
  return appending((text) => {
    lastSession = /"sessionId":"([^"]+)"/.exec(text)?.[1] ?? lastSession;
    return text.replace(new RegExp(`^.*${pattern.source}.*\\n`, 'm'), (line) => {
      const { seq, ...rest } = JSON.parse(line) as { seq: number };
      const begins = { sessionId: lastSession, ...rest, seq: seq + 1, type: 'session_starting', attempt: { id: 'x' } };
      return `${line}${JSON.stringify(begins)}\n`;
    });
  });
}

/** The login's gate appears as `change` makes it. */
export function readingGate(change: (file: { untilMs: number }, nowMs: number) => string | null): Wrap {
  return (world) =>
    withFiles(world, {
      readText: (path) => {
        const text = world.files.readText(path);
        return text === null || !path.includes('/limits/') ? text : change(JSON.parse(text), world.clock.now());
      },
    });
}

/** Something else is written to the workers' pipes. */
export function writing(change: (line: string) => string): Wrap {
  return (world) => ({
    ...world,
    fifos: {
      ...world.fifos,
      openWriter: (path) => {
        const writer = world.fifos.openWriter(path);
        return writer && { writeLine: (line) => writer.writeLine(change(line)), close: () => writer.close() };
      },
    },
  });
}

/** Claude is started with other arguments. */
export function startingClaude(change: (options: SpawnOptions) => SpawnOptions): Wrap {
  return (world) =>
    withProcesses(world, {
      spawn: (options) => world.processes.spawn(options.program === shell ? options : change(options)),
    });
}

/** These signals are lost. */
export function losing(lost: SignalName): Wrap {
  return (world) =>
    withProcesses(world, {
      signal: (identity, signal) => signal === lost || world.processes.signal(identity, signal),
    });
}
