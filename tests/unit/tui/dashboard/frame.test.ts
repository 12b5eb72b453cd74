/**
 * Promises: at every size the screen fills the terminal exactly, important rows keep their place, only visible rows
 * are built, and filters, panes and questions show their contents.
 */
import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import type { EventBody } from '../../../../src/core/event.ts';
import type { GroupConfig } from '../../../../src/core/group.ts';
import type { SlotWait } from '../../../../src/core/plan/command-slot.ts';
import type { SchedulingContext } from '../../../../src/core/plan/decision.ts';
import { verdictsAtRest, verdictsOf } from '../../../../src/core/plan/verdicts.ts';
import { paintRow, plainRow, unicodeGlyphs, widthOf } from '../../../../src/tui/dashboard/cells.ts';
import { frameOf } from '../../../../src/tui/dashboard/frame.ts';
import { arrangements, firstUi, sortings, tabs, type Ui } from '../../../../src/tui/dashboard/ui.ts';
import type { View } from '../../../../src/tui/dashboard/view.ts';
import { formatClock } from '../../../../src/view/format.ts';
import { expectGolden as expectGoldenIn } from '../../../support/golden.ts';
import { fc } from '../../../support/property.ts';
import {
  fold,
  frame,
  isSelected,
  layoutText,
  rowsOf,
  type SceneOptions,
  sceneEvents,
  sceneLimit,
  screenOf,
  sessionId,
  startMs,
} from '../../../support/tui/dashboard/scene.ts';
import { whyNot } from '../../../support/verdicts.ts';
import {
  creation,
  sampleAttempt,
  sampleAttemptId,
  sampleUsage,
  session,
  started,
} from '../../../support/view/sample-run.ts';

const expectGolden = (name: string, text: string) =>
  expectGoldenIn(join(import.meta.dir, '../../../fixtures/tui/dashboard'), name, text);

const turning = new RegExp(`[${unicodeGlyphs.turning.join('')}]`, 'g');

/** Clock times depend on the time zone, spinners on the time. */
function timeless(text: string): string {
  const [turned = ''] = unicodeGlyphs.turning;
  return text.replaceAll(formatClock(sceneLimit), 'HH:MM:SS').replaceAll(turning, turned);
}

test('the smallest terminals still show sessions and typed text', () => {
  for (const rows of [2, 3, 4, 6]) {
    expect(layoutText(frame({ rows, ui: { selected: sessionId(1) } }))).toContain('001 schema');
  }
  expect(layoutText(frame({ rows: 1, ui: { mode: { kind: 'filter' }, filter: 'web' } }))).toBe(' filter: web\n');
});

test('rows name their host if a group uses other hosts', () => {
  const moved = [
    { type: 'session_moved', sessionId: sessionId(3), to: 'gpu1' },
    { type: 'session_moved', sessionId: sessionId(6), to: 'a-machine-with-a-long-name' },
  ] as const;
  const { state } = fold([...sceneEvents, ...moved]);
  for (const columns of [80, 120, 200]) {
    const text = layoutText(frame({ columns, view: { state } }));
    expect(text).toMatch(/SESSION +PROJECT +(MODEL +)?HOST +TIME/);
    expect(text).toMatch(/003 web +web +gpu1/);
    expect(text).toMatch(/006 worker +worker +(opus +)?a-mach/);
    expect(text).toMatch(/001 schema +database? +(opus +)?[0-9]/);
    for (const line of text.split('\n')) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns);
  }
  expect(layoutText(frame({ columns: 60, view: { state } }))).not.toContain('HOST');
  expect(layoutText(frame({ columns: 120 }))).not.toContain('HOST');
});

test('the fleet line of a group names problems first', () => {
  const fleet = { up: 2, lost: 0, refusing: 0, drained: 0, silent: {}, used: 3, slots: 12 };
  const line = (more: object, columns = 80): string =>
    layoutText(frame({ columns, view: { fleet: { ...fleet, ...more } } })).split('\n')[2] ?? '';
  expect(line({})).toMatch(/^ fleet: 2 up +3\/12 slots used$/);
  expect(line({ silent: { gpu1: 14_000 } })).toMatch(/^ fleet: 2 up {2}gpu1 last seen 14s ago +3\/12/);
  expect(line({ up: 0, lost: 1, refusing: 2, drained: 3 })).toMatch(
    /^ fleet: 0 up {2}1 lost {2}2 refusing {2}3 drained +3\/12/,
  );
  expect(line({ lost: 1, drained: 1 }, 40)).toMatch(/^ fleet: 2 up {2}1 lost {2}1 drained/);
  expect(layoutText(frame())).not.toContain('fleet');
});

describe('golden frames', () => {
  test.each([60, 80, 120, 200])('the frame at %d columns matches its golden file', (columns) => {
    expectGolden(`list-${columns}`, timeless(screenOf(frame({ columns, rows: 20 }))));
  });

  test('the ASCII frame matches its golden file', () => {
    const text = timeless(screenOf(frame({ ascii: true, rows: 20 }))).replace(/^\| [-|/\\](?= {2})/m, '| |');
    expect(text).toMatch(/^[\n -~]*$/);
    expectGolden('list-80-ascii', text);
  });

  const worker = sessionId(6);
  test.each([
    ['pane-now', { ui: { pane: 'split', tab: 'now', selected: worker } }],
    ['pane-log', { ui: { pane: 'full', tab: 'log', selected: worker } }],
    ['pane-config', { ui: { pane: 'split', tab: 'config', selected: sessionId(2) } }],
    ['problems', { ui: { onlyProblems: true } }],
    ['help', { ui: { mode: { kind: 'palette', text: '', index: 0 } } }],
    ['say', { ui: { mode: { kind: 'say', sessionId: worker, text: 'Use the staging database.' } } }],
    ['runner-gone', { view: { runner: 'none' } }],
    ['fleet', { view: { fleet: { up: 2, lost: 1, refusing: 0, drained: 1, silent: {}, used: 5, slots: 12 } } }],
  ] as [string, SceneOptions][])('the frame matches its golden file: %s', (name, wanted) => {
    expectGolden(name, timeless(screenOf(frame(wanted))));
  });
});

const anyUi: fc.Arbitrary<Partial<Ui>> = fc.record({
  selected: fc.constantFrom(null, ...Array.from({ length: 9 }, (_, index) => sessionId(index + 1)), 'gone'),
  top: fc.nat(30),
  filter: fc.constantFrom('', 'a', 'web', 'nothing like it', 'fail'),
  onlyProblems: fc.boolean(),
  pane: fc.constantFrom('auto', 'none', 'split', 'full'),
  arrangement: fc.constantFrom(...arrangements),
  sorting: fc.constantFrom(...sortings),
  marked: fc.constantFrom([], [sessionId(1), 'gone']),
  tab: fc.constantFrom(...tabs),
  scroll: fc.constantFrom(0, 3, Number.MAX_SAFE_INTEGER),
  mode: fc.constantFrom<Ui['mode']>(
    { kind: 'browse' },
    { kind: 'palette', text: 'g', index: 3 },
    { kind: 'filter' },
    { kind: 'say', sessionId: sessionId(2), text: 'Bitte auf Deutsch: 漢字 👨‍👩‍👧 und mehr' },
    { kind: 'ask-pause' },
    { kind: 'ask-leave' },
  ),
});

const anyNotice: fc.Arbitrary<Partial<View>> = fc.constantFrom(
  {},
  { notices: [{ text: 'Frozen.' }] },
  { notices: [{ text: 'Frozen.' }, { text: `It was refused: ${'漢字 and more '.repeat(40)}`, tone: 'bad' }] },
);

test('every selection fills every terminal size exactly', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 230 }),
      fc.integer({ min: 1, max: 70 }),
      anyUi,
      anyNotice,
      fc.boolean(),
      (...wanted) => {
        const [columns, rows, ui, view, isAscii] = wanted;
        const shown = frame({ columns, rows, ui, view, ...(isAscii ? { ascii: true } : {}) });
        expect(shown.bands.reduce((sum, [pane]) => sum + (pane?.height ?? 0), 0)).toBe(rows);
        for (const panes of shown.bands.filter(([pane]) => pane?.height !== 0)) {
          expect(panes.reduce((sum, pane) => sum + pane.columns, 0)).toBe(columns);
          for (const { rows: inside, columns: outer, height, isFramed, title, end } of panes) {
            const border = isFramed ? 2 : 0;
            expect(inside).toHaveLength(height - border);
            for (const row of inside) expect(Bun.stringWidth(plainRow(row))).toBe(outer - border);
            expect(widthOf([...title, ...end])).toBeLessThanOrEqual(isFramed ? outer - 4 : 0);
          }
        }
        // Drawing large screens takes long.
        if (columns * rows > 3_000) return;
        const drawn = screenOf(shown).split('\n').slice(0, -1);
        expect(drawn).toHaveLength(rows);
        for (const line of drawn) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns);
        if (shown.cursor !== undefined) {
          expect(shown.cursor.x).toBeLessThan(columns);
          expect(shown.cursor.y).toBe(rows - 1);
        }
      },
    ),
  );
});

test('the selected row is reversed over its whole width', () => {
  for (const columns of [40, 80, 200]) {
    const [row] = rowsOf(frame({ columns, rows: 20, ui: { selected: sessionId(9) } })).filter(isSelected);
    const painted = row === undefined ? '' : paintRow(row, 'colour');
    expect(painted).toBe(`\u001b[7m${row === undefined ? '' : plainRow(row)}\u001b[27m`);
    expect(Bun.stringWidth(painted)).toBe(columns < 50 ? columns : columns - 2);
  }
});

test('details take only the rows they need, and enter is explained', () => {
  const at = (ui: Partial<Ui>) => frame({ rows: 40, columns: 90, ui: { selected: sessionId(9), ...ui } });
  const short = at({ pane: 'split', tab: 'prompt' });
  const state = large(60);
  const seen = { live: new Map(), verdicts: verdictsAtRest(state) };
  const view = { state, ...seen, nowMs: startMs, runner: 'elsewhere' } as const;
  const terminal = { columns: 90, rows: 40, glyphs: unicodeGlyphs };
  const many = frameOf(view, { ...firstUi, pane: 'split', tab: 'prompt' }, terminal);
  expect(many.paneRows).toBe(1);
  expect(frameOf(view, { ...firstUi, pane: 'split', tab: 'log' }, terminal).paneRows).toBeGreaterThan(15);
  expect(layoutText(at({}))).toContain('enter open');
  expect(layoutText(short)).toContain('enter close');
  expect(layoutText(short)).not.toContain('enter open');
});

function large(count: number) {
  const ids = Array.from({ length: count }, (_, index) => sessionId(index + 1));
  const sessions = ids.map((id, index) => session(id, { name: `part ${index + 1}` }));
  const events: EventBody[] = [...creation({}, sessions), started, ...sampleAttempt(ids[0] as string)];
  return fold(events).state;
}

test('of a thousand sessions only the visible rows are built', () => {
  const state = large(1000);
  const looked = new Set<string>();
  const counted = new Map(
    [...state.sessions].map(([id, record]) => {
      const { definition } = record;
      const get = (): string => {
        looked.add(id);
        return definition.prompt;
      };
      return [id, { ...record, definition: Object.defineProperty({ ...definition }, 'prompt', { get }) }];
    }),
  );
  const view = {
    state: { ...state, sessions: counted },
    live: new Map(),
    verdicts: verdictsAtRest(state),
    nowMs: startMs,
    runner: 'elsewhere',
  } as const;
  const terminal = { columns: 120, rows: 40, glyphs: unicodeGlyphs };
  const ui = { ...firstUi, selected: sessionId(777), home: sessionId(777), pane: 'split', tab: 'prompt' } as const;
  const shown = frameOf(view, ui, terminal);
  expect(layoutText(shown)).toContain('777 part 777');
  expect([...looked]).toEqual([sessionId(777)]);
  expect(shown.listRows).toBeLessThan(40);
  expect(layoutText(shown)).toMatch(/\d+-\d+ of 1000/);
});

test('the top row names what delays the group', () => {
  const heads = [
    [{ type: 'group_pausing', reason: 'user', mode: 'drain' }, 'may finish first'],
    [{ type: 'group_frozen', until: sceneLimit }, 'frozen: everything is halted'],
    [{ type: 'group_paused', reason: 'budget', message: 'The budget is used up. Raise it.' }, 'budget: The budget is'],
  ] as const;
  for (const [event, text] of heads) {
    const { state } = fold([...sceneEvents, event]);
    expect(layoutText(frame({ columns: 120, view: { state } }))).toContain(text);
  }
});

test('a session on hold is marked, whatever else it waits for', () => {
  const web = { sessionId: sessionId(3) };
  const { state } = fold([...sceneEvents, { type: 'session_queued', ...web, queued: false }]);
  const row = layoutText(frame({ columns: 120, view: { state } }))
    .split('\n')
    .find((line) => line.includes('003 web'));
  expect(row).toContain(unicodeGlyphs.paused);
  expect(row).toContain('held back (p): waits for 002 api');
  expect(whyNot(state, { preparingMax: 4 }).find(({ sessionId: id }) => id === sessionId(3))).toMatchObject({
    reason: 'held',
    message: 'It waits for api and is held back.',
  });
});

test('a session that asks says so, and its question and options have room while it is answered', () => {
  const { state } = fold(sceneEvents);
  const record = state.sessions.get(sessionId(2));
  if (record === undefined) throw new Error('there is no second session');
  const text = 'Which of the two databases is to keep the sessions?';
  const call = { requestId: 'r', toolUseId: 't', tool: 'AskUserQuestion', input: {}, attemptId: 'a' };
  const about = { id: 'one', kind: 'question', text, options: ['Postgres', 'SQLite'] } as const;
  const item = { ...about, ...call, since: state.updatedAt, state: 'open' } as const;
  const view = {
    state: { ...state, sessions: new Map(state.sessions).set(sessionId(2), { ...record, items: [item] }) },
  };
  expect(layoutText(frame({ columns: 120, view }))).toMatch(/002 api .*asks: Which of the two/);
  const answering = { mode: { kind: 'answer', item: 'one', text: '2' } } as const;
  const shown = layoutText(frame({ columns: 80, rows: 24, view, ui: answering }))
    .split('\n')
    .slice(-4)
    .join(' ');
  expect(shown.replace(/\s+/g, ' ')).toContain(`${text} (1 Postgres, 2 SQLite) > 2`);
});

test('a note for the next wave is asked for on 80 columns', () => {
  const ui = { mode: { kind: 'note', item: 'wave-1', text: 'Use tabs.' } } as const;
  expect(layoutText(frame({ columns: 80, ui }))).toContain(' sentence for the prompts that follow: Use tabs.');
});

test('the retry time of a session is shown only while a runner is alive', () => {
  const api = { sessionId: sessionId(2), attemptId: sampleAttemptId(sessionId(2)) };
  const message = 'No answer.';
  const inTrouble = {
    type: 'session_paused',
    ...api,
    reason: 'transient',
    message,
    usage: sampleUsage(0, 0, 0, 0),
  } as const;
  const events = (...more: EventBody[]) => {
    const { state } = fold([...sceneEvents, { type: 'limit_lifted' }]);
    const retryAt = new Date(Date.parse(state.updatedAt) + 60_000).toISOString();
    return fold([...sceneEvents, { type: 'limit_lifted' }, { ...inTrouble, retryAt }, ...more]).state;
  };
  const rowOf = (view: Partial<View>) => {
    const text = layoutText(frame({ columns: 120, view: { ...view, nowMs: Date.parse(events().updatedAt) } }));
    return /002 api .*/.exec(text)?.[0];
  };
  expect(rowOf({ state: events() })).toContain('again in 59s: No answer.');
  expect(rowOf({ state: events(), runner: 'none' })).toContain('transient: No answer.');
  const pausing = { type: 'group_pausing', reason: 'user', mode: 'drain' } as const;
  expect(rowOf({ state: events(pausing) })).toContain('transient: No answer.');
});

test('a session that waits for a limit, a slot or the prompt cache shows it', () => {
  const ids = [1, 2, 3, 4].map(sessionId);
  const [first = '', ...others] = ids;
  const rowsOf = (config: Partial<GroupConfig>, circumstances: Partial<SchedulingContext>, ...more: EventBody[]) => {
    const sessions = ids.map((id) => session(id));
    const { state } = fold([
      ...creation({ maxConcurrentSessions: 4, ...config }, sessions),
      started,
      ...sampleAttempt(first),
      ...more,
    ]);
    const verdicts = verdictsOf(state, { preparingMax: 9, nowMs: Date.parse(state.updatedAt), ...circumstances });
    return [60, 80, 120].map((columns) => layoutText(frame({ columns, view: { state, verdicts } })));
  };
  const times = others.length;
  for (const text of rowsOf({}, { answered: new Set() })) {
    expect(text.match(/waits for prompt cache\n/g)).toHaveLength(times);
  }
  for (const text of rowsOf({ maxConcurrentSessions: 1 }, {})) {
    expect(text.match(/waits for a free slot\n/g)).toHaveLength(times);
  }
  const gate = { untilMs: Date.parse(sceneLimit), mayProbe: false };
  const rows = rowsOf({}, { gate }, { type: 'limit_reached', resetsAt: sceneLimit });
  for (const text of rows) expect(text.match(/ {2,}limit: resumes in 58m 25/g)).toHaveLength(times);
});

test('a frozen session without a runner is shown as stuck, and the pane names the remedy', () => {
  const rowAndWhy = (...more: EventBody[]) => {
    const { state } = fold([...sceneEvents, ...more]);
    const verdicts = verdictsOf(state, { preparingMax: 9, isAbandoned: true });
    const ui = { selected: sessionId(2), pane: 'split' } as const;
    const text = layoutText(frame({ columns: 116, view: { state, runner: 'none', verdicts }, ui }));
    return [/002 api .*\$0\.42 +(\w.*)\n/.exec(text)?.[1], /\n why +(.*)\n/.exec(text)?.[1]];
  };
  const next = "The group's runner is gone. Press P to resume.";
  expect(rowAndWhy({ type: 'group_frozen', until: sceneLimit })).toEqual(['suspended', `Suspended. ${next}`]);
  expect(rowAndWhy()).toEqual(['running without a runner, or ended', `Running without a runner, or ended. ${next}`]);
});

test('a rehearsal is marked at every usual width, and its sessions are counted', () => {
  const { state } = fold(
    sceneEvents.map((event) =>
      event.type === 'group_started' ? { ...event, run: { ...event.run, rehearsal: true } } : event,
    ),
  );
  for (const columns of [60, 80, 120]) {
    const [title = ''] = layoutText(frame({ columns, view: { state } })).split('\n');
    expect(title).toMatch(/ rehearsal .*\/9/);
  }
});

test('the outcome of a key is shown completely above the keys, or in their place if there is no room', () => {
  const command = 'claude-code-agent session pause 20260104-143022-auth/002-api';
  const text = `The group has no runner. Press P to resume it, or only this session in another terminal: ${command}`;
  for (const columns of [70, 100, 200]) {
    const lines = layoutText(frame({ columns, view: { notices: [{ text }] } }))
      .trimEnd()
      .split('\n');
    expect(lines.at(-1)).toContain('q quit');
    expect(lines.join('')).toContain(command);
    // The lower borders of the two frames are not included.
    expect(lines).toHaveLength(22);
  }
  const small = layoutText(frame({ rows: 6, view: { notices: [{ text }] } }))
    .trimEnd()
    .split('\n');
  expect(small.at(-1)).toStartWith(' The group has no runner.');
});

test('the keys fit a terminal of 80 columns', () => {
  const last =
    layoutText(frame({ ui: { selected: sessionId(2) } }))
      .trimEnd()
      .split('\n')
      .at(-1) ?? '';
  for (const hint of ['enter open', 'p pause', 's message', 'n problem', '? help', 'q quit'])
    expect(last).toContain(hint);
});

test('a budget is a bar with spent, reserved and free money', () => {
  const money = (columns: number) => layoutText(frame({ columns })).split('\n')[1] ?? '';
  expect(money(200)).toMatch(/^ \$2\.58 of \$10\.00 {2}█{10}·{29} 26%/);
  const { state } = fold(
    sceneEvents.map((body) =>
      body.type === 'session_starting' && body.sessionId === sessionId(2)
        ? { ...body, attempt: { ...body.attempt, reservedUsd: 2.42 } }
        : body,
    ),
  );
  const reserved = layoutText(frame({ columns: 200, view: { state } })).split('\n')[1] ?? '';
  expect(reserved).toMatch(/█{10}░{8}·{21} 26% {2}\$2\.00 reserved/);
});

test('a session with an unavailable API shows it in its row and its pane', () => {
  const api = sessionId(2);
  const now = { lastText: 'Now the test.', usage: sampleUsage(0.42, 50_000, 2_000, 9_000) };
  const shown = (errorStatus: number | null) => {
    const live = new Map([[api, { ...now, retry: { attempt: 5, attemptsMax: 6, error: 'x', errorStatus } }]]);
    return layoutText(
      frame({ columns: 230, rows: 40, view: { live }, ui: { selected: api, pane: 'split', tab: 'now' } }),
    );
  };
  expect(shown(503)).toContain('no answer (503), try 5 of 6');
  expect(shown(503)).toContain('The API does not respond (503); claude is retrying (5 of 6).');
  expect(shown(null)).toContain('no answer, try 5 of 6');
  expect(shown(429)).toContain('throttled, try 5 of 6');
});

/** The list alone, and the pane beside it as plain text. */
function listAndPane(wanted: SceneOptions): string {
  const list = layoutText(frame({ ...wanted, columns: 200, ui: { ...wanted.ui, pane: 'none' } }));
  const wide = layoutText(
    frame({ ...wanted, columns: 200, rows: 40, ui: { ...wanted.ui, pane: 'split', tab: 'now' } }),
  );
  const pane = wide.split('\n').map((line) => line.slice(line.lastIndexOf('│') + 1).trim());
  return `${list}\n${pane.join(' ').replaceAll(/ +/g, ' ')}`;
}

test('a session with denied calls is marked, and its pane lists them', () => {
  const api = sessionId(2);
  const now = { lastText: 'Now the test.', usage: sampleUsage(0.42, 50_000, 2_000, 9_000) };
  const denied = { calls: 2, tools: ['Bash', 'Write'] };
  const shown = (more: object) =>
    listAndPane({ view: { live: new Map([[api, { ...now, ...more }]]) }, ui: { selected: api } });
  expect(shown({ denied })).toContain('2 calls denied');
  expect(shown({ denied })).toContain('2 tool calls were denied: Bash, Write.');
  expect(shown({ denied, currentTool: 'Bash ls' })).not.toContain('2 calls denied');
  expect(shown({})).not.toContain('denied');
});

test('during setup a session’s row says so, and its pane names the output file', () => {
  const { state } = fold([
    ...creation({}, [session(sessionId(1))]),
    started,
    sampleAttempt(sessionId(1))[0] as EventBody,
  ]);
  const shown = (setupLog: string | null) =>
    listAndPane({ view: { state, live: new Map(), setupLog: () => setupLog }, ui: { selected: sessionId(1) } });
  expect(shown('/g/setup.log')).toContain('set-up command runs');
  expect(shown('/g/setup.log')).toContain('Its setup command is running; see /g/setup.log.');
  expect(shown(null)).toContain('claude is starting');
});

test('a session that waits for a command slot says so, and its pane lists the slot holders', () => {
  const audit = sessionId(9);
  const slot: SlotWait = { command: 'accept', atOnce: 1, heldBy: [{ sessionId: sessionId(2), command: 'setup' }] };
  const shown = (more: object) =>
    listAndPane({
      view: { live: new Map([[audit, { usage: sampleUsage(0, 0, 0, 0), ...more }]]), setupLog: () => '/g/setup.log' },
      ui: { selected: audit },
    });
  expect(shown({ slot })).toContain('waits for a command slot (accept)');
  expect(shown({ slot })).toContain(
    'Its acceptance command waits for a command slot (1 at once); now running: the set-up command of api.',
  );
  expect(shown({ slot })).not.toContain('Its set-up command runs');
  expect(shown({})).not.toContain('command slot');
});

test('blocked sessions are not counted as waiting', () => {
  const [head = ''] = layoutText(frame({ columns: 120 })).split('\n');
  // 003 and 004 wait for 002, and 005 for them; 007 waits for 006, which failed.
  expect(head).toMatch(/3 waiting .*1 blocked .*1 failed/);
});

test('a name is shown completely where the row has room', () => {
  const name = 'migrate-billing-tables';
  const { state } = fold([...creation({}, [session(sessionId(1), { name })]), started]);
  for (const columns of [90, 110, 160]) {
    expect(layoutText(frame({ columns, view: { state, live: new Map() } }))).toContain(`001 ${name} `);
  }
});

test('amounts below a cent are in the cents column', () => {
  const live = new Map([[sessionId(2), { usage: sampleUsage(0.008, 1, 1, 9) }]]);
  expect(layoutText(frame({ columns: 120, view: { live } }))).toMatch(/002 api .* <\$0\.01 /);
});

test('the selection follows what runs, then what failed, until the user selects something', () => {
  const { state } = fold([...sceneEvents, { type: 'group_failed', reason: 'sessions', message: '' }]);
  const selected = (ui: Partial<Ui>, view: Partial<View> = { state }) =>
    frame({ view, ui: { selected: null, ...ui } }).ui.selected;
  expect(selected({})).toBe(sessionId(6));
  expect(selected({ selected: sessionId(1), home: null })).toBe(sessionId(6));
  expect(selected({ selected: sessionId(2), home: sessionId(2) })).toBe(sessionId(2));
  expect(selected({}, {})).toBe(sessionId(2));
});

test('a row has the model, the changed lines and the tasks of its session', () => {
  const live = new Map([[sessionId(2), { usage: sampleUsage(0.1, 1, 1, 9), tasks: { done: 3, total: 7 } }]]);
  const changes = new Map([[sessionId(2), { insertions: 26, deletions: 11 }]]);
  const identified = {
    type: 'session_identified',
    sessionId: sessionId(2),
    attemptId: sampleAttemptId(sessionId(2)),
  } as const;
  const { state } = fold([...sceneEvents, { ...identified, claudeSessionId: 'c', model: 'claude-opus-4-8-20260101' }]);
  const row = (columns: number) =>
    layoutText(frame({ columns, view: { state, live, changes } }))
      .split('\n')
      .find((line) => line.includes('002 api'));
  expect(row(120)).toMatch(/002 api +api +opus-4-8 .*\$0\.10 +\+26 -11 +3\/7 /);
  expect(row(80)).toMatch(/002 api +api .*\$0\.10 +\+26 -11 +3\/7 /);
  // A completed session keeps its own count.
  expect(layoutText(frame({ columns: 120, view: { changes } }))).toMatch(/001 schema .*\+120 -7/);
});
