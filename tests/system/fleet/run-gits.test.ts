/**
 * Promises: a session that works elsewhere costs a fixed number of processes of git at each end, and one that works
 * here no more than the runner's share. Each of them takes longer to start than to work.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Rig, startRig } from '../../support/fake-claude-rig.ts';
import { openGround } from '../../support/fleet-ground.ts';
import { hasRedis } from '../../support/redis-server.ts';
import { makeTempFolder } from '../../support/system/rig.ts';

let rig: Rig;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.stop());

/** A PATH with a git in front that notes what it is asked, and the commands that it was asked so far. */
function notingGit(folder: string): { readonly path: string; asked(): string[] } {
  const log = join(folder, 'log');
  mkdirSync(folder);
  writeFileSync(join(folder, 'git'), `#!/bin/sh\necho "$*" >>"\${0%/*}/log"\nexec '${Bun.which('git')}' "$@"\n`);
  chmodSync(join(folder, 'git'), 0o755);
  return {
    path: `${folder}:${process.env.PATH}`,
    asked: () => {
      const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
      // All of ours begin with settings; the rest are further lines of a message.
      return lines.flatMap((line) => /^(?:-c \S* )+(\S+)/.exec(line)?.[1] ?? []);
    },
  };
}

interface Asked {
  readonly runner: readonly string[];
  readonly machine: readonly string[];
}

/** By a group of so many sessions, one after another, each of which leaves a new file. */
async function askedBy(count: number, where: 'fleet' | 'here'): Promise<Asked> {
  const temp = makeTempFolder();
  const [runner, machine] = [notingGit(join(temp.path, 'runner')), notingGit(join(temp.path, 'machine'))];
  const names = Array.from({ length: count }, (_, index) => `s${index}`);
  const ground = await openGround(
    names.map((name) => ({ name })),
    {
      machines: where === 'fleet' ? { one: { env: { PATH: machine.path } } } : {},
      env: rig.env,
      config: { ...(where === 'fleet' ? { where } : {}), maxConcurrentSessions: 1, maxBudgetUsd: 20 },
    },
  );
  try {
    const run = ground.group.run({ ...rig.env, PATH: runner.path });
    for (const name of names) {
      const fake = await rig.nextFor(ground.group.claudeId(name));
      await fake.prompt();
      await fake.init();
      writeFileSync(join(fake.hello.cwd, `${name}.txt`), `${name}\n`);
      await fake.succeed(0.1);
    }
    expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
    return { runner: runner.asked(), machine: machine.asked() };
  } finally {
    await ground.close();
    temp.remove();
  }
}

const sessions = 3;

/** By each session but the first, for which all that belongs to the repository is made. */
async function askedByEach(where: 'fleet' | 'here'): Promise<{ readonly runner: number; readonly machine: number }> {
  const [first, all] = [await askedBy(1, where), await askedBy(sessions, where)];
  const each = (of: (asked: Asked) => readonly string[]) => (of(all).length - of(first).length) / (sessions - 1);
  return { runner: each(({ runner }) => runner), machine: each(({ machine }) => machine) };
}

test.if(hasRedis)(
  'a session on another machine costs no more than so many',
  async () => {
    const { runner, machine } = await askedByEach('fleet');
    expect(runner).toBeLessThanOrEqual(18);
    expect(machine).toBeLessThanOrEqual(10);
    // Both were counted.
    expect(Math.min(runner, machine)).toBeGreaterThan(5);
  },
  60_000,
);

test.if(hasRedis)(
  'a session here costs no more than so many',
  async () => {
    const { runner, machine } = await askedByEach('here');
    expect(runner).toBeGreaterThan(3);
    expect(runner).toBeLessThanOrEqual(12);
    expect(machine).toBe(0);
  },
  60_000,
);
