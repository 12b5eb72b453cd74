/** Promise: each key of the palette does what the palette says, pressed in a real terminal; so does the mouse. */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import { keyActions } from '../../../src/tui/dashboard/actions.ts';
import { launcher } from '../../support/cli/user.ts';
import { type CockpitGroup, makeCockpitGroup } from '../../support/cockpit-group.ts';
import { key, type TerminalWish, TestTerminal } from '../../support/terminal.ts';

let group: CockpitGroup;
let terminal: TestTerminal;
beforeAll(() => {
  group = makeCockpitGroup(50);
});
afterEach(() => terminal.close());
afterAll(() => group.remove());

async function open({ env, ...wish }: Partial<TerminalWish> = {}): Promise<TestTerminal> {
  const whole = { cwd: group.folder, env: { ...group.env, ...env }, columns: 140, rows: 30, ...wish };
  terminal = new TestTerminal([launcher, 'group', 'watch', group.groupId], whole);
  await terminal.shows('002 api', 'q quit', '/h');
  // The selection follows what runs until a key moves it.
  await terminal.until((text) => /\n[│┃]›. {2}├ 002 api/.test(text));
  terminal.type('g');
  await terminal.shows('›✓  001 schema');
  return terminal;
}

/** Keys in order, each with text that must be on the screen afterwards and text that must be gone. */
type Step = readonly [name: string, typed: string, shows: RegExp, no?: RegExp];

const steps: readonly Step[] = [
  ['down', key.down, /\n[│┃]›. {2}├ 002 api/],
  ['j', 'j', /\n[│┃]›. {2}│ └ 004 mobile/],
  ['k', 'k', /\n[│┃]›. {2}├ 002 api/],
  ['up', key.up, /\n[│┃]›. {2}001 schema/],
  ['G', 'G', /\n[│┃]›. .*050 api-8/],
  ['g', 'g', /\n[│┃]›. {2}001 schema/],
  ['end', key.end, /\n[│┃]›. .*050 api-8/],
  ['home', key.home, /\n[│┃]›. {2}001 schema/],
  ['.', '.', /\n[│┃]›. .*023 notes-3/],
  [',', ',', /\n[│┃]›. {2}001 schema/],
  [' ', ' ', /1 marked.*\n[│┃]◆. {2}001 schema/s],
  ['*', '*', /\n[│┃]›. {2}├ 002 api/, /marked/],
  ['v', 'v', /Wave 1 {2}7\/9/],
  ['v', 'vvv', /├ 002 api/, /Wave 1/],
  ['S', 'SSS', /Sessions by cost/],
  ['S', 'SSS', /├ 002 api/, /Sessions by/],
  ['/', '/', /filter:/],
  ['/', `notes${key.enter}`, /\d of 50 shown.*\n[│┃]›. {2}005 notes/s],
  ['escape', key.escape, /\n[│┃]›. {2}├ 002 api/, /shown/],
  ['f', 'f', /of 50 shown.*006 worker/s],
  ['f', 'f', /004 mobile/, /shown/],
  ['n', 'n', /\n[│┃]›. {2}└ 006 worker/],
  ['!', '!', /\n[│┃]›. .*014 api-2/],
  ['k', 'gj', /\n[│┃]›. {2}├ 002 api/],
  ['2', '2', /\[log\]/],
  ['3', '3', /\[diff\]/],
  ['4', '4', /\[prompt\].*Do the api part/s],
  ['5', '5', /\[cost\].*from cache/s],
  ['6', '6', /\[config\].*\/projects\/api/s],
  ['1', '1', /\[now\].*last text/s],
  ['right', key.right, /\[log\]/],
  ['right', key.right, /\[diff\]/],
  ['left', key.left, /\[log\]/],
  ['tab', key.tab, /SESSION/],
  ['enter', key.enter, /\[log\]/, /SESSION/],
  ['enter', key.enter, /SESSION/],
  ['tab', key.tab, /SESSION/],
  ['enter', key.enter, /SESSION/, /\[log\]/],
  ['page-down', key.pageDown, /\n[│┃]›. .*024 worker-3/],
  ['page-up', key.pageUp, /\n[│┃]›. {2}├ 002 api/],
  ['enter', key.enter, /\[log\]/],
  ['l', 'l', /\[log\]/, /SESSION/],
  ['enter', key.enter, /\[log\].*SESSION/s],
  ['m', 'm', /The mouse selects text/],
  ['m', 'm', /The mouse controls the dashboard again/],
  ['?', '?', /Commands.*send a message/s],
  ['?', key.escape, /SESSION/, /Commands/],
  ['h', 'h', /Commands/],
  ['h', key.escape, /SESSION/, /Commands/],
  [':', ':', /Commands/],
  [':', `srtcst${key.enter}`, /Sessions by cost/, /Commands/],
  [':', ':', /Commands/],
  [':', `sort by graph${key.enter}`, /SESSION/, /Sessions by|Commands/],
  ['w', 'w', /No wave waits for a decision/],
  ['ctrl-l', key.ctrlL, /002 api.*\[log\]/s],
];

/** These need a runner or leave the screen: dashboard-watch, -run, -open, -attach, review-screen and questions/keys. */
const pressedElsewhere = ['a', 'e', 'i', 'o', 'p', 'r', 'R', 's', 'P', 'q', 'ctrl-c', 'ctrl-z'];

test('each key does what the palette says', async () => {
  await open();
  for (const [name, typed, shows, no] of steps) {
    terminal.type(typed);
    await terminal
      .until((text) => shows.test(text) && no?.test(text) !== true)
      .catch((error: Error) => {
        throw new Error(`${name}: ${error.message}`);
      });
  }
  terminal.type('q');
  expect(await terminal.exited).toBe(0);
  const tried = new Set([...steps.map(([name]) => name), ...pressedElsewhere]);
  const all = keyActions.flatMap((action) => action.keys.map((one) => (one === 'space' ? ' ' : one)));
  expect([...tried].toSorted()).toEqual(all.toSorted());
}, 60_000);

/** What a terminal sends for a button press and release at a position counted from 0. */
const mouse = (button: number, x: number, y: number): string =>
  `\u001b[<${button};${x + 1};${y + 1}M${button < 64 ? `\u001b[<${button};${x + 1};${y + 1}m` : ''}`;

/** The position of this text on the screen. */
function placeOf(text: string): readonly [x: number, y: number] {
  const y = terminal.lines().findIndex((line) => line.includes(text));
  return [(terminal.lines()[y] ?? '').indexOf(text), y];
}

test('clicks select sessions and tabs, the wheel scrolls, and the terminal gets its mouse back', async () => {
  await open();
  expect(terminal.tracksMouse).toBe(true);
  terminal.type(mouse(0, ...placeOf('006 worker')));
  await terminal.until((text) => /\n[│┃]›. {2}└ 006 worker/.test(text) && text.includes('─ 006 worker  [now]'));
  terminal.type(mouse(0, ...placeOf('prompt')));
  await terminal.shows('[prompt]', 'Do the worker part.');
  terminal.type(mouse(65, ...placeOf('└ 006 worker')));
  await terminal.until((text) => /\n[│┃]›. .*010 mobile-1/.test(text));
  terminal.type(mouse(64, ...placeOf('└ 006 worker')));
  await terminal.until((text) => /\n[│┃]›. .*006 worker/.test(text));
  terminal.type('m');
  await terminal.until(() => !terminal.tracksMouse);
  terminal.type('m');
  await terminal.until(() => terminal.tracksMouse);
  terminal.type('q');
  expect(await terminal.exited).toBe(0);
  expect(terminal.tracksMouse).toBe(false);
}, 60_000);

test.each([
  ['with 256 colours', {}],
  ['with sixteen colours', { TERM: 'xterm' }],
  ['with NO_COLOR', { NO_COLOR: '1' }],
])(
  '%s the selection is shown in reverse, in colours that any background supports',
  async (_, env) => {
    await open({ env });
    terminal.type('j');
    await terminal.until((text) => /\n[│┃]›. {2}├ 002 api/.test(text));
    const [x, y] = placeOf('├ 002 api');
    expect(terminal.cell(y, x)).toMatchObject({ isReverse: true, background: null });
    expect(terminal.raw).not.toMatch(/[34]8;5;/);
  },
  60_000,
);
