/** Promises: Ctrl-C is heard in the middle of a paste that was cut off; whole pastes stay what they are. */
import { expect, test } from 'bun:test';
import { Pastes } from '../../../../src/tui/dashboard/terminal-input.ts';

const [start, end, ctrlC] = ['\u001b[200~', '\u001b[201~', '\u0003'];
const taken = (...chunks: string[]): string[] => {
  const pastes = new Pastes();
  return chunks.map((chunk) => pastes.take(chunk));
};

test.each([
  ['alone', [ctrlC], [ctrlC]],
  ['after a whole paste', [`${start}one${end}`, ctrlC], [`${start}one${end}`, ctrlC]],
  ['in a paste', [`${start}half`, ctrlC, ctrlC], [`${start}half`, `${end}${ctrlC}`, ctrlC]],
  ['with the paste', [`${start}half${ctrlC}`], [`${start}half${end}${ctrlC}`]],
  ['in a second paste', [`${start}one${end}${start}two`, ctrlC], [`${start}one${end}${start}two`, `${end}${ctrlC}`]],
  [
    'after marks in parts',
    ['\u001b[20', '0~half', '\u001b[2', '01~', ctrlC],
    ['\u001b[20', '0~half', '\u001b[2', '01~', ctrlC],
  ],
  ['inside of a paste that goes on', [`${start}a${ctrlC}b`, `c${end}`], [`${start}a${ctrlC}b`, `c${end}`]],
] as [string, string[], string[]][])('%s', (_, chunks, expected) => expect(taken(...chunks)).toEqual(expected));

test('a mark in parts opens a paste', () => {
  expect(taken('x\u001b[200', '~half', ctrlC).at(-1)).toBe(`${end}${ctrlC}`);
});
