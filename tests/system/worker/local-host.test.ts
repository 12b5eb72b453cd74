/**
 * Promises of an attempt on this machine: it prints, hears and ends as told, all that it started is ended with it, and
 * a later runner takes it over. The processes are real shells.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { attemptMark, tmpVariable } from '../../../src/claude/launch/environment.ts';
import type { ProcessIdentity } from '../../../src/core/event.ts';
import type { SessionId } from '../../../src/core/group.ts';
import type { Attempt } from '../../../src/core/session-state.ts';
import { groupPaths, sessionPaths } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import type { SpawnOptions } from '../../../src/system/world.ts';
import type { AttemptExit, AttemptSubject } from '../../../src/worker/host.ts';
import { LocalAttempt } from '../../../src/worker/local-attempt.ts';
import { groupId, sid } from '../../support/core-events.ts';
import { basePath, makeTempFolder, until, unwrap } from '../../support/system/rig.ts';

const world = createRealWorld();
const startedAt = '2026-01-02T03:04:05.000Z';
/** Says what is written to it until it is told to end. */
const echo = 'while read -r line; do [ "$line" = end ] && exit 3; echo "$line"; done';
const works = `echo '{"type":"assistant"}'; ${echo}`;

let temp: ReturnType<typeof makeTempFolder>;
let program: string;
let subject: AttemptSubject;
/** Killed after the test, whatever came of it. */
let born: ProcessIdentity[];
let [attempts, sessions] = [0, 0];

beforeEach(() => {
  temp = makeTempFolder();
  born = [];
  program = join(temp.path, 'claude');
  writeFileSync(program, '#!/bin/sh\nexec sh -c "$1"\n');
  chmodSync(program, 0o755);
  subject = newSubject();
});
afterEach(() => {
  for (const identity of born) world.processes.signal(identity, 'SIGKILL');
  temp.remove();
});

function newSubject(sessionId: SessionId = newSession()): AttemptSubject {
  const paths = sessionPaths(groupPaths(temp.path, groupId), sessionId);
  for (const folder of [paths.folder, paths.config, paths.tmp]) mkdirSync(folder, { recursive: true });
  attempts += 1;
  return { sessionId, attemptId: `${process.pid}-${world.random.uuid()}-${attempts}`, paths };
}

function newSession(): SessionId {
  sessions += 1;
  return sid(sessions);
}

/** The attempt as the next runner finds it. */
const attempt = (of = subject): LocalAttempt => new LocalAttempt(world, of);

const spawnOf = ({ attemptId, paths }: AttemptSubject, script: string): SpawnOptions => ({
  program,
  args: [script],
  cwd: temp.path,
  env: { PATH: basePath, [attemptMark]: attemptId, [tmpVariable]: paths.tmp },
  stdinFifo: paths.fifo,
  stdoutFile: paths.transcript,
  stderrFile: paths.stderr,
  syncsStdout: true,
  contained: attemptId,
});

async function start(script: string, of = subject): Promise<{ hosted: LocalAttempt; identity: ProcessIdentity }> {
  const hosted = attempt(of);
  const offset = existsSync(of.paths.transcript) ? readFileSync(of.paths.transcript).length : 0;
  const identity = unwrap(await hosted.start(spawnOf(of, script), offset));
  born.push(identity);
  return { hosted, identity };
}

const printed = ({ paths } = subject): string =>
  existsSync(paths.transcript) ? readFileSync(paths.transcript, 'utf8') : '';

/** Once it has printed that, with what follows in the line. */
const said = (text: string, of = subject): Promise<string> =>
  until(() => new RegExp(`^${RegExp.escape(text)}(.*)\\n`, 'm').exec(printed(of))?.[1] ?? null);

/** The process of which it printed the pid behind that. */
async function named(text: string): Promise<ProcessIdentity> {
  const identity = world.processes.identify(Number(await said(text)));
  if (identity === null) throw new Error(`the process "${text}" does not live`);
  born.push(identity);
  return identity;
}

const exitOf = (hosted: LocalAttempt): Promise<AttemptExit> => new Promise((resolve) => hosted.onExit(resolve));
const lives = (identity: ProcessIdentity): boolean => world.processes.isAlive(identity);
const isHalted = ({ pid }: ProcessIdentity): boolean =>
  Bun.spawnSync(['ps', '-o', 'stat=', '-p', String(pid)])
    .stdout.toString()
    .trim()
    .startsWith('T');

function attemptOf(of: AttemptSubject, process?: ProcessIdentity): Attempt {
  const known = process === undefined ? {} : { process };
  return { id: of.attemptId, number: 1, kind: 'start', offset: 0, startedAt, identified: false, ...known };
}

test('it prints behind what was there, hears what is written, and its end is told, to late askers too', async () => {
  writeFileSync(subject.paths.transcript, 'before\n');
  const { hosted } = await start(echo);
  const exited = exitOf(hosted);
  expect(hosted.listens).toBe(true);
  hosted.write('one\ntwo');
  hosted.write('end');
  expect(await exited).toEqual({ kind: 'exited', code: 3 });
  expect(printed()).toBe('before\none\ntwo\n');
  expect(await exitOf(hosted)).toEqual({ kind: 'exited', code: 3 });
});

test('all of it is halted and goes on, what its tools started too', async () => {
  const { hosted, identity } = await start(`sleep 1000 & echo "tool $!"; ${echo}`);
  const tool = await named('tool ');
  hosted.halt(true);
  await until(() => isHalted(identity) && isHalted(tool));
  hosted.halt(false);
  await until(() => !isHalted(identity) && !isHalted(tool));
  hosted.write('awake');
  await said('awake');
});

test('what is prepared for it is halted before there is a worker', async () => {
  const hosted = attempt();
  const env = { PATH: basePath, [attemptMark]: subject.attemptId };
  const child = Bun.spawn(['sleep', '1000'], { env, stdio: ['ignore', 'ignore', 'ignore'] });
  const setUp = await until(() => world.processes.identify(child.pid));
  await until(() => world.processes.findMarked(attemptMark, subject.attemptId).length > 0);
  born.push(setUp);
  hosted.halt(true);
  await until(() => isHalted(setUp));
  expect(await hosted.endNow()).toBe(true);
  expect(lives(setUp)).toBe(false);
});
test('what it prints is here to the byte: no text, lines that are very long, an end without a line end', async () => {
  const script = [
    "printf '\\377\\376\\000 no text \\303'",
    'head -c 3000000 /dev/zero | tr "\\0" x',
    'printf \'\\n{"a":"\\360\\237\\230\\200"}\\r\\nhalf\'',
  ].join('; ');
  const { hosted } = await start(script);
  expect(await exitOf(hosted)).toEqual({ kind: 'exited', code: 0 });
  const expected = Buffer.concat([
    Buffer.from([0o377, 0o376, 0]),
    Buffer.from(' no text '),
    Buffer.from([0o303]),
    Buffer.alloc(3_000_000, 'x'),
    Buffer.from('\n{"a":"😀"}\r\nhalf'),
  ]);
  expect(readFileSync(subject.paths.transcript).equals(expected)).toBe(true);
});

test('what is written comes to it in order and whole, however much that is', async () => {
  const { hosted } = await start('while read -r line; do [ "$line" = end ] && exit 0; printf %s "$line" | wc -c; done');
  const lengths = [1, 100_000, 2, 40_000, 3];
  for (const length of lengths) hosted.write('y'.repeat(length));
  hosted.write('end');
  expect(await exitOf(hosted)).toEqual({ kind: 'exited', code: 0 });
  expect(printed()).toBe(lengths.map((length) => `${length}\n`).join(''));
});

test('that a signal ended it is told', async () => {
  const { hosted } = await start('kill -9 $$');
  expect(await exitOf(hosted)).toEqual({ kind: 'signalled', signal: 'SIGKILL' });
});

test('who has let go of it is told nothing, and it works on', async () => {
  const { hosted, identity } = await start(works);
  await said('{');
  let told = 0;
  hosted.onExit(() => {
    told += 1;
  });
  hosted.leave();
  expect(lives(identity)).toBe(true);
  const next = attempt(subject);
  await next.takeOver(attemptOf(subject, identity));
  next.write('end');
  await exitOf(next);
  expect(told).toBe(0);
});
test('claude is told to end in the middle of its work, while its tools still live', async () => {
  const { hosted } = await start(
    `sleep 1000 & tool=$!; trap 'kill -0 $tool && echo "with its tool"; exit 0' TERM; echo "tool $tool"; wait`,
  );
  const tool = await named('tool ');
  hosted.terminate();
  expect(await exitOf(hosted)).toEqual({ kind: 'exited', code: 0 });
  await said('with its tool');
  expect(await hosted.reap()).toMatchObject({ leftover: false });
  expect(lives(tool)).toBe(false);
});

test('when it has ended, all that is left is ended, its files are tidied, and its last words are told', async () => {
  const { fifo, stderr, folder } = subject.paths;
  mkdirSync(folder, { recursive: true });
  writeFileSync(stderr, 'of an earlier attempt\n');
  const { hosted } = await start(`env -i sleep 1000 & echo "left $!"; ${echo}`);
  const left = await named('left ');
  hosted.look();
  hosted.write('end');
  await exitOf(hosted);
  expect(await hosted.reap()).toEqual({ leftover: false, limitsHit: [], stderrTail: '' });
  expect(lives(left)).toBe(false);
  expect(existsSync(fifo)).toBe(false);
  subject = newSubject();
  const again = await start('echo "first" >&2; echo "the reason" >&2; exit 1');
  await exitOf(again.hosted);
  expect((await again.hosted.reap()).stderrTail).toBe('first\nthe reason');
});

test('all of it can be ended at once, also by whoever knows no more than which attempt it is', async () => {
  for (const isKnown of [true, false]) {
    subject = newSubject();
    const { hosted, identity } = await start(`trap '' TERM; sleep 1000 & echo "tool $!"; ${echo}`);
    const tool = await named('tool ');
    if (!isKnown) hosted.leave();
    expect(await (isKnown ? hosted : attempt(subject)).endNow()).toBe(true);
    expect([lives(identity), lives(tool)]).toEqual([false, false]);
  }
});
test('one that works is followed: it is written to, and its end is told', async () => {
  for (const isLogged of [true, false]) {
    subject = newSubject();
    const { hosted, identity } = await start(works);
    await said('{');
    hosted.leave();
    const next = attempt(subject);
    const found = await next.takeOver(attemptOf(subject, isLogged ? identity : undefined));
    expect(found).toMatchObject({ do: 'adopt', process: { pid: identity.pid }, signalled: false });
    const exited = exitOf(next);
    next.write('are you there');
    await said('are you there');
    next.write('end');
    await exited;
    expect(await next.reap()).toMatchObject({ leftover: false });
  }
});

test('one that said nothing is ended, to be begun again', async () => {
  const { hosted, identity } = await start(`echo ready >&2; ${echo}`);
  await until(() => readFileSync(subject.paths.stderr, 'utf8').includes('ready'));
  hosted.leave();
  expect(await attempt(subject).takeOver(attemptOf(subject, identity))).toEqual({
    do: 'restart',
  });
  expect(lives(identity)).toBe(false);
});

test('one that speaks only while it is being ended has begun to work', async () => {
  const script = `trap 'echo "{\\"type\\":\\"assistant\\"}"; exit 0' TERM; echo ready >&2; sleep 1000 & wait`;
  const { hosted, identity } = await start(script);
  await until(() => readFileSync(subject.paths.stderr, 'utf8').includes('ready'));
  hosted.leave();
  const found = await attempt(subject).takeOver(attemptOf(subject, identity));
  expect(found).toEqual({ do: 'finalizeDead', signalled: true, wasInterrupted: true });
  expect(lives(identity)).toBe(false);
});

test('of one that is gone, what was seen of it last is ended', async () => {
  const { hosted, identity } = await start(`env -i sleep 1000 & echo '{"type":"assistant"}'; echo "tool $!"; ${echo}`);
  const tool = await named('tool ');
  hosted.look();
  hosted.leave();
  world.processes.signal(identity, 'SIGKILL');
  await until(() => !lives(identity));
  const next = attempt(subject);
  const found = await next.takeOver(attemptOf(subject, identity));
  expect(found).toEqual({ do: 'finalizeDead', signalled: false, wasInterrupted: false });
  expect(await next.reap()).toMatchObject({ leftover: false });
  expect(lives(tool)).toBe(false);
});

test('a program that is not there is told in a sentence, and nothing is left of it', async () => {
  rmSync(program);
  const hosted = attempt();
  const started = await hosted.start(spawnOf(subject, ''), 0);
  expect(started).toMatchObject({ ok: false, failure: { reason: 'claude-missing' } });
  hosted.leave();
  expect(world.processes.findMarked(attemptMark, subject.attemptId)).toEqual([]);
});
