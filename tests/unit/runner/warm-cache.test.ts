/**
 * Promises: of three similar sessions the runner starts one, and the others after the first words of the model, even
 * after a change of runner. The rules are in `tests/unit/core/warm-cache.test.ts`.
 */
import { expect, test } from 'bun:test';
import type { Invocation } from '../../support/fake-claude-rig.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';

withRig((one) => one.remove());
let group: GroupFixture;

/** Time nearly stands still, so that no session starts because of its timeout. */
const slow = { speed: 0.02 };

const begun = () =>
  group.events().flatMap((event) => (event.type === 'session_starting' ? [event.sessionId] : [])).length;

async function speak(fake: Invocation): Promise<void> {
  const content = [{ type: 'text', text: 'I look at it.' }];
  const usage = { input_tokens: 10, output_tokens: 1, cache_creation_input_tokens: 20_000, cache_read_input_tokens: 0 };
  await fake.print({ type: 'assistant', message: { id: 'm1', model: 'claude-opus-4-8', content, usage } });
}

test('the first words of the model start the other similar sessions, also under the next runner', async () => {
  group = make(
    ['a', 'b', 'c'].map((name) => ({ name })),
    { warmCache: true },
    slow,
  );
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  await run.event('session_identified', group.id('a'));
  expect(begun()).toBe(1);
  run.signal('SIGHUP');
  expect(await run.result).toMatchObject({ kind: 'left' });

  const next = group.run(rig.env);
  await next.event('session_adopted', group.id('a'));
  expect(begun()).toBe(1);
  await speak(a);
  const others = await Promise.all([begin(group, 'b'), begin(group, 'c')]);
  for (const fake of [a, ...others]) await fake.succeed();
  expect(await next.result).toMatchObject({ kind: 'settled', status: 'completed' });
});
