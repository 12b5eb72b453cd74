/** Promises: a transcript reads as a conversation, and none of its lines can control the terminal. */
import { expect, test } from 'bun:test';
import { TranscriptRenderer } from '../../../src/cli/transcript/transcript.ts';
import { noUsage } from '../../../src/core/group.ts';
import { colourStyle, plainStyle } from '../../../src/view/format.ts';
import { wholeLine } from '../../../src/view/transcript/markdown.ts';

/** The output for one line of the transcript. */
const render = (renderer: TranscriptRenderer, line: string): string[] =>
  renderer.read(line).flatMap((entry) => renderer.show(entry).map(wholeLine));

function read(...lines: (object | string)[]): string[] {
  const renderer = new TranscriptRenderer(plainStyle);
  return lines.flatMap((line) => render(renderer, typeof line === 'string' ? line : JSON.stringify(line)));
}

const assistant = (...content: object[]) => ({ type: 'assistant', message: { id: 'm', content } });
const call = (id: string, name: string, input: object) => assistant({ type: 'tool_use', id, name, input });
const answer = (id: string, content: string, more: object = {}) => ({
  type: 'user',
  message: { content: [{ type: 'tool_result', tool_use_id: id, content, ...more }] },
});

test('a transcript shows text, tools, outcomes and the result', () => {
  const lines = read(
    { type: 'system', subtype: 'init', session_id: 's', model: 'opus', claude_code_version: '2.1', cwd: '/p' },
    assistant({ type: 'text', text: 'I will **look**.\nThen act.' }),
    call('t1', 'Bash', { command: 'npm test' }),
    answer('t1', 'one\ntwo'),
    // Another turn of the same process.
    { type: 'system', subtype: 'init', session_id: 's', model: 'opus', claude_code_version: '2.1', cwd: '/p' },
    call('t2', 'Read', { file_path: '/p/a.ts' }),
    answer('t2', 'no such file\nlook\nelsewhere\nplease', { is_error: true }),
    call('t3', 'Bash', { command: 'true' }),
    answer('t3', ''),
    { type: 'system', subtype: 'compact_boundary' },
    assistant({ type: 'text', text: 'Done.' }),
    { type: 'result', is_error: false, result: 'Done.', num_turns: 2, total_cost_usd: 0.25, duration_ms: 65_000 },
  );
  expect(lines).toEqual([
    '-- claude 2.1 opus',
    'I will look.',
    'Then act.',
    '> Bash npm test',
    '  = one  (+1 line)',
    '> Read a.ts',
    '  x no such file',
    '    look',
    '    elsewhere  (+1 line)',
    '> Bash true',
    '  = (no output)',
    '-- the conversation was compacted',
    '',
    'Done.',
    '-- done: $0.25, 0 in, 0 out, 2 turns, 1m 05s',
  ]);
});

test('a stopped turn is shown as interrupted, not failed', () => {
  const result = { type: 'result', subtype: 'error_during_execution', is_error: true, num_turns: 2 };
  const note = { errors: ['[ede_diagnostic] result_type=user last_content_type=n/a'] };
  const [stopped] = read({ ...result, ...note, terminal_reason: 'aborted_tools' });
  expect(stopped).toStartWith('-- interrupted: ');
  expect(read({ ...result, ...note }).map((line) => line.slice(0, 10))).toEqual(['! [ede_dia', '-- failed:']);
});

test('an outcome names its call if another call is between them', () => {
  const lines = read(
    call('a', 'Read', { file_path: 'a' }),
    call('b', 'Bash', { command: 'ls' }),
    answer('b', 'files'),
    answer('a', 'text'),
  );
  expect(lines).toEqual(['> Read a', '> Bash ls', '  = files', '  = Read a: text']);
});

test('edits are shown as coloured diffs, long ones truncated', () => {
  const long = Array.from({ length: 100 }, (_, index) => `+line ${index}`);
  const patch = [
    { oldStart: 7, newStart: 7, lines: [' same', '-old\u001b[31m', '+new\t\u202e'] },
    { oldStart: 90, newStart: 90, lines: long },
  ];
  const renderer = new TranscriptRenderer(colourStyle);
  const lines = [
    call('e', 'Edit', { file_path: 'a.ts', old_string: 'old', new_string: 'new' }),
    { ...answer('e', 'The file was updated.'), tool_use_result: { structuredPatch: patch } },
  ].flatMap((line) => render(renderer, JSON.stringify(line)));
  expect(lines.slice(0, 6)).toEqual([
    '\u001b[36m> \u001b[39mEdit a.ts',
    '\u001b[2m  = \u001b[22m+101 -1',
    '    \u001b[36m@@ -7 +7 @@\u001b[39m',
    '     same',
    '    \u001b[31m-old\\x1b[31m\u001b[39m',
    '    \u001b[32m+new    \\u202e\u001b[39m',
  ]);
  expect(lines).toHaveLength(6 + 1 + 57 + 1);
  expect(lines.at(-1)).toContain('… 43 more lines');
});

test('sub-agent lines are indented, and a failed result lists its errors and denied calls', () => {
  const lines = read(
    { ...assistant({ type: 'text', text: 'inside' }), parent_tool_use_id: 't' },
    {
      type: 'result',
      subtype: 'error_during_execution',
      is_error: true,
      errors: ['it broke'],
      permission_denials: [{ tool_name: 'Bash' }, { tool_name: 'Bash' }],
      num_turns: 1,
    },
  );
  expect(lines).toEqual(['    inside', '! it broke', '! denied: Bash', '-- failed: $0.00, 0 in, 0 out, 1 turn, 0s']);
});

test('attempts show why they began, how they ended and what they cost', () => {
  const renderer = new TranscriptRenderer(plainStyle, true);
  const at = '2026-01-04T10:00:00Z';
  const shown = [
    ...renderer.show({ kind: 'attempt-began', number: 1, why: 'start', at }),
    ...renderer.show({
      kind: 'attempt-ended',
      number: 1,
      outcome: 'failed',
      reason: 'no-result',
      message: 'It ended without a result. See its log.',
      usage: { ...noUsage, costUsd: 0.25, durationMs: 61_000, estimated: true },
    }),
    ...renderer.show({ kind: 'attempt-began', number: 2, why: 'retry', at, after: 'failed (no-result)' }),
  ].map(wholeLine);
  expect(shown.map((line) => line.replace(/\d\d:\d\d:\d\d$/, 'TIME'))).toEqual([
    '== attempt 1 started  TIME',
    '== attempt 1 failed (no-result): ~$0.25, 0 in, 0 out, 1m 01s',
    '   It ended without a result. See its log.',
    '',
    '== attempt 2 retried after: failed (no-result)  TIME',
  ]);
});

test('user messages stand out, complete and with their time', () => {
  const renderer = new TranscriptRenderer(plainStyle, true);
  const at = '2026-01-04T10:00:00Z';
  const shown = [
    ...renderer.show({ kind: 'said', depth: 0, text: 'I begin.' }),
    ...renderer.show({ kind: 'user-said', at, text: 'Wait:\n\tuse \u001b[2Jstaging.\n' }),
    ...renderer.show({ kind: 'user-said', at, text: 'Please.' }),
    ...renderer.show({ kind: 'said', depth: 0, text: 'I do.' }),
  ].map(wholeLine);
  expect(shown.map((line) => line.replace(/\d\d:\d\d:\d\d$/, 'TIME'))).toEqual([
    ...['I begin.', '', '« you  TIME', '« Wait:', '«     use staging.'],
    ...['« you  TIME', '« Please.', '', 'I do.'],
  ]);
});

test('escape codes, partial lines and invalid lines are harmless', () => {
  const evil = '\u001b]52;c;ZXZpbA==\u0007\u001b]0;t\u0007\u001b[2Jred\u009b31m\r\u202e\u200f\u061c';
  const lines = read(
    assistant({ type: 'text', text: evil }, { type: 'tool_use', id: 'x', name: evil, input: { command: evil } }),
    { type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: 'x', content: evil }] } },
    { type: 'user', parent_tool_use_id: 'x', message: { content: evil } },
    { type: 'result', is_error: true, result: evil, errors: [evil], permission_denials: [{ tool_name: evil }] },
    { type: 'system', subtype: 'informational', level: 'error', content: evil },
    { type: 'system', subtype: 'compact_boundary', compact_metadata: { trigger: evil } },
    { type: 'system', subtype: 'init', model: evil, claude_code_version: evil },
    `{"type":"assistant","mess${evil}`,
    '[]',
    '',
    '{"type":"unknown"}',
  );
  // biome-ignore lint/suspicious/noControlCharactersInRegex: this is what is looked for.
  expect(lines.join('\n')).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e]/);
  expect(lines.join('\n')).toContain('red');
});
