/**
 * Promises: the table of claude versions contains all test results, including files that did not load, errors between
 * tests and aborted runs, and reads back as written.
 */
import { describe, expect, test } from 'bun:test';
import {
  breaks,
  changes,
  claimKey,
  claimVerdictsOf,
  readTable,
  summary,
  type TestRun,
  tableIn,
  tableText,
  type Verdict,
  withTable,
} from '../../../scripts/claude/table.ts';
import { fc } from '../../support/property.ts';

const payer = 'tests/system/claude/payer.test.ts';
const testcase = (name: string, inner = '', file = payer) =>
  `<testcase name="${name}" classname="who &gt; pays" time="0.1" file="${file}" line="3" assertions="1"${
    inner === '' ? ' />' : `>\n${inner}\n</testcase>`
  }`;
const junit = (...cases: string[]) =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="bun test" tests="9">\n<testsuite name="${payer}" ` +
  `file="${payer}">\n${cases.join('\n')}\n</testsuite>\n</testsuites>\n`;
const run = (more: Partial<TestRun>) =>
  Object.fromEntries(claimVerdictsOf({ junit: '', files: [payer], exitCode: 0, ...more }));

describe('test runs', () => {
  test('a test run gives a result for each test', () => {
    const failure = '<failure type="E" message="expect(a)&#10; &lt;testcase name=&quot;no&quot;">at x:1&#10;</failure>';
    const xml = junit(
      testcase('a &quot;key&quot; &amp; more'),
      testcase('a proxy', failure),
      testcase('on Linux only', '<skipped />'),
      testcase('the last'),
    );
    expect(run({ junit: xml, exitCode: 1 })).toEqual({
      'payer: a "key" & more': 'held',
      'payer: a proxy': 'broken',
      'payer: on Linux only': 'skipped',
      'payer: the last': 'held',
    });
  });

  test('a test run with an error beside its tests, or without an end, is no success', () => {
    const xml = junit(testcase('a key'));
    expect(run({ junit: xml, exitCode: 1 })).toMatchObject({ 'all: nothing fails beside the tests': 'broken' });
    expect(run({ junit: xml, exitCode: null })).toMatchObject({ 'all: the tests come to an end': 'broken' });
  });
});

const column = (version: string, verdicts: Readonly<Record<string, Verdict>>) => ({
  version,
  verdicts: new Map(Object.entries(verdicts)),
});

describe('table', () => {
  const columns = [
    column('2.1.308', { 'payer: a | b': 'held', 'payer: old': 'held' }),
    column('2.1.331', { 'payer: a | b': 'broken', 'hostile: new': 'skipped' }),
  ];

  test('the version table has a row for each claim', () => {
    expect(tableText(columns).split('\n')).toEqual([
      '| claim | 2.1.308 | 2.1.331 |',
      '| --- | --- | --- |',
      '| payer: a \\| b | held | **broken** |',
      '| payer: old | held | – |',
      '| hostile: new | – | skipped |',
      '| **all** | 2 held | 1 broken, 1 skipped |',
    ]);
    expect(breaks(columns[1] as (typeof columns)[1])).toEqual(['payer: a | b']);
  });

  test('the version table reads back as written, whatever the claims are called', () => {
    const name = fc
      .string({ minLength: 1, unit: fc.constantFrom('a', '|', '\\', ' ', '`', '*', 'é') })
      .map((text) => `x${text}`);
    const verdict = fc.constantFrom<Verdict>('held', 'broken', 'skipped');
    fc.assert(
      fc.property(fc.dictionary(name, verdict, { minKeys: 1 }), (verdicts) => {
        const before = [column('2.1.308', verdicts)];
        expect(readTable(tableText(before)).map(({ version, verdicts: read }) => [version, new Map(read)])).toEqual(
          before.map(({ version, verdicts: written }) => [version, new Map(written)]),
        );
      }),
    );
  });

  test('the version table lists differences between two versions', () => {
    const [old, now] = columns.map(({ verdicts }) => verdicts) as [Map<string, Verdict>, Map<string, Verdict>];
    expect(changes(old, now)).toEqual([
      'payer: a | b: held → broken',
      'payer: old: held → not there',
      'hostile: new: not there → skipped',
    ]);
    expect(changes(now, now)).toEqual([]);
    expect(summary(old)).toBe('2 held');
  });

  test('the version table is placed between its marks, and the text around it stays', () => {
    const document = withTable(
      '# A\n\n<!-- The table of the last run: npm run test:claude -- --write ... -->\n\nold\n\n' +
        '<!-- End of the table of the last run -->\n\nmore\n',
      tableText(columns),
    );
    expect(document).toStartWith('# A\n\n<!-- The table');
    expect(document).toEndWith('<!-- End of the table of the last run -->\n\nmore\n');
    expect(document).not.toContain('old\n\n<!--');
    expect(readTable(tableIn(document ?? ''))).toHaveLength(2);
    expect(withTable(document ?? '', 'x')).toContain('-->\n\nx\n\n<!-- End');
    expect(withTable('no marks', 'x')).toBeNull();
    expect(readTable(tableIn('no marks'))).toEqual([]);
  });
});

test('a claim is named by its file, and claims of tests/system/claude by the file name alone', () => {
  expect(claimKey(payer, 'a')).toBe('payer: a');
  expect(claimKey('tests/system/context/handover/claude.test.ts', 'a')).toBe('context/handover/claude: a');
});
