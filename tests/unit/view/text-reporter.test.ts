/**
 * Promises: the text reporter prints one line for each event and each tool once. No foreign text controls the
 * terminal, and colours are used only on request.
 */
import { expect, test } from 'bun:test';
import type { LiveSession } from '../../../src/core/progress.ts';
import { colourStyle, plainStyle, type Style } from '../../../src/view/format.ts';
import { createQuietReporter } from '../../../src/view/reporter.ts';
import { createTextReporter } from '../../../src/view/text-reporter.ts';
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

const endMs = Date.parse('2026-01-04T14:31:22.000Z');

function reporterInto(lines: string[], style: Style = plainStyle) {
  return createTextReporter({
    write: (text) => lines.push(text),
    style,
    now: () => Date.parse('2026-01-04T14:30:30.000Z'),
    groupFolder: `/data/session-groups/${sampleGroupId}`,
  });
}

test('the text reporter prints an eventful run line by line with its summary', () => {
  const out: string[] = [];
  const reporter = reporterInto(out);
  const state = play(reporter, eventfulRun);
  reporter.summarize(state, new Map(), endMs);
  const retry = `Retry with: claude-code-agent session retry ${sampleGroupId}/web`;
  expect(out.join('')).toBe(`\
14:30:23  001 api  added  shop
14:30:24  002 web  added  web
14:30:25  003 docs  added  shop
14:30:26  group     started: 3 sessions to run, up to 3 at once, cap $1.00
14:30:28  001 api   started (attempt 1)  shop
14:30:31  002 web   started (attempt 1)  web
14:30:33  001 api   completed  $0.25, 12k in, 2.5k out, 1m 05s
14:30:34  group     budget warning: 85% used, $0.85 of $1.00
14:30:35  002 web   failed (no-result)  $0.60, 90k in, 400 out, 8s  \
claude ended without a result.  Blocks 003 docs.  Look at its log. ${retry}
14:30:36  group     failed (sessions-failed)  1 session failed and 1 blocked by it.

SESSION   PROJECT  STATUS     REASON     ATTEMPTS    TIME   COST   IN   OUT
001 api   shop     completed                    1  1m 05s  $0.25  12k  2.5k
002 web   web      failed     no-result         1      8s  $0.60  90k   400
003 docs  shop     pending    blocked

Auth: failed (sessions-failed), 1 of 3 sessions completed, $0.85 of $1.00, 102k in, 2.9k out, 10s

002 web  failed: claude ended without a result. Look at its log. ${retry}
003 docs  blocked by 002 web

1 session failed and 1 blocked by it.
Continue with: claude-code-agent group run ${sampleGroupId} --retry-failed
Transcripts: /data/session-groups/${sampleGroupId}/sessions/*/transcript.jsonl
`);
});

test('the text reporter shows the time of an automatic resume', () => {
  const out: string[] = [];
  const reporter = reporterInto(out);
  const of = { sessionId: ids.api, attemptId: sampleAttemptId(ids.api, 1) };
  const paused = { type: 'session_paused', ...of, message: 'No answer.', usage: sampleUsage(0, 0, 0, 0) } as const;
  const trouble = { ...paused, reason: 'transient', retryAt: '2026-01-04T14:35:00.000Z' } as const;
  play(reporter, [...creation({}, [session(ids.api, { name: 'api' })]), started, ...sampleAttempt(ids.api), trouble]);
  expect(out.join('')).toContain('001 api  paused (transient, resumes at 14:35:00)  $0.00');
});

test('the text reporter names each tool once, however often progress is reported', () => {
  const out: string[] = [];
  const reporter = reporterInto(out);
  const state = play(reporter, [
    ...creation({}, [session(ids.api, { name: 'api' })]),
    started,
    ...sampleAttempt(ids.api),
  ]);
  out.length = 0;
  const say = (currentTool: string): void => {
    const live = new Map<string, LiveSession>([[ids.api, { currentTool, usage: sampleUsage(0.1, 1, 1, 1) }]]);
    reporter.progress(ids.api, state, live);
  };
  for (const tool of ['Read a.ts', 'Read a.ts', 'Bash npm test', 'Bash npm test']) say(tool);
  expect(out).toEqual(['14:30:30  001 api  Read a.ts\n', '14:30:30  001 api  Bash npm test\n']);
});

test('the text reporter shows new denied calls, and starts again with the next attempt', () => {
  const out: string[] = [];
  const reporter = reporterInto(out);
  const state = play(reporter, [
    ...creation({}, [session(ids.api, { name: 'api' })]),
    started,
    ...sampleAttempt(ids.api),
  ]);
  out.length = 0;
  const say = (...calls: readonly number[]): void => {
    for (const count of calls) {
      const denied = { calls: count, tools: ['Bash'] };
      reporter.progress(ids.api, state, new Map([[ids.api, { denied, usage: sampleUsage(0.1, 1, 1, 1) }]]));
    }
  };
  say(1, 1, 3, 3);
  const line = (words: string) => `14:30:30  001 api  ${words} denied: Bash.\n`;
  expect(out).toEqual([line('1 tool call was'), line('3 tool calls were')]);
  const over = { type: 'session_paused', reason: 'user', message: 'x', usage: sampleUsage(0, 0, 0, 0) } as const;
  const ended = { ...over, sessionId: ids.api, attemptId: sampleAttemptId(ids.api, 1) };
  play(reporter, [...creation({}, [session(ids.api, { name: 'api' })]), started, ...sampleAttempt(ids.api), ended]);
  out.length = 0;
  say(1);
  expect(out).toEqual([line('1 tool call was')]);
});

test('the text reporter removes control characters from foreign text', () => {
  const out: string[] = [];
  const reporter = reporterInto(out);
  const evil = 'a\u001b]0;title\u0007\u001b[2J\u009b31m\rb\u202e\nc';
  const state = play(reporter, [
    ...creation({}, [session(ids.api, { projectPath: `/p/${evil}` })]),
    started,
    ...sampleAttempt(ids.api),
    { type: 'session_warning', sessionId: ids.api, warning: { code: 'malformed-lines', message: evil } },
    {
      type: 'session_failed',
      sessionId: ids.api,
      attemptId: sampleAttemptId(ids.api),
      reason: 'claude-error',
      message: evil,
      next: evil,
      usage: sampleUsage(0, 0, 0, 0),
    },
  ]);
  reporter.progress(ids.api, state, new Map([[ids.api, { currentTool: evil, usage: sampleUsage(0, 0, 0, 0) }]]));
  reporter.summarize(state, new Map(), endMs);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: this is what is looked for.
  expect(out.join('')).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
  expect(out.join('')).toContain('warning: a');
});

test('the text reporter adds colours around unchanged words', () => {
  const plain: string[] = [];
  const coloured: string[] = [];
  for (const [out, style] of [
    [plain, plainStyle],
    [coloured, colourStyle],
  ] as const) {
    const reporter = reporterInto(out, style);
    reporter.summarize(play(reporter, eventfulRun), new Map(), endMs);
  }
  expect(coloured.join('')).toContain('\u001b[32mcompleted\u001b[39m');
  expect(plain.join('')).not.toContain('\u001b');
  expect(Bun.stripANSI(coloured.join(''))).toBe(plain.join(''));
});

test('the quiet text reporter prints only the closing line', () => {
  const out: string[] = [];
  const reporter = createQuietReporter((text) => out.push(text));
  reporter.summarize(play(reporter, eventfulRun), new Map(), endMs);
  expect(out).toEqual([`${sampleGroupId} failed: 1 of 3 sessions completed, $0.85, 10s\n`]);
});
