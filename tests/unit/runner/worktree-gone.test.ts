/**
 * Promises: when the worktree of a session is missing, the user is warned once and claude until it has answered about
 * the lost work, even if a runner dies in between.
 */
import { expect, test } from 'bun:test';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SessionDefinition } from '../../../src/core/group.ts';
import { type Invocation, resultLine } from '../../support/fake-claude-rig.ts';
import { Repository } from '../../support/git/repository.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { make, rig, withRig } from '../../support/rig-ground.ts';

withRig();

function makeGroup(fields: Partial<SessionDefinition> = {}): GroupFixture {
  let project = '';
  const late: Partial<SessionDefinition> = {
    get repository() {
      return join(project, '.git');
    },
    isolate: 'worktree',
    ...fields,
  };
  return make(
    [{ name: 'a', project: 'app', fields: late }],
    {},
    {
      beforeSessions: (folder) => {
        project = join(folder, 'projects', 'app');
        new Repository(project).commit({ 'base.txt': 'base\n' });
      },
    },
  );
}

async function begin(group: GroupFixture): Promise<{ fake: Invocation; prompt: string }> {
  const fake = await rig.nextFor(group.claudeId('a'));
  const prompt = await fake.prompt();
  await fake.init();
  return { fake, prompt };
}

const says = (id: string) => ({
  type: 'assistant',
  message: { id, model: 'claude-opus-4-8', content: [], usage: { input_tokens: 100, output_tokens: 1 } },
});

/** Runs the group until claude has answered, or only begun, and pauses it. */
async function runAndPause(group: GroupFixture, answers: boolean, work = () => {}): Promise<string> {
  const run = group.run(rig.env);
  const { fake, prompt } = await begin(group);
  work();
  await run.event('session_identified');
  if (answers) await fake.print(says(`m-${fake.hello.pid}`));
  run.signal('SIGINT');
  const requestId = await fake.control('interrupt');
  await fake.print({ type: 'control_response', response: { subtype: 'success', request_id: requestId } });
  const free = { subtype: 'error_during_execution', is_error: true, modelUsage: {} };
  await fake.print(resultLine(0, answers ? { ...free, modelUsage: undefined } : free));
  expect(await run.result).toMatchObject({ status: 'paused' });
  return prompt;
}

const warnings = (group: GroupFixture) => {
  const all = group.state().sessions.get(group.id('a'))?.warnings ?? [];
  return all.flatMap(({ code, message }) => (code === 'workspace' ? [message] : []));
};
const worktree = (group: GroupFixture) => group.session('a').worktree;
const takeAway = (group: GroupFixture) => rmSync(worktree(group), { recursive: true });
const write = (group: GroupFixture, name: string) => writeFileSync(join(worktree(group), name), name);
const gone = expect.stringContaining("The session's worktree was missing");

async function finish(group: GroupFixture): Promise<string> {
  const run = group.run(rig.env);
  const { fake, prompt } = await begin(group);
  await fake.succeed();
  expect(await run.result).toMatchObject({ status: 'completed' });
  return prompt;
}

test('uncommitted work of a missing worktree is lost: the user is warned once, claude until it answers', async () => {
  const group = makeGroup();
  await runAndPause(group, true, () => write(group, 'a-1.txt'));
  takeAway(group);
  expect(await runAndPause(group, false)).toContain('in no commit are lost');
  expect(warnings(group)).toEqual([gone]);
  expect(warnings(group)[0]).toContain('in no commit are lost');
  // Claude started and never answered, so it may not have stored the prompt.
  expect(await runAndPause(group, true)).toContain('in no commit are lost');
  expect(await finish(group)).not.toContain('was gone');
  expect(warnings(group)).toHaveLength(1);
});

test('committed work of a missing worktree is in the new one', async () => {
  const group = makeGroup({ accept: 'test -e ../ready', acceptIn: 'worktree', acceptRetries: 0 });
  const run = group.run(rig.env);
  const { fake } = await begin(group);
  write(group, 'a-1.txt');
  await fake.succeed();
  expect(await run.result).toMatchObject({ status: 'failed' });
  takeAway(group);
  writeFileSync(join(worktree(group), '..', 'ready'), '');
  const retry = group.run(rig.env, { retryFailed: true });
  const again = await begin(group);
  expect(again.prompt).toContain('What was committed there is in it.');
  expect(readdirSync(worktree(group))).toContain('a-1.txt');
  await again.fake.succeed();
  expect(await retry.result).toMatchObject({ status: 'completed' });
  expect(warnings(group)).toEqual([gone]);
});
