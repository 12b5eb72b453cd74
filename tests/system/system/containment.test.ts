/**
 * F4: nothing of an attempt survives its end, whatever it did to get away, however it ended, and whether the runner
 * that started it still lives: below a keeper alone, and in a control group where this machine lets us make one.
 */

import { afterAll, afterEach, describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isolatedBunFlags } from '../../../src/system/own-program.ts';
import { openCgroups } from '../../../src/system/processes/cgroup.ts';
import { keeperName } from '../../../src/system/processes/keeper.ts';
import { createProcTable } from '../../../src/system/processes/proc-system.ts';
import { createProcesses } from '../../../src/system/processes/processes.ts';
import type { Processes, RunningProcess } from '../../../src/system/world.ts';
import { kill } from '../../support/kill.ts';
import { isLongRun } from '../../support/long.ts';
import { basePath, exitOf, makeTempFolder, sourceFolder, until, unwrap } from '../../support/system/rig.ts';

const isLinux = process.platform === 'linux';
const temp = makeTempFolder();
const mayMakeGroups = isLinux && openCgroups() !== null;
const ways: [string, Processes][] = [
  ['keeper', createProcesses(createProcTable(), () => null)],
  ...(mayMakeGroups ? [['cgroup', createProcesses(createProcTable())] as [string, Processes]] : []),
];
if (isLinux && !mayMakeGroups) console.log('Control groups are not tried: none can be made here.');
const rounds = isLongRun ? 10 : 1;
let names: string[] = [];

afterEach(() => {
  for (const pid of names.flatMap(bearing)) kill(pid);
  names = [];
});
afterAll(() => temp.remove());

/** Pids of what has this name as an argument, its keeper left out. */
function bearing(name: string): number[] {
  const pids = readdirSync('/proc').filter((entry) => /^\d+$/.test(entry));
  const isOurs = (words: readonly string[]) => words.includes(name) && !words.includes(keeperName);
  return pids.filter((pid) => isOurs(argumentsOf(pid))).map(Number);
}

function argumentsOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

/** Each starts something that bears "$1" and is not in the session, the process group or the environment any more. */
const escapes = {
  'a session of its own with an emptied environment': 'setsid env -i sh -c "sleep 600; :" sh "$1" &',
  'a fork of a fork': '(setsid env -i sh -c "(sleep 600; :) & wait" sh "$1" & exec true) & wait $!',
  'one that no polite signal ends': `setsid env -i sh -c "trap '' TERM HUP INT; sleep 600; sleep 600; :" sh "$1" &`,
  'one whose parent was killed': 'sh -c \'setsid env -i sh -c "sleep 600; :" sh "$1" & kill -9 $$\' sh "$1" &',
  'one after the other, each of which ends at once': 'setsid env -i sh "$2" "$1" "$2" &',
  'one after the other, each in a new session': 'setsid env -i sh "$3" "$1" "$3" &',
} as const;

const ends = {
  'it ends by itself': { script: 'exit 3', isKilled: false },
  'it starts something as the last it does': {
    script: 'trap \'setsid env -i sh -c "sleep 600; :" sh "$1" &\' EXIT; exit 3',
    isKilled: false,
  },
  'it is killed from outside': { script: 'echo ready; while :; do sleep 1; done', isKilled: true },
} as const;

/** The files of the two chains: each link starts the next one and ends. */
const chain = join(temp.path, 'chain');
const newSessions = join(temp.path, 'new sessions');
writeFileSync(chain, 'sh "$2" "$1" "$2" &\n');
writeFileSync(newSessions, 'setsid sh "$2" "$1" "$2" &\n');

function start(processes: Processes, name: string, script: string): RunningProcess {
  const stdoutFile = join(temp.path, 'out');
  rmSync(stdoutFile, { force: true });
  return unwrap(
    processes.spawn({
      program: '/bin/sh',
      args: ['-c', script, 'sh', name, chain, newSessions],
      cwd: temp.path,
      env: { PATH: basePath, MARK: name },
      stdoutFile,
      stderrFile: join(temp.path, 'err'),
      keeper: join(temp.path, 'subreaper'),
      contained: name,
    }),
  );
}

const cases = Object.keys(escapes).flatMap((way) => Object.keys(ends).map((end) => [way, end] as const));

describe.skipIf(!isLinux).each(ways)('F4: with a %s', (way, processes) => {
  test('it says how', () => expect(processes.containment()).toBe(way as 'keeper'));

  test.each(cases)(
    '%s: nothing is left when %s',
    async (way, end) => {
      const { script, isKilled } = ends[end as keyof typeof ends];
      for (let round = 0; round < rounds; round += 1) {
        const name = crypto.randomUUID();
        names.push(name);
        const line = `${escapes[way as keyof typeof escapes]}\n`;
        const worker = start(processes, name, `${line}${script}`);
        expect(worker.identity.pid).toBeGreaterThan(1);
        if (isKilled) {
          await until(() => existsSync(join(temp.path, 'out')) && readFileSync(join(temp.path, 'out'), 'utf8') !== '');
          processes.signal(worker.identity, 'SIGKILL');
        }
        expect(await exitOf(worker)).toEqual(
          isKilled ? { kind: 'signalled', signal: 'SIGKILL' } : { kind: 'exited', code: 3 },
        );
        expect(bearing(name)).toEqual([]);
        expect(processes.endContained(name)).toBe(true);
      }
    },
    120_000,
  );

  const killings = {
    'after that': (line: string) => `${line}\nsleep 0.2; kill -9 $PPID; sleep 0.2; exit 3`,
    'before that': (line: string) => `kill -9 $PPID; sleep 0.1\n${line}\nsleep 0.2; exit 3`,
    'and ends': (line: string) => `${line}\nkill -9 $PPID; exit 3`,
  };
  test.each(Object.keys(escapes).flatMap((one) => Object.keys(killings).map((when) => [one, when] as const)))(
    '%s: nothing is left when the program kills what keeps it, %s',
    async (one, when) => {
      for (let round = 0; round < rounds; round += 1) {
        const [name, other] = [crypto.randomUUID(), crypto.randomUUID()];
        names.push(name, other);
        // A neighbour, which goes on, with what it has in the background.
        const neighbour = start(processes, other, 'sleep 600 & sleep 600; :');
        const script = killings[when as keyof typeof killings](escapes[one as keyof typeof escapes]);
        expect(await exitOf(start(processes, name, script))).toEqual({ kind: 'signalled', signal: 'SIGKILL' });
        // As a runner does: whatever is just being born is ended at the next look.
        await until(() => processes.endContained(name));
        expect(bearing(name)).toEqual([]);
        expect(processes.isAlive(neighbour.identity)).toBe(true);
        processes.signal(neighbour.identity, 'SIGKILL');
        await exitOf(neighbour);
      }
    },
    120_000,
  );

  test('the program has the arguments and the environment that it was given, and its own pid is known', async () => {
    const name = crypto.randomUUID();
    const worker = start(processes, name, 'echo "$1 $MARK $$"; env | cut -d= -f1 | sort; exit 0');
    await exitOf(worker);
    const [words, ...variables] = readFileSync(join(temp.path, 'out'), 'utf8').trimEnd().split('\n');
    expect(words).toStartWith(`${name} ${name} `);
    expect(variables.filter((variable) => !['PWD', '_', 'OLDPWD', 'SHLVL'].includes(variable))).toEqual([
      'MARK',
      'PATH',
    ]);
  });

  test('another process finds what is held, and its end is the end of all', async () => {
    const name = crypto.randomUUID();
    names.push(name);
    const worker = start(processes, name, `${escapes['one that no polite signal ends']}\necho ready; sleep 600; :`);
    await until(() => readFileSync(join(temp.path, 'out'), 'utf8') !== '' && bearing(name).length === 2);
    const other =
      way === 'keeper' ? createProcesses(createProcTable(), () => null) : createProcesses(createProcTable());
    // What is held is asked for last: its shell may still be about to start the last of it.
    const held = [worker.identity.pid, ...bearing(name)];
    // The keeper is none of what bears the mark of the attempt.
    const marked = other.findMarked('MARK', name).map(({ pid }) => pid);
    expect(marked.length).toBeGreaterThan(0);
    const found = other.findContained(name).map(({ pid }) => pid);
    expect(found).toEqual(expect.arrayContaining([...held, ...marked]));
    expect(other.endContained(crypto.randomUUID())).toBe(true);
    const attached = other.attach(worker.identity, name);
    expect(attached).not.toBeNull();
    other.signal(worker.identity, 'SIGKILL');
    await new Promise<void>((resolve) => attached?.onExit(() => resolve()));
    expect(bearing(name)).toEqual([]);
    expect(other.findContained(name)).toEqual([]);
    expect(other.endContained(name)).toBe(true);
  }, 60_000);

  test('nothing is left when the runner was killed before', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const name = crypto.randomUUID();
      names.push(name);
      const script = `${escapes['a session of its own with an emptied environment']}\necho ready; sleep 600; :`;
      const runner = Bun.spawn([process.execPath, ...isolatedBunFlags, '-e', runnerSource(way, name, script)], {
        env: { PATH: basePath },
        stdin: 'ignore',
        stdout: 'pipe',
        stderr: 'inherit',
      });
      const { value } = await runner.stdout.getReader().read();
      const identity = JSON.parse(new TextDecoder().decode(value));
      await until(() => bearing(name).length === 2);
      runner.kill('SIGKILL');
      await runner.exited;
      expect(processes.isAlive(identity)).toBe(true);
      process.kill(identity.pid, 'SIGKILL');
      await until(() => processes.endContained(name));
      expect(bearing(name)).toEqual([]);
    }
  }, 120_000);
});

function runnerSource(way: string, name: string, script: string): string {
  const text = (value: string) => JSON.stringify(value);
  const options = {
    program: '/bin/sh',
    args: ['-c', script, 'sh', name],
    cwd: temp.path,
    env: { PATH: basePath },
    stdoutFile: join(temp.path, 'out'),
    stderrFile: join(temp.path, 'err'),
    keeper: join(temp.path, 'subreaper'),
    contained: name,
  };
  return `
    import { createProcesses } from ${text(join(sourceFolder, 'processes/processes.ts'))};
    import { createProcTable } from ${text(join(sourceFolder, 'processes/proc-system.ts'))};
    const processes = createProcesses(createProcTable()${way === 'keeper' ? ', () => null' : ''});
    console.log(JSON.stringify(processes.spawn(${JSON.stringify(options)}).value.identity));
    setInterval(() => {}, 1000);`;
}
