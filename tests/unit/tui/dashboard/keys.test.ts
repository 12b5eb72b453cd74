/**
 * Promises: each key does what the help says, a key that is not possible now is explained, and typed text triggers no
 * keys.
 */
import { expect, test } from 'bun:test';
import type { EventBody } from '../../../../src/core/event.ts';
import { verdictsAtRest } from '../../../../src/core/plan/verdicts.ts';
import { type KeyCommand, keyActions } from '../../../../src/tui/dashboard/actions.ts';
import { keyNames, type Press, press } from '../../../../src/tui/dashboard/keys.ts';
import { listItems, sessionIdsOf } from '../../../../src/tui/dashboard/list.ts';
import { firstUi, type Hit, paneShape, settled, type Ui } from '../../../../src/tui/dashboard/ui.ts';
import type { Runner } from '../../../../src/tui/dashboard/view.ts';
import {
  fold,
  frame,
  layoutText,
  sceneEvents,
  sceneLimit,
  sessionId,
  startMs,
} from '../../../support/tui/dashboard/scene.ts';
import { creation, sampleAttemptId, sampleUsage, session, started } from '../../../support/view/sample-run.ts';

const { state } = fold(sceneEvents);
const text = (typed: string): Press => ({ text: typed });
const named = (name: Extract<Press, { key: string }>['key']): Press => ({ key: name });

interface At {
  readonly ui?: Partial<Ui>;
  readonly number?: number;
  readonly runner?: Runner;
  readonly state?: typeof state;
  readonly columns?: number;
}

const now = { live: new Map(), nowMs: startMs, runner: 'elsewhere' } as const;
const listedSessions = (shown: typeof state, ui: Ui) =>
  sessionIdsOf(listItems({ ...now, state: shown, verdicts: verdictsAtRest(shown) }, ui));
/** The screen shows only these. */
const hit = (x: number, y: number): Hit | null =>
  x < 40
    ? order[y] === undefined
      ? { on: 'list' }
      : { on: 'session', id: order[y] }
    : y === 0
      ? { on: 'tab', tab: 'cost' }
      : { on: 'pane' };

function pressed(keys: readonly Press[], at: At = {}) {
  const { ui = {}, number = 1, runner = 'elsewhere', state: shown = state, columns = 80 } = at;
  let shownUi: Ui = { ...firstUi, selected: sessionId(number), home: ui.selected ?? sessionId(number), ...ui };
  const commands: KeyCommand[] = [];
  for (const key of keys) {
    const ids = listedSessions(shown, shownUi);
    const index = Math.max(0, ids.indexOf(shownUi.selected ?? ''));
    const shape = paneShape(shownUi, columns);
    const result = press(shownUi, key, { state: shown, ids, index, listRows: 5, paneRows: 4, shape, runner, hit });
    const { index: _, ...next } = settled(result.ui, listedSessions(shown, result.ui), 5);
    shownUi = next;
    if (result.command !== undefined) commands.push(result.command);
  }
  return { ui: shownUi, commands };
}

const order = listedSessions(state, firstUi);
const selectedAfter = (...keys: Press[]) => order.indexOf(pressed(keys).ui.selected ?? '');

test('the selection moves and stays within the list', () => {
  expect(selectedAfter(text('j'), named('down'))).toBe(2);
  expect(selectedAfter(named('up'), text('k'))).toBe(0);
  expect(selectedAfter(named('page-down'))).toBe(4);
  expect(selectedAfter(text('G'), text('j'))).toBe(order.length - 1);
  expect(selectedAfter(text('G'), text('g'))).toBe(0);
  expect(selectedAfter(text('4'), text('.'))).toBe(4);
  expect(selectedAfter(text('4'), text('.'), text(','))).toBe(0);
  expect(pressed([text('j')], { ui: { filter: 'nothing' } }).ui.selected).toBe(sessionId(1));
});

test('enter opens and closes the pane, and tabs are reached in turn or by number', () => {
  expect(pressed([named('enter')]).ui).toMatchObject({ pane: 'split', tab: 'now' });
  expect(pressed([named('enter'), named('enter')]).ui.pane).toBe('none');
  expect(pressed([named('enter'), named('right'), named('right')]).ui.tab).toBe('diff');
  expect(pressed([named('enter'), named('left')]).ui.tab).toBe('config');
  expect(pressed([text('4')]).ui).toMatchObject({ pane: 'split', tab: 'prompt' });
  expect(pressed([text('l')]).ui).toMatchObject({ pane: 'full', tab: 'log' });
  expect(pressed([text('l'), text('q')])).toMatchObject({ ui: { pane: 'auto' }, commands: [] });
  expect(pressed([text('3'), text('l'), named('escape')]).ui.pane).toBe('split');
});

test('the log scrolls from its end, other tabs from their start', () => {
  expect(pressed([text('l'), text('k'), text('k')]).ui.scroll).toBe(2);
  expect(pressed([text('l'), text('k'), text('j'), text('j')]).ui.scroll).toBe(0);
  expect(pressed([text('4'), named('page-down')]).ui.scroll).toBe(3);
  expect(pressed([text('l'), text('g')]).ui.scroll).toBe(Number.MAX_SAFE_INTEGER);
});

test.each([
  [2, 'p', { do: 'pause-session', sessionIds: [sessionId(2)] }],
  [3, 'p', { do: 'pause-session', sessionIds: [sessionId(3)] }],
  [6, 'r', { do: 'retry-session', sessionIds: [sessionId(6)] }],
  [6, 'p', { do: 'tell', message: 'Session 006 worker is failed. Retry with r.' }],
  [1, 'p', { do: 'tell', message: 'Session 001 schema is completed. It cannot be paused or resumed.' }],
  [1, 's', { do: 'tell', message: 'Session 001 schema is completed. It takes no more messages.' }],
  [2, 'r', { do: 'tell', message: 'Session 002 api is running. Only failed sessions can be retried.' }],
] as [number, string, KeyCommand][])('on session %d the key %s gives its command', (number, key, command) => {
  expect(pressed([text(key)], { number }).commands).toEqual([command]);
});

/** The scene after these events, with the effect of the key p on the session and the text of the last row. */
function toggled(number: number, ...events: EventBody[]) {
  const { state: shown } = fold([...sceneEvents, ...events]);
  const last = layoutText(frame({ columns: 120, view: { state: shown }, ui: { selected: sessionId(number) } }));
  const [command] = pressed([text('p')], { number, state: shown }).commands;
  return { does: command?.do, says: /\bp (\w+)/.exec(last.trimEnd().split('\n').at(-1) ?? '')?.[1] };
}

const queued = (number: number, isQueued: boolean): EventBody => ({
  type: 'session_queued',
  sessionId: sessionId(number),
  queued: isQueued,
});
const atLimit: EventBody = {
  type: 'session_paused',
  sessionId: sessionId(2),
  attemptId: sampleAttemptId(sessionId(2)),
  reason: 'limit',
  message: 'A usage or rate limit was reached.',
  usage: sampleUsage(0.1, 10, 10, 1000),
};

test('p does what the last row says: pause, hold, or release a hold', () => {
  expect(toggled(2)).toEqual({ does: 'pause-session', says: 'pause' });
  expect(toggled(2, atLimit)).toEqual({ does: 'pause-session', says: 'hold' });
  expect(toggled(2, atLimit, queued(2, false))).toEqual({ does: 'resume-session', says: 'resume' });
  expect(toggled(3)).toEqual({ does: 'pause-session', says: 'hold' });
  expect(toggled(3, queued(3, false))).toEqual({ does: 'resume-session', says: 'start' });
  expect(toggled(8)).toEqual({ does: 'resume-session', says: 'resume' });
  expect(toggled(6, queued(6, true))).toEqual({ does: 'pause-session', says: 'hold' });
  for (const number of [1, 6]) expect(toggled(number)).toEqual({ does: 'tell', says: undefined });
});

test('a message is typed, pasted, corrected and sent without triggering keys', () => {
  const keys = [
    text('s'),
    text('qPpr'),
    named('erase'),
    { text: ' two\r\nlines', isPasted: true } as const,
    named('enter'),
  ];
  expect(pressed(keys, { number: 2 }).commands).toEqual([
    { do: 'say', sessionId: sessionId(2), text: 'qPp two\nlines' },
  ]);
  expect(pressed([text('s'), text('x'), named('escape')], { number: 2 })).toMatchObject({
    commands: [],
    ui: { mode: { kind: 'browse' } },
  });
  expect(pressed([text('s'), text('  '), named('enter')], { number: 2 }).commands).toEqual([]);
  const erased = pressed([text('s'), text('a👨‍👩‍👧'), named('erase'), named('enter')], { number: 2 });
  expect(erased.commands).toMatchObject([{ text: 'a' }]);
});

test('a filter applies while it is typed, and escape removes it', () => {
  expect(pressed([text('/'), text('web')]).ui).toMatchObject({ filter: 'web', mode: { kind: 'filter' } });
  expect(pressed([text('/'), text('web'), named('enter')]).ui).toMatchObject({
    filter: 'web',
    mode: { kind: 'browse' },
  });
  expect(pressed([text('/'), text('web'), named('escape')]).ui.filter).toBe('');
  expect(pressed([text('f')]).ui.onlyProblems).toBe(true);
  expect(pressed([text('f'), named('escape')]).ui.onlyProblems).toBe(false);
  expect(listedSessions(state, { ...firstUi, onlyProblems: true }).map((id) => Number(id.slice(0, 3)))).toEqual([
    6, 7, 8,
  ]);
  expect(listedSessions(state, { ...firstUi, filter: 'BLOCKED' }).map((id) => Number(id.slice(0, 3)))).toEqual([7]);
});

test('a selected session stays under a filter until the filter or the selection changes', () => {
  const fine = sessionId(1);
  const after = (keys: Press[], ui: Partial<Ui>) => pressed(keys, { ui }).ui.selected;
  // Its state has changed since it was selected.
  const ui = { ...firstUi, onlyProblems: true, selected: fine };
  expect(listedSessions(state, ui)).toContain(fine);
  expect(listedSessions(state, { ...ui, selected: null })).not.toContain(fine);
  expect(pressed([text('p')], { ui, number: 1 }).commands).not.toContainEqual(
    expect.objectContaining({ sessionIds: [sessionId(6)] }),
  );
  // The user types about other sessions.
  expect(after([text('f')], { selected: fine })).toBe(sessionId(6));
  expect(after([text('f')], { selected: sessionId(7) })).toBe(sessionId(7));
  expect(after([text('/'), text('BLOCKED')], { selected: fine })).toBe(sessionId(7));
  expect(after([text('/'), text('nothing like it')], { selected: fine })).toBeNull();
  // The selection did not move: the session that the user chose returns as soon as it is visible.
  expect(after([text('f'), text('f')], { selected: fine })).toBe(fine);
  expect(after([text('/'), text('BLOCKED'), named('escape')], { selected: fine })).toBe(fine);
  expect(after([text('f'), named('down'), text('f')], { selected: fine })).toBe(sessionId(7));
  expect(layoutText(frame({ ui: { filter: 'nothing like it', selected: null } }))).toContain('Nothing matches.');
});

test('pausing the whole group requires confirmation, and a frozen group continues', () => {
  expect(pressed([text('P')])).toMatchObject({ commands: [], ui: { mode: { kind: 'ask-pause' } } });
  expect(pressed([text('P'), text('y')]).commands).toEqual([{ do: 'pause-group', mode: 'now' }]);
  expect(pressed([text('P'), text('d')]).commands).toEqual([{ do: 'pause-group', mode: 'drain' }]);
  expect(pressed([text('P'), text('n')])).toMatchObject({ commands: [], ui: { mode: { kind: 'browse' } } });
  const frozen = fold([...sceneEvents, { type: 'group_frozen', until: sceneLimit }]).state;
  expect(pressed([text('P')], { state: frozen }).commands).toEqual([{ do: 'resume-group' }]);
});

test('a paused or failed group resumes at once; one never started or without a runner requires confirmation', () => {
  const pausedState = fold([...sceneEvents, { type: 'group_paused', reason: 'user', message: '' }]).state;
  expect(pressed([text('P')], { state: pausedState, runner: 'none' }).commands).toEqual([{ do: 'resume-group' }]);
  const lost = { runner: 'none' } as const;
  expect(pressed([text('P')], lost)).toMatchObject({ commands: [], ui: { mode: { kind: 'ask-resume' } } });
  expect(pressed([text('P'), text('y')], lost).commands).toEqual([{ do: 'resume-group' }]);
  expect(pressed([text('P'), text('p')], lost).commands).toEqual([{ do: 'pause-group', mode: 'now' }]);
  expect(pressed([text('P'), named('enter')], lost).commands).toEqual([]);
  const created = { state: fold(creation({}, [session(sessionId(1))])).state, runner: 'none' } as const;
  expect(pressed([text('P'), text('n'), text('P'), text('y')], created).commands).toEqual([{ do: 'resume-group' }]);
  const done = fold([...creation({}, []), started, { type: 'group_completed' }]).state;
  expect(pressed([text('P')], { state: done, runner: 'none' }).commands).toEqual([
    { do: 'tell', message: 'The group is completed.' },
  ]);
});

test('q closes a watcher at once, and asks when the dashboard is the runner', () => {
  expect(pressed([text('q')]).commands).toEqual([{ do: 'quit' }]);
  const runner = 'here';
  expect(pressed([text('q')], { runner })).toMatchObject({ commands: [], ui: { mode: { kind: 'ask-leave' } } });
  expect(pressed([text('q'), text('l')], { runner }).commands).toEqual([{ do: 'leave' }]);
  expect(pressed([text('q'), text('p')], { runner }).commands).toEqual([{ do: 'pause-group', mode: 'now' }]);
  expect(pressed([text('q'), text('q')], { runner }).commands).toEqual([]);
  expect(pressed([named('ctrl-c')], { runner }).commands).toEqual([{ do: 'interrupt' }]);
});

test('leaving is offered only where it undoes nothing', () => {
  const runner = 'here';
  const held: EventBody[] = [
    { type: 'group_frozen', until: sceneLimit },
    { type: 'group_pausing', reason: 'user', mode: 'drain' },
    { type: 'group_pausing', reason: 'user' },
  ];
  for (const event of held) {
    const { state: shown } = fold([...sceneEvents, event]);
    expect(pressed([text('q'), text('l')], { runner, state: shown }).commands).toEqual([]);
    expect(pressed([text('q'), text('p')], { runner, state: shown }).commands).toMatchObject([{ do: 'pause-group' }]);
    const asked = layoutText(frame({ view: { state: shown, runner }, ui: { mode: { kind: 'ask-leave' } } }));
    expect(asked).not.toContain('(l)');
  }
  const usual = layoutText(frame({ view: { runner }, ui: { mode: { kind: 'ask-leave' } } }));
  expect(usual).toContain('Leave the sessions running (l)');
  expect(layoutText(frame({ ui: { mode: { kind: 'ask-start' } } }))).toContain('Start the group for real');
});

test('accidentally pasted text triggers no keys', () => {
  expect(pressed([text('rm -rf q'), { text: 'q', isPasted: true }])).toEqual({
    ui: { ...firstUi, selected: sessionId(1), home: sessionId(1) },
    commands: [],
  });
});

const click = (x: number, y: number): Press => ({ mouse: 'click', x, y });
const wheel = (mouse: 'wheel-up' | 'wheel-down', x: number): Press => ({ mouse, x, y: 2 });

test('a click selects, and the wheel scrolls the list or pane below it', () => {
  expect(order.indexOf(pressed([click(3, 5)]).ui.selected ?? '')).toBe(5);
  expect(order.indexOf(pressed([wheel('wheel-down', 3)]).ui.selected ?? '')).toBe(3);
  expect(order.indexOf(pressed([wheel('wheel-down', 3), wheel('wheel-up', 3)]).ui.selected ?? '')).toBe(0);
  const open = { ui: { pane: 'split', tab: 'prompt' } } as const;
  expect(pressed([wheel('wheel-down', 50)], open).ui).toMatchObject({ scroll: 3, selected: sessionId(1) });
  expect(pressed([click(50, 0)], open).ui.tab).toBe('cost');
  expect(pressed([click(50, 3), click(3, 90)], open).ui).toMatchObject({ tab: 'prompt', selected: sessionId(1) });
  // A click on the selected session opens it where details are hidden.
  expect(pressed([click(3, 0)]).ui.pane).toBe('split');
});

test('the mouse answers no question, types nothing, and scrolls the help', () => {
  for (const keys of [[text('P')], [text('/'), text('web')], [text('s'), text('x')]]) {
    const before = pressed(keys, { number: 2 }).ui;
    expect(pressed([...keys, click(3, 5), wheel('wheel-down', 3)], { number: 2 })).toEqual({
      ui: before,
      commands: [],
    });
  }
  expect(pressed([text('?'), wheel('wheel-down', 3)]).ui.mode).toEqual({ kind: 'palette', text: '', index: 3 });
  expect(pressed([text('?'), click(3, 3)]).ui.mode).toEqual({ kind: 'browse' });
});

test('m releases the mouse to the terminal and captures it again', () => {
  expect(pressed([text('m'), text('m')]).commands).toEqual([
    { do: 'mouse', isOn: false },
    { do: 'mouse', isOn: true },
  ]);
});

test('marks make one key act on several sessions', () => {
  const space = text(' ');
  const marks = (...keys: Press[]) => pressed(keys).ui.marked;
  expect(marks(space, space)).toEqual(order.slice(0, 2));
  expect(marks(space, named('up'), space)).toEqual([]);
  expect(marks(text('*'))).toEqual(order);
  expect(marks(text('*'), text('*'))).toEqual([]);
  expect(marks(space, named('escape'))).toEqual([]);
  const ui = (...numbers: number[]) => ({ ui: { marked: numbers.map(sessionId) } });
  // Completed and failed sessions cannot be paused.
  expect(pressed([text('p')], ui(1, 2, 3, 6)).commands).toEqual([
    { do: 'pause-session', sessionIds: [sessionId(2), sessionId(3)] },
  ]);
  expect(pressed([text('p')], ui(1, 8)).commands).toEqual([{ do: 'resume-session', sessionIds: [sessionId(8)] }]);
  expect(pressed([text('r')], ui(2, 6)).commands).toEqual([{ do: 'retry-session', sessionIds: [sessionId(6)] }]);
  expect(pressed([text('p')], ui(1, 6)).commands).toEqual([
    { do: 'tell', message: 'None of the 2 marked sessions can be paused or resumed.' },
  ]);
  // A session that was removed meanwhile.
  expect(pressed([text('p')], { number: 2, ui: { marked: ['gone'] } }).commands).toMatchObject([
    { sessionIds: [sessionId(2)] },
  ]);
  const shown = layoutText(frame({ ui: { marked: [sessionId(1), sessionId(3)] } }));
  expect(shown).toContain('2 marked');
  expect(shown).toMatch(/\n◆✓ {2}001 schema.*\n(.*\n)*◆○ {2}│ ├ 003 web/);
});

test('the palette lists exactly the keys that have an effect', () => {
  const characters = Array.from({ length: 0x7f - 0x20 }, (_, index) => String.fromCharCode(0x20 + index));
  const presses = [
    ...characters.map((one) => [one, text(one)] as const),
    ...keyNames.map((one) => [one, named(one)] as const),
  ];
  const places: At[] = [1, 2, 6, 8].flatMap((number) =>
    (['none', 'split', 'full'] as const).map((pane) => ({ number, ui: { pane, tab: 'log', scroll: 1, filter: ' ' } })),
  );
  const isHandled = (key: Press) =>
    places.some((place) => {
      const before = pressed([named('ctrl-u')], place).ui;
      const { ui, commands } = pressed([key], place);
      return commands.length > 0 || JSON.stringify(ui) !== JSON.stringify(before);
    });
  const handled = presses.filter(([, key]) => isHandled(key)).map(([name]) => name);
  const listed = keyActions.flatMap(({ keys }) => keys.map((key) => (key === 'space' ? ' ' : key)));
  expect(handled.toSorted()).toEqual(listed.toSorted());
});

test('i answers the questions of the selected session, or says that there are none', () => {
  const none = pressed([text('i')]);
  expect(none.commands).toMatchObject([{ do: 'tell' }]);
  const record = state.sessions.get(sessionId(2));
  if (record === undefined) throw new Error('there is no second session');
  const call = { requestId: 'r', toolUseId: 't', tool: 'Bash', input: {}, attemptId: 'a', since: state.updatedAt };
  const item = { id: 'one', kind: 'permission', text: 'Bash: ls', options: ['allow', 'deny'], ...call } as const;
  const sessions = new Map(state.sessions).set(sessionId(2), { ...record, items: [{ ...item, state: 'open' }] });
  const { commands } = pressed([text('i'), text('allow'), named('enter')], {
    number: 2,
    state: { ...state, sessions },
  });
  expect(commands).toEqual([{ do: 'answer', item: 'one', text: 'allow' }]);
});

test('tab moves the focus, and the arrow keys are for the pane that has it', () => {
  const open = { ui: { pane: 'split', tab: 'prompt' } } as const;
  expect(pressed([named('tab'), named('down')], open).ui).toMatchObject({ focus: 'details', scroll: 1 });
  expect(pressed([named('tab'), named('down'), named('tab'), named('down')], open).ui).toMatchObject({
    focus: 'list',
    selected: order[1],
  });
  expect(pressed([named('tab'), named('enter')], open).ui.pane).toBe('full');
  expect(pressed([named('tab'), named('escape')], open).ui.focus).toBe('list');
  expect(pressed([named('tab')]).ui).toMatchObject({ pane: 'split', focus: 'details' });
  expect(pressed([click(50, 3)], open).ui.focus).toBe('details');
  expect(pressed([click(50, 3), click(3, 2)], open).ui.focus).toBe('list');
});

test('n goes to the next session that failed, is paused or asks something, and round again', () => {
  const problems = [6, 8].map(sessionId);
  for (const key of ['n', '!']) {
    expect(pressed([text(key)]).ui.selected).toBe(sessionId(6));
    expect(pressed([text(key), text(key)]).ui.selected).toBe(sessionId(8));
    expect(pressed([text(key), text(key), text(key)]).ui.selected).toBe(sessionId(6));
  }
  const sessions = new Map([...state.sessions].filter(([id]) => !problems.includes(id)));
  expect(pressed([text('n')], { state: { ...state, sessions } }).commands).toMatchObject([{ do: 'tell' }]);
});

test('a key that is not possible now says why', () => {
  const why = (key: string, number: number) => pressed([text(key)], { number }).commands[0];
  expect(why('a', 3)).toEqual({
    do: 'tell',
    message: 'Session 003 web is pending. It was never started, so there is no conversation.',
  });
  expect(why('i', 2)).toEqual({ do: 'tell', message: 'Session 002 api is running. It has no open question.' });
  expect(why('w', 2)).toEqual({ do: 'tell', message: 'No wave waits for a decision.' });
  expect(why('e', 1)).toMatchObject({ do: 'tell' });
  const [left] = pressed([named('left')]).commands;
  expect(left).toEqual({ do: 'tell', message: 'The details are closed. Open them with enter.' });
});

test('w decides on the wave that waits for a person, with a note for those that follow', () => {
  const item = { id: 'wave-1', kind: 'wave', wave: 1, text: 'Wave 1: 3 of 3 accepted.', options: [] } as const;
  const waiting = { ...item, since: state.updatedAt, state: 'open' } as const;
  const at = { state: { ...state, waves: { ...state.waves, items: [waiting] } } } as At;
  expect(pressed([text('w')], at).ui.mode).toEqual({ kind: 'ask-wave', item: 'wave-1' });
  expect(pressed([text('w'), text('c')], at).commands).toEqual([{ do: 'answer', item: 'wave-1', text: 'continue' }]);
  expect(pressed([text('w'), text('s')], at).commands).toEqual([{ do: 'answer', item: 'wave-1', text: 'stop' }]);
  expect(pressed([text('w'), text('n'), text('Use pnpm.'), named('enter')], at).commands).toEqual([
    { do: 'answer', item: 'wave-1', text: 'continue', note: 'Use pnpm.' },
  ]);
  expect(pressed([text('w'), named('escape')], at).commands).toEqual([]);
  expect(layoutText(frame({ view: { state: at.state as typeof state } }))).toContain('Press w to decide.');
});

test('the palette runs what is chosen, finds by letters in order, and shows why others are not possible', () => {
  const run = (typed: string, ...more: Press[]) =>
    pressed([text(':'), ...[...typed].map(text), ...more, named('enter')]);
  expect(run('retry the').commands).toMatchObject([{ do: 'tell' }]);
  expect(run('pause the group').ui.mode).toEqual({ kind: 'ask-pause' });
  expect(run('srtcst').ui).toMatchObject({ sorting: 'cost', mode: { kind: 'browse' } });
  expect(run('sort by', named('down')).ui.sorting).toBe('graph');
  expect(run('no such thing')).toMatchObject({ commands: [], ui: { mode: { kind: 'browse' } } });
  expect(pressed([text(':'), text('x'), named('escape')])).toMatchObject({ commands: [], ui: { filter: '' } });
  const shown = layoutText(
    frame({ columns: 140, ui: { selected: sessionId(2), mode: { kind: 'palette', text: 'retry', index: 0 } } }),
  );
  expect(shown).toMatch(/r +retry the failed .*Only failed sessions can be retried\./);
});

test('a key that acts on a session keeps it selected', () => {
  const { state: shown } = fold(sceneEvents);
  for (const key of ['p', 's', 'o', 'a']) {
    const before = { ...firstUi, selected: sessionId(2) };
    const context = {
      state: shown,
      ids: [sessionId(2)],
      index: 0,
      listRows: 5,
      paneRows: 4,
      hit,
      runner: 'elsewhere',
    } as const;
    expect(press(before, text(key), { ...context, shape: 'none' }).ui.home).toBe(sessionId(2));
  }
});
