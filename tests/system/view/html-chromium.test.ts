/**
 * Promises, in a real browser: the report of a group with a failure, a pause and a limit opens without errors and
 * requests, is readable on a phone, follows the colour scheme, and filters without a script.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { foldEvents } from '../../../src/core/reduce.ts';
import { reportModel } from '../../../src/view/html/model.ts';
import { reportPage } from '../../../src/view/html/page.ts';
import { eventfulEvents } from '../../support/eventful-group.ts';
import { Chromium, chromiumProgram, type Look } from '../../support/view/chromium.ts';

const desk: Look = { width: 1200, height: 900, scheme: 'light' };
const phone: Look = { width: 390, height: 844, scheme: 'dark' };

describe.skipIf(chromiumProgram === null)('the report in Chromium', () => {
  let folder: string;
  let report: string;
  let browser: Chromium;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'cca report '));
    report = join(folder, 'report.html');
    const events = eventfulEvents();
    const state = foldEvents(events);
    if (state === null) throw new Error('no state');
    writeFileSync(report, reportPage(state, reportModel(state, events, 0)));
    browser = new Chromium(chromiumProgram ?? '');
  });

  afterAll(async () => {
    await browser.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test('a page with errors and requests is detected', async () => {
    const bad = join(folder, 'bad.html');
    writeFileSync(bad, '<img src="http://127.0.0.1:9/x.png"><script>console.error("boom")</script>');
    const { requests, complaints } = await browser.visit(bad, desk);
    expect(requests).toContain('http://127.0.0.1:9/x.png');
    expect(complaints.join('\n')).toContain('boom');
  });

  test('there is no request and no error', async () => {
    for (const look of [desk, phone]) {
      expect(await browser.visit(report, look)).toEqual({ requests: [pathToFileURL(report).href], complaints: [] });
    }
  });

  test('on a phone only pictures and tables scroll sideways, inside their frames', async () => {
    await browser.visit(report, phone);
    expect(await browser.evaluate('document.documentElement.scrollWidth')).toBe(phone.width);
  });

  test('on a wide screen all columns of all sessions are visible', async () => {
    await browser.visit(report, desk);
    const overhang = `Math.max(...[...document.querySelectorAll('#sessions .wide')]
      .map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth))`;
    expect(await browser.evaluate(overhang)).toBe(0);
  });

  test('page and pictures follow the colour scheme', async () => {
    const colours = `[getComputedStyle(document.body).backgroundColor,
      getComputedStyle(document.querySelector('svg text.strong')).fill]`;
    await browser.visit(report, desk);
    expect(await browser.evaluate(colours)).toEqual(['rgb(255, 255, 255)', 'rgb(31, 35, 40)']);
    await browser.visit(report, { ...desk, scheme: 'dark' });
    expect(await browser.evaluate(colours)).toEqual(['rgb(13, 17, 23)', 'rgb(230, 237, 243)']);
  });

  test('every session, its result and its picture are there, and no injected content', async () => {
    await browser.visit(report, desk);
    expect(await browser.evaluate('document.querySelectorAll("article").length')).toBe(6);
    expect(await browser.evaluate('document.querySelectorAll("#graph svg a").length')).toBe(6);
    expect(await browser.evaluate('document.querySelectorAll("script, img, article b").length')).toBe(0);
    expect(await browser.evaluate('document.querySelector("h1").textContent')).toBe(
      'Release 2.0 <b>"now"</b> failed: sessions-failed',
    );
    const kinds = await browser.evaluate(
      '[...document.querySelectorAll("#timeline .legend li")].map((li) => li.textContent)',
    );
    expect(kinds).toEqual(
      expect.arrayContaining(['preparing', 'working, completed', 'working, failed', 'working, then interrupted']),
    );
  });

  test('the filter keeps the sessions with a problem', async () => {
    await browser.visit(report, desk);
    const shown = '[...document.querySelectorAll("article")].filter((one) => one.checkVisibility()).length';
    expect(await browser.evaluate(shown)).toBe(6);
    await browser.evaluate('document.querySelector("#only-problems").click()');
    expect(await browser.evaluate(shown)).toBe(3);
  });
});
