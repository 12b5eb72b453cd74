/** Promises: what a key came to is told as it is, by how the session or the group stands. */
import { expect, test } from 'bun:test';
import { granted } from '../../src/cli/dashboard/wishes.ts';
import { fold, sceneEvents, sessionId } from '../report/dashboard/scene.ts';

test('only what runs is being paused; what waits is held back', () => {
  const { state } = fold(sceneEvents);
  const told = (number: number, wanted: 'pause-session' | 'resume-session') =>
    granted(state, { do: wanted, sessionId: sessionId(number) });
  expect(told(2, 'pause-session')).toBe('002 api is being paused.');
  expect(told(3, 'pause-session')).toBe('003 web is held back; p lets it start.');
  expect(told(8, 'pause-session')).toBe('008 billing is held back; p lets it go on.');
  expect(told(3, 'resume-session')).toStartWith('003 web starts');
  expect(told(8, 'resume-session')).toStartWith('008 billing goes on');
});
