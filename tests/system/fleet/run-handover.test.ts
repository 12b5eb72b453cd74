/**
 * Promises: ignored resume files of the handover system go to another host with the session, return while it runs, and
 * go on to the next host. No other ignored file does.
 */
import { afterEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { until } from '../../support/cli.ts';
import type { Invocation } from '../../support/fake-claude-rig.ts';
import { type FleetGround, openGround } from '../../support/fleet-ground.ts';
import { hasRedis } from '../../support/redis-server.ts';
import { rig, withRig } from '../../support/rig-ground.ts';
import { resume, resumeFileText } from '../../support/runner/handover-ground.ts';

let ground: FleetGround;
withRig();
afterEach(async () => {
  await ground.close();
});

const longFleetTest = test.if(hasRedis);

/** Created by the session. */
const further = '02-projects/29-c/01-planning/resume-context.md';
const toolResult = { type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: 't', content: 'ok' }] } };
const machineOf = ({ hello }: Invocation): string => /\/machine (\w+)\//.exec(hello.cwd)?.[1] ?? '';

async function begin(): Promise<Invocation> {
  const fake = await rig.nextFor(ground.group.claudeId('a'));
  await fake.prompt();
  await fake.init();
  return fake;
}

function write(folder: string, path: string, content: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), content);
}

const read = (folder: string, path = resume): string => {
  const file = join(folder, path);
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
};

longFleetTest('they go with the session from host to host, and to the project', async () => {
  ground = await openGround([{ name: 'a' }], {
    machines: { one: {} },
    env: rig.env,
    config: { where: 'fleet' },
    files: { '.gitignore': '02-projects\nignored\n' },
  });
  const { group } = ground;
  const app = group.project('app');
  write(app, resume, resumeFileText('plan'));
  const run = group.run(rig.env);
  const first = await begin();
  expect(machineOf(first)).toBe('one');
  expect(read(first.hello.cwd)).toContain('"plan"');
  write(first.hello.cwd, resume, read(first.hello.cwd).replace('"plan"', '"build"'));
  write(first.hello.cwd, further, resumeFileText('begun'));
  write(first.hello.cwd, 'ignored', 'made here');
  write(first.hello.cwd, '02-projects/28-b/notes.md', 'made here');
  await first.print(toolResult);
  // A checkpoint brings them during the attempt.
  const here = group.session('a').worktree;
  await until(() => read(here).includes('"build"') && read(here, further) !== '');
  for (const path of ['ignored', '02-projects/28-b/notes.md']) expect(existsSync(join(here, path))).toBe(false);
  await run.ask({ kind: 'pause-session', sessionId: group.id('a') });
  const asked = await first.control('interrupt');
  await first.print({ type: 'control_response', response: { subtype: 'success', request_id: asked } });
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
  await ground.machines.one?.killAgent();
  ground.addMachine('two', {});
  const later = group.run(rig.env);
  const second = await begin();
  expect(machineOf(second)).toBe('two');
  for (const folder of [second.hello.cwd, app]) expect(read(folder)).toContain('"build"');
  expect(read(second.hello.cwd, further)).toContain('"begun"');
  write(second.hello.cwd, resume, read(second.hello.cwd).replace('"build"', '"test"'));
  await second.succeed();
  expect(await later.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(read(app)).toContain('"test"');
});
