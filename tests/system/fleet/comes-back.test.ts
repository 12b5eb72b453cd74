/**
 * Promises, with the real claude and no systemd: a killed agent restarts, even if its guard was killed with it, and
 * adopts what runs. No claude outlives its lease when both are killed while Redis is gone.
 */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { roundUsd } from '../../../src/core/group.ts';
import { fleetPaths } from '../../../src/fleet/fleet-files.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { modelOfKnownPrice } from '../../support/claude/rig.ts';
import { User } from '../../support/cli/user.ts';
import { pinnedClaude, until } from '../../support/cli.ts';
import { git, Repository } from '../../support/git/repository.ts';
import { kill } from '../../support/kill.ts';
import { hasRedis, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { noteTried } from '../../support/tried.ts';

setDefaultTimeout(180_000);

const { locks, processes } = createRealWorld();

describe.skipIf(!hasRedis)('with redis-server', () => {
  let user: User;
  let server: RedisServer;
  let api: ScriptedApi;
  let root: string;

  beforeEach(async () => {
    user = new User({ ANTHROPIC_API_KEY: 'test-key' });
    root = join(user.folder, 'there');
    const command = 'echo $PPID >pid.txt; until [ -e "$HOME/go" ]; do sleep 0.1; done';
    const steps = [{ text: 'Working.', tool: 'Bash', input: { command } }, { text: 'Done.' }];
    api = startScriptedApi({ script: { version: 1, sessions: { '*': { steps } } }, nameOf: () => 'api' });
    user.env.ANTHROPIC_BASE_URL = api.url;
    user.env.CLAUDE_CODE_AGENT_CLAUDE = pinnedClaude();
    for (const tried of [user.data, fleetPaths(root).folder]) noteTried(tried, pinnedClaude());
    server = await startRedis(user.folder, ['appendonly yes']);
  });
  afterEach(async () => {
    for (const lock of [agentLock(), guardLock(), agentLock()]) await end(lock);
    await server.kill();
    await api.stop();
    user.remove();
  });

  const agentLock = () => fleetPaths(root).agentLock;
  const guardLock = () => fleetPaths(root).guardLock;
  const pidOf = (lock: string): number => locks.holder(lock)?.identity.pid ?? 0;
  const isAlive = (pid: number): boolean => processes.identify(pid) !== null;

  async function end(lock: string): Promise<void> {
    for (let holder = locks.holder(lock); holder !== null; holder = locks.holder(lock)) {
      processes.signal(holder.identity, 'SIGTERM');
      await Bun.sleep(10);
    }
  }

  /** Kills them at once, and waits until new ones replace them. */
  async function killed(...which: readonly string[]): Promise<void> {
    const pids = which.map(pidOf);
    for (const pid of pids) kill(pid);
    await until(() => which.every((lock, index) => ![0, pids[index]].includes(pidOf(lock))));
  }

  /** A session runs there; returns its claude's pid. */
  async function start(leaseSeconds: number): Promise<{ group: string; run: ReturnType<User['run']>; pid: number }> {
    await user.ok('fleet', 'init', '--redis', server.url, '--lease', String(leaseSeconds));
    const line = await user.ok('fleet', 'join-line');
    const env = { CLAUDE_CODE_AGENT_HOME: root };
    const joined = await user.runWith({ env }, 'host', 'join', line, '--name', 'one', '--slots', '2');
    expect(joined).toMatchObject({ code: 0 });
    const project = user.project('p');
    new Repository(project).commit({ 'a.txt': 'a\n' });
    git(user.folder, 'clone', '--quiet', '--bare', project, 'remote.git');
    git(project, 'remote', 'add', 'origin', join(user.folder, 'remote.git'));
    const group = await user.ok('group', 'create', 'there', '--max-budget-usd', '5', '--where', 'fleet');
    const session = ['--project', project, '--isolate', 'worktree', '--allowed-tools', 'Bash'];
    await user.ok('session', 'add', group, '--prompt', 'Do it.', '--model', modelOfKnownPrice, ...session);
    const run = user.run('group', 'run', group, '--output', 'text');
    const noted = new Bun.Glob('fleet/work/session-groups/*/sessions/*/worktree/pid.txt');
    const pid = () =>
      [...noted.scanSync({ cwd: root })].map((path) => Number(readFileSync(join(root, path), 'utf8')))[0];
    await until(() => (pid() ?? 0) > 0);
    return { group, run, pid: pid() ?? 0 };
  }

  test('a killed agent restarts, alone or with its guard, and its session continues', async () => {
    // Long enough for two agents to start on a busy machine.
    const { group, run, pid } = await start(60);
    await killed(agentLock());
    await killed(agentLock(), guardLock());
    expect(isAlive(pid)).toBe(true);
    writeFileSync(join(user.home, 'go'), '');
    const { code, stdout } = await run;
    expect([code, stdout.includes('lost')]).toEqual([0, false]);
    const { progress } = await user.json<{ progress: { totalCost: number } }>('group', 'show', group);
    expect(api.requests.filter(({ kind }) => kind === 'step')).toHaveLength(2);
    expect(roundUsd(progress.totalCost)).toBe(roundUsd(api.served.total.costUsd));
    // An agent that is asked to end does not restart.
    expect((await user.runWith({ env: { CLAUDE_CODE_AGENT_HOME: root } }, 'host', 'forget', 'one', '-y')).code).toBe(0);
    expect([pidOf(agentLock()), pidOf(guardLock())]).toEqual([0, 0]);
  });

  test('no claude outlives its lease when agent and guard are killed while Redis is gone', async () => {
    const { run, pid } = await start(10);
    await server.kill();
    for (const victim of [agentLock(), guardLock()].map(pidOf)) kill(victim);
    await until(() => !isAlive(pid));
    await server.restart();
    writeFileSync(join(user.home, 'go'), '');
    // The host returned as well, and the session continues there.
    expect((await run).code).toBe(0);
  });
});
