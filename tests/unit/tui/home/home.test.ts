/**
 * Promises: the home screen lists groups that need a user first, then running ones. Rehearsals are marked, the
 * selection stays on its group, every row fits the terminal, and keys do what the help says.
 */
import { describe, expect, test } from 'bun:test';
import type { HomeGroup, HomeWorkflow } from '../../../../src/app/watch/overview.ts';
import { asciiGlyphs, type Row, unicodeGlyphs, widthOf } from '../../../../src/tui/dashboard/cells.ts';
import type { Press } from '../../../../src/tui/dashboard/keys.ts';
import { firstHomeUi, type HomeUi, type HomeView, homeFrame, pressHome } from '../../../../src/tui/home/home.ts';
import { isSelected, layoutText, rowsOf } from '../../../support/tui/dashboard/scene.ts';

const nowMs = Date.parse('2026-03-01T12:00:00.000Z');

function group(slug: string, status: string, hoursAgo: number, more: Partial<HomeGroup> = {}): HomeGroup {
  const at = new Date(nowMs - hoursAgo * 3_600_000).toISOString();
  const counts = { done: 1, total: 3, costUsd: 1.5, estimated: false, isRehearsal: false };
  return { id: `id-${slug}`, slug, name: slug, status, ...counts, createdAt: at, updatedAt: at, ...more };
}

const groups = [
  group('old-done', 'completed', 50),
  group('fresh', 'created', 1),
  group('busy', 'running (usage limit until 13:00)', 2, { isRehearsal: true }),
  group('stuck', 'paused', 30, { message: 'The budget is used up.' }),
  group('broke', 'failed', 3, { message: 'One session failed.' }),
  group('broke-long-ago', 'failed', 48),
  group('gone', 'interrupted', 1, { message: 'its runner is gone' }),
  group('away', 'archived', 1),
];
const workflows: readonly HomeWorkflow[] = [
  { reference: 'change.yaml', origin: 'this folder' },
  { reference: 'faber', origin: 'template, shipped' },
];
const view: HomeView = { groups, workflows, programName: 'cca', nowMs };
const terminal = { columns: 130, rows: 20, glyphs: unicodeGlyphs };

const text = ({ cells }: Row): string => cells.map((cell) => cell.text).join('');
const draw = (ui: HomeUi = firstHomeUi, shown = view, size = terminal) => homeFrame(shown, ui, size);

describe('contents', () => {
  test('groups that need a user come first, then running ones, then new ones, each newest first', () => {
    const shown = draw().groups.map(({ slug }) => slug);
    expect(shown).toEqual(['gone', 'broke', 'stuck', 'busy', 'fresh', 'broke-long-ago', 'old-done', 'away']);
  });

  test('a group row shows status, progress, cost, rehearsal, age and what delays it', () => {
    const rows = layoutText(draw()).split('\n');
    expect(rows[0]).toMatch(/^ cca +3 waiting for you {2}1 running {2}8 groups$/);
    expect(rows.find((row) => row.includes('stuck'))).toMatch(
      /‖ {2}stuck +paused +1\/3 +\$1\.50 +\dd?\w* +The budget is used up\. *$/,
    );
    expect(rows.find((row) => row.includes('busy'))).toMatch(
      /● {2}busy +running +1\/3 +\$1\.50 fake +2h +\(usage limit until/,
    );
    expect(rows.at(-2)).toContain('enter open  n new  d delete  ? help  q quit');
  });

  test('the home screen without groups shows how to start', () => {
    const rows = layoutText(draw(firstHomeUi, { ...view, groups: [] }));
    expect(rows).toContain('There are no groups yet.');
    expect(rows).toContain('cca init');
  });

  test.each([
    [40, 12],
    [80, 24],
    [160, 50],
    [300, 100],
    [20, 4],
    [100, 1],
  ])('every row of a %d × %d home screen fits the terminal, and rows fill it', (columns, rows) => {
    const odd = group('odd', 'paused', 1, {
      name: 'näme 日本語 \u001b[31m\u202e x'.repeat(9),
      message: '👩‍👩‍👧 \n '.repeat(90),
    });
    const many = Array.from({ length: 300 }, (_, index) => group(`g${index}`, 'completed', index));
    const notice = { text: `Refused: ${'long '.repeat(90)}`, tone: 'bad' as const };
    for (const glyphs of [unicodeGlyphs, asciiGlyphs]) {
      for (const kind of [
        firstHomeUi.mode,
        { kind: 'help' },
        { kind: 'choose', index: 1 },
        { kind: 'ask-delete', id: odd.id },
      ] as const) {
        const shown = { ...view, groups: [odd, ...many], notice };
        const frame = homeFrame(shown, { ...firstHomeUi, mode: kind }, { columns, rows, glyphs });
        expect(frame.bands.reduce((sum, [pane]) => sum + (pane?.height ?? 0), 0)).toBe(rows);
        for (const { rows: inside, columns: outer, height, isFramed } of frame.bands.flat()) {
          const border = isFramed ? 2 : 0;
          expect(inside).toHaveLength(height - border);
          for (const row of inside) expect(widthOf(row.cells)).toBe(outer - border);
          expect(outer).toBe(columns);
        }
        // biome-ignore lint/suspicious/noControlCharactersInRegex: nothing of a name may control the terminal.
        expect(rowsOf(frame).map(text).join('')).not.toMatch(/[\u0000-\u001f\u202e]/);
      }
    }
  });

  test('the selection stays on its group when the order changes, and moves to a neighbour when it is deleted', () => {
    const first = draw();
    const ui = { ...first.ui, selected: 'id-busy' };
    const paused = groups.map((one) => (one.slug === 'busy' ? { ...one, status: 'paused' } : one));
    const after = draw(ui, { ...view, groups: paused });
    expect(after.groups[after.index]?.slug).toBe('busy');
    const without = draw({ ...after.ui }, { ...view, groups: paused.filter(({ slug }) => slug !== 'busy') });
    expect(without.ui.selected).not.toBe('id-busy');
    expect(without.groups[without.index]).toBeDefined();
  });

  test('the selected row of the home screen is visible', () => {
    const many = Array.from({ length: 300 }, (_, index) => group(`g${index}`, 'completed', index));
    const ui = { ...firstHomeUi, selected: 'id-g250' };
    const frame = draw(ui, { ...view, groups: many }, { ...terminal, rows: 12 });
    expect(rowsOf(frame).filter(isSelected).map(text).join('')).toContain('g250');
    expect(layoutText(frame)).toContain('of 300');
  });
});

describe('keys', () => {
  const press = (ui: HomeUi, ...presses: readonly Press[]) => {
    let pressed: ReturnType<typeof pressHome> = { ui };
    for (const one of presses) {
      const { groups: shown, index, listRows, ui: settled } = draw(pressed.ui);
      pressed = pressHome(settled, one, { groups: shown, workflows, index, listRows });
    }
    return pressed;
  };
  const typed = (...texts: readonly string[]): Press[] => texts.map((one) => ({ text: one }));

  test('keys move through the list, and enter opens a group', () => {
    expect(press(firstHomeUi, { key: 'enter' }).command).toEqual({ do: 'open', id: 'id-gone' });
    expect(press(firstHomeUi, { key: 'down' }, ...typed('j', 'k'), { key: 'enter' }).command).toMatchObject({
      id: 'id-broke',
    });
    expect(press(firstHomeUi, ...typed('G'), { key: 'enter' }).command).toMatchObject({ id: 'id-away' });
    expect(press(firstHomeUi, ...typed('G', 'g'), { key: 'up' }, { key: 'right' }).command).toMatchObject({
      id: 'id-gone',
    });
    expect(press(firstHomeUi, { key: 'page-down' }, { key: 'enter' }).command).toMatchObject({ id: 'id-away' });
  });

  test('d asks and only y deletes; a running group must be paused first', () => {
    expect(press(firstHomeUi, ...typed('d')).ui.mode).toEqual({ kind: 'ask-delete', id: 'id-gone' });
    expect(press(firstHomeUi, ...typed('d', 'y')).command).toEqual({ do: 'delete', id: 'id-gone' });
    for (const no of [...typed('n', 'x', 'd'), { key: 'enter' }, { text: 'y', isPasted: true }] as Press[]) {
      const pressed = press(firstHomeUi, ...typed('d'), no);
      expect(pressed).toMatchObject({ ui: { mode: { kind: 'browse' } } });
      expect(pressed.command).toBeUndefined();
    }
    expect(press({ ...firstHomeUi, selected: 'id-busy' }, ...typed('d')).command).toMatchObject({ do: 'tell' });
  });

  test('n lists workflows, and asks whether to run for real', () => {
    const chosen = press(firstHomeUi, ...typed('n'), { key: 'down' }, { key: 'down' }, { key: 'enter' });
    expect(chosen.ui.mode).toEqual({ kind: 'ask-start', reference: 'faber' });
    expect(press(chosen.ui, ...typed('r')).command).toEqual({ do: 'start', reference: 'faber', rehearse: true });
    expect(press(chosen.ui, { key: 'enter' }).command).toEqual({ do: 'start', reference: 'faber', rehearse: true });
    expect(press(chosen.ui, ...typed('y')).command).toEqual({ do: 'start', reference: 'faber', rehearse: false });
    expect(press(chosen.ui, ...typed('q')).command).toBeUndefined();
    expect(press(firstHomeUi, ...typed('n', 'q'))).toMatchObject({ ui: { mode: { kind: 'browse' } } });
    const none = pressHome(firstHomeUi, { text: 'n' }, { groups: [], workflows: [], index: 0, listRows: 5 });
    expect(none.command).toMatchObject({ do: 'tell' });
  });

  test('the home screen handles help, quit and unknown keys', () => {
    expect(press(firstHomeUi, ...typed('?')).ui.mode).toEqual({ kind: 'help' });
    expect(press(firstHomeUi, ...typed('?', 'q')).command).toBeUndefined();
    for (const out of [...typed('q'), { key: 'ctrl-c' }] as Press[])
      expect(press(firstHomeUi, out).command).toEqual({ do: 'quit' });
    expect(press(firstHomeUi, { key: 'ctrl-l' }).command).toEqual({ do: 'redraw' });
    expect(press(firstHomeUi, { key: 'ctrl-z' }).command).toEqual({ do: 'suspend' });
    for (const nothing of [...typed('x', 'dy'), { text: 'd', isPasted: true }, { key: 'escape' }] as Press[]) {
      expect(press(firstHomeUi, nothing)).toMatchObject({ ui: { mode: { kind: 'browse' } } });
    }
  });
});
