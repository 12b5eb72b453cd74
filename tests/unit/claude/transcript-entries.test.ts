/**
 * Promises: transcript lines become the entries that people want to read, each once, and no line makes the reader
 * throw.
 */
import { expect, test } from 'bun:test';
import { TranscriptReader } from '../../../src/claude/transcript-entries.ts';
import type { TranscriptEntry } from '../../../src/core/transcript.ts';
import { fc } from '../../support/property.ts';

function read(...lines: object[]): TranscriptEntry[] {
  const reader = new TranscriptReader();
  return lines.flatMap((line) => reader.read(JSON.stringify(line)));
}

const assistant = (content: object, parent: string | null = null) => ({
  type: 'assistant',
  message: { id: 'm', content: [content] },
  parent_tool_use_id: parent,
});
const call = (id: string, name: string, input: object, parent: string | null = null) =>
  assistant({ type: 'tool_use', id, name, input }, parent);
const answer = (id: string, content: unknown, more: object = {}) => ({
  type: 'user',
  message: { content: [{ type: 'tool_result', tool_use_id: id, content }] },
  ...more,
});

test('an edit entry shows the change that claude reported', () => {
  const input = { file_path: '/p/a.ts', old_string: 'one\ntwo\nthree', new_string: 'one\n2\nthree' };
  const patch = [{ oldStart: 4, newStart: 5, lines: [' a', '-two', '+2'] }];
  const entries = read(
    { type: 'system', subtype: 'init', cwd: '/p' },
    call('1', 'Edit', input),
    answer('1', 'fine', { tool_use_result: { structuredPatch: patch, originalFile: 'long' } }),
    call('3', 'Write', { file_path: 'new.ts', content: 'x\ny\n' }),
    answer('3', 'created', { tool_use_result: { type: 'create', structuredPatch: [] } }),
    call('4', 'Edit', input),
    { type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: '4', is_error: true, content: 'no' }] } },
  );
  const edits = entries.flatMap((entry) => (entry.kind === 'outcome' ? [entry.edit] : []));
  expect(edits).toEqual([
    {
      path: 'a.ts',
      isNew: false,
      added: 1,
      removed: 1,
      hunks: [{ oldStart: 4, newStart: 5, lines: patch[0]?.lines ?? [] }],
    },
    { path: 'new.ts', isNew: true, added: 2, removed: 0, hunks: [{ lines: ['+x', '+y'] }] },
    undefined,
  ]);
});

test('sub-agent entries are nested as deep as the calls that run them', () => {
  const entries = read(
    call('a', 'Agent', { description: 'outer' }),
    { type: 'user', parent_tool_use_id: 'a', message: { content: [{ type: 'text', text: 'Look around.' }] } },
    call('b', 'Agent', { description: 'inner' }, 'a'),
    call('c', 'Bash', { command: 'ls' }, 'b'),
    answer('c', 'x', { parent_tool_use_id: 'b' }),
    answer('a', 'all'),
  );
  expect(entries.map((entry) => [entry.kind, 'depth' in entry ? entry.depth : null])).toEqual([
    ['call', 0],
    ['told', 1],
    ['call', 1],
    ['call', 2],
    ['outcome', 2],
    ['outcome', 0],
  ]);
});

test('protocol messages and repeated text have no entry', () => {
  const entries = read(
    { type: 'system', subtype: 'hook_started', hook_name: 'SessionStart:startup', hook_event: 'SessionStart' },
    {
      type: 'system',
      subtype: 'hook_response',
      hook_event: 'SessionStart',
      stdout: 'Claude Code session',
      outcome: 'success',
    },
    { type: 'control_response', response: { subtype: 'success', request_id: 'usage:1' } },
    { type: 'system', subtype: 'task_progress', task_id: 't', description: 'Running' },
    { type: 'rate_limit_event', rate_limit_info: { status: 'allowed' } },
    { type: 'user', isSynthetic: true, message: { content: 'This session is being continued' } },
    assistant({ type: 'text', text: 'Done.' }),
    { type: 'result', is_error: false, result: 'Done.\n', num_turns: 1 },
  );
  expect(entries.map(({ kind }) => kind)).toEqual(['said', 'result']);
  expect(entries[1]).not.toHaveProperty('text');
});

test('compactions, interruptions, limits and fallbacks have entries', () => {
  const entries = read(
    {
      type: 'system',
      subtype: 'compact_boundary',
      compact_metadata: { trigger: 'auto', pre_tokens: 9, post_tokens: 2 },
    },
    { type: 'user', message: { content: [{ type: 'text', text: '[Request interrupted by user for tool use]' }] } },
    { type: 'rate_limit_event', rate_limit_info: { status: 'rejected' } },
    { type: 'system', subtype: 'model_fallback', content: 'Switched to another model' },
    { type: 'system', subtype: 'api_retry', attempt: 2, error_status: 529, error: 'overloaded' },
  );
  expect(entries).toEqual([
    { kind: 'compaction', trigger: 'auto', tokensBefore: 9, tokensAfter: 2 },
    { kind: 'problem', text: 'interrupted' },
    { kind: 'problem', text: 'a usage limit was reached' },
    { kind: 'problem', text: 'Switched to another model' },
    { kind: 'problem', text: 'API error (529 overloaded), retry 2' },
  ]);
});

test('a new process does not continue open entries of an earlier one', () => {
  const reader = new TranscriptReader();
  reader.read(JSON.stringify(call('a', 'Bash', { command: 'ls' })));
  reader.restart();
  expect(reader.read(JSON.stringify(answer('a', 'late')))).toMatchObject([{ kind: 'outcome', tool: '', text: 'late' }]);
});

test('no line makes the transcript reader throw, whatever its field types', () => {
  const key = fc.constantFrom(
    ...['type', 'subtype', 'message', 'content', 'id', 'name', 'input', 'tool_use_id', 'edits', 'uuid', 'text'],
    ...['structuredPatch', 'lines', 'tool_use_result', 'parent_tool_use_id', 'compact_metadata', 'thinking'],
  );
  const word = fc.constantFrom(
    'assistant',
    'user',
    'system',
    'result',
    'init',
    'tool_use',
    'tool_result',
    'Edit',
    'Write',
  );
  const leaf = fc.oneof(word, fc.string(), fc.integer(), fc.constant(null));
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof({ depthSize: 'small' }, leaf, fc.array(tie('value')), fc.dictionary(key, tie('value'))),
  }));
  const line = fc.oneof(
    fc.string(),
    value.map((json) => JSON.stringify(json)),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 10 }), (lines) => {
      const reader = new TranscriptReader();
      for (const text of lines) for (const entry of reader.read(text)) expect(JSON.stringify(entry)).toBeString();
    }),
  );
});

test('a denied call has one entry, when it happens or with the result', () => {
  const now = { type: 'system', subtype: 'permission_denied', tool_name: 'Bash', tool_use_id: 'a', message: 'No.' };
  const later = [
    { tool_name: 'Bash', tool_use_id: 'a' },
    { tool_name: 'Write', tool_use_id: 'b' },
  ];
  const entries = read(now, { type: 'result', subtype: 'success', is_error: false, permission_denials: later });
  expect(entries).toMatchObject([
    { kind: 'problem', text: 'denied: Bash (No.)' },
    { kind: 'result', denied: ['Write'] },
  ]);
});
