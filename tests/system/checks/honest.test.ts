/**
 * Promises: honest work is never refused without a way to accept it, and never pays a further turn because it changed
 * tests, scripts or configuration. What it changed of them is named.
 */
import { expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { withRig } from '../../support/rig-ground.ts';
import { type CheckCase, common, fix, runCases } from '../../support/runner/check-cases.ts';

withRig();

interface Honest extends CheckCase {
  /** Completed at once, or after a person allowed it. */
  readonly ends: 'completed' | 'allowed';
  /** All changes of guarded files. */
  readonly names: readonly string[];
}

const tests = 'test/add.test.js';
const adds = "const { add } = require('../src/add.js');\n";
const addition = "test('adds', () => {\n  expect(add(1, 2)).toBe(3);\n});\n";
const manifest = (more: object, test = 'node vendor/runner.js') =>
  JSON.stringify({ name: 'app', scripts: { test }, dependencies: {}, ...more });
const npm = { accept: 'npm test' };
const multiplies = {
  'src/add.js': 'exports.add = (a, b) => a * b;\n',
  [tests]: [
    `${adds}test('multiplies', () => {\n  expect(add(2, 4)).toBe(8);\n});`,
    "test('multiplies by one', () => {\n  expect(add(3, 1)).toBe(3);\n});\n",
  ].join('\n'),
};
const python = '[project]\nname = "app"\n\n[tool.pytest.ini_options]\naddopts = "-q"\n';

const rust = (operator: string, checked: string) =>
  `pub fn add(a: i32, b: i32) -> i32 {\n    a ${operator} b\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n` +
  `    #[test]\n    fn adds() {\n        assert_eq!(add(${checked});\n    }\n}\n`;
/** As "cargo fmt --check": one empty line at most, and none at the end. Comments must belong to an item. */
const layout =
  "awk '{ if (b && /^$/) bad = 1; b = /^$/; c = /^(\\/\\/\\/|#\\[)/ } END { exit bad || b || c }' src/lib.rs";
const cargo = '[package]\nname = "app"\n\n[lib]\nname = "app"\n\n[dependencies]\n';

const done = { ends: 'completed' } as const;
const allowed = { ends: 'allowed' } as const;

const cases: readonly Honest[] = [
  { ...done, name: 'fixes the code', edit: fix, names: [] },
  { ...done, name: 'changes documentation', edit: { ...fix, 'README.md': 'Adds.\n' }, names: [] },
  {
    ...{ ...done, name: 'adds a test file' },
    edit: { ...fix, 'test/more.test.js': `${adds}test('more', () => expect(add(2, 2)).toBe(4));\n` },
    names: ['added test/more.test.js'],
  },
  {
    ...{ ...done, name: 'adds a test to a file' },
    edit: { ...fix, [tests]: `${common[tests]}test('more', () => {\n  expect(add(2, 2)).toBe(4);\n});\n` },
    names: [`changed ${tests}`],
  },
  { ...allowed, name: 'changes behaviour with its tests', edit: multiplies, names: [`changed ${tests}`] },
  {
    ...{ ...allowed, name: 'renames a module and the import in its test' },
    edit: {
      'src/add.js': null,
      'src/sum.js': fix['src/add.js'] ?? '',
      [tests]: String(common[tests]).replace('add.js', 'sum.js'),
    },
    names: [`changed ${tests}`],
  },
  {
    ...{ ...allowed, name: 'moves the folder of the code' },
    edit: {
      'src/add.js': null,
      'lib/add.js': fix['src/add.js'] ?? '',
      [tests]: String(common[tests]).replace('src', 'lib'),
    },
    names: [`changed ${tests}`],
  },
  {
    ...{ ...done, name: 'renames a test file', also: 'git mv test/add.test.js test/sum.test.js' },
    edit: fix,
    names: ['changed test/sum.test.js'],
  },
  {
    ...{ ...done, name: 'splits a test file in two' },
    edit: {
      ...fix,
      [tests]: `${adds}${addition}`,
      'test/zero.test.js': `${adds}test('nothing', () => expect(add(1, 0)).toBe(1));\n`,
    },
    names: [`weakened ${tests}`, 'added test/zero.test.js'],
  },
  {
    ...{ ...done, name: 'formats the tests' },
    edit: { ...fix, [tests]: String(common[tests]).replace(/^ {2}/gm, '    ') },
    names: [`changed ${tests}`],
  },
  {
    ...{ ...allowed, name: 'removes a feature with its tests' },
    base: { 'src/old.js': 'exports.old = 1;\n', 'test/old.test.js': "require('../src/old.js');\n" },
    edit: { ...fix, 'src/old.js': null, 'test/old.test.js': null },
    names: ['removed test/old.test.js'],
  },
  {
    ...{ ...done, ...npm, name: 'adds a dependency' },
    edit: {
      ...fix,
      'package.json': manifest({ dependencies: { zod: '4.0.0' } }),
      'package-lock.json': '{"lockfileVersion": 3}\n',
    },
    names: [],
  },
  {
    ...{ ...done, ...npm, name: 'adds a script that the check does not reach' },
    edit: { ...fix, 'package.json': manifest({ scripts: { test: 'node vendor/runner.js', dev: 'node src/add.js' } }) },
    names: [],
  },
  {
    ...{ ...done, ...npm, name: 'gives the test script an option' },
    edit: { ...fix, 'package.json': manifest({}, 'node vendor/runner.js --reporter dot') },
    names: ['changed package.json: scripts.test'],
  },
  {
    ...{ ...done, name: 'adds a dependency to pyproject.toml', base: { 'pyproject.toml': python } },
    edit: { ...fix, 'pyproject.toml': python.replace('"app"\n', '"app"\ndependencies = ["requests"]\n') },
    names: [],
  },
  {
    ...{ ...done, name: 'adds a job to the CI', base: { '.github/workflows/ci.yml': 'jobs:\n  test: npm test\n' } },
    edit: { ...fix, '.github/workflows/ci.yml': 'jobs:\n  test: npm test\n  lint: npm run lint\n' },
    names: ['changed .github/workflows/ci.yml'],
  },
  {
    ...{ ...done, name: 'adds a step to the check' },
    edit: { ...fix, 'check.sh': `${common['check.sh']}test -e src/add.js\n` },
    names: ['changed check.sh'],
  },
  {
    ...{ ...allowed, name: 'renames what a script of the check calls' },
    edit: {
      ...fix,
      'vendor/runner.js': null,
      'vendor/run.js': common['vendor/runner.js'] ?? '',
      'tools/lib.sh': 'run_tests() {\n  node vendor/run.js\n}\n',
    },
    names: ['changed tools/lib.sh'],
  },
  {
    ...{ ...done, name: 'adds a snapshot' },
    edit: {
      ...fix,
      'test/s.test.js': "test('s', () => expect(1).toMatchSnapshot('one'));\n",
      'test/__snapshots__/one.snap': '1\n',
    },
    names: ['added test/__snapshots__/one.snap', 'added test/s.test.js'],
  },
  {
    ...{ ...allowed, name: 'updates a snapshot with the behaviour' },
    base: {
      [tests]: `${adds}test('adds', () => expect(add(2, 4)).toMatchSnapshot('add'));\n`,
      'test/__snapshots__/add.snap': '6\n',
    },
    edit: { 'src/add.js': multiplies['src/add.js'], 'test/__snapshots__/add.snap': '8\n' },
    names: ['changed test/__snapshots__/add.snap'],
  },
  {
    ...{ ...done, name: 'adds a binary fixture' },
    edit: { ...fix, 'test/data/logo.bin': new Uint8Array([0, 1, 2, 255]) },
    names: ['added test/data/logo.bin'],
  },
  {
    ...{ ...done, name: 'adds an option to tsconfig.json', base: { 'tsconfig.json': '{}\n' } },
    edit: { ...fix, 'tsconfig.json': '{ "compilerOptions": { "target": "es2024" } }\n' },
    names: ['changed tsconfig.json'],
  },
  {
    ...{ ...done, name: 'makes a rule of the linter stricter', base: { '.eslintrc.json': '{ "rules": {} }\n' } },
    edit: { ...fix, '.eslintrc.json': '{ "rules": { "eqeqeq": "error" } }\n' },
    names: ['changed .eslintrc.json'],
  },
  {
    ...{ ...done, name: 'needs a file that .worktreeinclude names', accept: 'sh check.sh && grep -q key env.local' },
    base: { '.worktreeinclude': 'env.local\n' },
    ignored: { 'env.local': 'key\n' },
    edit: fix,
    names: [],
  },
  {
    ...{ ...done, name: 'needs what the setup command makes', accept: 'sh check.sh && test -e node_modules/made' },
    fields: { setup: 'mkdir -p node_modules && echo made > node_modules/made' },
    edit: { ...fix, 'node_modules/more': 'more\n' },
    names: [],
  },
  {
    ...{ ...done, name: 'needs its own ignored files, which is allowed', accept: 'sh check.sh && test -e cache.local' },
    fields: { acceptIn: 'worktree' },
    edit: { ...fix, 'cache.local': 'cache\n' },
    names: [],
  },
  { ...done, name: 'changes tests that are not guarded', fields: { guard: ['none'] }, edit: multiplies, names: [] },
  {
    ...{ ...done, name: 'changes tests outside of the guard that was given', fields: { guard: ['spec', '*.golden'] } },
    edit: { ...multiplies, 'deep/a.golden': 'a\n' },
    names: ['added deep/a.golden'],
  },
  {
    ...{ ...done, name: 'leaves its work uncommitted on purpose', fields: { commit: false } },
    edit: { ...fix, 'test/more.test.js': '' },
    names: ['added test/more.test.js'],
  },
  {
    ...done,
    name: 'works in the project folder itself',
    isInPlace: true,
    edit: multiplies,
    names: [`changed ${tests}`],
  },
  {
    ...{ ...done, name: 'proves its change with a test inside a Rust source', fields: { prove: true } },
    accept: '! grep -q "add(1, 2), 3" src/lib.rs || grep -q "a + b" src/lib.rs',
    base: { 'src/lib.rs': rust('-', '1, 0), 1') },
    edit: { 'src/lib.rs': rust('+', '1, 2), 3') },
    names: ['changed src/lib.rs: mod tests'],
  },
  {
    ...{ ...done, name: 'changes Rust code that has tests', base: { 'src/lib.rs': rust('-', '1, 0), 1') } },
    edit: { ...fix, 'src/lib.rs': rust('+', '1, 0), 1') },
    names: [],
  },
  {
    ...{ ...done, name: 'moves Rust tests to a file of their own', base: { 'src/lib.rs': rust('+', '1, 2), 3') } },
    accept: 'test "$(grep -c "mod tests" src/lib.rs)" = 1',
    edit: {
      'src/lib.rs': rust('+', '1, 2), 3').replace(/mod tests[\s\S]*/, 'mod tests;\n'),
      'src/tests.rs': 'use super::*;\n\n#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n',
    },
    names: ['added src/tests.rs', 'weakened src/lib.rs: mod tests'],
  },
  {
    ...{ ...done, name: 'adds a test to a Rust source whose layout is checked' },
    accept: layout,
    base: { 'src/lib.rs': `${rust('+', '1, 2), 3')}\npub fn last() {}\n` },
    edit: { 'src/lib.rs': `${rust('+', '1, 2), 3); assert_eq!(add(1, 1), 2')}\npub fn last() {}\n` },
    names: ['changed src/lib.rs: mod tests'],
  },
  {
    ...{ ...done, name: 'adds the first tests, with a comment, to a Rust source whose layout is checked' },
    accept: layout,
    base: { 'src/lib.rs': rust('+', '1, 2), 3').replace(/\n#\[cfg[\s\S]*/, '') },
    edit: { 'src/lib.rs': rust('+', '1, 2), 3').replace('#[cfg', '/// Sums.\n#[cfg') },
    names: ['added src/lib.rs: mod tests'],
  },
  {
    ...{ ...done, name: 'adds a benchmark to Cargo.toml', base: { 'Cargo.toml': cargo } },
    edit: { ...fix, 'Cargo.toml': `${cargo}\n[[bench]]\nname = "sums"\nharness = false\n` },
    names: [],
  },
  {
    ...{ ...done, name: 'makes a Rust library loadable', base: { 'Cargo.toml': cargo } },
    accept: 'grep -q cdylib Cargo.toml',
    edit: { 'Cargo.toml': cargo.replace('[lib]', '[lib]\ncrate-type = ["cdylib"]') },
    names: [],
  },
  {
    ...{
      ...done,
      name: 'disables a jar and raises a version of a Gradle build',
      base: { 'gradle.properties': 'kt=1\n' },
    },
    accept: 'grep -q kt=2 gradle.properties && grep -q "enabled = false" build.gradle.kts',
    edit: { 'gradle.properties': 'kt=2\n', 'build.gradle.kts': 'tasks.bootJar {\n    enabled = false\n}\n' },
    names: [],
  },
  {
    ...{ ...done, name: 'adds a dependency to Cargo.toml', base: { 'Cargo.toml': cargo } },
    edit: { ...fix, 'Cargo.toml': `${cargo}serde = "1"\n` },
    names: [],
  },
  {
    ...{ ...done, name: 'adds a dependency to build.gradle', base: { 'build.gradle': 'dependencies {\n}\n' } },
    edit: { ...fix, 'build.gradle': "dependencies {\n  implementation('a:b:1') { exclude group: 'c' }\n}\n" },
    names: [],
  },
  {
    ...{ ...done, name: 'proves its change with a new test', fields: { prove: true } },
    base: { [tests]: null },
    edit: { ...fix, 'test/sum.test.js': `${adds}${addition}` },
    names: ['added test/sum.test.js'],
  },
  { ...done, name: 'proves its change with the tests there were', fields: { prove: true }, edit: fix, names: [] },
  {
    ...{
      ...done,
      name: 'has a flaky check',
      accept: 'F="$CCA_PROJECT_DIR/../flaky"; test -e "$F" || { : > "$F"; false; }',
    },
    edit: fix,
    names: [],
  },
];

test(`${cases.length} honest changes: each is completed or can be allowed, and none pays a further turn`, async () => {
  expect(cases.length).toBeGreaterThanOrEqual(30);
  const { group, outcome } = await runCases(cases, 'allow');
  const found: object[] = [];
  for (const { name } of cases) {
    const { record, evidence, turns, events } = outcome(name);
    const guarded = evidence.guarded.map(({ path, change }) => `${change} ${path}`);
    const wasAsked = events.includes('item_opened') ? 'allowed' : 'completed';
    found.push({ name, status: record.state.status, ends: wasAsked, names: guarded.toSorted(), turns });
    for (const { log } of evidence.runs) expect(readFileSync(log, 'utf8')).toStartWith('$ ');
  }
  const wanted = cases.map(({ name, ends, names }) => ({
    name,
    status: 'completed',
    ends,
    names: [...names].toSorted(),
    turns: 1,
  }));
  expect(found).toEqual(wanted);
  const runsOf = (name: string) =>
    outcome(name).evidence.runs.map(({ where, code, exitCode }) => [where, code, exitCode]);
  expect(runsOf('fixes the code')).toEqual([['fresh', 'own', 0]]);
  expect(runsOf('changes behaviour with its tests')).toEqual([
    ['fresh', 'own', 0],
    ['fresh', 'base-guarded', 1],
  ]);
  expect(runsOf('works in the project folder itself')).toEqual([['folder', 'own', 0]]);
  expect(runsOf('proves its change with the tests there were')).toEqual([
    ['fresh', 'own', 0],
    ['fresh', 'base', 1],
  ]);
  expect(outcome('proves its change with a new test').evidence.proven).toBe(true);
  const flaky = outcome('has a flaky check');
  expect(flaky.evidence).toMatchObject({ flaky: true, runs: [{ exitCode: 0, flaky: true }] });
  expect(flaky.record.warnings.map(({ code }) => code)).toContain('flaky-check');
  // Nothing of the fresh checkouts is left.
  const worktrees = join(group.root, 'w');
  const own = cases.filter(({ isInPlace }) => !isInPlace).length;
  expect(existsSync(worktrees) ? readdirSync(worktrees) : []).toHaveLength(own);
}, 120_000);
