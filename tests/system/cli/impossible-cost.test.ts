/**
 * F2. Promises: a figure that cannot be true counts as no more than what was reserved for its attempt, which is held
 * until a person settles it; siblings and other groups go on, and what is advised gets the group on.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { User } from '../../support/cli/user.ts';
import { type Invocation, type Rig, resultLine, startRig } from '../../support/fake-claude-rig.ts';

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

interface Budget {
  readonly spentUsd: number;
  readonly heldUsd?: number;
}

async function began(sessionId: string): Promise<Invocation> {
  const fake = await rig.nextFor((sessionId.split('/').at(-1) as string).slice(4));
  await fake.prompt();
  await fake.init();
  return fake;
}

async function printNines(fake: Invocation): Promise<void> {
  const usage = `"usage":{"input_tokens":${'9'.repeat(308)}}`;
  const message = `{"id":"m","model":"claude-opus-4-8","content":[],${usage}}`;
  await fake.printRaw(`{"type":"assistant","message":${message}}\n`);
}

/** claude adds them up, and ends since that is above its cap. */
async function endAtCap(fake: Invocation): Promise<void> {
  const line = JSON.stringify({ ...resultLine(0.5), subtype: 'error_max_budget_usd', is_error: true });
  await fake.printRaw(`${line.replaceAll(/:0\.5\b/g, `:${'9'.repeat(308)}`)}\n`);
  fake.exit(1);
}

test('F2: 308 nines of tokens hold the reservation; siblings and other groups go on', async () => {
  const id = await user.ok('group', 'create', 'odd', '--max-budget-usd', '2');
  const ids = [await user.add(id, 'only'), await user.add(id, 'sibling')];
  const other = await user.ok('group', 'create', 'plain', '--max-budget-usd', '2');
  const otherSession = await user.add(other, 'neighbour');
  const runs = [user.start('group', 'run', id), user.start('group', 'run', other)];
  const [only, sibling] = [await began(ids[0] as string), await began(ids[1] as string)];
  const neighbour = await began(otherSession);
  await printNines(only);
  await endAtCap(only);
  await sibling.succeed(0.25);
  await neighbour.succeed(0.25);
  // With what is left it goes on by itself.
  await (await began(ids[0] as string)).succeed(0.5);
  expect(await Promise.all(runs.map(async (run) => (await run.finished).code))).toEqual([0, 0]);
  expect(await user.json<Budget>('group', 'budget', id)).toMatchObject({ spentUsd: 2.2625, heldUsd: 1.5125 });
  expect(await user.json<Budget>('group', 'budget', other)).toMatchObject({ spentUsd: 0.25 });
  await user.ok('group', 'budget', id, '--free', 'only');
  const freed = await user.json<Budget>('group', 'budget', id);
  expect([freed.spentUsd, freed.heldUsd]).toEqual([0.75, undefined]);
});

test('F2: while such a reply is all that was said, nothing is stopped for it', async () => {
  const id = await user.ok('group', 'create', 'odd', '--max-budget-usd', '2');
  const session = await user.add(id, 'only');
  const run = user.start('group', 'run', id);
  const fake = await began(session);
  await printNines(fake);
  await fake.succeed(0.5);
  expect((await run.finished).code).toBe(0);
  expect(await user.json<Budget>('group', 'budget', id)).toMatchObject({ spentUsd: 0.5 });
});

test('F2: the cap that is advised while it is held is one that can be given', async () => {
  const id = await user.ok('group', 'create', 'odd', '--max-budget-usd', '2');
  const session = await user.add(id, 'only');
  const run = user.start('group', 'run', id);
  const fake = await began(session);
  await printNines(fake);
  await endAtCap(fake);
  expect((await run.finished).code).toBe(3);
  expect(await user.ok('session', 'show', `${id}/only`)).toContain(
    'Warning: claude named figures that cannot be true. Up',
  );
  const shown = await user.ok('group', 'show', id);
  const advised = /go on with: claude-code-agent (group resume .* --max-budget-usd \S+)$/m.exec(shown)?.[1]?.split(' ');
  const resumed = user.start(...(advised as string[]));
  await (await began(session)).succeed(0.5);
  expect((await resumed.finished).code).toBe(0);
  expect(await user.json<Budget>('group', 'budget', id)).toMatchObject({ spentUsd: 3.0125, heldUsd: 2.5125 });
});
