/**
 * F7: a process that is killed at any moment while its git makes a worktree, with that git killed or told to end: the
 * next call makes it, every time.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeWorkspace } from '../../../src/git/worktrees/workspace.ts';
import { isolatedBunFlags } from '../../../src/system/own-program.ts';
import { git } from '../../support/git/repository.ts';
import { made, WorkspaceRig } from '../../support/git/workspace-rig.ts';
import { isLongRun } from '../../support/long.ts';

const rounds = isLongRun ? 50 : 4;
/** Longer than git takes to make it here, so that some are killed when all is done. */
const latestMs = 300;
const sources = join(import.meta.dir, '../../../src');

let rig: WorkspaceRig;
beforeAll(() => {
  rig = new WorkspaceRig();
  const names = Array.from({ length: 400 }, (_, file) => `folder ${file % 20}/${file}.txt`);
  rig.repository.commit(Object.fromEntries(names.map((name) => [name, `${name}\n`.repeat(50)])));
});
afterAll(() => rig.remove());

/** Of a process that is gone, too: it starts nothing. */
function isStopped(pid: number): boolean {
  const stat = existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, 'utf8') : ') Z';
  return /^.*\) [TZ]/s.test(stat);
}

const maker = (plan: object): string => `
  const { createRealWorld } = await import(${JSON.stringify(join(sources, 'system', 'real-world.ts'))});
  const { makeWorkspace } = await import(${JSON.stringify(join(sources, 'git', 'worktrees', 'workspace.ts'))});
  await makeWorkspace({ world: createRealWorld(), env: process.env }, ${JSON.stringify(plan)});`;

test.each(['SIGKILL', 'SIGTERM'] as const)(
  'F7: git gets %s',
  async (signal) => {
    for (let round = 0; round < rounds; round += 1) {
      const plan = rig.plan(round + (signal === 'SIGTERM' ? 500 : 1), { branch: `cca/${signal}/${round}` });
      const env = Object.fromEntries(Object.entries(rig.git.env).map(([name, value]) => [name, value ?? '']));
      const child = Bun.spawn([process.execPath, ...isolatedBunFlags, '-e', maker(plan)], { env, stdin: 'ignore' });
      while (!existsSync(plan.intentFile)) await Bun.sleep(1);
      await Bun.sleep((latestMs * round) / rounds);
      // Nothing is started any more while they are looked for.
      child.kill('SIGSTOP');
      while (!isStopped(child.pid)) await Bun.sleep(1);
      // None when it had ended: the worktree is made.
      const self = rig.world.processes.identify(child.pid);
      const gits = self === null ? [] : rig.world.processes.findDescendants([self]);
      child.kill('SIGKILL');
      for (const one of gits) rig.world.processes.signal(one, signal);
      await child.exited;
      // The runner sees to it that they have ended, see tests/system/crash/worktree-killed.test.ts.
      while (gits.some((one) => rig.world.processes.isAlive(one))) await Bun.sleep(1);
      const { path } = made(await makeWorkspace(rig.git, plan));
      expect(git(path, 'status', '--porcelain')).toBe('');
      expect(rig.branches().filter((name) => name === plan.branch)).toEqual([plan.branch]);
    }
  },
  300_000,
);
