/**
 * Promises: the dashboard's message about a key disappears after a while, even without other events, or is replaced.
 */
import { expect, test } from 'bun:test';
import type { Context } from '../../../src/cli/context.ts';
import { Dashboard, Notifications } from '../../../src/cli/dashboard/dashboard.ts';
import { EventNotes, type Source } from '../../../src/cli/dashboard/source.ts';
import type { EventBody } from '../../../src/core/event.ts';
import { verdictsAtRest } from '../../../src/core/plan/verdicts.ts';
import { groupPaths } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { unicodeGlyphs } from '../../../src/tui/dashboard/cells.ts';
import type { Painted } from '../../../src/tui/layout.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { fold, sceneEvents, sessionId } from '../../support/tui/dashboard/scene.ts';
import { sampleAttemptId, sampleUsage } from '../../support/view/sample-run.ts';

const newHand = () => new FakeClock(Date.parse('2026-01-04T15:00:00Z'));

function open(hand: FakeClock) {
  const { state } = fold(sceneEvents);
  const world = { ...createRealWorld(), clock: hand };
  const groupId = state.group.id;
  const paths = groupPaths('/nowhere', groupId);
  const seen = { live: new Map(), verdicts: verdictsAtRest(state) };
  const source: Source = { state, seen, runner: 'here', notes: new EventNotes() };
  let shown: Painted = { bands: [] };
  const dashboard = new Dashboard({
    context: { world } as unknown as Context,
    group: { root: '/nowhere', groupId, paths },
    source,
    openScreen: (first) => {
      shown = first;
      const show = (painted: Painted) => {
        shown = painted;
      };
      const nothing = async () => {};
      const size = { columns: 100, rows: 30, isReady: true };
      return { ...size, show, redraw: () => {}, setMouse: () => {}, lend: nothing, suspend: nothing, close: nothing };
    },
    glyphs: unicodeGlyphs,
    paint: 'plain',
    onQuit: () => {},
    onLeave: () => {},
    onInterrupt: () => {},
    onTrouble: (error) => {
      throw error;
    },
  });
  return {
    dashboard,
    screen: () =>
      shown.bands
        .flat()
        .flatMap(({ lines }) => lines)
        .join('\n'),
  };
}

test('a dashboard message disappears by itself, and a later one replaces it', async () => {
  const hand = newHand();
  const { dashboard, screen } = open(hand);
  dashboard.tell({ text: 'Pausing the group…' });
  expect(screen()).toContain('Pausing the group…');
  hand.pass(5_000);
  dashboard.tell({ text: 'It is paused.' });
  expect(screen()).not.toContain('Pausing the group…');
  hand.pass(5_000);
  // Counted from the last message.
  expect(screen()).toContain('It is paused.');
  hand.pass(5_000);
  expect(screen()).not.toContain('It is paused.');
  await dashboard.close();
});

test('each failure during the dashboard is reported once for its own time, and earlier ones are not', () => {
  const hand = newHand();
  const world = { ...createRealWorld(), clock: hand };
  const one = { sessionId: sessionId(2), attemptId: sampleAttemptId(sessionId(2)), usage: sampleUsage(0, 0, 0, 0) };
  const failed: EventBody = { type: 'session_failed', ...one, reason: 'no-result', message: 'No result.', next: '' };
  const [before, after] = [fold(sceneEvents).state, fold([...sceneEvents, failed]).state];
  const toasts = new Notifications(world, before, () => {});
  const texts = (state: typeof before) => toasts.of(state).map(({ text }) => text);
  expect(texts(before)).toEqual([]);
  expect(texts(after)).toEqual(['002 api failed. no-result: No result.']);
  hand.pass(5_000);
  toasts.put('key', { text: 'The group is paused.' });
  expect(texts(after)).toEqual(['002 api failed. no-result: No result.', 'The group is paused.']);
  hand.pass(5_000);
  expect(texts(after)).toEqual(['The group is paused.']);
  hand.pass(5_000);
  expect(texts(after)).toEqual([]);
});

test('many simultaneous failures are reported by their number', () => {
  const world = { ...createRealWorld(), clock: newHand() };
  const { state } = fold(sceneEvents);
  const toasts = new Notifications(world, { ...state, failed: new Set() }, () => {});
  const failed = new Set([1, 2, 3].map(sessionId));
  expect(toasts.of({ ...state, failed }).map(({ text }) => text)).toEqual(['3 sessions failed.']);
});
