/** Promises: the ink part draws lines unchanged and distinguishes keys, held keys and pastes. */
import { afterEach, expect, test } from 'bun:test';
import type { Key } from 'ink';
import { cleanup, render } from 'ink-testing-library';
import type { ReactElement } from 'react';
import { createApp, pressesOf } from '../../../../src/tui/app.ts';
import type { Press } from '../../../../src/tui/dashboard/keys.ts';
import type { Painted } from '../../../../src/tui/layout.ts';
import { until } from '../../../support/cli.ts';

afterEach(cleanup);

function show(first: Painted) {
  let now = first;
  const listeners = new Set<() => void>();
  const presses: Press[] = [];
  const app = createApp({
    store: {
      subscribe: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      current: () => now,
    },
    onPress: (press) => presses.push(press),
    onSuspendable: () => {},
  });
  const shown = render(app as ReactElement);
  return {
    shown,
    presses,
    set(painted: Painted) {
      now = painted;
      for (const listener of listeners) listener();
    },
  };
}

const unframed = (...lines: string[]): Painted => ({
  bands: [[{ title: '', end: '', lines, columns: 12, height: lines.length }]],
});

test('lines are drawn with their styles, and drawn again when they change', async () => {
  const { shown, set } = show(unframed('\u001b[31mone\u001b[39m', '漢字 two'));
  expect(Bun.stripANSI(shown.lastFrame() ?? '')).toBe('one\n漢字 two');
  set(unframed('one', 'three', 'four'));
  await until(() => Bun.stripANSI(shown.lastFrame() ?? '') === 'one\nthree\nfour');
});

test('a pane has a border with its title and the text at its end', () => {
  const pane = { title: ' A ', end: ' 1-2 ', lines: ['漢字    ', 'two     '], columns: 14, height: 4 };
  const { shown } = show({ bands: [[{ ...pane, border: { style: 'round', isDim: true } }]] });
  const drawn = Bun.stripANSI(shown.lastFrame() ?? '').split('\n');
  expect(drawn).toEqual(['╭─ A ── 1-2 ─╮', '│漢字        │', '│two         │', '╰────────────╯']);
});

const nothing = {} as Key;

test.each([
  ['', { downArrow: true }, [{ key: 'down' }]],
  ['', { pageUp: true }, [{ key: 'page-up' }]],
  ['\r', { return: true }, [{ key: 'enter' }]],
  ['', { delete: true }, [{ key: 'erase' }]],
  ['c', { ctrl: true }, [{ key: 'ctrl-c' }]],
  ['x', { ctrl: true }, []],
  ['p', { meta: true }, []],
  ['j', {}, [{ text: 'j' }]],
  ['jjjjjjjjjj', {}, Array.from({ length: 10 }, () => ({ text: 'j' }))],
  ['\t\r', {}, [{ key: 'tab' }, { key: 'enter' }]],
  ['sab', {}, [{ text: 's' }, { text: 'a' }, { text: 'b' }]],
  ['a whole line\rq', {}, [{ text: 'a whole line' }, { key: 'enter' }, { text: 'q' }]],
] as [string, Partial<Key>, Press[]][])('the terminal input %j gives the keys %j', (input, key, presses) => {
  expect(pressesOf(input, { ...nothing, ...key })).toEqual(presses);
});
