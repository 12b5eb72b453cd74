/**
 * Promises: claude's own files show whether a conversation can be resumed, whether its end is complete, its totals,
 * and whether it waits for an answer. Uses the real file system.
 */
import { beforeEach, describe, expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  conversationExists,
  isBlank,
  isCutOff,
  readTotals,
  removeEmptyConversation,
  totalsAtEnd,
  totalsBefore,
} from '../../../src/claude/conversation.ts';
import { estimateCost } from '../../../src/claude/pricing.ts';
import { noTotals } from '../../../src/claude/spending.ts';
import { emptyStream, foldTotalAtEnd, usageOf } from '../../../src/claude/stream.ts';
import { defined } from '../../../src/core/defined.ts';
import { noTokens } from '../../../src/core/group.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const world = createRealWorld();
const temp = withTempFolder();
let folder = '';
beforeEach(() => {
  folder = temp.path;
});

function write(path: string, content = ''): string {
  const full = join(folder, path);
  mkdirSync(dirname(full), { recursive: true });
  writeFileSync(full, content);
  return full;
}

describe('conversations', () => {
  const title = '{"type":"custom-title","customTitle":"a"}\n';
  const said = '{"parentUuid":null,"message":{"id":"m1"},"type":"assistant"}\n';
  const transcripts = {
    full: title + said,
    empty: '',
    title,
    // The line is longer than one read, and the read boundary splits the type.
    late: `${'x'.repeat(64 * 1024 - said.length + 10)}${said}`,
  };
  const config = () => join(folder, 'cfg');
  beforeEach(() => {
    for (const [id, text] of Object.entries(transcripts)) write(`cfg/projects/-work-api/${id}.jsonl`, text);
  });
  const kept = () => world.files.list(join(config(), 'projects/-work-api')).sort();

  test('a conversation can be resumed when its transcript contains a message', () => {
    const exists = (id: string) => conversationExists(world, config(), id);
    expect(['full', 'late', 'empty', 'title', 'none'].map(exists)).toEqual([true, true, false, false, false]);
    expect(conversationExists(world, join(folder, 'nothing'), 'full')).toBe(false);
  });

  test('conversations without content are removed, and no others', () => {
    for (const id of [...Object.keys(transcripts), 'none']) removeEmptyConversation(world, config(), id);
    expect(kept()).toEqual(['full.jsonl', 'late.jsonl']);
  });

  test('a conversation is cut off when its last message is missing', () => {
    const cut = (claudeSessionId?: string, ...last: string[]) =>
      isCutOff(world, [config()], defined({ claudeSessionId, lastMessageId: last[0] }));
    expect([cut('full', 'm1'), cut('full', 'm2'), cut('title', 'm1'), cut('none', 'm1')]).toEqual([
      ...[false, true],
      ...[true, false],
    ]);
    expect([cut('full'), cut(undefined, 'm1'), cut()]).toEqual([false, false, false]);
  });
});

describe('totalsBefore', () => {
  const at = (minute: number) => `2026-11-24T10:${String(minute).padStart(2, '0')}:00.000Z`;
  const said = (minute: number) => JSON.stringify({ type: 'user', message: { content: 'x' }, timestamp: at(minute) });
  const ended = (usd: number) =>
    JSON.stringify({ type: 'cost-state', totalCostUSD: usd, modelUsage: { m: { inputTokens: 7, costUSD: usd } } });
  const before = (minute: number, ...ids: string[]) =>
    totalsBefore(world, join(folder, 'cfg'), ids, Date.parse(at(minute)))?.costUsd;

  test('totalsBefore returns the totals of the last clean end before the process started', () => {
    write('cfg/projects/p/one.jsonl', [said(1), ended(0.1), said(5), said(6), ended(0.3), said(9), ''].join('\n'));
    expect([1, 3, 8, 10].map((minute) => before(minute, 'one'))).toEqual([undefined, 0.1, 0.3, 0.3]);
    expect(totalsBefore(world, join(folder, 'cfg'), ['one'], Date.parse(at(3)))?.models).toMatchObject({
      m: { costUsd: 0.1, tokens: { input: 7 } },
    });
  });

  test('totalsBefore returns zero where claude writes none, and undefined without a conversation', () => {
    write('cfg/projects/p/plain.jsonl', `${said(1)}\n`);
    expect([before(2, 'plain'), before(2, 'gone'), before(2)]).toEqual([0, undefined, undefined]);
  });

  test('totalsBefore reads the resumed conversation, not one that started later', () => {
    write('cfg/projects/p/old.jsonl', `${said(1)}\n${ended(0.2)}\n`);
    write('cfg/projects/p/cleared.jsonl', `${said(5)}\n${ended(0.9)}\n`);
    expect([before(3, 'old', 'cleared'), before(8, 'old', 'cleared')]).toEqual([0.2, 0.9]);
  });

  test('totalsBefore ignores text printed by tools and lines torn by a power cut', () => {
    const printed = JSON.stringify({ type: 'user', message: { content: `${ended(9)} ${said(59)}` }, timestamp: at(2) });
    write('cfg/projects/p/odd.jsonl', [said(1), ended(0.1), printed, ended(0.5).slice(0, 60), '{', said(4)].join('\n'));
    expect(before(5, 'odd')).toBe(0.1);
  });
});

describe('totalsAtEnd', () => {
  const at = (minute: number) => `2026-11-24T10:${String(minute).padStart(2, '0')}:00.000Z`;
  const said = (minute: number) => JSON.stringify({ type: 'user', message: { content: 'x' }, timestamp: at(minute) });
  const ended = (usd: number) => JSON.stringify({ type: 'cost-state', totalCostUSD: usd, modelUsage: {} });
  const after = (minute: number, id: string) =>
    totalsAtEnd(world, join(folder, 'cfg'), id, Date.parse(at(minute)))?.costUsd;

  test('totalsAtEnd returns the totals written after everything that the attempt printed', () => {
    write('cfg/projects/p/one.jsonl', [said(1), ended(0.1), said(5), ended(0.3), '{}', ''].join('\n'));
    expect([1, 3, 5, 6].map((minute) => after(minute, 'one'))).toEqual([0.3, 0.3, 0.3, undefined]);
    write('cfg/projects/p/killed.jsonl', [said(1), ended(0.1), said(5), ended(0.3), said(6), ''].join('\n'));
    expect([1, 5].map((minute) => after(minute, 'killed'))).toEqual([undefined, undefined]);
    expect(after(1, 'gone')).toBeUndefined();
  });
});

test('totalsAtEnd marks guessed prices, and gives no lower bound for unknown models', () => {
  const modelUsage = { 'opus-99': { inputTokens: 100_000, costUSD: 0.4 }, 'claude-haiku-4-5': { costUSD: 0.1 } };
  const state = { type: 'cost-state', totalCostUSD: 0.5, modelUsage, hasUnknownModelCost: true };
  const totals = readTotals(JSON.stringify(state)) ?? noTotals;
  expect(totals.unpriced).toEqual(['opus-99']);
  expect(readTotals(JSON.stringify({ ...state, hasUnknownModelCost: false }))?.unpriced).toEqual([]);
  const stream = emptyStream();
  foldTotalAtEnd(stream, totals);
  const dearestUsd = estimateCost('opus-99', { ...noTokens, input: 100_000 });
  expect(dearestUsd).toBeGreaterThan(0.4);
  expect(usageOf(stream, 0)).toMatchObject({ costUsd: dearestUsd + 0.1, estimated: true });
});

test('a conversation is blank when its files exist and are empty', () => {
  const blank = (id: string) => isBlank(world, [join(folder, 'cfg')], id);
  write('cfg/projects/p/s.jsonl', '{"id":"m1"}\n');
  write('cfg/projects/p/blank.jsonl', '');
  write('cfg/projects/p/mixed.jsonl', '');
  write('cfg/projects/p/mixed/subagents/agent-a.jsonl', '{"id":"a1"}\n');
  expect(['s', 'blank', 'mixed', 'none'].map(blank)).toEqual([false, true, false, false]);
});
