/**
 * Promises, as a user meets them: the number of commands that run at once is a setting like the others and is kept.
 * Every view names the command that waits for a slot and what holds the slot. Invalid values are refused in one
 * sentence.
 */
import { expect, test } from 'bun:test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MergeUser } from '../../support/cli/merge-ground.ts';
import { nightUser, withNight } from '../../support/cli/night.ts';
import { until } from '../../support/cli.ts';

withNight();

interface Answer {
  readonly name: string;
  readonly reason?: string;
  readonly message?: string;
}
interface Shown {
  readonly config: { readonly commandsAtOnce?: number };
  readonly progress: { readonly sessions: readonly (Answer & { readonly slot?: { readonly atOnce: number } })[] };
}
const show = (group: string) => nightUser.json<Shown>('group', 'show', group);

test('every view names what waits for a command slot, and what holds it', async () => {
  const go = join(nightUser.folder, 'go');
  const began = join(nightUser.folder, 'began');
  const accept = ['--accept', `echo began >> '${began}'; until [ -e '${go}' ]; do sleep 0.02; done`];
  const group = await nightUser.group('auth', { api: accept, web: accept }, '--commands-at-once', '1');
  const run = nightUser.start('group', 'run', group, '--output', 'json');
  const [api, web] = [await nightUser.begun(group, 'api'), await nightUser.begun(group, 'web')];
  await api.succeed();
  await until(() => existsSync(began));
  await web.succeed();
  const answers = () => nightUser.json<{ sessions: readonly Answer[] }>('group', 'why', group);
  const waits = async () => (await answers()).sessions.find(({ name }) => name === 'web');
  while ((await waits())?.reason !== 'command-slot');
  const sentence =
    'Its acceptance command waits for a command slot (1 at once); now running: the acceptance command of api.';
  expect(await waits()).toMatchObject({ reason: 'command-slot', message: sentence });
  expect((await answers()).sessions.find(({ name }) => name === 'api')).toMatchObject({
    reason: 'accepting',
    message: expect.stringMatching(/^claude has finished; the acceptance command is running; see .*accept\.log\.$/),
  });
  expect(await nightUser.ok('group', 'why', group, 'web')).toMatch(
    new RegExp(`command-slot +${RegExp.escape(sentence)}`),
  );
  expect((await show(group)).progress.sessions.find(({ name }) => name === 'web')).toMatchObject({
    reason: 'command-slot',
    message: sentence,
    slot: { atOnce: 1 },
  });
  expect(await nightUser.ok('session', 'show', `${group}/web`)).toContain(sentence);
  writeFileSync(go, '');
  const { code, stdout } = await run.finished;
  expect(code).toBe(0);
  expect(stdout).toContain('"reason":"command-slot"');
  expect(readFileSync(began, 'utf8')).toBe('began\nbegan\n');
}, 60_000);

test('the checks of a merge run one after another across all repositories', async () => {
  const merging = new MergeUser();
  const notes = join(merging.folder, 'notes');
  const check = (name: string) => `echo +${name} >> '${notes}'; sleep 0.05; echo -${name} >> '${notes}'`;
  const sketches = ['a', 'b', 'c'].map((name) => ({
    name,
    repository: name === 'c' ? 'two' : 'one',
    tree: { [`${name}.txt`]: name },
    fields: { setup: check(`setup-${name}`), accept: check(name) },
  }));
  const group = merging.mergeGroup('shop', sketches);
  expect((await merging.run('group', 'merge', group.id)).code).toBe(0);
  const noted = readFileSync(notes, 'utf8').trim().split('\n');
  expect(noted.length).toBe(12);
  for (let at = 0; at < noted.length; at += 2) expect(noted[at + 1]).toBe(noted[at]?.replace('+', '-'));
  merging.remove();
}, 60_000);
