/** What the acceptance of a session has shown: commands that ran, and changes of files that guard its result. */
import { listNames } from './text.ts';

export interface CheckRun {
  readonly command: string;
  /** A fresh checkout of the session's commit, the session's own worktree, or the project folder. */
  readonly where: 'fresh' | 'worktree' | 'folder';
  /**
   * `own`: the session's commit. `base-guarded`: the same with the guarded files from before the session. `base`: the
   * code from before the session with the session's guarded files.
   */
  readonly code: 'own' | 'base-guarded' | 'base';
  /** Null: it was ended, for example at its time limit. */
  readonly exitCode: number | null;
  readonly ms: number;
  /** Absolute path. */
  readonly log: string;
  /** It failed, and passed when it was repeated. */
  readonly flaky?: true;
}

export interface GuardedChange {
  /** From the top of the repository; `package.json: scripts.test` for an entry of a manifest. */
  readonly path: string;
  /** `skipped`: tests are skipped now. `weakened`: fewer assertions, or failures are ignored. */
  readonly change: 'removed' | 'skipped' | 'weakened' | 'changed' | 'added';
}

export interface Evidence {
  readonly runs: readonly CheckRun[];
  readonly guarded: readonly GuardedChange[];
  readonly flaky?: true;
  /** The session's tests fail without its change. */
  readonly proven?: true;
  /** Files in no commit without which the command fails, by their paths from the top. */
  readonly needsUncommitted?: readonly string[];
}

/** Skipped or focused tests. */
export const skippedTest = patternOf([
  String.raw`\b(?:it|test|describe|context|suite|t|Deno\.test)(?:\.\w+)*\.(?:skip|only|todo|fails|failing|fixme)\b`,
  String.raw`\b[xf](?:it|test|describe|specify|context)\s*\(|\bpending\(|\bthis\.skip\(`,
  String.raw`@(?:pytest\.mark|unittest|mark)\.(?:skip|skipIf|skipif|skipUnless|xfail|expectedFailure)\b|@skip\b`,
  String.raw`\bpytest\.(?:skip|xfail|importorskip|exit)\(|\bself\.skipTest\(|\braise SkipTest\b`,
  String.raw`\bpytest_ignore_collect\b|\bcollect_ignore|\bpytest_collection_modifyitems\b`,
  String.raw`\b(?:skip|todo|only):\s*(?:true|['"\x60])`,
  String.raw`\bt\.(?:Skip|SkipNow|Skipf)\(|#\[ignore\b|@(?:Ignore|Disabled)\b|\[Ignore\b|\bSkip\s*=\s*"`,
  String.raw`^\s*[xf](?:it|specify|describe|context)\s+['"]|@tag :?skip\b|\bXCTSkip|\bmarkTest(?:Skipped|Incomplete)\(`,
]);
/** Tests are switched off where a build is described. */
export const switchedOffTests = patternOf([
  String.raw`^\s*test\s*=\s*false|<(?:skipTests|skipITs|maven\.test\.skip|testFailureIgnore)>\s*true`,
  String.raw`\b(?:is)?[iI]gnoreFailures\s*=?\s*true|\b[tT]est\w*\b.*\benabled\s*=\s*false|^\s*autotests\s*=\s*false`,
]);
/** Failures are ignored, or fewer files are checked. */
export const ignoredFailure = patternOf([
  switchedOffTests.source,
  String.raw`^\s*enabled\s*=\s*false`,
  String.raw`\|\|\s*(?::|(?:true|exit 0|echo)\b)|(?:^|[;&|\s"'])exit 0\b|\bset \+e\b|(?:process|sys)\.exit\(0?\)`,
  String.raw`\bos\._exit\(|--passWithNoTests|continue-on-error:\s*true|\bif:\s*(?:false|.*\{ *false)`,
  String.raw`--(?:ignore|exclude|deselect|skip)\b|\b(?:testPathIgnorePatterns|exclude|ignorePatterns)\b`,
  String.raw`@ts-(?:ignore|nocheck|expect-error)|eslint-disable|# (?:noqa|type: ignore)|biome-ignore|"strict":\s*false`,
  String.raw`allow_failure:\s*true|script-shell|ignore-scripts|\bexitstatus\s*=\s*0`,
]);
export const assertion = patternOf([
  String.raw`\b(?:assert\w*|expect|should|must|require|verify|EXPECT_\w+|ASSERT_\w+)\b\s*(?:[.(!]|[\w'"[]+)`,
  String.raw`\bt\.(?:Error|Errorf|Fatal|Fatalf|is|same|ok|equal)\(`,
]);
export const testCase = patternOf([
  String.raw`\b(?:it|test|specify|scenario)(?:\.\w+)*\s*\(|^\s*(?:async\s+)?def test|@(?:Parameterized)?Test\b`,
  String.raw`^\s*(?:it|test|specify|scenario)\s+['"]|#\[(?:\w+::)*test\b|\[(?:Fact|Theory|Test|TestMethod|TestCase)\b`,
  String.raw`\bfunc(?:tion)? (?:[tT]est|Fuzz)\w*\(`,
]);

function patternOf(parts: readonly string[]): RegExp {
  return new RegExp(parts.join('|'));
}

/**
 * What a change of a file does, by the lines it takes away and those it adds. `isCode`: words of commands, such as
 * `exclude`, mean something else there.
 */
export function changeKind(
  before: readonly string[],
  after: readonly string[],
  isCode = false,
): GuardedChange['change'] {
  const more = (pattern: RegExp) => count(after, pattern) > count(before, pattern);
  if (more(skippedTest)) return 'skipped';
  if ((!isCode && more(ignoredFailure)) || count(after, assertion) < count(before, assertion)) return 'weakened';
  return count(after, testCase) < count(before, testCase) ? 'weakened' : 'changed';
}

function count(lines: readonly string[], pattern: RegExp): number {
  return lines.filter((line) => pattern.test(line)).length;
}

const rank: readonly GuardedChange['change'][] = ['removed', 'skipped', 'weakened', 'changed', 'added'];
const namesShown = 5;

/** `removed test/a.test.js; changed package.json: scripts.test`; the most serious first, empty for none. */
export function guardedText(guarded: readonly GuardedChange[]): string {
  return rank
    .flatMap((change) => {
      const paths = guarded.filter((one) => one.change === change).map(({ path }) => path);
      return paths.length === 0 ? [] : [`${change} ${listNames(paths, namesShown)}`];
    })
    .join('; ');
}
