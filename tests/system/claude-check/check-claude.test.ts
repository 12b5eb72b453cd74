/**
 * Promises: a correct claude passes every check with each kind of login. The real claude with one behaviour broken
 * fails the check of that behaviour before a user's prompt is sent.
 */
import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { attemptMark } from '../../../src/claude/launch/attempt-mark.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { claudeBinary } from '../../support/claude/rig.ts';
import { breakClaude, check, failedIn, newFolder, removeFolders, resultsOf } from '../../support/claude-check/rig.ts';
import { until } from '../../support/cli.ts';

setDefaultTimeout(180_000);
afterEach(removeFolders);

const broken = [
  ['takes no key', 'login'],
  ['loses the prompt', 'prompt'],
  ['runs no hooks', 'hooks'],
  ['ignores deny rules', 'deny'],
  ['does not answer an interrupt', 'interrupt'],
  ['leaves the command running', 'interrupt'],
  ['restarts its cost at zero', 'cost'],
  ['ignores the cap', 'cap'],
  ['loses the conversation', 'resume'],
] as const;

describe.skipIf(claudeBinary === undefined)('a check', () => {
  test.each(['api-key', 'oauth-token', 'store'] as const)('the pinned claude passes, %s', async (login) => {
    expect(failedIn(await resultsOf(claudeBinary ?? '', login))).toEqual([]);
  });

  test('the pinned claude passes behind a transparent wrapper program', async () => {
    expect(failedIn(await resultsOf(breakClaude('nothing')))).toEqual([]);
  });

  test.each(broken)('names a claude that %s', async (what, id) => {
    const results = await resultsOf(breakClaude(what));
    expect(results.find((one) => one.id === id)).toMatchObject({ verdict: 'broken' });
  });

  test.each([
    ['takes no token', 'oauth-token'],
    ['reads no stored login', 'store'],
  ] as const)('names a claude that %s', async (what, login) => {
    const [result] = await resultsOf(breakClaude(what), login);
    expect(result).toMatchObject({ id: 'login', verdict: 'broken' });
  });
});

test('a check ends processes and removes files of an earlier killed check', async () => {
  const [folder, mark] = [join(newFolder(), 'check'), crypto.randomUUID()];
  mkdirSync(folder);
  writeFileSync(join(folder, 'left'), '');
  const child = Bun.spawn(['sleep', '60'], { env: { ...process.env, [attemptMark]: mark } });
  // Its environment cannot be read until it is `sleep`.
  await until(() => createRealWorld().processes.findMarked(attemptMark, mark).length > 0);
  await check('/nowhere/claude', { folder, mark });
  await child.exited;
  expect([child.signalCode, existsSync(folder)]).toEqual(['SIGKILL', false]);
});

describe('a check that cannot run', () => {
  test('names the program that could not be started, and leaves nothing', async () => {
    const message = expect.stringContaining('/nowhere/claude');
    expect(await check('/nowhere/claude')).toMatchObject({ ok: false, failure: { reason: 'spawn-failed', message } });
  });

  test('names the folder that could not be written', async () => {
    const file = join(newFolder(), 'file');
    writeFileSync(file, '');
    const checked = await check(process.execPath, { folder: join(file, 'check') });
    expect(checked).toMatchObject({ ok: false, failure: { reason: 'write-failed' } });
  });

  test('starts nothing when it is stopped at once', async () => {
    const checked = await check('/nowhere/claude', { stop: AbortSignal.abort() });
    expect(checked).toMatchObject({ ok: false, failure: { message: 'The check was stopped.' } });
  });

  test('a program that is not claude fails the login check, and the others are unknown', async () => {
    const [login, ...others] = await resultsOf('/bin/false');
    expect(login).toMatchObject({ id: 'login', verdict: 'broken', detail: expect.stringContaining('exit code 1') });
    expect(new Set(others.map(({ verdict }) => verdict))).toEqual(new Set(['unknown']));
  });
});
