/**
 * Promises of the review page in a real browser, on a phone and on a desk: no request, no complaint, every row can be
 * reached and opened with the keyboard, and nothing that a session wrote becomes markup.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { reviewPage } from '../../../src/view/review/page.ts';
import type { Review, ReviewRow } from '../../../src/view/review/review.ts';
import { makeRisk } from '../../../src/view/review/risks.ts';
import { Chromium, chromiumProgram, type Look } from '../../support/view/chromium.ts';

const phone: Look = { width: 390, height: 844, scheme: 'dark' };
const desk: Look = { width: 1400, height: 900, scheme: 'light' };
const evil = '</script><script>document.title="taken"</script><img src=x onerror=alert(1)>\u001b]0;taken\u0007\u202e';

function row(nth: number, given: Partial<ReviewRow> = {}): ReviewRow {
  const text =
    'diff --git a/src/a.js b/src/a.js\n--- a/src/a.js\n+++ b/src/a.js\n@@ -1 +1,2 @@\n' +
    `-const a = 'x';\n+const a = 12; // ${evil}\n`;
  return {
    sessionId: `00${nth}-0a0a0a0a-0000-4000-8000-000000000000`,
    title: `00${nth} part-${nth}`,
    project: 'shop',
    kind: 'safe',
    status: 'completed',
    branch: `cca/night/00${nth}`,
    asked: `Add a search. ${evil}`,
    said: evil,
    decisions: [],
    risks: [],
    files: [{ path: 'src/a.js', kind: 'changed', isBinary: false, text, insertions: 1, deletions: 1 }],
    evidence: [{ command: 'npm test', where: 'fresh', code: 'own', exitCode: 0, ms: 900, log: 'accept.log' }],
    costUsd: 0.42,
    quoteUsd: 0.5,
    ...given,
  };
}

const review: Review = {
  version: 1,
  groupId: '20260104-143022-night',
  name: `Night ${evil}`,
  headline: '4 of 4 sessions completed, $1.68 spent. 1 decision waits, 1 to look at, 2 safe to merge.',
  decisions: [],
  rows: [
    row(1, {
      kind: 'decision',
      status: 'paused',
      reason: 'waits-for-answer',
      notMergeable: 'The session is not completed.',
      decisions: [
        { id: '1a2b3c4d', kind: 'permission', text: `Bash ${evil}`, options: [] },
        { id: '5e6f7a8b', kind: 'question', text: 'Which?', options: ['Postgres', evil] },
      ],
    }),
    row(2, { kind: 'risk', risks: [makeRisk('secret', 100, 'src/a.js holds what looks like an AWS access key.')] }),
    row(3),
    row(4),
  ],
};

describe.skipIf(chromiumProgram === null)('the review page in Chromium', () => {
  let folder: string;
  let page: string;
  let browser: Chromium;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'cca review '));
    page = join(folder, 'review.html');
    writeFileSync(page, reviewPage(review));
    browser = new Chromium(chromiumProgram ?? '');
  });

  afterAll(async () => {
    await browser.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test('review page: it requests nothing, complains about nothing, and fits', async () => {
    for (const look of [phone, desk]) {
      expect(await browser.visit(page, look)).toEqual({ requests: [pathToFileURL(page).href], complaints: [] });
      await browser.evaluate('document.querySelectorAll("details").forEach((one) => { one.open = true })');
      expect(await browser.evaluate('document.documentElement.scrollWidth')).toBe(look.width);
    }
  });

  test('review page: what a session wrote is text, and code is coloured', async () => {
    await browser.visit(page, desk);
    expect(await browser.evaluate('document.title')).toStartWith('Review of Night');
    expect(await browser.evaluate('document.querySelectorAll("script, img").length')).toBe(1);
    const source = await browser.evaluate('document.documentElement.outerHTML');
    for (const sign of ['\u001b', '\u202e']) expect(source).not.toContain(sign);
    const colours = `['.k', '.s', '.d', '.c'].map((name) => document.querySelector('pre.diff ' + name).textContent)`;
    expect(await browser.evaluate(colours)).toEqual(['const', "'x'", '12', expect.stringContaining('</script>')]);
  });

  test('review page: keys move between rows, open them and their files', async () => {
    await browser.visit(page, phone);
    const open = '[...document.querySelectorAll("details.row")].map((one) => one.open)';
    const focus = 'document.activeElement.closest("details.row")?.querySelector("b").textContent ?? null';
    await browser.press('j');
    expect(await browser.evaluate(focus)).toBe('001 part-1');
    await browser.press('j');
    await browser.press('Enter');
    expect(await browser.evaluate(focus)).toBe('002 part-2');
    expect(await browser.evaluate(open)).toEqual([false, true, false, false]);
    await browser.press('f');
    expect(await browser.evaluate('document.querySelectorAll("details.row details[open]").length')).toBe(1);
    await browser.press('Escape');
    await browser.press('k');
    expect(await browser.evaluate(focus)).toBe('001 part-1');
    expect(await browser.evaluate(open)).toEqual([false, false, false, false]);
  });

  test('review page: each row shows the commands that can be pasted', async () => {
    await browser.visit(page, desk);
    const commands =
      '[...document.querySelectorAll("details.row")].map((one) => one.querySelectorAll("pre.command").length)';
    // Allow, deny, answer, send back and discard; then merge, propose, send back and discard.
    expect(await browser.evaluate(commands)).toEqual([5, 4, 4, 4]);
    expect(await browser.evaluate('document.body.textContent')).toContain('1. Postgres');
    expect(await browser.evaluate('document.querySelector("#safe > pre").textContent')).toEndWith(
      'group merge 20260104-143022-night --session 003 --session 004',
    );
  });
});
