/**
 * Promises, in a real terminal: `a` attaches to the selected session in claude's own terminal and reports the outcome.
 * `e` opens its task in an editor and retries the session with the new one. Refusals are explained.
 */
import { afterEach, expect, test } from 'bun:test';
import { chmodSync, existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadGroup } from '../../../src/store/group-store.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { lives, nightUser, withNight } from '../../support/cli/night.ts';
import { answer, answerUsd, note, typed } from '../../support/cli/spoken.ts';
import { launcher } from '../../support/cli/user.ts';
import { until } from '../../support/cli.ts';
import { type Invocation, resultLine } from '../../support/fake-claude-rig.ts';
import { obeyInterrupt } from '../../support/rig-ground.ts';
import { key, TestTerminal } from '../../support/terminal.ts';

const world = createRealWorld();
let terminal: TestTerminal;
afterEach(() => terminal.close());
withNight();

function open(command: 'watch' | 'run', group: string, env: Readonly<Record<string, string>> = {}): TestTerminal {
  terminal = new TestTerminal([launcher, 'group', command, group], {
    cwd: nightUser.folder,
    env: { ...nightUser.env, TMPDIR: nightUser.folder, ...env },
    columns: 120,
  });
  return terminal;
}

function state(group: string) {
  const loaded = loadGroup(world, nightUser.data, group);
  if (!loaded.ok) throw new Error(loaded.failure.message);
  return loaded.value;
}
const record = (group: string) => state(group).sessions.get(nightUser.id('api'));

/** The claude that opened for the person. */
async function opened(group: string): Promise<Invocation> {
  const fake = await nightUser.next('api');
  await until(() => record(group)?.takenOver?.openedAt !== undefined);
  return fake;
}

/** Without line breaks. */
const says = (sentence: string) => terminal.until((text) => text.replaceAll(/\s+/g, ' ').includes(sentence));

const isBack = () => terminal.until((text) => terminal.isAlternate && text.includes('q quit') && terminal.tracksMouse);

for (const command of ['watch', 'run'] as const) {
  test(`a in group ${command}: the nightUser attaches, and the session continues with what was said`, async () => {
    const group = await nightUser.group('auth', { api: [] }, '--max-budget-usd', '2');
    const run = command === 'watch' ? nightUser.start('group', 'run', group, '--output', 'quiet') : null;
    open(command, group);
    const api = await nightUser.begun(group, 'api');
    note(nightUser, group, [typed('Do it.'), answer('old')]);
    await terminal.shows('● 1 running', '›');
    terminal.type('a');
    await terminal.shows('Attaching');
    await obeyInterrupt(api, 0.25);
    const fake = await opened(group);
    await fake.ignore('SIGINT');
    await fake.printRaw('what now?');
    await terminal.shows('You may spend $1.75', 'Leave with /exit', 'what now?');
    expect([terminal.isAlternate, terminal.isCooked, terminal.tracksMouse]).toEqual([false, true, false]);
    // Neither a key of the dashboard nor the end of the run.
    terminal.type(`${key.ctrlC}q\r`);
    expect(await fake.input().catch(() => 'text')).toBe('text');
    expect(lives(fake)).toBe(true);
    note(nightUser, group, [typed('paint it blue'), answer('new')]);
    fake.exit(0);
    await isBack();
    await terminal.shows('You spent ~$0.03. 001 api continues when a slot is free.');
    const next = await nightUser.next('api');
    expect(await next.prompt()).toContain('the user has taken part in this conversation');
    await next.init();
    await next.succeed(0.5);
    if (run === null) expect(await terminal.exited).toBe(0);
    else expect((await run.finished).code).toBe(0);
    expect(state(group).usage.costUsd).toBeCloseTo(0.75 + answerUsd, 6);
    expect(state(group)).toMatchObject({ status: 'completed', reservedUsd: 0 });
  }, 60_000);
}

test('a gives the reason where attaching is impossible, and the dashboard stays', async () => {
  const group = await nightUser.group('auth', { api: [] });
  open('watch', group);
  await terminal.shows('›○  001 api');
  terminal.type('a');
  await terminal.shows('It was never started, so there is no conversation.');
  expect(terminal.isAlternate).toBe(true);
  expect(nightUser.events(group).some(({ type }) => type === 'session_attaching')).toBe(false);
}, 60_000);

test('a signal that ends the dashboard ends claude with it, and the cost is counted', async () => {
  const group = await nightUser.group('auth', { api: [] });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const api = await nightUser.begun(group, 'api');
  note(nightUser, group, [typed('Do it.'), answer('old')]);
  open('watch', group);
  await terminal.shows('● 1 running');
  terminal.type('a');
  await obeyInterrupt(api, 0.25);
  const fake = await opened(group);
  note(nightUser, group, [typed('paint it blue'), answer('new')]);
  terminal.kill('SIGTERM');
  await terminal.exited;
  expect(lives(fake)).toBe(false);
  expect([terminal.isAlternate, terminal.isCooked, terminal.tracksMouse]).toEqual([false, true, false]);
  await (await nightUser.begun(group, 'api')).succeed(0.5);
  expect((await run.finished).code).toBe(0);
  expect(state(group).usage.costUsd).toBeCloseTo(0.75 + answerUsd, 6);
}, 60_000);

/** An editor that shows the file and waits for a line before it acts. */
function editor(does: string): Readonly<Record<string, string>> {
  const path = join(nightUser.folder, 'editor');
  const script = `#!/bin/sh\ntouch "$0.opened"; echo "editing"; cat "$1"; echo 'type a line'; read -r line\n${does}\n`;
  writeFileSync(path, script);
  chmodSync(path, 0o755);
  return { VISUAL: '', EDITOR: `'${path}'` };
}

/** A run in which `api` has failed and `web` is running. */
async function failedBesideWorking(): Promise<{ readonly group: string; readonly web: Invocation }> {
  const group = await nightUser.group('auth', { api: [], web: [] });
  nightUser.start('group', 'run', group, '--output', 'quiet');
  const [api, web] = await Promise.all([nightUser.begun(group, 'api'), nightUser.begun(group, 'web')]);
  await api.print(resultLine(0.25, { subtype: 'error_during_execution', is_error: true, errors: ['broken'] }));
  await nightUser.event(group, 'session_failed');
  return { group, web };
}

test('e opens the task in the editor and retries the session with the new task', async () => {
  const { group, web } = await failedBesideWorking();
  open('watch', group, editor(`echo "Paint it $line." > "$1"`));
  await terminal.shows('✗ 1 failed');
  terminal.type('n');
  await terminal.shows('›✗  001 api');
  terminal.type('e');
  await terminal.shows('editing', 'Do it.', 'type a line');
  expect(terminal.isAlternate).toBe(false);
  terminal.type('blue\r');
  await isBack();
  await terminal.shows('Changed 001 api: prompt. 001 api is retried when a slot is free.');
  const next = await nightUser.next('api');
  expect(await next.prompt()).toContain('Paint it blue.');
  const edited = nightUser.events(group).find(({ type }) => type === 'session_changed');
  expect(edited).toMatchObject({
    sessionId: nightUser.id('api'),
    session: { prompt: 'Paint it blue.' },
    changed: ['prompt'],
  });
  await next.init();
  await next.succeed(0.25);
  await web.succeed(0.25);
  await nightUser.event(group, 'group_completed');
  expect(readdirSync(nightUser.folder).filter((name) => name.startsWith('claude-code-agent-'))).toEqual([]);
}, 60_000);

test.each([
  ['that changes nothing', 'true', 'The task of 001 api was not changed.'],
  ['that fails', 'echo Else. > "$1"; exit 1', 'The editor failed; the task of 001 api was not changed.'],
  ['that empties the file', ': > "$1"', 'The task is blank. Describe what the session should do.'],
])(
  'an editor %s changes nothing',
  async (_, does, said) => {
    const { group } = await failedBesideWorking();
    open('watch', group, editor(does));
    await terminal.shows('✗ 1 failed');
    terminal.type('n');
    await terminal.shows('›✗  001 api');
    terminal.type('e');
    await terminal.shows('type a line');
    terminal.type('\r');
    await isBack();
    await says(said);
    expect(nightUser.events(group).some(({ type }) => type === 'session_changed')).toBe(false);
    expect(record(group)?.state.status).toBe('failed');
  },
  60_000,
);

test('e is refused for a running session with the reason, before any editor opens', async () => {
  const group = await nightUser.group('auth', { api: [] });
  nightUser.start('group', 'run', group, '--output', 'quiet');
  await nightUser.begun(group, 'api');
  open('watch', group, editor(''));
  await terminal.shows('● 1 running');
  terminal.type('e');
  await says('Session 001 api is running and cannot be edited. Pause it first:');
  expect(terminal.isAlternate).toBe(true);
  expect(existsSync(join(nightUser.folder, 'editor.opened'))).toBe(false);
}, 60_000);
