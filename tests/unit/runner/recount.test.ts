/**
 * Promises: what an earlier version counted twice, because claude's totals go on after a resume, is counted once when
 * the group is taken for writing, by one event; what was right stays as it is, and what nothing tells any more is
 * marked. The transcripts here are those of such attempts; that claude writes them so is in tests/claude.
 */
import { afterEach, expect, test } from 'bun:test';
import { appendFileSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseLine } from '../../../src/claude/messages.ts';
import { emptyStream, foldMessage, usageOf } from '../../../src/claude/stream.ts';
import type { EventBody, RunInfo } from '../../../src/core/event.ts';
import { correctUsage } from '../../../src/runner/recount.ts';
import { type GroupWriter, openGroupWriter } from '../../../src/store/group-writer.ts';
import { processIdentity } from '../../support/core-events.ts';
import { type GroupFixture, makeGroup } from '../../support/group-fixture.ts';
import { unwrap } from '../../support/store-world.ts';

const model = 'claude-opus-4-8';

let group: GroupFixture;
/** Milliseconds since 1970; stands still unless it is moved. */
let nowMs = Date.parse('2026-11-01T10:00:00Z');
afterEach(() => group.remove());

/** Figures of claude for so many messages of 1,000 tokens, $0.01 each. */
const figures = (messages: number) => ({
  total_cost_usd: messages / 100,
  modelUsage: { [model]: { inputTokens: messages * 1_000, outputTokens: 0, costUSD: messages / 100 } },
});

/** An earlier version's way through a group: every attempt is charged with all that claude named in it. */
class EarlierVersion {
  readonly #writer: GroupWriter;

  constructor(writer: GroupWriter, run: Partial<RunInfo> = {}) {
    this.#writer = writer;
    writer.record([{ type: 'group_started', run: { id: 'run-1', runner: processIdentity, ...run } }]);
  }

  /** One attempt: `named` messages in the total that claude names, `kept` of them in what it writes down at its end. */
  attempt(name: string, named: number, { kept = named, asks = false, cut = '' as '' | 'transcript' } = {}): void {
    const sessionId = group.id(name);
    const paths = group.session(name);
    const number = (this.#writer.state.sessions.get(sessionId)?.attempts ?? 0) + 1;
    mkdirSync(join(paths.config, 'projects', 'p'), { recursive: true });
    appendFileSync(paths.transcript, '');
    const offset = statSync(paths.transcript).size;
    const attemptId = `${name}-${number}`;
    const kind = number === 1 ? 'start' : 'resume';
    this.#writer.record([{ type: 'session_starting', sessionId, attempt: { id: attemptId, number, kind, offset } }]);
    this.#writer.record([
      { type: 'session_started', sessionId, attemptId, attempt: number, process: processIdentity },
      { type: 'session_identified', sessionId, attemptId, claudeSessionId: group.claudeId(name), model },
    ]);
    nowMs += 500;
    const begun = { type: 'user', message: { content: 'go' }, timestamp: new Date(nowMs).toISOString() };
    const lines = [
      ...(asks ? [this.#answer(name)] : []),
      { type: 'system', subtype: 'init', session_id: group.claudeId(name), model },
      { type: 'result', subtype: 'success', is_error: false, num_turns: 1, result: 'ok', ...figures(named) },
    ];
    appendFileSync(paths.transcript, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const { total_cost_usd: totalCostUSD, modelUsage } = figures(kept);
    const state = { type: 'cost-state', totalCostUSD, modelUsage };
    const conversation = join(paths.config, 'projects', 'p', `${group.claudeId(name)}.jsonl`);
    appendFileSync(
      conversation,
      [begun, ...(kept > 0 ? [state] : [])].map((line) => `${JSON.stringify(line)}\n`).join(''),
    );
    const stream = lines.map((line) => parseLine(JSON.stringify(line))).reduce(foldMessage, emptyStream());
    const usage = usageOf(stream, 1_000);
    const ended: EventBody = { type: 'session_paused', sessionId, attemptId, reason: 'user', message: '', usage };
    this.#writer.record([ended]);
    nowMs += 60_000;
    if (cut === 'transcript') rmSync(paths.transcript);
  }

  #answer(name: string): object {
    const { usage } = this.#writer.state.sessions.get(group.id(name)) ?? {};
    const session = {
      total_cost_usd: usage?.costUsd ?? 0,
      model_usage: figures((usage?.costUsd ?? 0) * 100).modelUsage,
    };
    return {
      type: 'control_response',
      response: { subtype: 'success', request_id: 'usage:base', response: { session } },
    };
  }
}

function open(): GroupWriter {
  const world = { ...group.world, clock: { ...group.world.clock, now: () => nowMs } };
  return unwrap(openGroupWriter(world, group.root, group.groupId, 'test'));
}

function correct(writer: GroupWriter) {
  const events = correctUsage(group.world, writer);
  const { state } = writer;
  const cost = (name: string) => state.sessions.get(group.id(name))?.usage.costUsd;
  return { events, cost, all: state.usage.costUsd, state };
}

test('three attempts of one conversation are charged with what each of them added', () => {
  group = makeGroup([{ name: 'one' }, { name: 'two' }]);
  const writer = open();
  const earlier = new EarlierVersion(writer);
  for (const named of [1, 3, 4]) earlier.attempt('one', named);
  earlier.attempt('two', 5);
  expect(writer.state.usage.costUsd).toBeCloseTo(0.13, 9);
  const { events, cost, all, state } = correct(writer);
  expect(events).toMatchObject([{ type: 'usage_corrected', unsure: [], sessions: [{ sessionId: group.id('one') }] }]);
  expect([cost('one'), cost('two'), all]).toEqual([0.04, 0.05, 0.09].map((usd) => expect.closeTo(usd, 9)));
  expect(state.usage).toMatchObject({ tokens: { input: 9_000 }, durationMs: 4_000, turns: 4 });
  expect(state.usage.models[model]?.costUsd).toBeCloseTo(0.09, 9);
  writer.close();
  expect(group.state().usage.costUsd).toBeCloseTo(0.09, 9);
  const again = open();
  expect(correctUsage(group.world, again)).toEqual([]);
  again.close();
});

test('after a hard kill the totals go on with those of the clean end before it', () => {
  group = makeGroup([{ name: 'one' }]);
  const writer = open();
  const earlier = new EarlierVersion(writer);
  earlier.attempt('one', 2);
  earlier.attempt('one', 5, { kept: 0 });
  earlier.attempt('one', 3);
  expect(correct(writer).cost('one')).toBeCloseTo(0.06, 9);
  writer.close();
});

test('a claude that begins with nothing each time was counted right', () => {
  group = makeGroup([{ name: 'one' }]);
  const writer = open();
  const earlier = new EarlierVersion(writer);
  for (const named of [1, 3, 4]) earlier.attempt('one', named, { kept: 0 });
  const { events, cost } = correct(writer);
  expect(events).toMatchObject([{ type: 'usage_corrected', sessions: [], unsure: [] }]);
  expect(cost('one')).toBeCloseTo(0.08, 9);
  writer.close();
});

test('what this version counted itself is not touched, nor written about', () => {
  group = makeGroup([{ name: 'one' }]);
  const writer = open();
  const earlier = new EarlierVersion(writer, { asksBase: true });
  earlier.attempt('one', 1);
  earlier.attempt('one', 4, { asks: true });
  expect(writer.state.usage.costUsd).toBeCloseTo(0.04, 9);
  expect(correctUsage(group.world, writer)).toEqual([]);
  writer.close();
});

test('without transcript or conversation the figure stays and is marked, where it may be wrong', () => {
  group = makeGroup([{ name: 'no-transcript' }, { name: 'no-conversation' }, { name: 'anew' }]);
  const writer = open();
  const earlier = new EarlierVersion(writer);
  earlier.attempt('no-transcript', 1);
  earlier.attempt('no-transcript', 3, { cut: 'transcript' });
  for (const named of [2, 4]) earlier.attempt('no-conversation', named);
  for (const named of [4, 2]) earlier.attempt('anew', named);
  for (const name of ['no-conversation', 'anew']) rmSync(group.session(name).config, { recursive: true });
  const { cost, state } = correct(writer);
  const marked = (name: string) => {
    const record = state.sessions.get(group.id(name));
    return [record?.usage.estimated === true, record?.warnings.map(({ code }) => code)];
  };
  expect(['no-transcript', 'no-conversation', 'anew'].map(cost)).toEqual(
    [0.04, 0.06, 0.06].map((usd) => expect.closeTo(usd, 9)),
  );
  expect(['no-transcript', 'no-conversation', 'anew'].map(marked)).toEqual([
    [true, ['estimated-cost']],
    [true, ['estimated-cost']],
    [false, []],
  ]);
  writer.close();
});
