/**
 * Promises: `session logs` prints a transcript readably, raw and as JSON, from start to end and live over several
 * attempts. Partial lines, large files and hostile content do no harm.
 */

import { expect, test } from 'bun:test';
import { appendFileSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { openGroupWriter } from '../../../src/store/group-writer.ts';
import { Ground, type SessionPlan, story } from '../../support/cli/bad-input/ground.ts';
import { lives, nightUser, withNight } from '../../support/cli/night.ts';
import { launcher } from '../../support/cli/user.ts';
import { until } from '../../support/cli.ts';
import { obeyInterrupt } from '../../support/rig-ground.ts';

withNight();

const said = (text: string) => ({ type: 'assistant', message: { id: text, content: [{ type: 'text', text }] } });
const transcriptOf = (group: string, name: string) =>
  join(nightUser.data, 'session-groups', group, 'sessions', nightUser.id(name), 'transcript.jsonl');
const withoutTimes = (text: string) => text.replace(/\d\d:\d\d:\d\d/g, 'TIME').replace(/, \d+s$/gm, ', TIME');

/** A group whose session `api` completed after saying `hello`. */
async function completed(): Promise<string> {
  const group = await nightUser.group('auth', { api: [] });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const api = await nightUser.begun(group, 'api');
  await api.print(said('hello'));
  await api.succeed(0.25, 'hello');
  await run.finished;
  return group;
}

test('--follow continues over attempts and ends with the session', async () => {
  const group = await nightUser.group('auth', { api: ['--retries', '0'], web: [] });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const [first, web] = [await nightUser.begun(group, 'api'), await nightUser.begun(group, 'web')];
  const follow = nightUser.start('session', 'logs', `${group}/api`, '--follow');
  await first.print(said('before the pause'));
  // The session fails and is retried while the group continues.
  first.die('SIGKILL');
  await nightUser.event(group, 'session_failed');
  expect(await follow.finished).toMatchObject({ code: 0, stderr: '' });
  const pause = nightUser.start('group', 'pause', group);
  await obeyInterrupt(web, 0.01);
  await pause.finished;
  await run.finished;
  const resume = nightUser.start('group', 'resume', group, '--output', 'quiet');
  const [second, again] = [await nightUser.begun(group, 'api'), await nightUser.begun(group, 'web')];
  const followed = nightUser.start('session', 'logs', `${group}/api`, '--follow');
  await second.print(said('after it'));
  await second.succeed(0.25, 'after it');
  const shown = await followed.finished;
  expect(lives(again)).toBe(true);
  await again.succeed(0.01);
  await resume.finished;
  expect(shown).toMatchObject({ code: 0, stderr: '' });
  const lines = withoutTimes(shown.stdout).split('\n');
  expect(lines.filter((line) => !line.startsWith('   '))).toEqual([
    '== attempt 1 started  TIME',
    '-- claude 2.1.332 claude-opus-4-8',
    'before the pause',
    expect.stringMatching(/^== attempt 1 failed \(signalled\): /),
    '',
    '== attempt 2 retried after: failed (signalled)  TIME',
    '-- claude 2.1.332 claude-opus-4-8',
    'after it',
    '-- done: 1 turn, TIME',
    '== attempt 2 completed: $0.25, 1.0k in, 200 out, TIME',
    '',
  ]);
  expect((await nightUser.run('session', 'logs', `${group}/api`)).stdout).toBe(shown.stdout);
}, 60_000);

/** A stored group as if this process ran it; its session `api` is running. */
function held(ground: Ground, ...more: SessionPlan[]) {
  const group = ground.make('auth', [{ name: 'api' }, ...more], [story.started, story.intended, story.spawned]);
  const opened = openGroupWriter(ground.world, ground.data, group, 'the-runner');
  if (!opened.ok) throw new Error(opened.failure.message);
  return { group, writer: opened.value };
}

/** `session logs --follow` while it prints: `seen` resolves once the text is there. */
function following(ground: Ground, reference: string) {
  const command = [launcher, 'session', 'logs', reference, '--follow'];
  const child = Bun.spawn(command, { env: ground.env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' });
  const printed = { stdout: '', stderr: '' };
  const read = async (name: keyof typeof printed) => {
    for await (const part of child[name].pipeThrough(new TextDecoderStream())) printed[name] += part;
  };
  const ended = Promise.all([read('stdout'), read('stderr'), child.exited]);
  return {
    ended: ended.then(([, , code]) => ({ code, ...printed })),
    seen: (text: string) => until(() => Object.values(printed).join('').includes(text) || child.exitCode !== null),
  };
}

test('--follow names the next step when no runner is left, and fails when the group is gone', async () => {
  const ground = new Ground();
  try {
    const { group, writer } = held(ground, { name: 'web', needs: [1] });
    const [left, gone] = [following(ground, `${group}/web`), following(ground, `${group}/api`)];
    await gone.seen('attempt 1 started');
    writer.close();
    expect(await left.ended).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(
        'Session 002 web is pending, and its group has no runner.\n' +
          `The group was interrupted. Next: claude-code-agent group run ${group}`,
      ),
    });
    // Its worker is on another host and counts as gone with its runner.
    expect((await gone.ended).stderr).toContain('is running, and its group has no runner.');
    const created = ground.make('later', [{ name: 'one' }]);
    const waiting = following(ground, `${created}/one`);
    await waiting.seen('Waiting for');
    rmSync(ground.paths(created).folder, { recursive: true });
    expect(await waiting.ended).toMatchObject({ code: 1, stderr: expect.stringContaining('its group was deleted') });
  } finally {
    ground.remove();
  }
}, 60_000);

test('--raw is byte for byte, with --grep the matching lines', async () => {
  const group = await completed();
  const path = transcriptOf(group, 'api');
  // Invalid UTF-8 and a partial line at the end.
  appendFileSync(path, Buffer.from([0x7b, 0xff, 0xfe, 0x0a]));
  appendFileSync(path, '{"type":"hal');
  const child = Bun.spawn([launcher, 'session', 'logs', `${group}/api`, '--raw'], {
    env: nightUser.env,
    stdout: 'pipe',
  });
  expect(Buffer.from(await new Response(child.stdout).arrayBuffer())).toEqual(readFileSync(path));
  const grep = Bun.spawn([launcher, 'session', 'logs', `${group}/api`, '--raw', '--grep', '^\\{\\W+$|hal$'], {
    env: nightUser.env,
    stdout: 'pipe',
  });
  const expected = Buffer.concat([Buffer.from([0x7b, 0xff, 0xfe, 0x0a]), Buffer.from('{"type":"hal')]);
  expect(Buffer.from(await new Response(grep.stdout).arrayBuffer())).toEqual(expected);
}, 60_000);

test('readable and JSON forms have the same content, and partial or hostile lines harm neither', async () => {
  const group = await completed();
  const evil = '\u001b]52;c;ZXZpbA==\u0007\u009b2J\u202e';
  appendFileSync(
    transcriptOf(group, 'api'),
    `${JSON.stringify(said(`evil ${evil}`))}\n${evil} no json\n{"half":"${evil}`,
  );
  const text = await nightUser.ok('session', 'logs', `${group}/api`);
  const json = await nightUser.run('session', 'logs', `${group}/api`, '--json');
  for (const shown of [text, json.stdout]) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: this is what is looked for.
    expect(shown).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
  }
  expect(text).toContain('! unreadable line: no json');
  expect(text).toContain('! the last line was cut off: {"half":"');
  const { entries, sessionId } = JSON.parse(json.stdout) as { entries: { kind: string }[]; sessionId: string };
  expect(sessionId).toBe(nightUser.id('api'));
  expect(entries.map(({ kind }) => kind)).toEqual([
    'attempt-began',
    'claude',
    'said',
    'result',
    'said',
    'unreadable',
    'unreadable',
    'attempt-ended',
  ]);
  const some = await nightUser.json<{ entries: object[] }>('session', 'logs', `${group}/api`, '--grep', 'hello');
  expect(some.entries).toEqual([{ kind: 'said', depth: 0, text: 'hello' }]);
  expect(await nightUser.ok('session', 'logs', `${group}/api`, '--grep', '^hel+o$')).toBe('hello');
}, 60_000);
