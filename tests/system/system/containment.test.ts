/**
 * Promises: no process of an attempt survives its end, however it tried to escape and however the attempt ended: by the
 * process tree alone, and in a control group where this machine allows one. Children that this process started itself
 * are left alone.
 */

import { afterAll, afterEach, describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isolatedBunFlags } from '../../../src/system/own-program.ts';
import { openCgroups } from '../../../src/system/processes/cgroup.ts';
import { createProcTable } from '../../../src/system/processes/proc-table.ts';
import { createProcesses } from '../../../src/system/processes/processes.ts';
import type { Processes, RunningProcess } from '../../../src/system/world.ts';
import { kill } from '../../support/kill.ts';
import { isLongRun } from '../../support/long.ts';
import { basePath, eventually, exitOf, expectOk, makeTempFolder, sourceFolder } from '../../support/system/rig.ts';

const isLinux = process.platform === 'linux';
const temp = makeTempFolder();
const mayMakeGroups = isLinux && openCgroups() !== null;
const withoutGroups = { cgroups: () => null };
const ways: [string, Processes][] = [
  ['tree', createProcesses(createProcTable(), withoutGroups)],
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

/** Pids of the processes that have this argument. */
function bearing(name: string): number[] {
  const pids = readdirSync('/proc').filter((entry) => /^\d+$/.test(entry));
  return pids.filter((pid) => argumentsOf(pid).includes(name)).map(Number);
}

function argumentsOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

/** Each starts a process with the argument "$1" outside the session, the process group and the environment mark. */
const escapes = {
  'a session of its own with an emptied environment': 'setsid env -i sh -c "sleep 600; :" sh "$1" &',
  'a fork of a fork': '(setsid env -i sh -c "(sleep 600; :) & wait" sh "$1" & exec true) & wait $!',
  'one that ignores signals': `setsid env -i sh -c "trap '' TERM HUP INT; sleep 600; sleep 600; :" sh "$1" &`,
  'one whose parent was killed': 'sh -c \'setsid env -i sh -c "sleep 600; :" sh "$1" & kill -9 $$\' sh "$1" &',
  'a chain of processes, each of which exits at once': 'setsid env -i sh "$2" "$1" "$2" &',
  'a chain of processes, each in a new session': 'setsid env -i sh "$3" "$1" "$3" &',
} as const;

const ends = {
  'it exits by itself': { script: 'exit 3', isKilled: false },
  'its last action starts a process': {
    script: 'trap \'setsid env -i sh -c "sleep 600; :" sh "$1" &\' EXIT; exit 3',
    isKilled: false,
  },
  'it is killed from outside': { script: 'echo ready; while :; do sleep 1; done', isKilled: true },
} as const;

/** The scripts of the two chains: each process starts the next one and exits. */
const chain = join(temp.path, 'chain');
const newSessions = join(temp.path, 'new sessions');
writeFileSync(chain, 'sh "$2" "$1" "$2" &\n');
writeFileSync(newSessions, 'setsid sh "$2" "$1" "$2" &\n');

function start(processes: Processes, name: string, script: string): RunningProcess {
  const stdoutFile = join(temp.path, 'out');
  rmSync(stdoutFile, { force: true });
  return expectOk(
    processes.spawn({
      program: '/bin/sh',
      args: ['-c', script, 'sh', name, chain, newSessions],
      cwd: temp.path,
      env: { PATH: basePath, MARK: name },
      stdoutFile,
      stderrFile: join(temp.path, 'err'),
      contained: name,
    }),
  );
}

const cases = Object.keys(escapes).flatMap((way) => Object.keys(ends).map((end) => [way, end] as const));

describe.skipIf(!isLinux).each(ways)('with a %s', (way, processes) => {
  test('the method is reported', () => expect(processes.containment()).toBe(way as 'tree'));

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
          await eventually(
            () => existsSync(join(temp.path, 'out')) && readFileSync(join(temp.path, 'out'), 'utf8') !== '',
          );
          processes.signal(worker.identity, 'SIGKILL');
        }
        expect(await exitOf(worker)).toEqual(
          isKilled ? { kind: 'signalled', signal: 'SIGKILL' } : { kind: 'exited', code: 3 },
        );
        await eventually(() => processes.endContained(name));
        expect(bearing(name)).toEqual([]);
        expect(processes.findContained(name)).toEqual([]);
      }
    },
    120_000,
  );

  test.each(Object.keys(escapes))(
    '%s: a neighbour is not affected, and nothing is left when it has ended too',
    async (one) => {
      for (let round = 0; round < rounds; round += 1) {
        const [name, other] = [crypto.randomUUID(), crypto.randomUUID()];
        names.push(name, other);
        const neighbour = start(processes, other, 'sleep 600 & sleep 600; :');
        await exitOf(start(processes, name, `${escapes[one as keyof typeof escapes]}\nsleep 0.2; exit 3`));
        await eventually(() => processes.endContained(name));
        // The process tree does not show the owner of an unmarked orphan.
        if (way === 'cgroup') expect(bearing(name)).toEqual([]);
        expect(processes.isAlive(neighbour.identity)).toBe(true);
        expect(bearing(other).length).toBeGreaterThan(0);
        processes.signal(neighbour.identity, 'SIGKILL');
        await exitOf(neighbour);
        await eventually(() => processes.endContained(other));
        expect([...bearing(name), ...bearing(other)]).toEqual([]);
      }
    },
    120_000,
  );

  test('an orphan that was seen before, is in a known session, or has the mark ends with its attempt', async () => {
    const [name, other] = [crypto.randomUUID(), crypto.randomUUID()];
    names.push(name, other);
    const neighbour = start(processes, other, 'sleep 600; :');
    const wiped = 'exec setsid env -i sh -c "(sleep 600; :) & (sleep 600; :) & sleep 601; :" sh "$1"';
    const worker = start(
      processes,
      name,
      `(${wiped}) & setsid sh -c "(sleep 600; :) & sleep 602; :" sh "$1" & sleep 600`,
    );
    await eventually(() => processes.findContained(name).length >= 8 && bearing(name).length >= 6);
    processes.signal(worker.identity, 'SIGKILL');
    await exitOf(worker);
    await eventually(() => processes.endContained(name));
    expect(bearing(name)).toEqual([]);
    expect(processes.isAlive(neighbour.identity)).toBe(true);
    processes.signal(neighbour.identity, 'SIGKILL');
    await eventually(() => processes.endContained(other));
  });

  test('the program has its arguments and environment, and its own pid is known', async () => {
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

  test.skipIf(way !== 'cgroup')(
    'another process finds all processes and ends them',
    async () => {
      const name = crypto.randomUUID();
      names.push(name);
      const worker = start(processes, name, `${escapes['one that ignores signals']}\necho ready; sleep 600; :`);
      await eventually(() => readFileSync(join(temp.path, 'out'), 'utf8') !== '' && bearing(name).length === 2);
      const other = createProcesses(createProcTable());
      const held = [worker.identity.pid, ...bearing(name)];
      const found = other.findContained(name).map(({ pid }) => pid);
      expect(found).toEqual(expect.arrayContaining(held));
      expect(other.endContained(crypto.randomUUID())).toBe(true);
      await eventually(() => other.endContained(name));
      expect(bearing(name)).toEqual([]);
      expect(other.findContained(name)).toEqual([]);
    },
    60_000,
  );

  test('nothing is left when the runner was killed before and another one has adopted', async () => {
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
      await eventually(() => bearing(name).length === 2);
      runner.kill('SIGKILL');
      await runner.exited;
      expect(processes.attach(identity, name)).not.toBeNull();
      await eventually(() => processes.findContained(name).length > 2);
      process.kill(identity.pid, 'SIGKILL');
      await eventually(() => processes.endContained(name));
      expect(bearing(name)).toEqual([]);
    }
  }, 120_000);
});

const withTree = createProcesses(createProcTable(), withoutGroups);

describe.skipIf(!isLinux)('by the process tree', () => {
  test('a process left by a helper program such as git is not ended', async () => {
    const name = crypto.randomUUID();
    names.push(name);
    start(withTree, name, 'sleep 600; :');
    const daemon = 'setsid sh -c "sleep 600; :" sh "$1" >/dev/null 2>&1 &';
    await withTree.run({
      ...{ program: '/bin/sh', args: ['-c', daemon, 'sh', `${name}-helper`], cwd: temp.path },
      ...{ env: { PATH: basePath }, timeoutMs: 60_000 },
    });
    names.push(`${name}-helper`);
    await eventually(() => bearing(`${name}-helper`).length > 0);
    await eventually(() => withTree.endContained(name));
    expect(bearing(name)).toEqual([]);
    expect(bearing(`${name}-helper`).length).toBeGreaterThan(0);
  });

  test('a process of the library never becomes the parent of orphans', async () => {
    const processes = createProcesses(createProcTable(), { cgroups: () => null, adoptsOrphans: false });
    expect(processes.containment()).toBe('mark');
    const name = crypto.randomUUID();
    names.push(name);
    const code = runnerSource('library', name, '(setsid sh -c "sleep 600; :" sh "$1" & exec true); sleep 600; :');
    const runner = Bun.spawn([process.execPath, ...isolatedBunFlags, '-e', code], {
      env: { PATH: basePath },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
    });
    await runner.stdout.getReader().read();
    const table = createProcTable();
    const parents = () => table.find(bearing(name)).map(({ parent }) => parent);
    try {
      // The program, and the orphan, whose parent is a process outside this test.
      await eventually(() => bearing(name).length === 2 && parents().every((pid) => !bearing(name).includes(pid)));
      expect(parents().filter((pid) => pid === runner.pid)).toHaveLength(1);
    } finally {
      runner.kill('SIGKILL');
    }
  });
});

const optionsOf: Readonly<Record<string, string>> = {
  tree: ', { cgroups: () => null }',
  library: ', { cgroups: () => null, adoptsOrphans: false }',
};

function runnerSource(way: string, name: string, script: string): string {
  const text = (value: string) => JSON.stringify(value);
  const options = {
    program: '/bin/sh',
    args: ['-c', script, 'sh', name],
    cwd: temp.path,
    env: { PATH: basePath },
    stdoutFile: join(temp.path, 'out'),
    stderrFile: join(temp.path, 'err'),
    contained: name,
  };
  return `
    import { createProcesses } from ${text(join(sourceFolder, 'processes/processes.ts'))};
    import { createProcTable } from ${text(join(sourceFolder, 'processes/proc-table.ts'))};
    const processes = createProcesses(createProcTable()${optionsOf[way] ?? ''});
    console.log(JSON.stringify(processes.spawn(${JSON.stringify(options)}).value.identity));
    setInterval(() => {}, 1000);`;
}
