/** The page that `?` shows. */
import type { Tone } from '../../view/format.ts';
import { type Cell, padded, type Row, rowOf, widthOf } from './cells.ts';
import type { Glyphs } from './glyphs.ts';
import type { Terminal } from './view.ts';

/** Keys by their names, single characters as they are typed, and what they do. */
export type HelpEntry = readonly [keys: readonly string[], meaning: string];

/** All keys that do something while nothing is asked or typed. */
export const helpEntries: readonly HelpEntry[] = [
  [['up', 'down', 'j', 'k'], 'select a session'],
  [['g', 'G', 'home', 'end'], 'the first, the last'],
  [[',', '.'], 'a page of the list'],
  [['page-up', 'page-down'], 'a page of the details'],
  [['v'], 'tree, waves, status …'],
  [['S'], 'sort: cost, time, name'],
  [['t'], 'when each one worked'],
  [['/'], 'show only what matches'],
  [['f'], 'show only problems'],
  [['escape'], 'show all again; back'],
  [['enter'], 'details open, closed'],
  [['tab', 'left', 'right'], 'the next tab of them'],
  [['1', '2', '3', '4', '5', '6'], 'now, log, diff …'],
  [['l'], 'its log, full screen'],
  [['o'], 'open in editor, pager'],
  [[' ', '*'], 'mark it; all or none'],
  [['p'], 'pause, hold, let go on'],
  [['r'], 'try a failed one again'],
  [['s'], 'say something to it'],
  [['a'], 'take it over yourself'],
  [['e'], 'edit its task, retry'],
  [['P'], 'pause, start the group'],
  [['m'], 'mouse off, to copy text'],
  [['ctrl-l', 'ctrl-z'], 'draw anew; to the shell'],
  [['?', 'h'], 'this page'],
];

const keyColumns = 17;
const entryColumns = 40;

/** How a key is called where it is told about. */
const shortNames: Readonly<Record<string, string>> = {
  ' ': 'space',
  'page-up': 'pgup',
  'page-down': 'pgdn',
  escape: 'esc',
};

function spelled(keys: readonly string[]): string {
  const [first, last] = [keys[0], keys.at(-1)];
  // More than four are a range.
  if (keys.length > 4) return `${first}-${last}`;
  return keys.map((key) => shortNames[key] ?? key).join(' ');
}

/**
 * Keys in as many columns as there is room for, and what the signs before the sessions mean; from row `from` on, which
 * is brought within bounds.
 */
export function helpRows(terminal: Terminal, isRunner: boolean, room: number, from: number): readonly Row[] {
  const { columns, glyphs } = terminal;
  const quit: readonly HelpEntry[] = isRunner
    ? [
        [['q'], 'leave it, or pause it'],
        [['ctrl-c'], 'pause all; twice: leave'],
      ]
    : [[['q', 'ctrl-c'], 'leave (it goes on)']];
  const entries = [...helpEntries, ...quit];
  const across = Math.max(1, Math.min(3, Math.floor(columns / entryColumns)));
  const down = Math.ceil(entries.length / across);
  const width = across === 1 ? columns : entryColumns;
  const lines = Array.from({ length: down }, (_, nth) =>
    Array.from({ length: across }, (_, column) => entryCells(entries[column * down + nth], width)).flat(),
  );
  const signs = wrapSigns(legend(glyphs), columns);
  const rows = [
    [{ text: ' Keys', tone: 'strong' } as const],
    ...lines,
    [],
    ...signs,
    [{ text: ' Any key returns.', tone: 'dim' } as const],
  ].map((cells) => rowOf(cells, columns));
  const top = Math.max(0, Math.min(from, rows.length - room));
  return rows.slice(top, top + room);
}

function entryCells(entry: HelpEntry | undefined, columns: number): Cell[] {
  if (entry === undefined) return [];
  const [keys, meaning] = entry;
  return [
    { text: `  ${padded(spelled(keys), keyColumns - 2)}`, tone: 'accent' },
    { text: padded(meaning, columns - keyColumns) },
  ];
}

function wrapSigns(signs: readonly Cell[][], columns: number): Cell[][] {
  const lines: Cell[][] = [[]];
  for (const sign of signs) {
    const line = lines.at(-1) as Cell[];
    if (widthOf(line) + widthOf(sign) <= columns) line.push(...sign);
    else lines.push([...sign]);
  }
  return lines;
}

function legend(glyphs: Glyphs): Cell[][] {
  const signs: readonly (readonly [glyph: string, meaning: string, tone: Tone])[] = [
    [glyphs.turning[0] as string, 'runs a tool', 'accent'],
    [glyphs.running, 'running', 'accent'],
    [glyphs.accepting, 'accepting', 'accent'],
    [glyphs.stopping, 'stopping', 'warn'],
    [glyphs.pending, 'waiting', 'dim'],
    [glyphs.blocked, 'blocked', 'warn'],
    [glyphs.paused, 'paused', 'warn'],
    [glyphs.completed, 'done', 'good'],
    [glyphs.failed, 'failed', 'bad'],
  ];
  return signs.map(([glyph, meaning, tone]) => [{ text: ` ${glyph}`, tone }, { text: ` ${meaning}` }]);
}
