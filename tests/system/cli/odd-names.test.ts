/**
 * F1: a name from outside is only a name. What every object has by that name (`constructor`, `__proto__` …) as the name
 * of a group, session, project, template, variable, model, tool, message or MCP server: it is run, shown, stopped and
 * deleted like any other, and a second group beside it is untouched; what cannot be a name is refused in a sentence.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { obeyInterrupt } from '../../support/cli/night.ts';
import { User } from '../../support/cli/user.ts';
import { type Invocation, type Rig, resultLine, startRig } from '../../support/fake-claude-rig.ts';

let rig: Rig;
let user: User;
beforeEach(async () => {
  rig = await startRig();
  user = new User(rig.env);
});
afterEach(() => {
  for (const fake of rig.invocations) if (!fake.hasEnded) fake.exit(0);
  rig.stop();
  user.remove();
});

/** A group whose every part that may be named so is; its id. */
async function group(odd: string): Promise<string> {
  const slug = await user.run('group', 'create', odd, '--name', odd);
  expect([0, 2]).toContain(slug.code as number);
  if (slug.code === 2) expect(slug.stderr).toContain('is not made of lower-case letters');
  const id = slug.code === 0 ? slug.stdout.trim() : await user.ok('group', 'create', 'odd', '--name', odd);
  const prompts = join(user.project(odd), '.claude-code-agent', 'templates', 'prompts');
  mkdirSync(prompts, { recursive: true });
  writeFileSync(join(prompts, 'constructor.md'), `---\nvars:\n  ${odd}: { required: true }\n---\nDo {{${odd}}}.\n`);
  const common = [id, '--project', user.project(odd)];
  const isWord = !odd.startsWith('_');
  for (const option of ['--name', '--model']) {
    if (isWord) continue;
    const refused = await user.run('session', 'add', ...common, '--prompt', 'x', option, odd);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('is invalid. It must')]);
  }
  const named = isWord ? ['--name', odd, '--model', odd] : [];
  await user.ok('session', 'add', ...common, '--prompt', odd, '--description', odd, ...named);
  const filled = await user.run('session', 'add', ...common, '--template', 'constructor', '--var', `${odd}=it`);
  expect([filled.code, filled.stderr]).toEqual([filled.code === 0 ? 0 : 2, expect.not.stringMatching(unwanted)]);
  return id;
}

const unwanted = /Unexpected trouble|defect|undefined|NaN|null is not|native code|\[object/;

async function usable(id: string): Promise<void> {
  for (const args of [
    ['group', 'show', id],
    ['group', 'show', id, '--json'],
    ['group', 'list'],
    ['group', 'plan', id],
    ['group', 'why', id],
    ['group', 'budget', id, '--json'],
    ['group', 'report', id],
    ['group', 'report', id, '--html', '-'],
    ['session', 'show', `${id}/1`],
    ['session', 'show', `${id}/1`, '--config'],
    ['session', 'logs', `${id}/1`],
    ['doctor', '--worktrees'],
  ]) {
    const { code, stdout, stderr } = await user.run(...args);
    expect([args, code, stderr]).toEqual([args, 0, expect.not.stringMatching(unwanted)]);
    expect(stdout).not.toMatch(unwanted);
  }
}

/** What a claude says in which everything is called so. */
async function speak(fake: Invocation, odd: string): Promise<void> {
  const own = <T>(value: T): Record<string, T> => JSON.parse(`{${JSON.stringify(odd)}:${JSON.stringify(value)}}`);
  await fake.init(odd);
  const about = { model: odd, tools: [odd], mcp_servers: [{ name: odd, status: 'failed' }], capabilities: [odd] };
  await fake.print({ type: 'system', subtype: 'init', cwd: fake.hello.cwd, claude_code_version: '2.1.331', ...about });
  const call = { type: 'tool_use', id: odd, name: odd, input: own('x') };
  const spoken = { id: odd, model: odd, content: [call], usage: { input_tokens: 10, output_tokens: 5, ...own(7) } };
  await fake.print({ type: 'assistant', message: spoken, parent_tool_use_id: odd });
  await fake.print({ type: 'assistant', message: { ...spoken, content: [{ ...call, name: `mcp__${odd}__${odd}` }] } });
  const result = { type: 'tool_result', tool_use_id: odd, content: 'x' };
  await fake.print({ type: 'user', message: { content: [result] } });
  await fake.print({ type: odd, subtype: odd, ...own(1) });
  await fake.print({ type: 'system', subtype: odd, task_id: odd, tool_use_id: odd });
}

test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'prototype'])(
  'F1: everything is called %s',
  async (odd) => {
    const id = await group(odd);
    const other = await user.makeGroup('plain');
    await usable(id);
    const { sessions } = await user.json<{ sessions: { id: string }[] }>('group', 'show', id);
    const [claudeId = '', ...others] = sessions.map((session) => session.id.slice(4));
    const run = user.start('group', 'run', id, '--concurrent', '1');
    const fake = await rig.nextFor(claudeId);
    await fake.prompt();
    await speak(fake, odd);
    const stop = user.start('stop', '--all');
    await obeyInterrupt(fake, 0.25);
    expect((await stop.finished).code).toBe(0);
    expect((await run.finished).code).toBe(3);
    await usable(id);
    const again = user.start('group', 'resume', id, '--output', 'json');
    const rest = Promise.all(
      others.map(async (one) => {
        const third = await rig.nextFor(one);
        await third.prompt();
        await third.init();
        await third.succeed();
      }),
    );
    const second = await rig.nextFor(claudeId);
    await second.prompt();
    await speak(second, odd);
    const modelUsage = JSON.parse(`{"${odd}":{"costUSD":0.5,"inputTokens":10,"outputTokens":5}}`) as object;
    await second.print({ ...resultLine(0.5), modelUsage, permission_denials: [{ tool_name: odd, tool_use_id: odd }] });
    await rest;
    expect([0, 1]).toContain((await again.finished).code as number);
    await usable(id);
    await user.ok('group', 'delete', id, '--force');
    const kept = await user.json<{ status: string; sessions: unknown[] }>('group', 'show', other);
    expect([kept.status, kept.sessions.length]).toEqual(['created', 2]);
  },
);
