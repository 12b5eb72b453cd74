/**
 * What a run of the contract tests says about versions of claude: a table, claim × version. Pure.
 */

/** `skipped`: cannot be tried on this machine. */
export type Verdict = 'held' | 'broken' | 'skipped';

/** The verdict on each claim, by its key: `payer: another key`. */
export type ClaimVerdicts = ReadonlyMap<string, Verdict>;

export interface TableColumn {
  readonly version: string;
  readonly verdicts: ClaimVerdicts;
}

export interface TestRun {
  /** JUnit XML of `bun test`; `''` when there is none. */
  readonly junit: string;
  /** Paths of the test files that were asked for, as they stand in the JUnit file. */
  readonly files: readonly string[];
  /** Of `bun test`; null when it had to be ended. */
  readonly exitCode: number | null;
}

const worst: readonly Verdict[] = ['skipped', 'held', 'broken'];

/**
 * The verdicts of one run. A file that failed to load is missing in JUnit, and an error between two tests belongs to
 * none of them: both are claims of their own here, and broken.
 */
export function claimVerdictsOf({ junit, files, exitCode }: TestRun): ClaimVerdicts {
  const verdicts = new Map<string, Verdict>();
  const note = (key: string, verdict: Verdict) => {
    const known = verdicts.get(key);
    if (known === undefined || worst.indexOf(known) < worst.indexOf(verdict)) verdicts.set(key, verdict);
  };
  const seen = new Set<string>();
  for (const { file, name, outcome } of testCases(junit)) {
    seen.add(file);
    note(claimKey(file, name), outcome);
  }
  for (const file of files) if (!seen.has(file)) note(claimKey(file, 'the file of tests loads'), 'broken');
  const isTold = [...verdicts.values()].includes('broken');
  if (exitCode === null) note('all: the tests come to an end', 'broken');
  else if (exitCode !== 0 && !isTold) note('all: nothing fails beside the tests', 'broken');
  return verdicts;
}

/** `tests/system/claude/payer.test.ts` is `payer`; files elsewhere keep their folder. */
export function claimKey(file: string, name: string): string {
  return `${file.replace(/^tests\/(unit|system)\/(claude\/)?/, '').replace(/\.test\.tsx?$/, '')}: ${name}`;
}

interface TestCase {
  readonly file: string;
  readonly name: string;
  readonly outcome: 'held' | 'broken' | 'skipped';
}

/** The tags of an XML file that a program wrote: every attribute in double quotes, nothing but text between them. */
function testCases(xml: string): TestCase[] {
  const cases: { file: string; name: string; outcome: TestCase['outcome'] }[] = [];
  for (const [, tag, words = ''] of xml.matchAll(/<(\w+)((?:\s+[\w:-]+="[^"]*")*)\s*\/?>/g)) {
    const attributes = new Map(
      [...words.matchAll(/([\w:-]+)="([^"]*)"/g)].map(([, name, text]) => [name, plain(text)]),
    );
    const last = cases.at(-1);
    if (tag === 'testcase') {
      cases.push({ file: attributes.get('file') ?? '', name: attributes.get('name') ?? '', outcome: 'held' });
    } else if (last !== undefined && (tag === 'failure' || tag === 'error')) last.outcome = 'broken';
    else if (last !== undefined && tag === 'skipped') last.outcome = 'skipped';
  }
  return cases;
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

function plain(text = ''): string {
  return text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (whole, decimal, hex, name) => {
    if (decimal !== undefined || hex !== undefined) return String.fromCodePoint(Number(decimal ?? `0x${hex}`));
    return entities[name] ?? whole;
  });
}

/** Markdown: a line on each version, then one row for each claim in the order in which they were found. */
export function tableText(columns: readonly TableColumn[]): string {
  const keys = [...new Set(columns.flatMap(({ verdicts }) => [...verdicts.keys()]))];
  const row = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [
    row(['claim', ...columns.map(({ version }) => version)]),
    row(['---', ...columns.map(() => '---')]),
    ...keys.map((key) => row([key, ...columns.map(({ verdicts }) => cellOf(verdicts.get(key)))])),
    row(['**all**', ...columns.map(({ verdicts }) => summary(verdicts))]),
  ].join('\n');
}

const cellOf = (verdict: Verdict | undefined): string => (verdict === 'broken' ? '**broken**' : (verdict ?? '–'));

/** `120 held, 4 skipped`. */
export function summary(verdicts: ClaimVerdicts): string {
  const count = (wanted: Verdict) => [...verdicts.values()].filter((verdict) => verdict === wanted).length;
  const order: Verdict[] = ['held', 'broken', 'skipped'];
  return order.flatMap((verdict) => (count(verdict) === 0 ? [] : [`${count(verdict)} ${verdict}`])).join(', ');
}

/** Keys of the claims that a version breaks. */
export function breaks({ verdicts }: TableColumn): string[] {
  return [...verdicts].flatMap(([key, verdict]) => (verdict === 'broken' ? [key] : []));
}

/** Reads what `tableText` wrote; no columns when there is no such table in the text. */
export function readTable(text: string): TableColumn[] {
  const rows = text.split('\n').flatMap((line) => {
    if (!line.startsWith('| ')) return [];
    return [
      line
        .slice(2, -2)
        .split(' | ')
        .map((cell) => cell.replaceAll('\\|', '|')),
    ];
  });
  const [head = [], , ...claims] = rows;
  return head.slice(1).map((version, index) => ({
    version,
    verdicts: new Map(
      claims.flatMap(([key = '', ...cells]) => {
        const verdict = cells[index]?.replaceAll('*', '') ?? '';
        return isVerdict(verdict) ? [[key, verdict] as const] : [];
      }),
    ),
  }));
}

function isVerdict(text: string): text is Verdict {
  return (worst as readonly string[]).includes(text);
}

/** One line for each claim on which two versions, or two runs, differ: `payer: another key: held → broken`. */
export function changes(before: ClaimVerdicts, after: ClaimVerdicts): string[] {
  const keys = [...new Set([...before.keys(), ...after.keys()])];
  return keys.flatMap((key) => {
    const [old, now] = [before.get(key), after.get(key)];
    if (old === now) return [];
    return [`${key}: ${old ?? 'not there'} → ${now ?? 'not there'}`];
  });
}

const begin = '<!-- The table of the last run: npm run test:claude -- --write ... -->';
const end = '<!-- End of the table of the last run -->';

/** The text of a document with this between its marks; null when the marks are not there. */
export function withTable(document: string, table: string): string | null {
  const from = document.indexOf(begin);
  const to = document.indexOf(end);
  if (from === -1 || to < from) return null;
  return `${document.slice(0, from)}${begin}\n\n${table}\n\n${document.slice(to)}`;
}

/** What stands between the marks of a document. */
export function tableIn(document: string): string {
  const from = document.indexOf(begin);
  return from === -1 ? '' : document.slice(from + begin.length, document.indexOf(end)).trim();
}
