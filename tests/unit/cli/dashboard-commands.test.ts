/** Promises: the dashboard describes the outcome of a key by the state of the session or group. */
import { expect, test } from 'bun:test';
import { becameOf, granted } from '../../../src/cli/dashboard/ask-group.ts';
import type { EventBody } from '../../../src/core/event.ts';
import { fold, sceneEvents, sessionId } from '../../support/tui/dashboard/scene.ts';

test('pause is reported for running sessions, and hold for waiting ones', () => {
  const { state } = fold(sceneEvents);
  const told = (number: number, wanted: 'pause-session' | 'resume-session') =>
    granted(state, { do: wanted, sessionId: sessionId(number) });
  expect(told(2, 'pause-session')).toBe('002 api is being paused.');
  expect(told(3, 'pause-session')).toBe('003 web is held back; press p to start it.');
  expect(told(8, 'pause-session')).toBe('008 billing is held back; press p to resume it.');
  expect(told(3, 'resume-session')).toStartWith('003 web starts');
  expect(told(8, 'resume-session')).toStartWith('008 billing continues');
});

test('a group that stopped at once, started or continued is reported as such', () => {
  const after = (...more: EventBody[]) => fold([...sceneEvents, ...more]).state;
  expect(becameOf('paused', after(), 7).text).toBe('It continues, with its own runner (pid 7).');
  expect(becameOf('created', after(), 7).text).toBe('It runs, with its own runner (pid 7).');
  const dry = after({ type: 'group_paused', reason: 'budget', message: 'It is used up.' });
  const lead = 'Continue, and try failed sessions again, with';
  const goOn = `${lead}: claude-code-agent group resume ${dry.group.id} --max-budget-usd 20`;
  expect(becameOf('paused', dry, 7)).toEqual({
    text: `It stopped at once. budget: It is used up. ${goOn}`,
    tone: 'warn',
  });
  const failed = after({ type: 'group_failed', reason: 'sessions-failed', message: '1 session failed.' });
  expect(becameOf('created', failed, 7)).toMatchObject({
    text: expect.stringContaining('1 session failed.'),
    tone: 'bad',
  });
  expect(becameOf('created', null, 7).tone).toBe('bad');
});
