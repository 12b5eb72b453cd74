/** Promise: what the dashboard shows at these sizes of terminal and group, drawn by the program in a real terminal. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { unicodeGlyphs } from '../../../src/tui/dashboard/cells.ts';
import { launcher } from '../../support/cli/user.ts';
import { type CockpitGroup, makeCockpitGroup } from '../../support/cockpit-group.ts';
import { expectGolden } from '../../support/golden.ts';
import { TestTerminal } from '../../support/terminal.ts';

/** Columns and rows. */
const sizes = [
  [80, 24],
  [100, 30],
  [160, 50],
  [40, 12],
] as const;

const turning = new RegExp(`[${unicodeGlyphs.turning.join('')}]`, 'g');

/** Without trailing blanks and changing parts: times of day, spinners, rates, minutes. */
function still(lines: readonly string[]): string {
  const shown = lines.map((line) => line.trimEnd()).join('\n');
  const text = shown.replaceAll(turning, unicodeGlyphs.turning[0] as string);
  const timeless = text.replaceAll(/\b\d\d:\d\d(:\d\d)?\b/g, (time) => 'HH:MM:SS'.slice(0, time.length));
  // On any machine, durations that started hours ago have the same number of digits.
  const ageless = timeless.replaceAll(/\b(\dh )\d\dm/g, '$1MMm');
  return `${ageless.replaceAll(/\$[\d.]+\/h/g, (rate) => rate.replaceAll(/\d/g, '0'))}\n`;
}

describe.each([1, 5, 50, 300])('%d sessions', (count) => {
  let group: CockpitGroup;
  let terminal: TestTerminal | undefined;
  beforeAll(() => {
    group = makeCockpitGroup(count);
  });
  afterEach(() => terminal?.close());
  afterAll(() => group.remove());

  test.each(sizes)('%d x %d', async (columns, rows) => {
    const { folder: cwd, env } = group;
    terminal = new TestTerminal([launcher, 'group', 'watch', group.groupId], { cwd, env, columns, rows });
    await terminal.shows('001 schema', 'q quit');
    const shown = terminal.lines();
    expect(shown).toHaveLength(rows);
    expectGolden(join(import.meta.dir, '../../fixtures/cli'), `cockpit-${count}-${columns}x${rows}`, still(shown));
  });
});
