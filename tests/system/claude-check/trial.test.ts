/**
 * Promises: a claude that keeps its promises passes the trial, and one that breaks one, and is the real one otherwise,
 * is caught and named before any prompt of a user is sent.
 */
import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { claims } from '../../../src/app/claude-check/claims.ts';
import { tryClaude } from '../../../src/app/claude-check/trial.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { claudeBinary } from '../../support/claude/rig.ts';
import { breakClaude, caller, newFolder, removeFolders, seenOf, wrongIn } from '../../support/claude-check/rig.ts';

setDefaultTimeout(180_000);
afterEach(removeFolders);

const broken: readonly (readonly [what: string, id: string, ...others: string[]])[] = [
  ['ignores deny rules', 'deny'],
  ['loses the conversation', 'resume'],
  ['does not answer an interrupt', 'interrupt'],
  ['leaves the command running', 'interrupt'],
  ['counts cost anew', 'cost'],
  ['ignores the budget', 'budget'],
  ['runs no hooks', 'hooks'],
  ['reads no CLAUDE.md', 'instructions'],
  ['hands no mark on', 'mark'],
  ['calls the session something else', 'start'],
  ['lets a project choose who pays', 'payer'],
  ['reads no stored login', 'login-store'],
  ['takes no token', 'login-token'],
  ['takes no key', 'login-key'],
  ['never compacts', 'compaction'],
  ['lets a project switch compaction off', 'compaction-kept'],
  ['runs no hook in a fork', 'fork'],
];

describe.skipIf(claudeBinary === undefined)('a trial', () => {
  test('of the pinned claude sees every promise hold', async () => {
    expect(wrongIn(await seenOf(claudeBinary ?? ''))).toEqual([]);
  });

  test('of the pinned claude through a program that changes nothing sees the same', async () => {
    expect(wrongIn(await seenOf(breakClaude('nothing')))).toEqual([]);
  });

  for (const [what, id] of broken) {
    test(`names a claude that ${what}`, async () => {
      const seen = await seenOf(breakClaude(what));
      expect(seen.find((one) => one.id === id)).toMatchObject({ verdict: 'broken' });
    });
  }
});

describe('a trial that cannot take place', () => {
  const attempt = (folder: string, program: string, stop = new AbortController().signal) =>
    tryClaude(createRealWorld(), { folder, program, caller, stop });

  test('says what kept it from starting a claude, and leaves nothing', async () => {
    const folder = join(newFolder(), 'trial');
    const tried = await attempt(folder, '/nowhere/claude');
    expect(tried).toMatchObject({ ok: false, failure: { reason: 'spawn-failed' } });
    expect(!tried.ok && tried.failure.message).toContain('/nowhere/claude');
    expect(existsSync(folder)).toBe(false);
  });

  test('says where nothing could be written', async () => {
    const file = join(newFolder(), 'file');
    writeFileSync(file, '');
    const tried = await attempt(join(file, 'trial'), process.execPath);
    expect(tried).toMatchObject({ ok: false, failure: { reason: 'write-failed' } });
  });

  test('has seen nothing when it is stopped at once, and starts nothing', async () => {
    const folder = join(newFolder(), 'trial');
    const tried = await attempt(folder, '/nowhere/claude', AbortSignal.abort());
    expect(tried.ok && tried.value.map(({ verdict }) => verdict)).toEqual(claims.map(() => 'untried'));
    expect(existsSync(folder)).toBe(false);
  });

  test('of a program that is no claude names what it did', async () => {
    const seen = await seenOf('/bin/false');
    expect(seen.find(({ id }) => id === 'start')).toMatchObject({ verdict: 'broken' });
    expect(seen.find(({ id }) => id === 'deny')).toMatchObject({ verdict: 'untried' });
  });
});
