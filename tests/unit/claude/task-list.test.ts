/** Promises: tasks still open on claude's list when it reports success cause a warning, and nothing else does. */
import { expect, test } from 'bun:test';
import { parseLine } from '../../../src/claude/messages.ts';
import { attemptOutcome } from '../../../src/claude/outcome.ts';
import { emptyStream, foldMessage, taskCounts } from '../../../src/claude/stream.ts';

const tool = (value: unknown, more: object = {}) => ({
  type: 'user',
  message: { content: [{ type: 'tool_result', tool_use_id: 't', content: 'ok' }] },
  tool_use_result: value,
  ...more,
});
const created = (id: string, subject: string) => tool({ task: { id, subject } });
const moved = (taskId: string, to: string) => tool({ success: true, taskId, statusChange: { from: 'pending', to } });
const done = { type: 'result', subtype: 'success', is_error: false, num_turns: 2, total_cost_usd: 0, result: 'Done.' };

/** The warning about the list after these lines and a result, or undefined. */
function warningAfter(lines: readonly object[], result: object = done): string | undefined {
  const stream = [...lines, result].map((line) => parseLine(JSON.stringify(line))).reduce(foldMessage, emptyStream());
  const exit = { kind: 'exited', code: 0 } as const;
  const judged = {
    stream,
    exit,
    endedByUs: true,
    found: 'watched',
    expectHook: false,
    expectStructured: false,
  } as const;
  return attemptOutcome({ ...judged, stderrTail: '' }).warnings.find(({ code }) => code === 'open-tasks')?.message;
}

test('a task that was never completed is named', () => {
  expect(warningAfter([created('1', 'Write tests'), created('2', 'Fix it'), moved('2', 'completed')])).toBe(
    '1 task of its list was not completed: Write tests.',
  );
  expect(warningAfter([created('1', 'A'), created('2', 'B'), moved('2', 'in_progress')])).toBe(
    '2 tasks of its list were not completed: A; B.',
  );
});

test('a completed or abandoned task list causes no warning', () => {
  expect(warningAfter([created('1', 'A'), moved('1', 'completed')])).toBeUndefined();
  expect(warningAfter([created('1', 'A'), moved('1', 'deleted')])).toBeUndefined();
  expect(warningAfter([])).toBeUndefined();
});

test('a complete list replaces the known tasks', () => {
  const tasks = [{ id: '7', subject: 'C', status: 'in_progress', blockedBy: [] }];
  expect(warningAfter([created('1', 'A'), tool({ tasks })])).toBe('1 task of its list was not completed: C.');
});

test('a sub-agent’s list, a failed session and results of other tools cause no task warning', () => {
  expect(warningAfter([tool({ task: { id: '1', subject: 'A' } }, { parent_tool_use_id: 'x' })])).toBeUndefined();
  expect(warningAfter([created('1', 'A')], { ...done, is_error: true })).toBeUndefined();
  for (const value of ['text', null, 7, { tasks: 'no' }, { task: 1 }, { task: { id: 1 } }, { taskId: 'x' }]) {
    expect(warningAfter([tool(value)])).toBeUndefined();
  }
});

test('escape codes are removed from task names and long lists are truncated', () => {
  const many = Array.from({ length: 2_000 }, (_, index) =>
    created(String(index), `\u001b[31mtask ${index} ${'x'.repeat(500)}`),
  );
  const message = warningAfter(many) ?? '';
  expect(message).toStartWith('2000 tasks of its list were not completed: ');
  expect(message.length).toBeLessThan(400);
  expect(message).not.toContain('\u001b');
});

test('the list is counted without the tasks that were removed from it', () => {
  const counts = (...lines: object[]) =>
    taskCounts(lines.map((line) => parseLine(JSON.stringify(line))).reduce(foldMessage, emptyStream()));
  expect(counts()).toBeUndefined();
  const three = [created('1', 'A'), created('2', 'B'), created('3', 'C')];
  expect(counts(...three, moved('1', 'completed'), moved('3', 'deleted'))).toEqual({ done: 1, total: 2 });
});
