/** The page that `?` shows. */
import type { Tone } from '../format.ts';
import { type Cell, padded, type Row, rowOf } from './cells.ts';
import type { Glyphs } from './glyphs.ts';
import type { Terminal } from './view.ts';

const keys: readonly (readonly [keys: string, meaning: string])[] = [
  ['up down, j k', 'select a session'],
  ['page keys, g G', 'a page further, the first, the last'],
  ['enter', 'details of the session, and back'],
  ['tab, left right', 'details: now, log, prompt, config, attempts'],
  ['1 2 3 4 5', 'the same, each by its number'],
  ['l', 'the log of the session on the whole screen'],
  ['p', 'pause the session, hold it back, or let it go on'],
  ['r', 'try a failed session again'],
  ['s', 'say something to the session'],
  ['P', 'pause the whole group, start it, or let it go on'],
  ['/', 'show only what matches; escape shows all again'],
  ['f', 'show only problems, and all again'],
  ['ctrl-l, ctrl-z', 'draw the screen anew; back to the shell, fg returns'],
];

const keyColumns = 18;

/** Keys, and what the signs before the sessions mean. */
export function helpRows({ columns, glyphs }: Terminal, isRunner: boolean): Row[] {
  const quit: readonly [string, string][] = isRunner
    ? [
        ['q', 'leave it running, or pause it'],
        ['ctrl-c', 'pause everything; twice: leave at once, the sessions go on'],
      ]
    : [['q, ctrl-c', 'leave the dashboard; the group goes on']];
  const line = ([key, meaning]: readonly [string, string]): Cell[] => [
    { text: `  ${padded(key, keyColumns)}`, tone: 'accent' },
    { text: meaning },
  ];
  return [
    rowOf([{ text: ' Keys', tone: 'strong' }], columns),
    ...[...keys, ...quit].map((entry) => rowOf(line(entry), columns)),
    rowOf([], columns),
    rowOf(legend(glyphs), columns),
    rowOf([{ text: ' Any key returns.', tone: 'dim' }], columns),
  ];
}

function legend(glyphs: Glyphs): Cell[] {
  const signs: readonly (readonly [glyph: string, meaning: string, tone: Tone])[] = [
    [glyphs.running, 'running', 'accent'],
    [glyphs.accepting, 'accepting', 'accent'],
    [glyphs.stopping, 'stopping', 'warn'],
    [glyphs.pending, 'waiting', 'dim'],
    [glyphs.blocked, 'blocked', 'warn'],
    [glyphs.paused, 'paused', 'warn'],
    [glyphs.completed, 'done', 'good'],
    [glyphs.failed, 'failed', 'bad'],
  ];
  return signs.flatMap(([glyph, meaning, tone]) => [{ text: ` ${glyph}`, tone }, { text: ` ${meaning}` }]);
}
