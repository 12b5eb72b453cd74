/**
 * Promises: the HTML report is one well-formed file that loads and runs nothing, whatever text it contains. It is
 * reproducible, stays small, and shows every session, failure and remedy.
 */
import { describe, expect, test } from 'bun:test';
import { noUsage, type Usage } from '../../../src/core/group.ts';
import { pageStart } from '../../../src/view/html/markup.ts';
import { reportModel } from '../../../src/view/html/model.ts';
import { reportPage } from '../../../src/view/html/page.ts';
import { graphPicture } from '../../../src/view/html/pictures.ts';
import { attemptId, CoreLog, sessionDefinition, sid, usage } from '../../support/core-events.ts';
import { isLongRun } from '../../support/long.ts';
import { hostileLog, hostileTexts } from '../../support/view/hostile-log.ts';
import { readMarkup, referencesIn } from '../../support/view/markup-checker.ts';

const nowMs = Date.UTC(2026, 0, 9);

function pageOf(log: Pick<CoreLog, 'state' | 'events'>, at = nowMs): string {
  return reportPage(log.state, reportModel(log.state, log.events, at));
}

describe.each([...hostileTexts])('hostile text: %j', (text) => {
  const { events, state } = hostileLog(text);

  test('the HTML report with hostile text is well-formed and loads or runs nothing', () => {
    const reading = readMarkup(pageOf({ events, state }));
    const known = new Set(reading.elements.map(({ attributes }) => `#${attributes.get('id')}`));
    for (const reference of referencesIn(reading)) {
      expect(reference).toMatch(/^a href=#session-\d+$/);
      expect(known).toContain(reference.slice('a href='.length));
    }
    expect(reading.elements.map(({ name }) => name)).not.toContain('script');
  });

  test('an SVG picture with hostile text is well-formed and loads or runs nothing', () => {
    const reading = readMarkup(graphPicture(state, { isFile: true })?.picture.text ?? '');
    expect(reading.elements[0]?.attributes.get('xmlns')).toBe('http://www.w3.org/2000/svg');
    expect(referencesIn(reading)).toEqual([]);
  });
});

describe('report of an ended group', () => {
  const log = new CoreLog().addSession(sessionDefinition(1)).run().start(sid(1)).complete(sid(1), usage(0.5));
  log.add({ type: 'group_completed' });

  test('the report of an ended group is the same at any time and place', () => {
    const zone = process.env.TZ;
    const pages = ['UTC', 'Asia/Tokyo'].map((name, index) => {
      process.env.TZ = name;
      return pageOf(log, nowMs + index * 1e9);
    });
    if (zone === undefined) delete process.env.TZ;
    else process.env.TZ = zone;
    expect(pages[1]).toBe(pages[0] as string);
  });

  test('the report starts with doctype and a policy that forbids loading anything', () => {
    const page = pageOf(log);
    expect(page.startsWith(pageStart)).toBe(true);
    const policy = readMarkup(page).elements.find(({ attributes }) => attributes.has('http-equiv'));
    const style = page.slice(page.indexOf('<style>') + 7, page.indexOf('</style>'));
    const digest = new Bun.CryptoHasher('sha256').update(style).digest('base64');
    expect(policy?.attributes.get('content')).toBe(
      `default-src 'none'; style-src 'sha256-${digest}'; base-uri 'none'; form-action 'none'`,
    );
    expect(page).not.toMatch(/url\(|@import|expression\(/);
  });
});

describe('contents of the report', () => {
  const log = new CoreLog({ maxBudgetUsd: 5 });
  log.addSession(sessionDefinition(1, [], { name: 'api', description: 'the <api> part' }));
  log.addSession(sessionDefinition(2, [], { name: 'web' })).addSession(sessionDefinition(3, [2], { name: 'docs' }));
  log.run().start(sid(1)).start(sid(2));
  const of = { sessionId: sid(1), attemptId: attemptId(sid(1), 1) };
  const workspace = { path: '/w', folder: '/w', repository: '/r', branch: 'cca/api', base: 'b0' };
  log.add(
    { type: 'session_isolated', ...of, workspace },
    { type: 'session_warning', sessionId: sid(1), warning: { code: 'denied-tools', message: '3 tools were denied.' } },
    { type: 'session_accepting', ...of, result: 'All of it works.', usage: usage(0.25) },
    {
      type: 'session_completed',
      ...of,
      result: 'All of it works.',
      work: { commit: 'c0ffee00c0ffee00', files: 2, insertions: 30, deletions: 4 },
      usage: usage(0.25),
    },
  );
  log.fail(sid(2), usage(0.5), 'not-logged-in');
  log.add({ type: 'group_failed', reason: 'sessions-failed', message: '1 session failed and 1 blocked by it.' });
  const { text, elements } = readMarkup(pageOf(log));

  test.each([
    'Sessions completed1 of 3',
    '$0.75of $5.00',
    'Lines changed+30 −4',
    'the <api> part',
    'branch cca/api',
    '+30 −4 in 2 files, commit c0ffee00c0ff',
    'Result: All of it works.',
    'Warning: 3 tools were denied.',
    'failed: not-logged-in',
    'Blocked by web, which failed.Retry with: claude-code-agent group run 20260102-030405-test --retry-failed',
  ])('the HTML report contains: %s', (words) => expect(text).toContain(words));

  test('the report shows each failure with its remedy', () => {
    const cures = elements.filter(({ attributes }) => attributes.get('class') === 'cure');
    // For the failed session and the blocked one, in the summary and beside the session.
    expect(cures.length).toBe(4);
    expect(text).toContain('It went wrong.Try again. Continue with: claude-code-agent group resume');
  });

  test('the graph picture shows the status of each session', () => {
    const boxes = elements
      .flatMap(({ attributes }) => attributes.get('class') ?? [])
      .filter((name) => /^node s-/.test(name));
    // Three boxes in dependency order, then the three colours of the legend.
    expect(boxes).toEqual([
      ...['node s-completed', 'node s-failed', 'node s-blocked'],
      ...['node s-blocked', 'node s-completed', 'node s-failed'],
    ]);
  });

  test('a group without sessions and one that never started have a report', () => {
    expect(readMarkup(pageOf(new CoreLog())).text).toContain('None.');
    const idle = readMarkup(pageOf(new CoreLog().addSession(sessionDefinition(1)))).text;
    expect(idle).toContain('group run');
    expect(idle).not.toContain('Timeline');
  });
});

describe('size of the report', () => {
  const hostile = hostileTexts.join('').repeat(3000);
  const used: Usage = { ...usage(0.01), models: { m: { costUsd: 0.01, tokens: noUsage.tokens } } };

  test('a result of a megabyte is truncated, with the path of the full text', () => {
    const log = new CoreLog().addSession(sessionDefinition(1)).run().start(sid(1));
    const result = 'x'.repeat(1_000_000);
    log.add({ type: 'session_completed', sessionId: sid(1), attemptId: attemptId(sid(1), 1), result, usage: used });
    const page = pageOf(log);
    expect(page.length).toBeLessThan(60_000);
    expect(page).toMatch(/Cut: \d+ of 1000000 characters are shown\. All of it: claude-code-agent session logs 2026/);
  });

  test('the report of 100 sessions with long texts is smaller than a megabyte', () => {
    const pauses = isLongRun ? 10 : 3;
    const log = new CoreLog();
    for (let number = 1; number <= 100; number += 1) {
      const dependsOn = Array.from({ length: Math.min(8, number - 1) }, (_, index) => number - 1 - index);
      const text = { name: `${number} ${hostile.slice(0, 400)}`, description: hostile, prompt: hostile };
      log.addSession(sessionDefinition(number, dependsOn, { ...text, projectPath: `/p/${hostile.slice(0, 2000)}` }));
    }
    log.run();
    for (let number = 1; number <= 100; number += 1) {
      const id = sid(number);
      for (let times = 1; times <= pauses; times += 1) {
        const of = { sessionId: id, attemptId: attemptId(id, times) };
        log
          .start(id, times === 1 ? 'start' : 'resume')
          .add(
            { type: 'session_warning', sessionId: id, warning: { code: 'denied-tools', message: hostile } },
            { type: 'session_paused', ...of, reason: 'top-up', message: hostile, usage: used },
          );
      }
      log.start(id, 'resume');
      const of = { sessionId: id, attemptId: attemptId(id, pauses + 1) };
      log.add({ type: 'session_completed', ...of, result: hostile, structured: { hostile }, usage: used });
    }
    const page = pageOf(log);
    readMarkup(page);
    expect(Buffer.byteLength(page)).toBeLessThan(1_000_000);
  });

  test('the report lists all of 2,000 sessions and says what it leaves out', () => {
    const log = new CoreLog();
    for (let number = 1; number <= 2_000; number += 1) {
      log.addSession(
        sessionDefinition(number, number > 100 ? [number - 100, number - 99] : [], { name: `part-${number}` }),
      );
    }
    log.run();
    const started = isLongRun ? 400 : 40;
    for (let number = 1; number <= started; number += 1) log.start(sid(number)).complete(sid(number), used);
    const { text, elements } = readMarkup(pageOf(log));
    expect(elements.filter(({ name }) => name === 'tr').length).toBeGreaterThan(2_000);
    expect(text).toContain('2000 sessions: the graph is too large to be drawn.');
    expect(text).toContain('300 of 2000 sessions');
    expect(text).toContain('Cards for 1000 of 2000 sessions');
  });
});
