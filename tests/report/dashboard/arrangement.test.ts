/** Promises: how the list can be arranged and sorted, and that the selection stays on its session meanwhile. */
import { expect, test } from 'bun:test';
import { frame, sessionId, textOf } from './scene.ts';

test('in waves each session stands below the heading of those that can start together', () => {
  const lines = textOf(frame({ ui: { arrangement: 'waves' } })).split('\n');
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
  // The heading of what is selected is shown with it.
  const small = textOf(frame({ rows: 9, ui: { arrangement: 'waves', selected: sessionId(3), top: 8 } }));
  expect(small).toMatch(/Wave 3 .*\n›○ {2}003 web/);
});
