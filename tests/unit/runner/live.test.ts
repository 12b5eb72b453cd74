/** Promises: the live view of a session shows the latest state of its stream, with outages and denied calls. */
import { expect, test } from 'bun:test';
import { parseLine } from '../../../src/claude/messages.ts';
import { emptyStream, foldMessage } from '../../../src/claude/stream.ts';
import { deniedSentence } from '../../../src/core/progress.ts';
import type { Worker } from '../../../src/worker/attempt/worker.ts';
import { liveSession, WorkerMetrics } from '../../../src/worker/attempt/worker.ts';

const retry = { type: 'system', subtype: 'api_retry', attempt: 5, max_retries: 6, error: 'server_error' };
const answer = { type: 'assistant', message: { id: 'm1', model: 'opus', content: [{ type: 'text', text: 'Hi.' }] } };

function shownAfter(...lines: readonly object[]): ReturnType<typeof liveSession> {
  const stream = emptyStream();
  for (const line of lines) foldMessage(stream, parseLine(JSON.stringify(line)));
  const worker: Pick<Worker, 'stream' | 'notes'> = { stream, notes: new WorkerMetrics() };
  return liveSession(worker as Worker, 1000);
}

test('live: an unavailable API is shown until it answers', () => {
  const troubled = shownAfter(answer, { ...retry, error_status: 503 });
  expect(troubled.retry).toEqual({ attempt: 5, attemptsMax: 6, error: 'server_error', errorStatus: 503 });
  expect(troubled.lastText).toBe('Hi.');
  expect(shownAfter({ ...retry, error_status: null }, answer)).not.toHaveProperty('retry');
});

test('live: denied tool calls are listed once, even if the end of the turn repeats them', () => {
  const denied = (id: string, tool: string) => ({ tool_name: tool, tool_use_id: id });
  const live = (id: string, tool: string) => ({ type: 'system', subtype: 'permission_denied', ...denied(id, tool) });
  const result = { type: 'result', subtype: 'success', is_error: false, num_turns: 1 };
  const names = ['Bash', 'Write', 'Bash'].map((tool, index) => [`t${index}`, tool] as const);
  const told = names.map(([id, tool]) => live(id, tool));
  expect(shownAfter(answer, ...told.slice(0, 1)).denied).toEqual({ calls: 1, tools: ['Bash'] });
  const atEnd = { ...result, permission_denials: names.map(([id, tool]) => denied(id, tool)) };
  const all = { calls: 3, tools: ['Bash', 'Write'] };
  expect(shownAfter(answer, ...told).denied).toEqual(all);
  expect(shownAfter(answer, ...told, atEnd).denied).toEqual(all);
  const bash = { type: 'tool_use', id: 't0', name: 'Bash', input: { command: 'rm -rf x' } };
  const call = { type: 'assistant', message: { id: 'm2', model: 'opus', content: [bash] } };
  const withTarget = { ...all, first: 'Bash rm -rf x' };
  expect(shownAfter(call, ...told).denied).toEqual(withTarget);
  const [first, ...others] = atEnd.permission_denials;
  const withInput = { ...atEnd, permission_denials: [{ ...first, tool_input: bash.input }, ...others] };
  for (const before of [[], told, [call, ...told, atEnd]]) {
    expect(shownAfter(...before, withInput).denied).toEqual(withTarget);
  }
  expect(deniedSentence(withTarget)).toBe('3 tool calls were denied: Bash, Write; first Bash rm -rf x.');
  expect(deniedSentence({ ...withTarget, calls: 1 })).toBe('1 tool call was denied: Bash rm -rf x.');
  // The end of the turn alone is enough.
  expect(shownAfter(answer, atEnd).denied).toEqual(all);
  expect(shownAfter(answer, result)).not.toHaveProperty('denied');
});
