/**
 * Promises: the cost of a user's work in claude's own terminal is counted once, whichever of its files is read first.
 */
import { describe, expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openCostMeter } from '../../../src/claude/attached-cost.ts';
import { shippedPrices } from '../../../src/claude/pricing.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const startedAtMs = Date.parse('2026-11-27T10:00:00Z');
const folder = withTempFolder();

const model = 'claude-opus-4-8';
/** $0.01 at the price of this model. */
const usage = { input_tokens: 2_000, output_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };

function said(id: string, minute: number, more: object = {}): object {
  const message = { id, model, content: [{ type: 'text', text: 'Done.' }], usage };
  return { ...more, type: 'assistant', timestamp: `2026-11-27T10:0${minute}:00.000Z`, message };
}

function total(usd: number): object {
  const counted = { inputTokens: usd * 200_000, outputTokens: 0, cacheReadInputTokens: 0, cacheCreationInputTokens: 0 };
  return { type: 'cost-state', totalCostUSD: usd, modelUsage: { [model]: { ...counted, costUSD: usd } } };
}

function keep(id: string, ...lines: readonly object[]): void {
  const projects = join(folder.path, 'projects', '-p');
  mkdirSync(projects, { recursive: true });
  writeFileSync(join(projects, `${id}.jsonl`), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
}

function spent(): number {
  const meter = openCostMeter(createRealWorld(), folder.path, startedAtMs, shippedPrices);
  meter.look();
  return meter.conversed(startedAtMs + 600_000, 'm').usage.costUsd;
}

const branchOf = (sessionId: string) => ({ forkedFrom: { sessionId, messageUuid: 'u' } });

describe.each([
  ['a', 'before'],
  ['z', 'behind'],
])('a fork whose file sorts as %s, %s the original', (branch) => {
  test('messages before a fork count once when the original has its total', () => {
    keep('m', said('m1', 1), said('m2', 2), total(0.02));
    keep(branch, said('m1', 1, branchOf('m')), said('m2', 2, branchOf('m')), said('m3', 3));
    expect(spent()).toBeCloseTo(0.03, 9);
  });
  test('messages before a fork of a fork count once when no total was written', () => {
    keep('m', said('m1', 1));
    keep(branch, said('m1', 1, branchOf('m')), said('m2', 2));
    keep(`${branch}${branch}`, said('m1', 1, branchOf(branch)), said('m2', 2, branchOf(branch)), said('m3', 3));
    expect(spent()).toBeCloseTo(0.03, 9);
  });
  test('the total of a fork counts for the fork only', () => {
    keep('m', said('m1', 1), total(0.01));
    keep(branch, said('m1', 1, branchOf('m')), said('m2', 2), total(0.01));
    expect(spent()).toBeCloseTo(0.02, 9);
  });
});
