/** Promises: the session list can be grouped and sorted, and the selection stays on its session. */
import { expect, test } from 'bun:test';
import { verdictsAtRest } from '../../../../src/core/plan/verdicts.ts';
import { plainRow } from '../../../../src/tui/dashboard/cells.ts';
import { listItems } from '../../../../src/tui/dashboard/list.ts';
import { arrangements, firstUi, sortings, type Ui } from '../../../../src/tui/dashboard/ui.ts';
import { fc } from '../../../support/property.ts';
import {
  rowsOf as allRows,
  fold,
  frame,
  isSelected,
  layoutText,
  sceneEvents,
  sceneLive,
  sessionId,
  startMs,
} from '../../../support/tui/dashboard/scene.ts';

test('in waves each session is listed below the heading of its wave', () => {
  const lines = layoutText(frame({ ui: { arrangement: 'waves', selected: sessionId(1) } })).split('\n');
  const from = lines.findIndex((line) => line.includes('Wave 1'));
  expect(lines.slice(from, from + 13).map((line) => line.slice(0, 16).trim())).toEqual([
    'Wave 1  1/3',
    '›✓  001 schema',
    '‖  008 billing',
    '◐  009 audit',
    'Wave 2  0/2',
    expect.stringMatching(/^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] {2}002 api$/),
    '✗  006 worker',
    'Wave 3  0/3',
    '○  003 web',
    '○  004 mobile',
    '⊘  007 load tes',
    'Wave 4  0/1',
    '○  005 release',
  ]);
  // The heading of the selected session is visible with it.
  const small = layoutText(frame({ rows: 9, ui: { arrangement: 'waves', selected: sessionId(3), top: 8 } }));
  expect(small).toMatch(/Wave 3 .*\n›○ {2}003 web/);
});

/** Session numbers and headings from the top. */
function rowsOf(ui: Partial<Ui>): (number | string)[] {
  const { state } = fold(sceneEvents);
  const verdicts = verdictsAtRest(state);
  const now = { state, verdicts, live: sceneLive, nowMs: startMs + 95_000, runner: 'elsewhere' } as const;
  return listItems(now, { ...firstUi, ...ui }).map((item) =>
    'id' in item ? Number(item.id.slice(0, 3)) : item.heading,
  );
}

test('the list can be grouped by status and by project', () => {
  expect(rowsOf({ arrangement: 'status' })).toEqual([
    ...['failed  1', 6, 'paused  1', 8, 'running  2', 2, 9],
    ...['pending  4', 3, 4, 5, 7, 'completed  1', 1],
  ]);
  const byProject = rowsOf({ arrangement: 'project' });
  expect(byProject.slice(0, 4)).toEqual(['database  1/1', 1, 'api  0/1', 2]);
});

test('sorting by cost, duration or name orders each part of the list', () => {
  expect(rowsOf({ sorting: 'cost' }).slice(0, 4)).toEqual([1, 6, 2, 9]);
  expect(rowsOf({ sorting: 'time' }).slice(0, 3)).toEqual([2, 1, 6]);
  expect(rowsOf({ sorting: 'name' }).slice(0, 3)).toEqual([2, 9, 8]);
  expect(rowsOf({ arrangement: 'waves', sorting: 'name' }).slice(0, 4)).toEqual(['Wave 1  1/3', 9, 8, 1]);
  expect(layoutText(frame({ ui: { sorting: 'cost' } }))).toContain('Sessions by cost');
  // Lines lead from row to row.
  expect(layoutText(frame({ ui: { sorting: 'name' } }))).not.toContain('├');
});

test('the selection stays on its session and visible under any grouping, sorting and filter', () => {
  const anyUi = fc.record({
    arrangement: fc.constantFrom(...arrangements),
    sorting: fc.constantFrom(...sortings),
    onlyProblems: fc.boolean(),
    filter: fc.constantFrom('', 'a', 'web'),
    top: fc.nat(20),
  });
  fc.assert(
    fc.property(anyUi, fc.integer({ min: 1, max: 9 }), fc.integer({ min: 8, max: 30 }), (ui, number, rows) => {
      const shown = frame({ rows, ui: { ...ui, selected: sessionId(number) } });
      expect(shown.ui.selected).toBe(sessionId(number));
      expect(
        allRows(shown)
          .filter(isSelected)
          .map((row) => plainRow(row).includes(`00${number} `)),
      ).toEqual([true]);
    }),
  );
});
