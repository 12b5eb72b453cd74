/**
 * Promises: limits of a session are set on a control group before its first instruction where possible, and reached
 * limits can be read after its end. Uses a fake tree, and the kernel where permitted.
 */
import { describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isolatedBunFlags } from '../../../src/system/own-program.ts';
import { Cgroups } from '../../../src/system/processes/cgroup.ts';
import { createProcTable } from '../../../src/system/processes/proc-table.ts';
import { createProcesses } from '../../../src/system/processes/processes.ts';
import { MadeUpCgroups } from '../../support/fake-cgroups.ts';
import { basePath, exitOf, expectOk, sourceFolder } from '../../support/system/rig.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const temp = withTempFolder();

const [us, child, stranger] = [100, 101, 200];
const ours = () => new Set([us, child]);
const limits = { memory: 3_000_000_000, processes: 64 };

/** A control group as systemd makes it for one command, with these processes, and the runner's changes to it. */
function scope(controllers: readonly string[], pids: readonly number[] = [us, child]) {
  const tree = new MadeUpCgroups(join(temp.path, 'run.scope'), controllers, pids);
  return { tree, groups: new Cgroups({ own: tree.own, root: temp.path }, tree) };
}

const text = (...path: string[]) => readFileSync(join(...path), 'utf8').trim();
const folderOf = (tree: MadeUpCgroups, name: string) => join(tree.own, `claude-code-agent-${name}`);

describe('preparing control groups', () => {
  test('a runner alone in its control group first moves into a new one, with its child processes', () => {
    const { tree, groups } = scope(['memory', 'pids']);
    expect([...groups.limits(ours)]).toEqual(['memory', 'processes']);
    expect(text(tree.own, 'cgroup.procs')).toBe('');
    expect(text(folderOf(tree, `runner-${process.pid}`), 'cgroup.procs')).toBe(`${us}\n${child}`);
    const written = tree.written.length;
    groups.limits(ours);
    expect(tree.written.length).toBe(written);
  });

  test('no control group is changed beside a foreign or invisible process', () => {
    for (const other of [stranger, 0]) {
      const { tree, groups } = scope(['memory', 'pids'], [us, other]);
      expect(groups.limits(ours).size).toBe(0);
      expect(tree.written).toEqual([]);
      expect(groups.make('a', limits)).toBeNull();
      expect(existsSync(folderOf(tree, 'a'))).toBe(false);
      expect(groups.make('a')).toBe(folderOf(tree, 'a'));
      groups.end('a');
    }
  });

  test('a control group that is not delegated is not used', () => {
    const { tree, groups } = scope(['pids']);
    expect([...groups.limits(ours)]).toEqual(['processes']);
    expect(groups.make('a', limits)).toBeNull();
    expect(groups.make('b', { processes: 64 })).not.toBeNull();
    const none = new MadeUpCgroups(join(temp.path, 'bare.scope'), ['cpu'], [us]);
    expect(new Cgroups({ own: none.own, root: temp.path }, none).limits(ours).size).toBe(0);
    expect(none.written).toEqual([]);
    expect(tree.written.length).toBeGreaterThan(0);
  });
});

describe('limited control group', () => {
  test('limits are set on a group around claude’s own group, so that claude can create others', () => {
    const { tree, groups } = scope(['memory', 'pids']);
    groups.limits(ours);
    const folder = folderOf(tree, 'a');
    const inner = join(folder, 'session');
    expect(groups.make('a', limits)).toBe(inner);
    expect([text(folder, 'memory.max'), text(folder, 'pids.max')]).toEqual(['3000000000', '64']);
    expect(text(folder, 'memory.swap.max')).toBe('0');
    expect(text(folder, 'cgroup.subtree_control')).toBe('memory pids');
    tree.start(inner, 300, 301);
    expect(groups.members('a')).toEqual([300, 301]);
    expect(groups.end('a')).toBe(true);
    expect(existsSync(folder)).toBe(false);
  });

  const reached: [string, string[], string, string[]][] = [
    ['memory', ['memory.events.local'], 'oom 2\noom_kill 1', ['memory']],
    ['processes', ['pids.events'], 'max 3', ['processes']],
    ['processes, as older kernels count them', ['session', 'pids.events'], 'max 3', ['processes']],
    ['a limit that claude has set for a command', ['session', 'memory.events.local'], 'oom 2\noom_kill 1', []],
    ['none', ['pids.events'], 'max 0', []],
  ];
  test.each(reached)('reached limits are read before the control group ends: %s', (_, file, events, hit) => {
    const { tree, groups } = scope(['memory', 'pids']);
    groups.limits(ours);
    const folder = folderOf(tree, 'a');
    const inner = groups.make('a', limits) as string;
    tree.start(inner, 300);
    writeFileSync(join(folder, ...file), `${events}\n`);
    // The reader need not be the runner that made the group.
    const later = new Cgroups({ own: tree.own, root: temp.path }, tree);
    expect(later.hits('a')).toEqual(hit as ReturnType<Cgroups['hits']>);
    expect(groups.hits('a')).toEqual(hit as ReturnType<Cgroups['hits']>);
    expect(later.end('a')).toBe(true);
    expect(existsSync(folder)).toBe(false);
  });
});

test.skipIf(process.platform !== 'linux')(
  'own processes are this process, its children, and the command that started it',
  () => {
    const source = (file: string) => JSON.stringify(join(sourceFolder, 'processes', file));
    const code = `
    import { createProcesses } from ${source('processes.ts')};
    import { createProcTable } from ${source('proc-table.ts')};
    const child = Bun.spawn(['sleep', '60']);
    let seen = new Set();
    createProcesses(createProcTable(), { cgroups: () => ({ limits: (ours) => (seen = ours()) }) }).limits();
    console.log(JSON.stringify([process.pid, child.pid, process.ppid, 1].map((pid) => seen.has(pid))));
    child.kill();`;
    const env = { PATH: basePath };
    const bun = [process.execPath, ...isolatedBunFlags, '-e', code];
    const [byUs, byShell] = [bun, ['/bin/sh', '-c', '"$@"; exit', 'sh', ...bun]].map((command) =>
      Bun.spawnSync(command, { env, stdin: 'ignore' }).stdout.toString().trim(),
    );
    expect([byUs, byShell]).toEqual(['[true,true,true,false]', '[true,true,false,false]']);
  },
);

describe('starting with limits', () => {
  const options = (name: string, script: string) => {
    for (const file of ['out', 'err']) writeFileSync(join(temp.path, file), '');
    return {
      ...{ program: '/bin/sh', args: ['-c', script], cwd: temp.path, env: { PATH: basePath } },
      ...{ stdoutFile: join(temp.path, 'out'), stderrFile: join(temp.path, 'err') },
      ...{ contained: name, limits: { processes: 64 } },
    };
  };

  test('a session whose limits cannot be set does not start', () => {
    const processes = createProcesses(createProcTable(), { cgroups: () => null });
    expect(processes.limits().size).toBe(0);
    const spawned = processes.spawn(options(crypto.randomUUID(), 'echo started'));
    expect(spawned).toMatchObject({ ok: false, failure: { reason: 'spawn-failed' } });
    expect(text(temp.path, 'out')).toBe('');
  });

  const real = process.platform === 'linux' ? createProcesses(createProcTable()) : null;
  const canLimit = real?.limits().has('processes') === true;
  if (!canLimit)
    console.log('Skipped, because no control group with the pids controller can be had here: a real limit.');

  test.skipIf(!canLimit)('the kernel refuses further processes, which is reported after the end', async () => {
    const name = crypto.randomUUID();
    const processes = real as NonNullable<typeof real>;
    const script = 'i=0; while [ $i -lt 100 ]; do sleep 60 & i=$((i + 1)); done; wait';
    await exitOf(expectOk(processes.spawn(options(name, script))));
    expect(processes.limitsHit(name)).toEqual(['processes']);
    expect(processes.endContained(name)).toBe(true);
    expect(processes.limitsHit(name)).toEqual([]);
  });
});
