/**
 * F1, F2: any JSON value in any field of any message of claude, of any file that is read and of any request ends in a
 * sentence at most: no exception, no group that is stuck, and every figure is finite.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkGroups } from '../../../src/app/check/groups.ts';
import { readProgress } from '../../../src/app/watch/live-view.ts';
import { parseLine } from '../../../src/claude/messages.ts';
import { judge } from '../../../src/claude/outcome.ts';
import { emptyStream, foldMessage, usageOf } from '../../../src/claude/stream.ts';
import { TranscriptReader } from '../../../src/claude/transcript-entries.ts';
import { draftOf } from '../../../src/core/draft.ts';
import type { EventBody } from '../../../src/core/event.ts';
import { noUsage } from '../../../src/core/group.ts';
import { groupProgress } from '../../../src/core/progress.ts';
import { reduce } from '../../../src/core/reduce.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { findRehearsal } from '../../../src/rehearsal/serve.ts';
import { eventsOf } from '../../../src/runner/fact-events.ts';
import { openLimitGate } from '../../../src/runner/limit-gate.ts';
import { answerRequests } from '../../../src/runner/request-answers.ts';
import { listGroups, loadGroup } from '../../../src/store/group-store.ts';
import { openGroupWriter } from '../../../src/store/group-writer.ts';
import { eventLines } from '../../../src/store/log-lines.ts';
import { readMergeJournal } from '../../../src/store/merge-journal.ts';
import { groupMeta, renderMeta, sessionMeta } from '../../../src/store/meta.ts';
import { groupPaths, sessionPaths } from '../../../src/store/paths.ts';
import { readProposals } from '../../../src/store/pull-requests.ts';
import type { RequestBody } from '../../../src/store/requests.ts';
import {
  attemptId,
  CoreLog,
  processIdentity,
  sessionDefinition,
  sid,
  usage as used,
} from '../../support/core-events.ts';
import { eventfulId, storeEventfulGroup } from '../../support/eventful-group.ts';
import { resultLine } from '../../support/fake-claude-rig.ts';
import { fc, numRunsOf } from '../../support/property.ts';
import { steppedWorld, temporaryFolder } from '../../support/store-world.ts';

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

function expectNothingNegative(amounts: unknown): void {
  JSON.stringify(amounts, (name, part: unknown) => {
    if (typeof part === 'number' && part < 0) throw new Error(`${name} is ${part}`);
    return part;
  });
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

let folder: ReturnType<typeof temporaryFolder>;
beforeAll(() => {
  folder = temporaryFolder();
});
afterAll(() => folder.remove());

function filesBelow(path: string): string[] {
  return readdirSync(path).flatMap((name) => {
    const inner = join(path, name);
    return statSync(inner).isDirectory() ? filesBelow(inner) : [inner];
  });
}

test('F1, F2: every field of every file of a group, and of a login', () => {
  const world = steppedWorld();
  const root = join(folder.path, 'files');
  storeEventfulGroup(root);
  const paths = groupPaths(root, eventfulId);
  const state = loadGroup(world, root, eventfulId);
  if (!state.ok) throw new Error(state.failure.message);
  const [first = ''] = state.value.sessions.keys();
  const session = sessionPaths(paths, first);
  mkdirSync(session.folder, { recursive: true });
  const gate = () => openLimitGate(world, { root, key: 'key', runId: 'run' });
  gate().close(world.clock.now() + 1_000, 'five_hour');
  gate().claimProbe();
  const put = (path: string, json: Json) => writeFileSync(path, JSON.stringify(json));
  put(join(paths.folder, 'merge.json'), {
    version: 1,
    step: 'started',
    moves: [],
    scratches: [{ path: '/x', repository: '/y' }],
  });
  put(paths.rehearsal, { ...processIdentity, url: 'http://127.0.0.1:1' });
  put(join(paths.folder, 'pull-requests.json'), [{ repository: '/x', url: 'https://x', branch: 'b' }]);
  put(paths.lock, { identity: { ...processIdentity }, runId: 'run' });
  put(paths.progress, groupProgress(state.value, new Map(), 1e12) as unknown as Json);
  const all = filesBelow(root).filter((path) => /\.(jsonl?|lock)$/.test(path));
  const kept = new Map(all.map((path) => [path, readFileSync(path, 'utf8')]));
  const which = fc.constantFrom(...all).chain((path) => {
    const texts = (kept.get(path) as string).split('\n').filter((line) => line !== '');
    const isLog = path.endsWith('.jsonl');
    const documents = isLog ? texts : [kept.get(path) as string];
    return fc.nat(documents.length - 1).chain((index) => {
      const sample = JSON.parse(documents[index] as string) as Json;
      return altered([sample]).map((text) => ({
        path,
        text: isLog ? `${texts.with(index, text).join('\n')}\n` : text,
      }));
    });
  });
  fc.assert(
    fc.property(which, ({ path, text }) => {
      // What an example before it has left is no part of this one.
      for (const [other, was] of kept) writeFileSync(other, was);
      writeFileSync(path, text);
      expectFinite(listGroups(world, root));
      expect(checkGroups(world, root).length).toBeGreaterThan(0);
      const loaded = loadGroup(world, root, eventfulId);
      if (loaded.ok) expectShowable(loaded.value);
      const { live, verdicts } = readProgress(world, paths.progress, state.value);
      expectFinite([...live, ...[...state.value.sessions.values()].map(verdicts)]);
      readMergeJournal(world, paths);
      readProposals(world, paths);
      findRehearsal(world, paths.folder);
      expectFinite([gate().read(), gate().isNear()]);
    }),
    { numRuns: numRunsOf(600) },
  );
});

const taken = { sessionId: sid(4), attachmentId: 'a' };
const opening = { sessionId: sid(5), attachmentId: 'b' };

/** A frozen group with a session that waits (1), one that a person has (4) or opens (5), a paused and a failed one. */
function askedGroup(): CoreLog {
  const log = new CoreLog({ maxBudgetUsd: 20 });
  for (const number of [1, 2, 4, 5, 6, 7, 8]) log.addSession(sessionDefinition(number));
  log.run();
  for (const number of [4, 5, 6, 7, 8]) log.start(sid(number), 'start', 1);
  for (const number of [4, 5, 6]) log.pause(sid(number), used(0.1));
  return log
    .fail(sid(7))
    .pause(sid(8), { ...used(0.1), heldUsd: 0.05 })
    .add(
      { type: 'session_attaching', ...taken, process: processIdentity },
      { type: 'session_attached', ...taken, reservedUsd: 1 },
      { type: 'session_attaching', ...opening, process: processIdentity },
      { type: 'group_frozen', until: '2100-01-01T00:00:00Z' },
    );
}

/** Of every kind one that this group can fulfil. */
function requestsIn(project: string): readonly Json[] {
  const { id: _, ...session } = {
    ...sessionDefinition(3, [1], { name: 'three', maxBudgetUsd: 1, retries: 1 }),
    projectPath: project,
  };
  const of = { sessionId: sid(1) };
  const left = {
    usage: { ...used(0.2, 7), models: { m: { tokens: noUsage.tokens, costUsd: 0.2 } } },
    spoken: true as const,
  };
  const bodies: { readonly [K in RequestBody['kind']]: Omit<Extract<RequestBody, { readonly kind: K }>, 'kind'> } = {
    'add-session': { session: { ...session, variables: { a: 'b' }, outputSchema: { type: 'object' } } },
    'edit-session': { ...of, changes: { name: 'x', maxBudgetUsd: 2, retries: 1, prompt: 'x', dependsOn: [sid(2)] } },
    'edit-group': {
      config: { maxConcurrentSessions: 2, warningThreshold: 0.5, maxBudgetUsd: 30 },
      group: { name: 'x', description: 'x' },
      add: [{ ...session, id: sid(9) }],
      edit: [{ ...of, changes: { name: 'x', maxBudgetUsd: 2 } }],
    },
    'allow-tools': { ...of, rules: ['Bash(ls)'] },
    'remove-session': of,
    pause: { mode: 'drain' },
    thaw: {},
    'pause-session': of,
    'resume-session': { sessionId: sid(6), maxBudgetUsd: 5 },
    'retry-session': { sessionId: sid(7), prompt: 'x' },
    say: { ...of, text: 'x' },
    'attach-session': { sessionId: sid(6), attachmentId: 'c', process: processIdentity },
    'open-attached': opening,
    'detach-session': { ...taken, ...left, claudeSessionIds: ['x'], cleared: true },
    'settle-cost': { sessionId: sid(8), isSpent: true },
    'raise-budget': { maxBudgetUsd: 50 },
  };
  const envelope = { id: 'r', runId: 'run', at: '2026-01-04T14:30:22Z' };
  return Object.entries(bodies).map(([kind, body]) => ({ ...envelope, kind, ...body })) as unknown as readonly Json[];
}

test('F1, F2: every field of every request', () => {
  const world = steppedWorld();
  const root = join(folder.path, 'requests');
  const project = join(folder.path, 'project');
  mkdirSync(project);
  const requests = requestsIn(project);
  const { events } = askedGroup();
  const { groupId } = events[0] as (typeof events)[number];
  const paths = groupPaths(root, groupId);
  const header = `${JSON.stringify({ type: 'header', version: 2, groupId })}\n`;
  mkdirSync(paths.requests, { recursive: true });
  writeFileSync(join(root, 'log'), header + eventLines(events));
  const answersTo = (text: string): EventBody[] => {
    copyFileSync(join(root, 'log'), paths.events);
    const file = join(paths.requests, 'r.json');
    writeFileSync(file, text);
    const writer = openGroupWriter(world, root, groupId, 'run');
    if (!writer.ok) throw new Error(writer.failure.message);
    const recorded: EventBody[] = [];
    try {
      answerRequests(world, writer.value, 'run', (bodies) => {
        recorded.push(...bodies);
        writer.value.record(bodies);
      });
    } finally {
      // What an example leaves is no part of the next one.
      writer.value.close();
      rmSync(file, { force: true });
    }
    const { state } = writer.value;
    expectShowable(state);
    for (const { definition, usage } of state.sessions.values()) {
      expect(definition.maxBudgetUsd ?? 1).toBeGreaterThan(0);
      expect(definition.name ?? 'x').toMatch(/^[A-Za-z0-9]/);
      expectNothingNegative(usage);
    }
    expectNothingNegative([state.usage, state.reservedUsd]);
    expect(loadGroup(world, root, groupId).ok).toBe(true);
    return recorded;
  };
  for (const request of requests) {
    expect([request, answersTo(JSON.stringify(request)).at(-1)]).toEqual([
      request,
      expect.objectContaining({ message: '' }),
    ]);
  }
  const detach =
    requests.map((request) => JSON.stringify(request)).find((text) => text.includes('detach-session')) ?? '';
  for (const figure of ['"costUsd":0.2', '"output":7', '"durationMs":0', '"turns":0', '"input":0']) {
    const taking = answersTo(detach.replace(figure, `${figure.split(':')[0]}:-1`));
    expect([figure, taking.map(({ type }) => type)]).toEqual([figure, ['request_answered']]);
  }
  fc.assert(
    fc.property(altered(requests), (text) => void answersTo(text)),
    { numRuns: numRunsOf(600) },
  );
});
