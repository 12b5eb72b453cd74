/**
 * Promises: in logs of GitHub Actions, session ends are folded, failures are annotated and escaped as GitHub
 * requires, and no text of a session becomes a command.
 */
import { expect, test } from 'bun:test';
import type { EventBody } from '../../../src/core/event.ts';
import { plainStyle } from '../../../src/view/format.ts';
import { createGithubReporter, escapeData, escapeProperty } from '../../../src/view/text-reporter.ts';
import { fc } from '../../support/property.ts';
import {
  creation,
  eventfulRun,
  ids,
  play,
  sampleAttempt,
  sampleAttemptId,
  sampleGroupId,
  sampleUsage,
  session,
  started,
} from '../../support/view/sample-run.ts';

function linesOf(run: readonly EventBody[]): string[] {
  const out: string[] = [];
  const now = (): number => Date.parse('2026-01-04T14:30:30.000Z');
  const reporter = createGithubReporter({ write: (text) => out.push(text), style: plainStyle, now });
  const state = play(reporter, run);
  reporter.summarize(state, new Map(), now());
  return out.join('').split('\n');
}

const retry = `Retry with: claude-code-agent session retry ${sampleGroupId}/web`;

const commandsIn = (lines: readonly string[]) => lines.filter((line) => /^\s*::|##\[/.test(line));

test('GitHub logs fold session ends, annotate failures and close with the table', () => {
  const lines = linesOf(eventfulRun);
  expect(commandsIn(lines)).toEqual([
    '::group::001 api: result',
    '::endgroup::',
    '::group::002 web: failed (no-result)',
    '::endgroup::',
    `::error title=Session 002 web failed (no-result)::claude ended without a result. Look at its log. ${retry}`,
    '::error title=Group Auth failed (sessions-failed)::1 session failed and 1 blocked by it. ' +
      `Continue with: claude-code-agent group run ${sampleGroupId} --retry-failed`,
  ]);
  const fold = lines.indexOf('::group::002 web: failed (no-result)');
  expect(lines[fold - 1]).toContain('002 web   failed (no-result)  $0.60');
  expect(lines.slice(fold + 1, fold + 3)).toEqual(['| claude ended without a result.', `| Look at its log. ${retry}`]);
  expect(lines.findIndex((line) => line.startsWith('SESSION'))).toBeGreaterThan(fold);
});

test('annotations use GitHub’s escapes', () => {
  expect(escapeData('100%\r\n::error::')).toBe('100%25%0D%0A::error::');
  expect(escapeProperty('a: b, c%\n')).toBe('a%3A b%2C c%25%0A');
});

test('no text of a session, name or message becomes a GitHub command', () => {
  const part = fc.constantFrom(
    '::error::',
    '##[error]',
    '##',
    '[',
    '\n',
    '\r',
    '%0A',
    '  ',
    '::',
    'x',
    '\u001b[1m',
    '\u2028',
  );
  const evil = fc.array(part, { maxLength: 12 }).map((parts) => parts.join(''));
  const created = creation({}, [session(ids.api, { name: 'api' }), session(ids.web, { name: 'web' })]);
  fc.assert(
    fc.property(evil, evil, (said, more) => {
      const ofApi = { sessionId: ids.api, attemptId: sampleAttemptId(ids.api) };
      const lines = linesOf([
        ...created,
        started,
        ...sampleAttempt(ids.api),
        { type: 'session_warning', sessionId: ids.api, warning: { code: 'no-changes', message: said } },
        { ...ofApi, type: 'session_completed', result: `${said}\n${more}`, usage: sampleUsage(0.1, 1, 1, 1) },
        ...sampleAttempt(ids.web),
        {
          ...{
            sessionId: ids.web,
            attemptId: sampleAttemptId(ids.web),
            type: 'session_failed',
            reason: 'not-accepted',
          },
          ...{ message: said, next: more, output: `${more}\n${said}`, usage: sampleUsage(0.1, 1, 1, 1) },
        },
        { type: 'group_failed', reason: 'sessions-failed', message: more },
      ]);
      const commands = commandsIn(lines).map((line) => line.replace(/^(::\w+).*$/, '$1'));
      expect(commands.filter((line) => line === '::error')).toHaveLength(2);
      expect(commands.filter((line) => line === '::warning')).toHaveLength(1);
      expect(commands.filter((line) => line === '::group')).toHaveLength(
        commands.filter((line) => line === '::endgroup').length,
      );
      for (const line of commands) expect(line).toMatch(/^::(?:group|endgroup|error|warning)$/);
    }),
  );
});
