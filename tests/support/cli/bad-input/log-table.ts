/** Event logs that are truncated, edited or of another version: each is tried with three commands. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type Ground, numberedSessionId, story } from './ground.ts';
import { type Mistake, mistake } from './mistake.ts';

const restore = 'Restore the file from a backup';
const untouched = 'Nothing was changed';
const newer = 'newer version of claude-code-agent';

type Line = string | Buffer;
type Change = (lines: readonly string[]) => readonly Line[];

/** Exchanges something in one line, counted from 1. */
function edit(number: number, from: string, to: string | ((line: string) => Line)): Change {
  return (lines) =>
    lines.map((line, index) => {
      if (index + 1 !== number) return line;
      if (!line.includes(from)) throw new Error(`${from} is not in ${line}`);
      return typeof to === 'string' ? line.replaceAll(from, to) : to(line);
    });
}

const needing = (...numbers: number[]): string => `"dependsOn":${JSON.stringify(numbers.map(numberedSessionId))}`;

/** Every log has six lines: the header, the group, the sessions one, two and three (which needs two), the start. */
const damages: readonly (readonly [slug: string, culprit: string, next: string, change: Change])[] = [
  ['no-bytes', 'has no complete first line', restore, () => []],
  ['no-header', 'Line 1 of', restore, (lines) => lines.slice(1)],
  ['only-header', 'does not name its group', restore, (lines) => lines.slice(0, 1)],
  ['newer', 'has version 9', newer, edit(1, '"version":3', '"version":9')],
  ['older', 'created by a version before 0.3', 'Delete it with', edit(1, '"version":3', '"version":2')],
  ['future-event', 'Line 4 of', newer, edit(4, 'session_added', 'session_cloned')],
  ['torn-middle', 'Line 3 of', untouched, edit(3, '{', (line) => line.slice(0, 40))],
  ['not-utf-8', 'Line 3 of', untouched, edit(3, '{', (line) => Buffer.from(line.replace('Do', 'D\u00fc'), 'latin1'))],
  ['path-as-id', 'Line 3 of', untouched, edit(3, numberedSessionId(1), '001-../../../evil')],
  ['lost-line', 'has number 4 instead of 3', untouched, (lines) => lines.filter((_, index) => index !== 3)],
  [
    'other-log',
    'belongs to the group 20',
    restore,
    (lines) => lines.map((line) => line.replaceAll('-other-log"', '-x"')),
  ],
  ['impossible', 'is not a possible event', restore, edit(6, 'group_started', 'group_completed')],
  [
    'cycle',
    'cycle: one -> two -> one',
    restore,
    (lines) => edit(4, needing(), needing(1))(edit(3, needing(), needing(2))(lines) as string[]),
  ],
  ['itself', 'cycle: one -> one', restore, edit(3, needing(), needing(1))],
  ['same-name', 'are named one', restore, edit(4, '"two"', '"one"')],
];

/** Damages one group each, and gives the commands that meet the damage. */
export function damagedLogs(ground: Ground): readonly Mistake[] {
  const met = damages.flatMap(([slug, culprit, next, change]) => {
    const sessions = [{ name: 'one' }, { name: 'two' }, { name: 'three', needs: [2] }];
    const { events, meta } = ground.paths(ground.make(slug, sessions, [story.started]));
    const lines = change(readFileSync(events, 'utf8').trimEnd().split('\n'));
    writeFileSync(events, Buffer.concat(lines.flatMap((line) => [Buffer.from(line), Buffer.from('\n')])));
    // Listings believe meta.json; without it they have to look into the log.
    rmSync(meta);
    return [
      ['group', 'show', slug, '--json'],
      ['group', 'run', slug],
      ['session', 'add', slug, '--project', '.', '--prompt', 'x'],
    ].map((args) => mistake(args, 1, culprit, next));
  });
  return [...met, mistake(['group', 'show', '2026'], 2, / fits 2\d groups: .* and 1\d more\./, 'Give more of the id.')];
}
