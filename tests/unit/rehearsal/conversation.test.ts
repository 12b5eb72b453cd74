/**
 * Promises: the script position is derived from the request alone, whatever claude leaves in the history after an
 * interruption, a signal or a compaction, and requests that the real API would refuse are noticed.
 */
import { describe, expect, test } from 'bun:test';
import type { Step } from '../../../src/rehearsal/script.ts';
import {
  findPlace,
  type Message,
  progressMark,
  requestProblems,
  type ScriptedBlock,
  toolUseId,
} from '../../../src/rehearsal/script.ts';

const bash = { tool: 'Bash', input: { command: 'true' } };
const steps: Step[] = [
  { text: 'one', ...bash },
  { text: 'two', tools: [bash, bash] },
  { text: 'three' },
  { status: 529, times: 2 },
  { text: 'four', ...bash },
  { text: 'five' },
];

const rejected = "The user doesn't want to proceed with this tool use. The tool use was rejected.";
const user = (...content: ScriptedBlock[]): Message => ({ role: 'user', content });
const said = (...content: ScriptedBlock[]): Message => ({ role: 'assistant', content });
const text = (words: string): ScriptedBlock => ({ type: 'text', text: words });
let counter = 0;
const call = (step: number, tool = 0): ScriptedBlock => ({
  type: 'tool_use',
  id: toolUseId(step, tool, `${counter++}`),
});
const result = (of: ScriptedBlock, content = 'ok', is_error = false): ScriptedBlock => {
  return { type: 'tool_result', tool_use_id: of.id!, content, is_error };
};

function place(messages: Message[], passed = false): [number, ...number[]] {
  const found = findPlace([user(text('do it')), ...messages], steps, () => passed);
  return [found.step, ...found.tools];
}

describe('findPlace', () => {
  const [a, b, c, d] = [call(0), call(1, 0), call(1, 1), call(4)];
  const untilTwo = [said(text('one'), a), user(result(a))];
  const untilThree = [...untilTwo, said(text('two'), b, c), user(result(b), result(c))];
  const untilFour = [...untilThree, said(text('three')), user(text('go on'))];

  test('a new conversation begins at the first script step', () => {
    expect(place([])).toEqual([0, 0]);
  });

  test('a tool call with a result is finished, even if it failed', () => {
    expect(place(untilTwo)).toEqual([1, 0, 1]);
    expect(place([said(text('one'), a), user(result(a, 'Exit code 1', true))])).toEqual([1, 0, 1]);
  });

  test('tool output that contains the words of an interruption is not one', () => {
    expect(place([said(text('one'), a), user(result(a, rejected))])).toEqual([1, 0, 1]);
  });

  test('an interrupted call is requested again, and its finished sibling is not', () => {
    const stopped = user(result(b), result(c, rejected, true), text('[Request interrupted by user for tool use]'));
    const resumed = [said(text('No response requested.')), user(text('go on'))];
    expect(place([...untilTwo, said(text('two'), b, c), stopped, ...resumed])).toEqual([1, 1]);
    const again = call(1, 1);
    const repeated = [said(text('two'), again), user(result(again))];
    expect(place([...untilTwo, said(text('two'), b, c), stopped, ...resumed, ...repeated])).toEqual([2]);
  });

  test('a call that claude dropped after a signal is requested again, however often that happens', () => {
    const dropped = [said(text('one')), user(text('go on'))];
    expect(place([...dropped, ...dropped])).toEqual([0, 0]);
    expect(place([...untilTwo, said(text('two'), b), user(result(b)), user(text('go on'))])).toEqual([1, 1]);
  });

  test('a text step is finished after its whole text, and other words do not count', () => {
    expect(place(untilThree)).toEqual([2]);
    expect(place([...untilThree, said(text('thr')), user(text('go on'))])).toEqual([2]);
    expect(place([...untilThree, said(text('No response requested.')), user(text('go on'))])).toEqual([2]);
  });

  test('a step that only fails is skipped after enough failures', () => {
    expect(place(untilFour)).toEqual([3]);
    expect(place(untilFour, true)).toEqual([4, 0]);
    expect(place([...untilFour, said(text('four'), d), user(result(d))])).toEqual([5]);
  });

  test('the end of the script is one past its last step', () => {
    const all = [...untilFour, said(text('four'), d), user(result(d)), said(text('five'))];
    expect(place([...all, user(text('more'))])).toEqual([6]);
  });

  test('after a compaction the summary’s mark and the kept call give the script position', () => {
    const summary = [user(text(`This session is being continued ... ${progressMark(4)} ...`))];
    expect(place(summary)).toEqual([4, 0]);
    expect(place([...summary, said(text('four'), d), user(result(d))])).toEqual([5]);
  });

  test('a mark printed by a tool is ignored', () => {
    expect(place([said(text('one'), a), user(result(a, progressMark(5)))])).toEqual([1, 0, 1]);
  });

  test('ids of other models and claude’s notes are ignored', () => {
    const foreign: ScriptedBlock = { type: 'tool_use', id: 'toolu_01abc' };
    const note: Message = { role: 'system', content: [text('three')] };
    expect(place([said(foreign), user(result(foreign)), note])).toEqual([0, 0]);
  });
});

describe('requestProblems', () => {
  const key = { 'x-api-key': 'k' };
  const body = (...messages: Message[]) => ({ model: 'opus', max_tokens: 10, messages });
  const a: ScriptedBlock = { type: 'tool_use', id: 'a' };
  const b: ScriptedBlock = { type: 'tool_use', id: 'b' };

  test('a correct conversation has no problems', () => {
    const note: Message = { role: 'system', content: 'a note of claude' };
    const messages = [user(text('x')), note, said(a, b), user(result(a)), user(result(b), text('y'))];
    expect(requestProblems(body(...messages), key)).toEqual([]);
    expect(requestProblems(body(user(text('x'))), { authorization: 'Bearer t' })).toEqual([]);
  });

  test.each<[string, Message[]]>([
    ['tool_result a answers no tool_use', [user(text('x')), said(text('y')), user(result(a))]],
    ['tool_use a has no tool_result', [user(text('x')), said(a), user(text('y'))]],
    ['tool_use b has no tool_result', [user(text('x')), said(a, b), user(result(a))]],
    ['tool_use a has no tool_result', [user(text('x')), said(a)]],
    ['a tool_use is answered twice', [user(text('x')), said(a), user(result(a), result(a))]],
    ['tool_use a occurs twice', [user(text('x')), said(a), user(result(a)), said(a), user(result(a))]],
    ['the first message is not from the user', [said(text('x'))]],
    ['messages are missing', []],
  ])('the request problem is reported: %s', (problem, messages) => {
    expect(requestProblems(body(...messages), key)).toEqual([problem]);
  });

  test('the frame of the request is checked', () => {
    expect(requestProblems({ messages: [user(text('x'))] }, { authorization: 'Bearer ' })).toEqual([
      'neither x-api-key nor a bearer token is present',
      'model is missing',
      'max_tokens is missing',
    ]);
  });
});
