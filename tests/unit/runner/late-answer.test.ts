/**
 * Promises: an answer that was printed before the reset of a usage limit opens the gate of the login for nobody, also
 * when a disk that did not answer kept the runner from reading it until afterwards.
 */
import { expect, test } from 'bun:test';
import { sessionPaths } from '../../../src/store/paths.ts';
import { delay } from '../../../src/system/clock.ts';
import { until } from '../../support/cli.ts';
import { resultLine } from '../../support/fake-claude-rig.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';

withRig((group) => group.remove());

const answer = (id: string) => ({ type: 'assistant', message: { id, model: 'claude-opus-4-8', content: [] } });

test('an answer from before the reset that is read after it opens no gate, the next one does', async () => {
  const group = make([{ name: 'a' }, { name: 'b' }], { maxConcurrentSessions: 2 }, { speed: 20 });
  const { clock, files } = group.world;
  const { openRead } = files;
  const { transcript } = sessionPaths(group.paths, group.id('a'));
  let isHeldUp = false;
  let heldUp = 0;
  files.openRead = (path) => {
    const file = openRead(path);
    if (file === null || path !== transcript) return file;
    const read: typeof file.read = (...which) => {
      if (!isHeldUp) return file.read(...which);
      heldUp += 1;
      throw new Error('EIO');
    };
    return { read, close: () => file.close() };
  };
  const run = group.run(rig.env);
  const [a, b] = await Promise.all([begin(group, 'a'), begin(group, 'b')]);
  await run.event('session_identified', group.id('a'));
  isHeldUp = true;
  await a.print(answer('early'));
  const resetsAtMs = 1000 * (Math.ceil(clock.now() / 1000) + 20);
  const info = { status: 'rejected', resetsAt: resetsAtMs / 1000, rateLimitType: 'five_hour' };
  await b.print({ type: 'rate_limit_event', rate_limit_info: info });
  await b.print(resultLine(0, { is_error: true, result: 'You’ve hit your session limit', api_error_status: 429 }));
  await run.event('limit_reached');
  // A timer may fire a millisecond early, which is more on a clock that is fast.
  while (clock.now() <= resetsAtMs) await delay(clock, resetsAtMs + 1 - clock.now());
  expect(heldUp).toBeGreaterThan(0);
  isHeldUp = false;
  // A line of which the runner tells shows that it has read what was before it.
  await a.print({ type: 'system', subtype: 'init', session_id: 'renamed', model: 'claude-opus-4-8' });
  const isRead = () =>
    group.events().some((event) => 'claudeSessionId' in event && event.claudeSessionId === 'renamed');
  await until(isRead);
  expect(group.events().map(({ type }) => type)).not.toContain('limit_lifted');
  await a.print(answer('late'));
  await run.event('limit_lifted');
  await (await begin(group, 'b')).succeed();
  await a.succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
}, 30_000);
