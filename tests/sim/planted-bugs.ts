/**
 * Bugs to be found: each one breaks one promise, by a World that lies to the program or does less than it was asked to.
 * The program itself is unchanged, so each is also a picture of how that promise could be broken.
 */
import type { ProcessIdentity } from '../../src/core/event.ts';
import type {
  AppendFile,
  Files,
  Processes,
  RunningProcess,
  SignalName,
  SpawnOptions,
  World,
} from '../../src/world/world.ts';
import { invariants } from './checks.ts';
import type { Wrap } from './user.ts';

export interface PlantedBug {
  readonly name: string;
  readonly invariant: string;
  readonly wrap: Wrap;
}

const log = '/events.jsonl';
const transcript = '/transcript.jsonl';

/** The bug is in what is read: replacements keep the length, so that offsets stay right. */
function reading(suffix: string, change: (text: string) => string): Wrap {
  return (world) => ({
    ...world,
    files: {
      ...world.files,
      readBytes: (path, offset, most) => {
        const bytes = world.files.readBytes(path, offset, most);
        // Parts of characters would not survive being decoded, but are left alone by what is looked for here.
        if (!path.endsWith(suffix) || bytes.length < 2) return bytes;
        return Buffer.from(change(Buffer.from(bytes).toString('latin1')), 'latin1');
      },
    },
  });
}

/** The bug is in what is appended to the log. */
function appending(change: (text: string) => string): Wrap {
  return withLog((file) => ({ ...file, append: (text) => file.append(change(text)), sync: () => file.sync() }));
}

function withLog(change: (file: AppendFile) => AppendFile): Wrap {
  return (world) => ({
    ...world,
    files: {
      ...world.files,
      openAppend: (path) => (path.endsWith(log) ? change(world.files.openAppend(path)) : world.files.openAppend(path)),
    },
  });
}

function withFiles(world: World, files: Partial<Files>): World {
  return { ...world, files: { ...world.files, ...files } };
}

function withProcesses(world: World, processes: Partial<Processes>): World {
  return { ...world, processes: { ...world.processes, ...processes } };
}

function withSpawned(change: (process: RunningProcess) => RunningProcess): Wrap {
  return (world) =>
    withProcesses(world, {
      spawn: (options) => {
        const spawned = world.processes.spawn(options);
        return spawned.ok ? { ok: true, value: change(spawned.value) } : spawned;
      },
    });
}

const shell = '/bin/sh';

/** The bug is in what is heard of commands. */
function ofCommands(change: (process: RunningProcess) => RunningProcess): Wrap {
  return (world) =>
    withProcesses(world, {
      spawn: (options) => {
        const spawned = world.processes.spawn(options);
        return spawned.ok && options.program === shell ? { ok: true, value: change(spawned.value) } : spawned;
      },
    });
}

/** Whatever a command is to do, the claude that was started last does once more. */
const asksClaude: Wrap = (world) => {
  let last: SpawnOptions | null = null;
  return withProcesses(world, {
    spawn: (options) => {
      if (options.program !== shell) last = options;
      else if (last !== null) return world.processes.spawn({ ...last, env: { ...last.env, ...options.env } });
      return world.processes.spawn(options);
    },
  });
};

/** Nobody sees or ends a command. */
const overlooksCommands: Wrap = (world, { machine }) => {
  const isCommand = (identity: ProcessIdentity) => machine.table.find(identity)?.kind === 'command';
  const { processes } = world;
  return withProcesses(world, {
    isAlive: (identity) => !isCommand(identity) && processes.isAlive(identity),
    findMarked: (name, value) => processes.findMarked(name, value).filter((identity) => !isCommand(identity)),
    findDescendants: (pid) => processes.findDescendants(pid).filter((identity) => !isCommand(identity)),
    signal: (identity, signal) => !isCommand(identity) && processes.signal(identity, signal),
  });
};

/** A worker that has spoken looks as if it had not, and cannot be ended. */
const forgetsWorkers: Wrap = (world) =>
  withProcesses(
    withFiles(world, {
      info: (path) => {
        const info = world.files.info(path);
        return info !== null && path.endsWith(transcript) ? { ...info, size: 0 } : info;
      },
    }),
    { isAlive: () => false, findMarked: () => [], findDescendants: () => [] },
  );

/** After the line in which `pattern` is found its session begins, as the log tells it. */
function beginsAfter(pattern: RegExp): Wrap {
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

/** The gate of the login looks as `change` makes it look. */
function readingGate(change: (file: { untilMs: number }, nowMs: number) => string | null): Wrap {
  return (world) =>
    withFiles(world, {
      readText: (path) => {
        const text = world.files.readText(path);
        return text === null || !path.includes('/limits/') ? text : change(JSON.parse(text), world.clock.now());
      },
    });
}

/** Such signals are lost on their way. */
function losing(lost: SignalName): Wrap {
  return (world) =>
    withProcesses(world, {
      signal: (identity, signal) => signal === lost || world.processes.signal(identity, signal),
    });
}

export const plantedBugs: readonly PlantedBug[] = [
  {
    name: 'slots are counted wrong',
    invariant: invariants.slots,
    wrap: reading(log, (text) => text.replace(/"maxConcurrentSessions":\d/g, '"maxConcurrentSessions":9')),
  },
  {
    name: 'dependencies are overlooked',
    invariant: invariants.dependencies,
    wrap: reading(log, (text) =>
      text.replace(/("dependsOn":\[)("[^\]]*)\]/g, (_, head, ids) => `${head}${' '.repeat(ids.length)}]`),
    ),
  },
  { name: 'an attempt is started beside itself', invariant: invariants.once, wrap: forgetsWorkers },
  { name: 'a conversation is continued twice', invariant: invariants.conversation, wrap: forgetsWorkers },
  {
    name: 'a worker gets no cap',
    invariant: invariants.money,
    wrap: (world) =>
      withProcesses(world, {
        spawn: (options) => {
          const at = options.args.indexOf('--max-budget-usd');
          return world.processes.spawn(at < 0 ? options : { ...options, args: options.args.toSpliced(at, 2) });
        },
      }),
  },
  {
    name: 'what claude says it cost is not read',
    invariant: invariants.totals,
    wrap: reading(transcript, (text) =>
      text.replaceAll('"total_cost_usd"', '"total_cost_xxx"').replaceAll('"costUSD"', '"costXXX"'),
    ),
  },
  {
    name: 'only the worker itself is ended',
    invariant: invariants.leftovers,
    wrap: (world) => withProcesses(world, { findMarked: () => [], findDescendants: () => [] }),
  },
  {
    name: 'the log differs from what is in memory',
    invariant: invariants.fold,
    wrap: appending((text) => text.replace('"turns":1', '"turns":2')),
  },
  {
    name: 'a completed session begins again',
    invariant: invariants.final,
    wrap: beginsAfter(/"type":"session_completed"/),
  },
  {
    name: 'a prompt that never arrived counts as done',
    invariant: invariants.completed,
    wrap: reading(transcript, (text) => text.replaceAll('"num_turns":0', '"num_turns":1')),
  },
  {
    name: 'exit codes are overlooked',
    invariant: invariants.completed,
    wrap: withSpawned(({ identity, onExit }) => ({
      identity,
      onExit: (action) => onExit(() => action({ kind: 'exited', code: 0 })),
    })),
  },
  {
    name: 'the log is not synced',
    invariant: invariants.loggedFirst,
    wrap: withLog((file) => ({ ...file, append: (text) => file.append(text), sync: () => {} })),
  },
  {
    name: 'failures have no sentence',
    invariant: invariants.reasons,
    wrap: appending((text) => text.replace(/("type":"session_failed".*?"message":)"[^"]*"/, '$1""')),
  },
  {
    name: 'ends are not heard of',
    invariant: invariants.liveness,
    wrap: withSpawned(({ identity }) => ({ identity, onExit: () => {} })),
  },
  {
    name: 'the lock lets everybody in',
    invariant: invariants.writer,
    wrap: (world) => ({
      ...world,
      locks: {
        ...world.locks,
        tryLock: (path, holder) => world.locks.tryLock(path, holder) ?? { release: () => {} },
      },
    }),
  },
  {
    name: 'the gate is not looked at',
    invariant: invariants.gate,
    wrap: readingGate(() => null),
  },
  {
    name: 'all start when the limit is lifted',
    invariant: invariants.firstAlone,
    wrap: readingGate((file, nowMs) => (nowMs < file.untilMs ? JSON.stringify(file) : null)),
  },
  {
    name: 'tries are counted wrong',
    invariant: invariants.tries,
    wrap: reading(log, (text) => text.replace(/"retries":\d/g, '"retries":9')),
  },
  {
    name: 'nobody waits before the next try',
    invariant: invariants.tries,
    wrap: appending((text) => text.replace(/"retryAt":"\d{4}/, '"retryAt":"2027')),
  },
  {
    name: 'running tools are overlooked',
    invariant: invariants.busy,
    wrap: reading(transcript, (text) => text.replaceAll('"type":"tool_use"', '"type":"tool_xxx"')),
  },
  {
    name: 'a stalled session is resumed again and again',
    invariant: invariants.stalledOnce,
    wrap: appending((text) =>
      text.replace(/"type":"session_failed"(.*?)"reason":"stalled"/, '"type":"session_paused"$1"reason":"stall"'),
    ),
  },
  { name: 'processes are not halted', invariant: invariants.frozen, wrap: losing('SIGSTOP') },
  { name: 'halted processes stay so', invariant: invariants.thaw, wrap: losing('SIGCONT') },
  {
    name: 'a draining group starts another session',
    invariant: invariants.drain,
    wrap: beginsAfter(/"type":"group_pausing","reason":"user","mode":"drain"/),
  },
  {
    name: 'a warning is enforced',
    invariant: invariants.warnOnly,
    wrap: (world) =>
      withProcesses(world, {
        spawn: (options) => {
          const hasCap = options.args.includes('--max-budget-usd');
          return world.processes.spawn(
            hasCap ? options : { ...options, args: [...options.args, '--max-budget-usd', '1'] },
          );
        },
      }),
  },
  {
    name: 'a paused session goes on by itself',
    invariant: invariants.rests,
    wrap: beginsAfter(/"type":"session_paused".*"reason":"user"/),
  },
  {
    name: 'progress lets tries go on for ever',
    invariant: invariants.ceiling,
    wrap: reading(log, (text) => text.replace(/"retries":\d/g, '"retries":9')),
  },
  {
    name: 'a command that fails is taken for one that succeeds',
    invariant: invariants.judged,
    wrap: ofCommands(({ identity, onExit }) => ({
      identity,
      onExit: (action) => onExit(() => action({ kind: 'exited', code: 0 })),
    })),
  },
  {
    name: 'a command that succeeds is taken for one that fails',
    invariant: invariants.judged,
    wrap: ofCommands(({ identity, onExit }) => ({
      identity,
      onExit: (action) => onExit(() => action({ kind: 'exited', code: 1 })),
    })),
  },
  {
    name: 'commands get no time',
    invariant: invariants.judged,
    wrap: reading(log, (text) => text.replace(/"acceptTimeoutMs":\d{4}/g, '"acceptTimeoutMs":1000')),
  },
  {
    name: 'there are more turns than were asked for',
    invariant: invariants.judged,
    wrap: reading(log, (text) => text.replace(/"acceptRetries":\d/g, '"acceptRetries":9')),
  },
  {
    name: 'what was counted before its judgement is counted otherwise',
    invariant: invariants.paidOnce,
    wrap: appending((text) => text.replace(/("type":"session_accepting".*?"usage":\{"costUsd":)[\d.]+/, '$10.000001')),
  },
  {
    name: 'claude is asked what the command should tell',
    invariant: invariants.noTurn,
    wrap: asksClaude,
  },
  {
    name: 'commands are not ended',
    invariant: invariants.oneJudge,
    wrap: overlooksCommands,
  },
  {
    name: 'the clock breaks',
    invariant: invariants.exceptions,
    wrap: (world) => {
      let looks = 0;
      const now = () => {
        looks += 1;
        return looks === 60 ? Number.NaN : world.clock.now();
      };
      return { ...world, clock: { ...world.clock, now } };
    },
  },
];
