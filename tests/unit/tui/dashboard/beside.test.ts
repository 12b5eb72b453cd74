/** Promises: on a wide terminal the details are beside the list, and each tab shows its contents. */
import { expect, test } from 'bun:test';
import { plainRow, type Row } from '../../../../src/tui/dashboard/cells.ts';
import {
  frame,
  isSelected,
  layoutText,
  rowsOf,
  type SceneOptions,
  screenOf,
  sessionId,
} from '../../../support/tui/dashboard/scene.ts';

const beside = (wanted: SceneOptions = {}) => frame({ columns: 130, ...wanted, ui: { pane: 'auto', ...wanted.ui } });

test('details open beside the list from 130 columns, and below it from 100', () => {
  expect(beside().shape).toBe('beside');
  expect(beside({ columns: 129 }).shape).toBe('below');
  expect(beside({ columns: 99 }).shape).toBe('none');
  expect(beside({ columns: 99, ui: { pane: 'split' } }).shape).toBe('below');
  expect(beside({ ui: { pane: 'none' } }).shape).toBe('none');
  const text = screenOf(beside({ columns: 140, ui: { selected: sessionId(2) } }));
  expect(text).toMatch(/╭─ 002 api {2}\[now\] log diff prompt cost config ─*╮\n/);
  expect(text).toMatch(/SESSION .*PROJECT .*COST .*DOING +┃│ running .*\$0\.42/);
  // The log continues below the current activity.
  expect(text).toContain('│ > Bash npm test');
});

test('beside the details only the list row is reversed, over the width of the list', () => {
  for (const columns of [130, 160, 300]) {
    const [row] = rowsOf(beside({ columns, ui: { selected: sessionId(9) } })).filter(isSelected);
    const cells = row?.cells ?? [];
    const reversed = cells
      .filter((cell) => cell.isSelected)
      .map(({ text }) => text)
      .join('');
    expect(reversed).toBe(plainRow(row as Row));
    expect(reversed).toContain('009 audit');
  }
});

test('a diff is summarised in one line and shown below it', () => {
  const diff = { summary: '1 file changed, +1 -1.', lines: ['\u001b[31m-old\u001b[39m', '\u001b[32m+new\u001b[39m'] };
  const material = { sessionId: sessionId(2), log: [], attempts: [], diff };
  const shown = beside({ view: { material }, ui: { selected: sessionId(2), tab: 'diff' } });
  expect(layoutText(shown)).toMatch(/│ 1 file changed, \+1 -1\.\n.*│ -old\n.*│ \+new\n/);
  expect(rowsOf(shown).flatMap(({ cells }) => cells)).toContainEqual(
    expect.objectContaining({ text: '+new', tone: 'good' }),
  );
});

test('the cost of a session is listed by kind of token and by attempt', () => {
  const text = layoutText(beside({ ui: { selected: sessionId(6), tab: 'cost' } }));
  for (const told of [/spent +\$0\.60\n/, /input +90k/, /output +400/, /1 start +failed \(no-result\)/]) {
    expect(text).toMatch(told);
  }
});

test('a click selects the item at its place on the screen', () => {
  const shown = beside({ ui: { selected: sessionId(2) } });
  const lines = screenOf(shown).split('\n');
  const places = (text: string) => {
    const y = lines.findIndex((line) => line.includes(text));
    return shown.hit((lines[y] ?? '').indexOf(text), y);
  };
  expect(places('├ 003 web')).toEqual({ on: 'session', id: sessionId(3) });
  expect(places('SESSION')).toEqual({ on: 'list' });
  expect(places('prompt')).toEqual({ on: 'tab', tab: 'prompt' });
  expect(places('[now]')).toEqual({ on: 'tab', tab: 'now' });
  expect(places('> Bash npm test')).toEqual({ on: 'pane' });
  expect(places('? help')).toBeNull();
  expect([shown.hit(-1, -1), shown.hit(500, 3), shown.hit(3, 500)]).toEqual([null, null, null]);
  const below = frame({ ui: { pane: 'split', selected: sessionId(2) } });
  const y = screenOf(below)
    .split('\n')
    .findIndex((line) => line.includes(' diff '));
  expect(below.hit(screenOf(below).split('\n')[y]?.indexOf('diff') ?? 0, y)).toEqual({ on: 'tab', tab: 'diff' });
});

test('at 120 columns with open details each row shows activity and project', () => {
  const text = layoutText(beside({ columns: 120, rows: 40, ui: { selected: sessionId(2) } }));
  expect(text).toMatch(/SESSION .*PROJECT .*DOING/);
  expect(text).toMatch(/002 api +api .*Bash npm run test/);
  expect(text).toContain('[now] log');
});
