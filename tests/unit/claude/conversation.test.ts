/**
 * Promises: what claude's own files tell of a conversation: whether it can be gone on with, whether its end is there,
 * what its totals are, and who waits for an answer. Runs on the real file system.
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
    // It begins with more than is read at once, and the type lies across the border.
    late: `${'x'.repeat(64 * 1024 - said.length + 10)}${said}`,
  };
  const config = () => join(folder, 'cfg');
  beforeEach(() => {
    for (const [id, text] of Object.entries(transcripts)) write(`cfg/projects/-work-api/${id}.jsonl`, text);
  });
  const kept = () => world.files.list(join(config(), 'projects/-work-api')).sort();

  test('can be continued when a message is in their transcript', () => {
    const exists = (id: string) => conversationExists(world, config(), id);
    expect(['full', 'late', 'empty', 'title', 'none'].map(exists)).toEqual([true, true, false, false, false]);
    expect(conversationExists(world, join(folder, 'nothing'), 'full')).toBe(false);
  });

  test('are removed when they hold nothing, and only then', () => {
    for (const id of [...Object.keys(transcripts), 'none']) removeEmptyConversation(world, config(), id);
    expect(kept()).toEqual(['full.jsonl', 'late.jsonl']);
  });

  test('are cut off when the last message is missing', () => {
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

  test('are those of the last clean end before the process began', () => {
    write('cfg/projects/p/one.jsonl', [said(1), ended(0.1), said(5), said(6), ended(0.3), said(9), ''].join('\n'));
    expect([1, 3, 8, 10].map((minute) => before(minute, 'one'))).toEqual([undefined, 0.1, 0.3, 0.3]);
    expect(totalsBefore(world, join(folder, 'cfg'), ['one'], Date.parse(at(3)))?.models).toMatchObject({
      m: { costUsd: 0.1, tokens: { input: 7 } },
    });
  });

  test('are nothing where claude writes none, and unknown without a conversation', () => {
    write('cfg/projects/p/plain.jsonl', `${said(1)}\n`);
    expect([before(2, 'plain'), before(2, 'gone'), before(2)]).toEqual([0, undefined, undefined]);
  });

  test('are of the conversation that was gone on with, not of one that began later', () => {
    write('cfg/projects/p/old.jsonl', `${said(1)}\n${ended(0.2)}\n`);
    write('cfg/projects/p/cleared.jsonl', `${said(5)}\n${ended(0.9)}\n`);
    expect([before(3, 'old', 'cleared'), before(8, 'old', 'cleared')]).toEqual([0.2, 0.9]);
  });

  test('are not taken from what a tool printed or a power cut tore', () => {
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

  test('are those behind all that an attempt has said', () => {
    write('cfg/projects/p/one.jsonl', [said(1), ended(0.1), said(5), ended(0.3), '{}', ''].join('\n'));
    expect([1, 3, 5, 6].map((minute) => after(minute, 'one'))).toEqual([0.3, 0.3, 0.3, undefined]);
    write('cfg/projects/p/killed.jsonl', [said(1), ended(0.1), said(5), ended(0.3), said(6), ''].join('\n'));
    expect([1, 5].map((minute) => after(minute, 'killed'))).toEqual([undefined, undefined]);
    expect(after(1, 'gone')).toBeUndefined();
  });
});

test('totals at an end say that there are guesses, and of a model that nobody knows they are none of less', () => {
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

test('a conversation is blank when its files are there and empty', () => {
  const blank = (id: string) => isBlank(world, [join(folder, 'cfg')], id);
  write('cfg/projects/p/s.jsonl', '{"id":"m1"}\n');
  write('cfg/projects/p/blank.jsonl', '');
  write('cfg/projects/p/mixed.jsonl', '');
  write('cfg/projects/p/mixed/subagents/agent-a.jsonl', '{"id":"a1"}\n');
  expect(['s', 'blank', 'mixed', 'none'].map(blank)).toEqual([false, true, false, false]);
});
