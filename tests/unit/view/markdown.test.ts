/**
 * Promises: the Markdown report is short, fits into a pull request, and no foreign text becomes markup, HTML, a
 * mention or a reference in it.
 */
import { describe, expect, test } from 'bun:test';
import { foldEvents } from '../../../src/core/reduce.ts';
import { reportModel } from '../../../src/view/html/model.ts';
import { codeBlock, escapeMarkdown, reportMarkdown } from '../../../src/view/markdown.ts';
import { attemptId, CoreLog, sessionDefinition, sid, usage } from '../../support/core-events.ts';
import { eventfulEvents } from '../../support/eventful-group.ts';
import { isLongRun } from '../../support/long.ts';
import { fc } from '../../support/property.ts';
import { hostileLog, hostileTexts } from '../../support/view/hostile-log.ts';

/** Lines outside code blocks; a fence ends with the first row of backticks of its length. */
function outsideCode(markdown: string): string[] {
  const outside: string[] = [];
  let fence: string | null = null;
  for (const line of markdown.split('\n')) {
    const row = /^(`{3,})(?:text|mermaid)?$/.exec(line)?.[1];
    if (fence === null && row !== undefined) fence = row;
    else if (fence !== null) fence = /^`+$/.test(line) && line.length >= fence.length ? null : fence;
    else outside.push(line);
  }
  if (fence !== null) throw new Error('a code block does not end');
  return outside;
}

const ours = /<\/?details>|<summary>[\w ]+<\/summary>|<\/?sub>|<!-- -->/g;

function expectHarmless(lines: readonly string[]): void {
  for (const line of lines) {
    expect(line.replace(ours, '')).not.toMatch(/[<>]/);
    expect(line.replace(/@<!-- -->/g, '')).not.toContain('@');
    expect(line).not.toMatch(/:\/\/|(?<!\\)\]\(|(?<!\\)\[/);
    expect(line).not.toMatch(/(?<!\\)#\d/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that there are none is what is to be seen.
    expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
  }
}

test.each([...hostileTexts])('foreign text is not markup in the Markdown report: %j', (text) => {
  const { events, state } = hostileLog(text);
  const lines = outsideCode(reportMarkdown(state, reportModel(state, events, 0)));
  expectHarmless(lines);
  const cells = lines.find((line) => line.startsWith('| Session |'))?.split('|').length;
  const rows = lines.filter((line) => /^\| \d/.test(line));
  expect(rows.length).toBe(state.sessions.size);
  for (const row of rows) expect(row.split(/(?<!\\)\|/).length).toBe(cells as number);
  const count = (tag: string): number => lines.filter((line) => line.includes(tag)).length;
  expect(count('<details>')).toBe(count('</details>'));
});

describe('one-line text', () => {
  test.each([
    ['plain words: 1.5 (two) - three + four', 'plain words: 1.5 (two) - three + four'],
    ['*a* _b_ `c` ~d~ [e](f) ![g](h)', '\\*a\\* \\_b\\_ \\`c\\` \\~d\\~ \\[e\\](f) !\\[g\\](h)'],
    ['<b> & "q"', '&lt;b&gt; &amp; &quot;q&quot;'],
    ['a | b', 'a \\| b'],
    ['# heading', '\\# heading'],
    ['- item', '\\- item'],
    ['1. item', '1\\. item'],
    ['@someone and #12', '@<!-- -->someone and \\#<!-- -->12'],
    ['https://example.org', 'https&colon;//example.org'],
    ['two\nlines\u001b[31m', 'two lines'],
    ['\\*', '\\\\\\*'],
  ])('the text %j is escaped in one line', (text, escaped) => expect(escapeMarkdown(text, 80)).toBe(escaped));
});

test('text in a code block cannot end it', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('`', '```', '\n', 'x', ' ', '~~~', ...hostileTexts), { maxLength: 30 }),
      (parts) => {
        const lines = codeBlock(parts.join('')).split('\n');
        const fence = (lines[0] ?? '').replace('text', '');
        expect(lines.at(-1)).toBe(fence);
        expect(lines.slice(1, -1).some((line) => line.includes(fence))).toBe(false);
      },
    ),
  );
});

test('the Markdown report of an eventful group is short', () => {
  const events = eventfulEvents();
  const state = foldEvents(events);
  if (state === null) throw new Error('no state');
  const lines = outsideCode(reportMarkdown(state, reportModel(state, events, 0)));
  expect(lines.slice(0, 6)).toEqual([
    '## Release 2.0 &lt;b&gt;&quot;now&quot;&lt;/b&gt;: failed (sessions-failed)',
    '',
    expect.stringMatching(/^Everything for the release: &lt;\/script&gt;&lt;img src=&quot;http&colon;\/\/127/),
    '',
    '**4 of 6 sessions completed, 1 failed, \\$8.70 of \\$10.00, 4.1M in, 82k out, 1h 37m**',
    '',
  ]);
  expect(lines).toContain('| 001 schema | completed | +212 −48 in 7 files | cca/release/schema | 16m 05s | \\$1.10 |');
  expect(lines).toContain('| 006 release | pending (blocked) |  |  |  |  |');
  expect(lines.find((line) => line.startsWith('- **004 mobile**'))).toContain('**Next step:** See what it printed');
  expect(lines.at(-2)).toBe(
    '<sub>Group `20260104-213000-release`, as of 2026-01-05 08:08:01 UTC, made by claude-code-agent</sub>',
  );
});

test('the Markdown report marks a deleted branch as removed', () => {
  const log = new CoreLog().addSession(sessionDefinition(1)).run().start(sid(1));
  const of = { sessionId: sid(1), attemptId: attemptId(sid(1), 1) };
  const workspace = { path: '/w', folder: '/w', repository: '/r', branch: 'cca-api', base: 'b0' };
  log
    .add({ type: 'session_isolated', ...of, workspace })
    .complete(sid(1))
    .add({ type: 'group_completed' });
  const told = () => reportMarkdown(log.state, reportModel(log.state, log.events, 0));
  expect(told()).toContain('| cca-api |');
  log.add({ type: 'session_cleaned', sessionId: sid(1) });
  expect(told()).toContain('| cca-api (removed) |');
});

test('the Markdown report of hundreds of long results stays within the size limit', () => {
  const count = isLongRun ? 1000 : 300;
  const log = new CoreLog();
  for (let number = 1; number <= count; number += 1)
    log.addSession(sessionDefinition(number, [], { name: `part-${number}` }));
  log.run();
  for (let number = 1; number <= count; number += 1) {
    const of = { sessionId: sid(number), attemptId: attemptId(sid(number), 1) };
    log.start(sid(number)).add({ type: 'session_completed', ...of, result: 'word '.repeat(5000), usage: usage(1) });
  }
  const markdown = reportMarkdown(log.state, reportModel(log.state, log.events, 0));
  expect(markdown.length).toBeLessThanOrEqual(60_000);
  expect(markdown).toContain(`And ${count - 100} further sessions.`);
  expect(markdown).toMatch(/And \d+ further results\./);
  expect(markdown).toContain('Cut: 1500 of 25000 characters.');
});
