/**
 * F1, F2: no name and no figure from outside makes a group that cannot be shown, stopped or deleted, nor one that keeps
 * others from that.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Invocation, type Rig, resultLine, startRig } from '../support/fake-claude-rig.ts';
import { User } from './user.ts';

let rig: Rig;
let user: User;

beforeEach(async () => {
  rig = await startRig();
  user = new User(rig.env);
});
afterEach(() => {
  rig.stop();
  user.remove();
});

interface Shown {
  readonly status: string;
  readonly totalCost: number;
  readonly sessions: readonly { readonly id: string; readonly status: string }[];
}

/** A group of one session; its id and the claude session id. */
async function group(slug: string, ...options: string[]): Promise<readonly [string, string]> {
  const id = await user.ok('group', 'create', slug, '--max-budget-usd', '10');
  const session = await user.add(id, 'only', ...options);
  return [id, (session.split('/').at(-1) as string).slice(4)];
}

async function began(claudeId: string, model?: string): Promise<Invocation> {
  const fake = await rig.nextFor(claudeId);
  await fake.prompt();
  await fake.init(model);
  return fake;
}

function everyNumber(value: unknown, path = ''): string[] {
  if (typeof value === 'number') return Number.isFinite(value) ? [] : [path];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => everyNumber(inner, `${path}.${key}`));
}

/** Every command that reads a group, or all of them. */
async function expectUsable(id: string): Promise<void> {
  for (const args of [
    ['group', 'show', id],
    ['group', 'show', id, '--json'],
    ['group', 'list'],
    ['group', 'why', id],
    ['group', 'budget', id],
    ['group', 'report', id],
    ['session', 'list', id],
    ['session', 'show', `${id}/1`],
    ['stop', '--all'],
  ]) {
    const { code, stdout, stderr } = await user.run(...args);
    expect(`${args.join(' ')}: ${code} ${stderr}`).toBe(`${args.join(' ')}: 0 `);
    expect(stdout).not.toMatch(/Infinity|NaN|undefined|null is not|function /);
  }
  expect(everyNumber(await user.json('group', 'show', id))).toEqual([]);
}

test.each(['constructor', 'toString', '__proto__', 'hasOwnProperty', 'valueOf'])(
  'F1: a model called %s costs what it costs, and the group is like any other',
  async (model) => {
    const isTyped = !model.startsWith('_');
    const [id, claudeId] = await group('odd', ...(isTyped ? ['--model', model] : []));
    const [other, otherClaude] = await group('plain');
    const run = user.start('group', 'run', id, '--output', 'json');
    const second = user.start('group', 'run', other);
    const fake = await began(claudeId, model);
    const neighbour = await rig.nextFor(otherClaude);
    await neighbour.prompt();
    const usage = { input_tokens: 10, output_tokens: 5 };
    await fake.print({ type: 'assistant', message: { id: 'm1', model, content: [], usage } });
    const modelUsage = JSON.parse(`{"${model}":{"costUSD":0.25,"inputTokens":10,"outputTokens":5}}`) as object;
    await fake.print({ ...resultLine(0.25), modelUsage });
    expect((await run.finished).code).toBe(0);
    await expectUsable(id);
    expect((await second.finished).code).toBe(3);
    await neighbour.ended;
    const { totalCost, sessions } = await user.json<Shown>('group', 'show', id);
    expect([totalCost, sessions[0]?.status]).toEqual([0.25, 'completed']);
    await user.ok('group', 'delete', id, '--force');
    await user.ok('group', 'show', other);
  },
);
