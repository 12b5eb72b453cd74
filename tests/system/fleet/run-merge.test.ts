/** Promises: work made on three hosts in two repositories is merged in both of them, or in none. */
import { afterEach, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { launcher } from '../../support/cli.ts';
import { type FleetGround, openGround } from '../../support/fleet-ground.ts';
import { git, Repository } from '../../support/git/repository.ts';
import { hasRedis } from '../../support/redis-server.ts';
import { rig, withRig } from '../../support/rig-ground.ts';

let ground: FleetGround;
withRig();
afterEach(async () => {
  await ground.close();
});

const fleetTest = test.if(hasRedis);
const repositories = ['app', 'lib'] as const;
const folderOf = (name: string) => ground.group.project(name);
const tips = () => repositories.map((name) => git(folderOf(name), 'rev-parse', 'main'));

/** Each session on a host of its own; what each writes, by its name. */
async function workOnThree(works: Readonly<Record<string, Readonly<Record<string, string>>>>): Promise<void> {
  const hosts = { a: 'one', b: 'two', c: 'three' } as const;
  const sketches = Object.entries(hosts).map(([name, host]) => ({
    name,
    project: name === 'c' ? 'lib' : 'app',
    fields: { host },
  }));
  ground = await openGround(sketches, {
    machines: { one: {}, two: {}, three: {} },
    env: rig.env,
    config: { where: 'fleet', maxBudgetUsd: 20 },
  });
  const run = ground.group.run(rig.env);
  for (const [name, files] of Object.entries(works)) {
    const fake = await rig.nextFor(ground.group.claudeId(name));
    await fake.prompt();
    await fake.init();
    for (const [path, text] of Object.entries(files)) writeFileSync(join(fake.hello.cwd, path), text);
    await fake.succeed(0.1);
  }
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  const { sessions } = ground.group.state();
  expect([...sessions.values()].map(({ host }) => host)).toEqual(Object.values(hosts));
}

function merge() {
  const { groupId, root, folder } = ground.group;
  const env = { PATH: process.env.PATH ?? '', HOME: folder, LANG: 'C.UTF-8', CLAUDE_CODE_AGENT_HOME: root };
  const { exitCode, stderr } = Bun.spawnSync([launcher, 'group', 'merge', groupId], { env, stdin: 'ignore' });
  return { exitCode, stderr: stderr.toString() };
}

fleetTest('both repositories get all of it', async () => {
  await workOnThree({ a: { 'a.txt': 'a\n' }, b: { 'b.txt': 'b\n' }, c: { 'c.txt': 'c\n' } });
  expect(merge()).toMatchObject({ exitCode: 0 });
  const read = (name: string, path: string) => git(folderOf(name), 'show', `main:${path}`);
  expect([read('app', 'a.txt'), read('app', 'b.txt'), read('lib', 'c.txt')]).toEqual(['a', 'b', 'c']);
});

test.if(hasRedis)('a conflict in the second repository leaves both unchanged', async () => {
  await workOnThree({ a: { 'a.txt': 'a\n' }, b: { 'b.txt': 'b\n' }, c: { 'base.txt': 'changed there\n' } });
  new Repository(folderOf('lib')).commit({ 'base.txt': 'changed here\n' });
  const before = tips();
  const refused = merge();
  expect(refused.exitCode).not.toBe(0);
  expect(refused.stderr).toContain('base.txt');
  expect(tips()).toEqual(before);
  for (const name of repositories) expect(git(folderOf(name), 'status', '--porcelain')).toBe('');
});
