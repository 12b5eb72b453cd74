/**
 * Promises: where claude tells our hook what going on with a conversation costs, it is kept in hooks.log, and it is
 * what we reckon ourselves before.
 */

import { expect, setDefaultTimeout, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { userMessage } from '../../../src/claude/control.ts';
import { estimateCost } from '../../../src/claude/pricing.ts';
import { contextTokens } from '../../../src/claude/transcript-entries.ts';
import { noTokens } from '../../../src/core/group.ts';
import { isolatedBunFlags } from '../../../src/system/own-program.ts';
import { claudeBinary, openRig, patienceMs, prepareSession, startClaude } from '../../support/claude/rig.ts';

setDefaultTimeout(patienceMs);

const hookMain = join(import.meta.dir, '../../../src/hook-main.ts');
const hook = { program: process.execPath, args: [...isolatedBunFlags, hookMain, 'task', 'session-start'] };
const model = 'claude-opus-4-8';

test.if(claudeBinary !== undefined)('claude and we reckon alike', async () => {
  const usage = { input: 100, cacheRead: 40_000, cacheCreation: 20_000, output: 500 };
  const rig = openRig([{ text: 'one', usage }, { text: 'two' }]);
  try {
    const session = prepareSession(rig, { hook });
    const turn = async (option: string): Promise<string> => {
      const args = session.args.map((word) => (word === '--session-id' ? option : word));
      const claude = startClaude(rig, [...args, `--model=${model}`], session.env);
      claude.send(userMessage('go'));
      await claude.until((m) => m.kind === 'result');
      await claude.end();
      return claude.text();
    };
    const tokens = contextTokens((await turn('--session-id')).split('\n')) ?? 0;
    // The output is not known when a message begins.
    expect([60_100, 60_600]).toContain(tokens - (tokens % 100));
    await turn('--resume');
    const log = readFileSync(session.paths.hooksLog, 'utf8').trim().split('\n');
    const told = log.map((line) => JSON.parse(line) as { source: string; resumed?: Record<string, unknown> });
    expect(told.map(({ source }) => source)).toEqual(['startup', 'resume']);
    expect(told[0]).not.toHaveProperty('resumed');
    const { resumed } = told[1] ?? {};
    if (resumed === undefined) return;
    const usd = estimateCost(model, { ...noTokens, cacheCreation: 60_600 });
    expect(resumed).toEqual({ contextTokens: 60_600, cacheWriteUsd: expect.closeTo(usd, 3), isCacheExpired: false });
  } finally {
    await rig.close();
  }
});
