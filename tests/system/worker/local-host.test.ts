/**
 * Promises for an attempt on this machine: output, input and end are handled as specified, all its processes are ended
 * with it, and a later runner adopts it. The processes are real shells.
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
import { basePath, eventually, expectOk, makeTempFolder } from '../../support/system/rig.ts';

const world = createRealWorld();
const startedAt = '2026-01-02T03:04:05.000Z';
/** Echoes its input until it is asked to end. */
const echo = 'while read -r line; do [ "$line" = end ] && exit 3; echo "$line"; done';
const works = `echo '{"type":"assistant"}'; ${echo}`;

let temp: ReturnType<typeof makeTempFolder>;
let program: string;
let subject: AttemptSubject;
/** Killed after the test, whatever its outcome. */
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
  const identity = expectOk(await hosted.start(spawnOf(of, script), offset));
  born.push(identity);
  return { hosted, identity };
}

const printed = ({ paths } = subject): string =>
  existsSync(paths.transcript) ? readFileSync(paths.transcript, 'utf8') : '';

/** Resolves once it has printed that, with the rest of the line. */
const said = (text: string, of = subject): Promise<string> =>
  eventually(() => new RegExp(`^${RegExp.escape(text)}(.*)\\n`, 'm').exec(printed(of))?.[1] ?? null);

/** The process whose pid it printed after that word. */
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

test('an attempt appends its output, receives input, and reports its end also to late listeners', async () => {
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

test('freeze halts all processes of an attempt and thaw continues them', async () => {
  const { hosted, identity } = await start(`sleep 1000 & echo "tool $!"; ${echo}`);
  const tool = await named('tool ');
  hosted.halt(true);
  await eventually(() => isHalted(identity) && isHalted(tool));
  hosted.halt(false);
  await eventually(() => !isHalted(identity) && !isHalted(tool));
  hosted.write('awake');
  await said('awake');
});

test('preparation commands are halted before there is a worker', async () => {
  const hosted = attempt();
  const env = { PATH: basePath, [attemptMark]: subject.attemptId };
  const child = Bun.spawn(['sleep', '1000'], { env, stdio: ['ignore', 'ignore', 'ignore'] });
  const setUp = await eventually(() => world.processes.identify(child.pid));
  await eventually(() => world.processes.findMarked(attemptMark, subject.attemptId).length > 0);
  born.push(setUp);
  hosted.halt(true);
  await eventually(() => isHalted(setUp));
  expect(await hosted.endNow()).toBe(true);
  expect(lives(setUp)).toBe(false);
});
test('output arrives byte for byte: binary data, very long lines, a missing final newline', async () => {
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

test('input arrives complete and in order, whatever its size', async () => {
  const { hosted } = await start('while read -r line; do [ "$line" = end ] && exit 0; printf %s "$line" | wc -c; done');
  const lengths = [1, 100_000, 2, 40_000, 3];
  for (const length of lengths) hosted.write('y'.repeat(length));
  hosted.write('end');
  expect(await exitOf(hosted)).toEqual({ kind: 'exited', code: 0 });
  expect(printed()).toBe(lengths.map((length) => `${length}\n`).join(''));
});

test('an end by a signal is reported with the signal', async () => {
  const { hosted } = await start('kill -9 $$');
  expect(await exitOf(hosted)).toEqual({ kind: 'signalled', signal: 'SIGKILL' });
});

test('after detaching, the attempt continues and reports nothing', async () => {
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
test('claude is asked to exit in the middle of its work, while its tools still run', async () => {
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

test('at its end its processes are ended, its files removed, and its last output reported', async () => {
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

test('all processes of an attempt can be ended by its id alone', async () => {
  for (const isKnown of [true, false]) {
    subject = newSubject();
    const { hosted, identity } = await start(`trap '' TERM; sleep 1000 & echo "tool $!"; ${echo}`);
    const tool = await named('tool ');
    if (!isKnown) hosted.leave();
    expect(await (isKnown ? hosted : attempt(subject)).endNow()).toBe(true);
    expect([lives(identity), lives(tool)]).toEqual([false, false]);
  }
});
test('a running attempt is adopted: it receives input and reports its end', async () => {
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

test('an attempt without output is ended and can be started again', async () => {
  const { hosted, identity } = await start(`echo ready >&2; ${echo}`);
  await eventually(() => readFileSync(subject.paths.stderr, 'utf8').includes('ready'));
  hosted.leave();
  expect(await attempt(subject).takeOver(attemptOf(subject, identity))).toEqual({
    do: 'restart',
  });
  expect(lives(identity)).toBe(false);
});

test('an attempt that prints only while it is being ended counts as started', async () => {
  const script = `trap 'echo "{\\"type\\":\\"assistant\\"}"; exit 0' TERM; echo ready >&2; sleep 1000 & wait`;
  const { hosted, identity } = await start(script);
  await eventually(() => readFileSync(subject.paths.stderr, 'utf8').includes('ready'));
  hosted.leave();
  const found = await attempt(subject).takeOver(attemptOf(subject, identity));
  expect(found).toEqual({ do: 'finalizeDead', signalled: true, wasInterrupted: true });
  expect(lives(identity)).toBe(false);
});

test('the remaining processes of a dead attempt are ended by the recorded ids', async () => {
  const { hosted, identity } = await start(`env -i sleep 1000 & echo '{"type":"assistant"}'; echo "tool $!"; ${echo}`);
  const tool = await named('tool ');
  hosted.look();
  hosted.leave();
  world.processes.signal(identity, 'SIGKILL');
  await eventually(() => !lives(identity));
  const next = attempt(subject);
  const found = await next.takeOver(attemptOf(subject, identity));
  expect(found).toEqual({ do: 'finalizeDead', signalled: false, wasInterrupted: false });
  expect(await next.reap()).toMatchObject({ leftover: false });
  expect(lives(tool)).toBe(false);
});

test('a missing program gives one sentence and leaves nothing', async () => {
  rmSync(program);
  const hosted = attempt();
  const started = await hosted.start(spawnOf(subject, ''), 0);
  expect(started).toMatchObject({ ok: false, failure: { reason: 'claude-missing' } });
  hosted.leave();
  expect(world.processes.findMarked(attemptMark, subject.attemptId)).toEqual([]);
});
