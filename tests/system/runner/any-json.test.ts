/**
 * F1, F2: any JSON value in any field of any message of claude ends in a sentence at most: no exception, no group that
 * is stuck, and every figure is finite.
 */
import { expect, test } from 'bun:test';
import { parseLine } from '../../../src/claude/messages.ts';
import { judge } from '../../../src/claude/outcome.ts';
import { emptyStream, foldMessage, usageOf } from '../../../src/claude/stream.ts';
import { TranscriptReader } from '../../../src/claude/transcript-entries.ts';
import { draftOf } from '../../../src/core/draft.ts';
import { groupProgress } from '../../../src/core/progress.ts';
import { reduce } from '../../../src/core/reduce.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { eventsOf } from '../../../src/runner/fact-events.ts';
import { eventLines } from '../../../src/store/log-lines.ts';
import { groupMeta, renderMeta, sessionMeta } from '../../../src/store/meta.ts';
import { attemptId, CoreLog, sessionDefinition, sid } from '../../support/core-events.ts';
import { resultLine } from '../../support/fake-claude-rig.ts';
import { fc, numRunsOf } from '../../support/property.ts';

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

const names = [
  'constructor',
  '__proto__',
  'toString',
  'hasOwnProperty',
  '',
  '../../x',
  '--x',
  'a\n::error::b',
  '\0',
  '\ud800',
];
const numbers = [1e308, -1e308, Number.MAX_SAFE_INTEGER, -1, 0.5, 8.64e15, 8.64e15 + 1, 1e21, -0];
/** JSON's own way to infinity. */
const endless = '1e999';
const value = fc.oneof(
  fc.constantFrom<Json>(...names, ...numbers, null, true, [], {}, endless),
  fc.jsonValue() as fc.Arbitrary<Json>,
  fc.dictionary(fc.constantFrom(...names), fc.constantFrom<Json>(...numbers)) as fc.Arbitrary<Json>,
);

/** Every way into the value, itself included. */
function waysInto(whole: Json, way: readonly string[] = []): (readonly string[])[] {
  const inner = typeof whole === 'object' && whole !== null ? Object.entries(whole) : [];
  return [way, ...inner.flatMap(([key, part]) => waysInto(part, [...way, key]))];
}

function replaced(whole: Json, [key, ...rest]: readonly string[], by: Json): Json {
  if (key === undefined) return by;
  const copy = structuredClone(whole) as Record<string, Json>;
  copy[key] = replaced(copy[key] as Json, rest, by);
  return copy;
}

/** The same with another name for the field at the end of the way. */
function renamed(whole: Json, [key, ...rest]: readonly string[], by: string): Json {
  if (typeof whole !== 'object' || whole === null || Array.isArray(whole)) return whole;
  const entries = Object.entries(whole).map(([name, part]): [string, Json] => {
    if (name !== key) return [name, part];
    return rest.length === 0 ? [by, part] : [name, renamed(part, rest, by)];
  });
  return Object.fromEntries(entries);
}

/** The text of one of the samples with another value, or another name, somewhere. */
function altered(samples: readonly Json[]): fc.Arbitrary<string> {
  const change = fc.oneof(
    value.map((by) => (whole: Json, way: readonly string[]) => replaced(whole, way, by)),
    fc.constantFrom(...names).map((by) => (whole: Json, way: readonly string[]) => renamed(whole, way, by)),
  );
  return fc
    .constantFrom(...samples)
    .chain((sample) => fc.tuple(fc.constant(sample), fc.constantFrom(...waysInto(sample)), change))
    .map(([sample, way, by]) => JSON.stringify(by(sample, way)).replaceAll(`"${endless}"`, endless));
}

function expectFinite(shown: unknown): void {
  const text = JSON.stringify(shown, (_, part: unknown) => {
    if (typeof part === 'number' && !Number.isFinite(part)) throw new Error(`the figure ${part}`);
    return part;
  });
  expect(text).not.toContain('"costUsd":null');
}

function expectShowable(state: GroupState): void {
  expectFinite(groupProgress(state, new Map(), 1e12));
  expectFinite(JSON.parse(renderMeta(groupMeta(state))));
  for (const record of state.sessions.values()) expectFinite(JSON.parse(renderMeta(sessionMeta(record))));
}

const usage = { input_tokens: 10, output_tokens: 2, cache_read_input_tokens: 3, cache_creation_input_tokens: 4 };
const hook = { hook_id: 'h', hook_name: 'SessionStart:startup', hook_event: 'SessionStart' };
const said = { type: 'assistant', session_id: 'c', parent_tool_use_id: null };
const models = { 'claude-opus-4-8': { inputTokens: 1, outputTokens: 2, cacheReadInputTokens: 3, costUSD: 0.1 } };
const lines = [
  { type: 'system', subtype: 'init', session_id: 'c', cwd: '/p', model: 'claude-opus-4-8', tools: ['Bash'] },
  { type: 'system', subtype: 'hook_started', ...hook },
  { type: 'system', subtype: 'hook_response', ...hook, stdout: 'x', exit_code: 0, outcome: 'success' },
  {
    type: 'system',
    subtype: 'api_retry',
    attempt: 1,
    max_retries: 10,
    retry_delay_ms: 5,
    error_status: 529,
    error: 'x',
  },
  { type: 'system', subtype: 'compact_boundary', compact_metadata: { trigger: 'auto', pre_tokens: 5, post_tokens: 2 } },
  { type: 'system', subtype: 'task_updated', task_id: 't', patch: { status: 'completed' } },
  { ...said, message: { id: 'm', model: 'claude-opus-4-8', usage, content: [{ type: 'text', text: 'x' }] } },
  {
    ...said,
    message: { id: 'n', content: [{ type: 'tool_use', id: 't', name: 'Edit', input: { file_path: '/p/a' } }] },
  },
  {
    type: 'user',
    message: {
      content: [{ type: 'tool_result', tool_use_id: 't', is_error: false, content: [{ type: 'text', text: 'x' }] }],
    },
    tool_use_result: {
      structuredPatch: [{ oldStart: 1, newStart: 1, lines: ['+a'] }],
      newTodos: [{ content: 'x', status: 'pending' }],
    },
  },
  {
    type: 'rate_limit_event',
    rate_limit_info: { status: 'rejected', resetsAt: 1e9, rateLimitType: 'five_hour', utilization: 1 },
  },
  {
    type: 'control_response',
    response: {
      request_id: 'usage:base',
      subtype: 'success',
      response: { session: { total_cost_usd: 0.1, model_usage: models } },
    },
  },
  {
    ...resultLine(0.1),
    modelUsage: models,
    permission_denials: [{ tool_name: 'Bash', tool_use_id: 't' }],
    structured_output: { a: 1 },
    errors: ['x'],
    origin: { kind: 'x' },
  },
] as readonly Json[];

test('F1, F2: every field of every message of claude', () => {
  const log = new CoreLog()
    .addSession(sessionDefinition(1, [], { outputSchema: {} }))
    .run()
    .start(sid(1));
  const of = { sessionId: sid(1), attemptId: attemptId(sid(1), 1) };
  const context = { adopted: new Map(), nowMs: 1e12, jitter: 0.5, isUnserved: () => true };
  const stream = fc.array(fc.oneof(altered(lines), fc.constantFrom(...lines.map((line) => JSON.stringify(line)))), {
    minLength: 1,
    maxLength: 8,
  });
  fc.assert(
    fc.property(stream, (printed) => {
      const reader = new TranscriptReader();
      const s = emptyStream();
      for (const line of [JSON.stringify(lines[0]), ...printed]) {
        foldMessage(s, parseLine(line));
        expectFinite(usageOf(s, 5));
        expectFinite(reader.read(line));
      }
      const exit = { kind: 'exited', code: 0 } as const;
      const given = { stream: s, exit, endedByUs: true, found: 'watched', expectHook: true } as const;
      const outcome = judge({ ...given, expectStructured: true });
      const fact = { kind: 'ended', ...of, outcome, usage: usageOf(s, 5), progressed: true, unread: [] } as const;
      const state = draftOf(log.state);
      const bodies = eventsOf(state, fact, context);
      expect(bodies.length).toBeGreaterThan(0);
      const events = bodies.map((body, index) => ({ ...log.next(body), seq: state.lastSeq + 1 + index }));
      expect(eventLines(events)).not.toContain('null,"tokens"');
      for (const event of events) reduce(state, event);
      expect(state.sessions.get(sid(1))?.state.status).not.toBe('running');
      expectShowable(state);
    }),
    { numRuns: numRunsOf(2_000) },
  );
});
