/** F2. Promises: after a figure that cannot be true, the command that is advised is accepted and gets the group on. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { type Rig, startRig } from '../support/fake-claude-rig.ts';
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

test('F2: the cap that is advised after 308 nines of tokens is one that can be given', async () => {
  const id = await user.ok('group', 'create', 'odd', '--max-budget-usd', '2');
  const session = (await user.add(id, 'only')).split('/').at(-1) as string;
  const run = user.start('group', 'run', id);
  const fake = await rig.nextFor(session.slice(4));
  await fake.prompt();
  await fake.init();
  const usage = `"usage":{"input_tokens":${'9'.repeat(308)}}`;
  const message = `{"id":"m","model":"claude-opus-4-8","content":[],${usage}}`;
  await fake.printRaw(`{"type":"assistant","message":${message}}\n`);
  expect((await run.finished).code).toBe(3);
  const shown = await user.ok('group', 'show', id);
  const advised = /^Next: claude-code-agent (group resume .*)$/m.exec(shown)?.[1]?.split(' ') as string[];
  const resumed = user.start(...advised);
  const refused = resumed.finished.then(({ stderr }) => Promise.reject(new Error(stderr)));
  const again = await Promise.race([rig.nextFor(session.slice(4)), refused]);
  refused.catch(() => undefined);
  await again.prompt();
  await again.init();
  await again.succeed(0.5);
  expect((await resumed.finished).code).toBe(0);
});
