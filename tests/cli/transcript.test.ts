/** Promises: a transcript reads as a conversation; no line of it can control the terminal, however odd it is. */
import { expect, test } from 'bun:test';
import { TranscriptRenderer } from '../../src/cli/transcript.ts';
import { plainStyle } from '../../src/report/format.ts';

function read(...lines: (object | string)[]): string[] {
  const renderer = new TranscriptRenderer(plainStyle);
  return lines.flatMap((line) => renderer.render(typeof line === 'string' ? line : JSON.stringify(line)));
}

const assistant = (...content: object[]) => ({ type: 'assistant', message: { id: 'm', content } });

test('text, tools, outcomes and the result', () => {
  const lines = read(
    { type: 'system', subtype: 'init', session_id: 's', model: 'opus', claude_code_version: '2.1', cwd: '/p' },
    assistant({ type: 'text', text: 'I will look.\nThen act.' }),
    assistant({ type: 'tool_use', id: 't1', name: 'Bash', input: { command: 'npm test' } }),
    { type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: 't1', content: 'one\ntwo' }] } },
    assistant({ type: 'tool_use', id: 't2', name: 'Read', input: { file_path: '/p/a.ts' } }),
    { type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: 't2', is_error: true, content: 'no' }] } },
    { type: 'system', subtype: 'compact_boundary' },
    assistant({ type: 'text', text: 'Done.' }),
    { type: 'result', is_error: false, result: 'Done.', num_turns: 2, total_cost_usd: 0.25, duration_ms: 65_000 },
  );
  expect(lines).toEqual([
    '-- claude 2.1 opus',
    'I will look.',
    'Then act.',
    '> Bash npm test',
    '  = one …',
    '> Read a.ts',
    '  x no',
    '-- the conversation was compacted',
    'Done.',
    '-- done: $0.25, 0 in, 0 out, 2 turns, 1m 05s',
  ]);
});

test('what a sub-agent does is set off; a failed result tells its errors', () => {
  const lines = read(
    { ...assistant({ type: 'text', text: 'inside' }), parent_tool_use_id: 't' },
    { type: 'result', subtype: 'error_during_execution', is_error: true, errors: ['it broke'], num_turns: 1 },
  );
  expect(lines).toEqual(['    inside', '! it broke', '-- failed: $0.00, 0 in, 0 out, 1 turn, 0s']);
});

test('escape codes, half lines and rubbish are harmless', () => {
  const evil = '\u001b]0;t\u0007\u001b[2Jred\u009b31m\r\u202e';
  const lines = read(
    assistant({ type: 'text', text: evil }, { type: 'tool_use', id: 'x', name: evil, input: { command: evil } }),
    { type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: 'x', content: evil }] } },
    { type: 'result', is_error: true, result: evil, errors: [evil] },
    `{"type":"assistant","mess${evil}`,
    '[]',
    '',
    '{"type":"unknown"}',
  );
  // biome-ignore lint/suspicious/noControlCharactersInRegex: this is what is looked for.
  expect(lines.join('\n')).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
  expect(lines.join('\n')).toContain('red');
});
