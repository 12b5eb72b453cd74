/**
 * Promises: no name and no figure from outside creates a group that cannot be shown, stopped or deleted, or that blocks
 * others.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { User } from '../../support/cli/user.ts';
import { type FakeClaudeHarness, type Invocation, resultLine, startRig } from '../../support/fake-claude-rig.ts';

let rig: FakeClaudeHarness;
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
  readonly progress: { readonly totalCost: number };
  readonly sessions: readonly { readonly id: string; readonly status: string }[];
}

/** A group of one session; returns its id and the claude session id. */
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

/** Every command that reads one group or all of them. */
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
  'a model called %s is charged like any other, and its group behaves normally',
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
    const { progress, sessions } = await user.json<Shown>('group', 'show', id);
    expect([progress.totalCost, sessions[0]?.status]).toEqual([0.25, 'completed']);
    await user.ok('group', 'delete', id, '--force');
    await user.ok('group', 'show', other);
  },
);

const nines = '9'.repeat(308);

function reply(tokens: string): string {
  const usage = `"usage":{"input_tokens":${tokens}}`;
  return `{"type":"assistant","message":{"id":"m","model":"claude-opus-4-8","content":[],${usage}}}`;
}

function limit(resetsAt: string): string {
  const info = `{"status":"rejected","resetsAt":${resetsAt},"rateLimitType":"five_hour"}`;
  return `{"type":"rate_limit_event","rate_limit_info":${info}}`;
}

const manyTurns = JSON.stringify(resultLine(0.1)).replace('"num_turns":1', '"num_turns":1e308');

const figures: Readonly<Record<string, readonly string[]>> = {
  'a reply of 308 nines of tokens': [reply(nines)],
  'a reply of 616 nines of tokens': [reply(nines + nines)],
  'two results of 1e308 turns': [manyTurns, manyTurns],
  'dollars of 308 nines': [JSON.stringify(resultLine(0.5)).replaceAll(/:0\.5\b/g, `:${nines}`)],
  'a reset of 308 nines': [limit(nines)],
};

test.each(Object.keys(figures))('%s affect only the session they belong to', async (name) => {
  const [id, claudeId] = await group('odd');
  const [other, otherClaude] = await group('plain');
  const run = user.start('group', 'run', id, '--output', 'json');
  const second = user.start('group', 'run', other);
  const fake = await began(claudeId);
  const neighbour = await began(otherClaude);
  for (const line of figures[name] as readonly string[]) await fake.printRaw(`${line}\n`);
  await fake.print(resultLine(0.25));
  const { code, stdout } = await run.finished;
  expect([code === 0 || code === 3, stdout]).toEqual([
    true,
    expect.not.stringMatching(/Infinity|:null,"(cost|tokens)/),
  ]);
  await neighbour.succeed();
  expect((await second.finished).code).toBe(0);
  await expectUsable(id);
  await user.ok('group', 'delete', id, '--force');
});
