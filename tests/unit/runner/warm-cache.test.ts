/**
 * Promises: of three similar sessions the runner starts one, and the others as soon as that one has printed the first
 * words of the model, also when another runner has taken over in between. The rules are in
 * tests/unit/core/warm-cache.test.ts.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import { type Invocation, type Rig, startRig } from '../../support/fake-claude-rig.ts';
import { type GroupFixture, makeGroup } from '../../support/group-fixture.ts';

let rig: Rig;
let group: GroupFixture;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.stop());
afterEach(() => group.remove());

async function begin(name: string): Promise<Invocation> {
  const fake = await rig.nextFor(group.claudeId(name));
  await fake.prompt();
  await fake.init();
  return fake;
}

/** Time nearly stands still, so that nothing starts because one has waited for long enough. */
const slow = { speed: 0.02 };

const begun = () =>
  group.events().flatMap((event) => (event.type === 'session_starting' ? [event.sessionId] : [])).length;

async function speak(fake: Invocation): Promise<void> {
  const content = [{ type: 'text', text: 'I look at it.' }];
  const usage = { input_tokens: 10, output_tokens: 1, cache_creation_input_tokens: 20_000, cache_read_input_tokens: 0 };
  await fake.print({ type: 'assistant', message: { id: 'm1', model: 'claude-opus-4-8', content, usage } });
}

test('the first words of one start the others, whoever runs the group by then', async () => {
  group = makeGroup(
    ['a', 'b', 'c'].map((name) => ({ name })),
    { warmCache: true },
    slow,
  );
  const run = group.run(rig.env);
  const a = await begin('a');
  await run.event('session_identified', group.id('a'));
  expect(begun()).toBe(1);
  run.signal('SIGHUP');
  expect(await run.result).toMatchObject({ kind: 'left' });

  const next = group.run(rig.env);
  await next.event('session_adopted', group.id('a'));
  expect(begun()).toBe(1);
  await speak(a);
  const others = await Promise.all([begin('b'), begin('c')]);
  for (const fake of [a, ...others]) await fake.succeed();
  expect(await next.result).toMatchObject({ kind: 'settled', status: 'completed' });
});
