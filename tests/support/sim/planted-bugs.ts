/**
 * Bugs to be found: each breaks one promise, by a World that returns wrong results or does less than requested. The
 * program itself is unchanged, so each also shows how that promise could be broken.
 */

import type { Lock } from '../../../src/system/world.ts';
import {
  appending,
  asksClaude,
  beginsAfter,
  findsNothing,
  forgetsWorkers,
  log,
  losing,
  ofCommands,
  overlooksCommands,
  reading,
  readingGate,
  startingClaude,
  transcript,
  withFiles,
  withLog,
  withProcesses,
  withSpawned,
  writing,
} from './bug-wraps.ts';
import { invariants } from './checks.ts';
import type { DecisionKind } from './coverage.ts';
import { secret } from './group-setup.ts';
import type { Wrap } from './user.ts';

export interface PlantedBug {
  readonly name: string;
  readonly invariant: string;
  readonly wrap: Wrap;
  /** Scenarios aimed at this decision, in which the bug shows. */
  readonly near?: DecisionKind | 'endless' | 'power-cut' | 'questions';
}
const heldByAll: Lock = { release: () => {} };

export const plantedBugs: readonly PlantedBug[] = [
  {
    name: 'slots are counted wrong',
    invariant: invariants.slots,
    wrap: reading(log, (text) => text.replace(/"maxConcurrentSessions":\d/g, '"maxConcurrentSessions":9')),
  },
  {
    name: 'command slots are counted wrong',
    invariant: invariants.commandSlots,
    wrap: reading(log, (text) => text.replace(/"commandsAtOnce":\d/g, '"commandsAtOnce":9')),
  },
  {
    name: 'dependencies are overlooked',
    invariant: invariants.dependencies,
    wrap: reading(log, (text) =>
      text.replace(/("dependsOn":\[)("[^\]]*)\]/g, (_, head, ids) => `${head}${' '.repeat(ids.length)}]`),
    ),
  },
  { name: 'an attempt is started beside itself', invariant: invariants.once, wrap: forgetsWorkers, near: 'resume' },
  {
    name: 'a conversation is continued twice',
    invariant: invariants.conversation,
    wrap: forgetsWorkers,
    near: 'resume',
  },
  {
    name: 'a worker gets no cap',
    invariant: invariants.money,
    near: 'stop-budget',
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
    name: 'what claude’s totals begin with is neither asked nor read',
    invariant: invariants.totals,
    near: 'resume',
    wrap: (world) => ({
      ...world,
      files: { ...world.files, readText: (path) => (path.endsWith('.jsonl') ? '' : world.files.readText(path)) },
      fifos: {
        ...world.fifos,
        openWriter: (path) => {
          const fifo = world.fifos.openWriter(path);
          const kept = (text: string) => text.split('\n').filter((line) => !line.includes('"usage:base"'));
          return fifo && { ...fifo, writeLine: (text) => fifo.writeLine(kept(text).join('\n')) };
        },
      },
    }),
  },
  {
    name: 'only the worker itself is ended',
    invariant: invariants.leftovers,
    wrap: (world) => withProcesses(world, findsNothing),
  },
  {
    name: 'what a worker leaves behind seems to be nothing',
    invariant: invariants.leftovers,
    near: 'settle-paused',
    wrap: (world) =>
      withProcesses(world, {
        // It is found, and so must not be missed later.
        findContained: (name) => world.processes.findContained(name).slice(0, 0),
        endContained: () => true,
      }),
  },
  {
    name: 'the log differs from what is in memory',
    invariant: invariants.fold,
    wrap: appending((text) => text.replace('"turns":1', '"turns":2')),
  },
  {
    name: 'a completed session begins again',
    invariant: invariants.final,
    near: 'settle-completed',
    wrap: beginsAfter(/"type":"session_completed"/),
  },
  {
    name: 'a prompt that never arrived counts as done',
    invariant: invariants.completed,
    near: 'settle-failed',
    wrap: reading(transcript, (text) => text.replaceAll('"num_turns":0', '"num_turns":1')),
  },
  {
    name: 'exit codes are overlooked',
    invariant: invariants.completed,
    near: 'settle-failed',
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
    name: 'what claude writes is not synced',
    invariant: invariants.remembered,
    near: 'power-cut',
    wrap: startingClaude(({ syncsStdout: _, ...options }) => options),
  },
  {
    name: 'the folder of a new transcript is not synced',
    invariant: invariants.remembered,
    near: 'power-cut',
    wrap: (world) => withFiles(world, { syncFolder: () => {} }),
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
    name: 'what claude prints before it reads its input is taken for work',
    invariant: invariants.liveness,
    wrap: reading(transcript, (text) =>
      text.replaceAll('"type":"system","subtype":"session_title', '"type":"mytype","subtype":"session_title'),
    ),
  },
  {
    name: 'the lock admits every process',
    invariant: invariants.writer,
    wrap: (world) => ({
      ...world,
      locks: {
        ...world.locks,
        tryLock: (path, holder) => world.locks.tryLock(path, holder) ?? heldByAll,
      },
    }),
  },
  {
    name: 'the gate is not looked at',
    invariant: invariants.gate,
    near: 'probe',
    wrap: readingGate(() => null),
  },
  {
    name: 'all start when the limit is lifted',
    invariant: invariants.firstAlone,
    near: 'probe',
    wrap: readingGate((file, nowMs) => (nowMs < file.untilMs ? JSON.stringify(file) : null)),
  },
  {
    name: 'tries are counted wrong',
    invariant: invariants.tries,
    near: 'wait-backoff',
    wrap: reading(log, (text) => text.replace(/"retries":\d/g, '"retries":9')),
  },
  {
    name: 'an outage is taken for trouble of the session',
    invariant: invariants.tries,
    near: 'wait-backoff',
    wrap: reading(transcript, (text) =>
      text.replaceAll('"result":"API Error: Connection error."', '"api_error_status":500,"result":"Error"'),
    ),
  },
  {
    name: 'retries have no delay',
    invariant: invariants.tries,
    near: 'wait-backoff',
    wrap: appending((text) => text.replace(/"retryAt":"\d{4}/, '"retryAt":"2027')),
  },
  {
    name: 'running tools are overlooked',
    invariant: invariants.busy,
    near: 'stop-stall',
    wrap: reading(transcript, (text) => text.replaceAll('"type":"tool_use"', '"type":"tool_xxx"')),
  },
  {
    name: 'a stalled session is resumed again and again',
    invariant: invariants.stalledOnce,
    near: 'stop-stall',
    wrap: appending((text) =>
      text.replace(/"type":"session_failed"(.*?)"reason":"stalled"/, '"type":"session_paused"$1"reason":"stall"'),
    ),
  },
  { name: 'processes are not halted', invariant: invariants.frozen, wrap: losing('SIGSTOP'), near: 'freeze' },
  { name: 'halted processes stay so', invariant: invariants.thaw, wrap: losing('SIGCONT'), near: 'thaw' },
  {
    name: 'a draining group starts another session',
    invariant: invariants.drain,
    near: 'drain',
    wrap: beginsAfter(/"type":"group_pausing","reason":"user","mode":"drain"/),
  },
  {
    name: 'a warning is enforced',
    invariant: invariants.warnOnly,
    near: 'warn-budget',
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
    near: 'stop',
    wrap: beginsAfter(/"type":"session_paused".*"reason":"user"/),
  },
  {
    name: 'progress lets tries go on for ever',
    invariant: invariants.ceiling,
    near: 'endless',
    wrap: reading(log, (text) => text.replace(/"retries":\d/g, '"retries":9')),
  },
  {
    name: 'a command that fails is taken for one that succeeds',
    invariant: invariants.judged,
    near: 'reject',
    wrap: ofCommands(({ identity, onExit }) => ({
      identity,
      onExit: (action) => onExit(() => action({ kind: 'exited', code: 0 })),
    })),
  },
  {
    name: 'a command that succeeds is taken for one that fails',
    invariant: invariants.judged,
    near: 'approve',
    wrap: ofCommands(({ identity, onExit }) => ({
      identity,
      onExit: (action) => onExit(() => action({ kind: 'exited', code: 1 })),
    })),
  },
  {
    name: 'commands get no time',
    invariant: invariants.judged,
    near: 'approve',
    wrap: reading(log, (text) => text.replace(/"acceptTimeoutMs":\d{4}/g, '"acceptTimeoutMs":1000')),
  },
  {
    name: 'there are more turns than were asked for',
    invariant: invariants.judged,
    near: 'reject',
    wrap: reading(log, (text) => text.replace(/"acceptRetries":\d/g, '"acceptRetries":9')),
  },
  {
    name: 'what was counted before its judgement is counted otherwise',
    invariant: invariants.paidOnce,
    near: 'accept',
    wrap: appending((text) => text.replace(/("type":"session_accepting".*?"usage":\{"costUsd":)[\d.]+/, '$10.000001')),
  },
  {
    name: 'claude is asked what the command should tell',
    invariant: invariants.noTurn,
    near: 'accept',
    wrap: asksClaude,
  },
  {
    name: 'commands are not ended',
    invariant: invariants.oneJudge,
    near: 'stop-accept',
    wrap: overlooksCommands,
  },
  {
    name: 'a runner that takes over ends what it finds',
    invariant: invariants.stopLogged,
    wrap: (world) =>
      withProcesses(world, {
        attach: (identity) => {
          world.processes.signal(identity, 'SIGTERM');
          return world.processes.attach(identity);
        },
      }),
  },
  {
    name: 'what the task is gets lost',
    invariant: invariants.task,
    wrap: writing((line) => line.replaceAll(/do part \d/g, 'go on')),
  },
  {
    name: 'what is said gets lost',
    invariant: invariants.said,
    wrap: writing((line) => line.replaceAll(/And mind test \d+/g, 'Well')),
  },
  {
    name: 'an answer is given twice',
    invariant: invariants.said,
    near: 'questions',
    // The runner does not see that the call has its result.
    wrap: reading('.jsonl', (text) => text.replaceAll('"tool_use_id":"', '"tool_use_xx":"')),
  },
  {
    name: 'an answer gets lost',
    invariant: invariants.said,
    near: 'questions',
    wrap: writing((line) => line.replaceAll('(item ', '(meti ')),
  },
  {
    name: 'the meta.json of a session stays as it was',
    invariant: invariants.snapshots,
    wrap: (world) =>
      withFiles(world, {
        writeAtomic: (path, text, options) => {
          if (/sessions\/[^/]+\/meta\.json$/.test(path) && world.files.info(path) !== null) return;
          world.files.writeAtomic(path, text, options);
        },
      }),
  },
  {
    name: 'the key stands on the command line',
    invariant: invariants.secrets,
    wrap: startingClaude((options) => ({ ...options, args: [...options.args, options.env.ANTHROPIC_API_KEY ?? ''] })),
  },
  {
    name: 'the key stands in the log',
    invariant: invariants.secrets,
    wrap: appending((text) => text.replace('"result":"', `"result":"${secret} `)),
  },
  {
    name: 'the program throws',
    invariant: invariants.bugs,
    wrap: startingClaude(() => {
      throw new TypeError('undefined is not an object');
    }),
  },
  {
    name: 'an event names another attempt',
    invariant: invariants.folds,
    wrap: appending((text) => text.replace(/("type":"session_identified".*?"attemptId":")[^"]{8}/, '$1elsewise')),
  },
  {
    name: 'failures are not counted',
    invariant: invariants.threshold,
    near: 'settle-failed',
    wrap: reading(log, (text) => text.replace(/"errorThreshold":\d/g, '"errorThreshold":9')),
  },
  {
    name: 'a used up budget is only mentioned',
    invariant: invariants.budgetStop,
    wrap: reading(log, (text) => text.replaceAll('"pause"', '"warn" ').replaceAll('"stop"', '"warn"')),
    near: 'exceed-budget',
  },
  {
    name: 'no warning is given',
    invariant: invariants.warned,
    wrap: reading(log, (text) => text.replaceAll('"warningThreshold":0', '"warningThreshold":9')),
    near: 'warn-budget',
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
