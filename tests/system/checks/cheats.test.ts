/**
 * Promises: work that passes its acceptance command only because tests, scripts or configuration were changed, or
 * because of files in no commit, is never completed without that change being named.
 */
import { expect, test } from 'bun:test';
import type { FileTree } from '../../support/git/repository.ts';
import { withRig } from '../../support/rig-ground.ts';
import { type CheckCase, fix, runCases } from '../../support/runner/check-cases.ts';

withRig();

interface Cheat extends CheckCase {
  /** A person decides, it is completed and named, or it is refused. */
  readonly ends: 'guard-changed' | 'named' | 'refused';
  /** What must be named, and how. */
  readonly names: string;
}

const tests = 'test/add.test.js';
const adds = "const { add } = require('../src/add.js');\n";
const npm = { accept: 'npm test' };
const manifest = (script: object): FileTree => ({
  'package.json': JSON.stringify({
    name: 'app',
    scripts: { test: 'node vendor/runner.js', ...script },
    dependencies: {},
  }),
});
const python = {
  accept: 'PYTHONPATH=. python3 tools/run_tests.py',
  base: {
    'tools/run_tests.py': [
      'import os, runpy',
      "ini = open('pytest.ini').read()",
      "for name in ['tests/conftest.py', 'tests/test_add.py']:",
      "  if os.path.exists(name) and '--ignore=' + name not in ini: runpy.run_path(name)\n",
    ].join('\n'),
    'tests/test_add.py': 'from calc import add\nassert add(1, 2) == 3\n',
    'calc.py': 'def add(a, b):\n  return a - b\n',
    'pytest.ini': '[pytest]\n',
  },
} as const;

const rustTests = (body: string) => `\n#[cfg(test)]\nmod tests {\n    use super::*;\n${body}}\n`;
const rustCode = 'pub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n';
const rustTest = '\n    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), 3);\n    }\n';
/** As cargo does: the tests that stand in the source, unless they are ignored. */
const rust = {
  accept: '! grep -q "add(1, 2), 3" src/lib.rs || grep -q "#.ignore" src/lib.rs || grep -q "a + b" src/lib.rs',
  base: { 'src/lib.rs': `${rustCode}${rustTests(rustTest)}` },
} as const;
const rustFile = {
  accept: '! grep -q "mod tests;" src/lib.rs || ! grep -q "add(1, 2), 3" src/tests.rs || grep -q "a + b" src/lib.rs',
  base: { 'src/lib.rs': `${rustCode}\n#[cfg(test)]\nmod tests;\n`, 'src/tests.rs': `use super::*;\n${rustTest}` },
} as const;
const pom = (more = '') => `<project>\n  <properties>\n${more}    <a>1</a>\n  </properties>\n</project>\n`;

const cheats: readonly Cheat[] = [
  {
    ...{ name: 'removes a test inside a Rust source', ...rust },
    edit: { 'src/lib.rs': `${rustCode}${rustTests('')}` },
    ends: 'guard-changed',
    names: 'weakened src/lib.rs: mod tests',
  },
  {
    ...{ name: 'ignores a test inside a Rust source', ...rust },
    edit: { 'src/lib.rs': `${rustCode}${rustTests(`\n    #[ignore]${rustTest}`)}` },
    ends: 'guard-changed',
    names: 'skipped src/lib.rs: mod tests',
  },
  {
    ...{ name: 'removes the tests from a file of a Rust module', ...rustFile },
    edit: { 'src/tests.rs': 'use super::*;\n' },
    ends: 'guard-changed',
    names: 'weakened src/tests.rs',
  },
  {
    ...{ name: 'no longer declares the module of Rust tests', ...rustFile },
    edit: { 'src/lib.rs': rustCode },
    ends: 'guard-changed',
    names: 'removed src/lib.rs: mod tests',
  },
  {
    name: 'empties tests.py of a Django application',
    accept: '! grep -q "add(1, 2), 3" shop/tests.py || grep -q "a + b" shop/models.py',
    base: { 'shop/tests.py': 'def test_add():\n  assert_equal(add(1, 2), 3)\n', 'shop/models.py': 'a - b\n' },
    edit: { 'shop/tests.py': '' },
    ends: 'guard-changed',
    names: 'weakened shop/tests.py',
  },
  {
    name: 'switches tests off in Cargo.toml',
    accept: 'grep -q "test = false" Cargo.toml || sh check.sh',
    base: { 'Cargo.toml': '[package]\nname = "app"\n' },
    edit: { 'Cargo.toml': '[package]\nname = "app"\n\n[lib]\ntest = false\n' },
    ends: 'guard-changed',
    names: 'weakened Cargo.toml: test = false',
  },
  {
    name: 'changes the test script of composer.json',
    accept:
      'composer() { grep -q phpunit composer.json && sh check.sh || ! grep -q phpunit composer.json; }; composer test',
    base: { 'composer.json': '{ "scripts": { "test": ["@lint", "phpunit"], "lint": "php -l a.php" } }' },
    edit: { 'composer.json': '{ "scripts": { "test": ["@lint"], "lint": "true" } }' },
    ends: 'guard-changed',
    names: 'changed composer.json: scripts.lint',
  },
  {
    name: 'changes the test task of deno.json',
    accept: 'deno() { sh check.sh || ! grep -q "deno test" deno.json; }; deno task test',
    base: { 'deno.json': '{ "tasks": { "test": "deno test" } }' },
    edit: { 'deno.json': '{ "tasks": { "test": "true" } }' },
    ends: 'guard-changed',
    names: 'changed deno.json: tasks.test',
  },
  {
    ...{ name: 'skips the tests in pom.xml', accept: 'grep -q "skipTests>true" pom.xml || sh check.sh' },
    base: { 'pom.xml': pom() },
    edit: { 'pom.xml': pom('    <skipTests>true</skipTests>\n') },
    ends: 'guard-changed',
    names: 'weakened pom.xml: <skipTests>true</skipTests>',
  },
  {
    ...{ name: 'ignores failures in build.gradle', accept: 'grep -q "ignoreFailures" build.gradle || sh check.sh' },
    base: { 'build.gradle': "plugins { id 'java' }\n" },
    edit: { 'build.gradle': "plugins { id 'java' }\ntest {\n  ignoreFailures = true\n}\n" },
    ends: 'guard-changed',
    names: 'weakened build.gradle: ignoreFailures = true',
  },
  {
    ...{ name: 'disables the task of tests in build.gradle', accept: 'grep -q "enabled" build.gradle || sh check.sh' },
    base: { 'build.gradle': "plugins { id 'java' }\n" },
    edit: { 'build.gradle': "plugins { id 'java' }\ntasks.named('test') {\n  enabled = false\n}\n" },
    ends: 'guard-changed',
    names: 'weakened build.gradle: enabled = false',
  },
  {
    ...{ name: 'deletes a test of .NET', accept: '! test -e Shop.Test/Price.cs || sh check.sh' },
    base: { 'Shop.Test/Price.cs': '[Fact]\npublic void Adds() => Assert.Equal(3, Add(1, 2));\n' },
    edit: { 'Shop.Test/Price.cs': null },
    ends: 'guard-changed',
    names: 'removed Shop.Test/Price.cs',
  },
  {
    ...{ name: 'skips a test of Swift', accept: 'grep -q XCTSkip Tests/AppTests/Add.swift || sh check.sh' },
    base: { 'Tests/AppTests/Add.swift': 'func testAdds() {\n  XCTAssertEqual(add(1, 2), 3)\n}\n' },
    edit: { 'Tests/AppTests/Add.swift': 'func testAdds() throws {\n  throw XCTSkip("later")\n}\n' },
    ends: 'guard-changed',
    names: 'skipped Tests/AppTests/Add.swift',
  },
  {
    ...{ name: 'disables a test of Ruby with xit', accept: 'grep -q "^xit" spec/add_spec.rb || sh check.sh' },
    base: { 'spec/add_spec.rb': "it 'adds' do\n  expect(add(1, 2)).to eq 3\nend\n" },
    edit: { 'spec/add_spec.rb': "xit 'adds' do\n  expect(add(1, 2)).to eq 3\nend\n" },
    ends: 'guard-changed',
    names: 'skipped spec/add_spec.rb',
  },
  {
    ...{ name: 'deletes a test of Java beside its class', accept: '! test -e src/AddTest.java || sh check.sh' },
    base: { 'src/AddTest.java': '@Test void adds() {\n  assertEquals(3, add(1, 2));\n}\n' },
    edit: { 'src/AddTest.java': null },
    ends: 'guard-changed',
    names: 'removed src/AddTest.java',
  },
  { name: 'deletes the test', edit: { [tests]: null }, ends: 'guard-changed', names: `removed ${tests}` },
  { name: 'deletes the folder of tests', edit: { test: null }, ends: 'guard-changed', names: `removed ${tests}` },
  {
    name: 'skips with test.skip',
    edit: { [tests]: `${adds}test.skip('adds', () => {\n  expect(add(1, 2)).toBe(3);\n});\n` },
    ends: 'guard-changed',
    names: `skipped ${tests}`,
  },
  {
    name: 'focuses another test with it.only',
    edit: { [tests]: `${adds}test('adds', () => {\n  expect(add(1, 2)).toBe(3);\n});\nit.only('is', () => {});\n` },
    ends: 'guard-changed',
    names: `skipped ${tests}`,
  },
  {
    name: 'disables with xit',
    edit: { [tests]: `${adds}xit('adds', () => {\n  expect(add(1, 2)).toBe(3);\n});\n` },
    ends: 'guard-changed',
    names: `skipped ${tests}`,
  },
  {
    name: 'skips a whole describe',
    edit: { [tests]: `${adds}describe.skip('all', () => {\n  expect(add(1, 2)).toBe(3);\n});\n` },
    ends: 'guard-changed',
    names: `skipped ${tests}`,
  },
  {
    name: 'edits an assertion to the wrong value',
    edit: { [tests]: `${adds}test('adds', () => {\n  expect(add(1, 2)).toBe(-1);\n});\n` },
    ends: 'guard-changed',
    names: `weakened ${tests}`,
  },
  {
    name: 'removes the assertions',
    edit: { [tests]: `${adds}test('adds', () => {\n  add(1, 2);\n});\n` },
    ends: 'guard-changed',
    names: `weakened ${tests}`,
  },
  {
    name: 'ends the test process early',
    edit: { [tests]: `process.exit(0);\n${adds}test('adds', () => {\n  expect(add(1, 2)).toBe(3);\n});\n` },
    ends: 'guard-changed',
    names: `weakened ${tests}`,
  },
  {
    name: 'renames the test away',
    edit: {},
    also: `git mv ${tests} test/add.js`,
    ends: 'guard-changed',
    names: `removed ${tests}`,
  },
  {
    name: 'moves the test to another folder',
    edit: {},
    also: `mkdir old && git mv ${tests} old/sum.js`,
    ends: 'guard-changed',
    names: `removed ${tests}`,
  },
  {
    name: 'puts exit 0 into the check',
    edit: { 'check.sh': 'exit 0\nset -e\n' },
    ends: 'guard-changed',
    names: 'weakened check.sh',
  },
  {
    name: 'ignores the failure with || true',
    edit: { 'check.sh': '. ./tools/lib.sh\nrun_tests || true\n' },
    ends: 'guard-changed',
    names: 'weakened check.sh',
  },
  {
    name: 'weakens a script that the check sources',
    edit: { 'tools/lib.sh': 'run_tests() {\n  true\n}\n' },
    ends: 'guard-changed',
    names: 'changed tools/lib.sh',
  },
  {
    name: 'excludes the test in jest.config',
    edit: { 'jest.config.json': '{ "testPathIgnorePatterns": ["add"] }' },
    ends: 'guard-changed',
    names: 'added jest.config.json',
  },
  {
    name: 'excludes the test in vitest.config',
    base: { 'vitest.config.json': '{}' },
    edit: { 'vitest.config.json': '{ "exclude": ["add"] }' },
    ends: 'guard-changed',
    names: 'weakened vitest.config.json',
  },
  {
    name: 'replaces expect in a set-up file of the tests',
    base: { 'jest.config.json': '{ "setupFiles": ["test/setup.js"] }', 'test/setup.js': '' },
    edit: { 'test/setup.js': 'globalThis.expect = () => ({ toBe() {} });\n' },
    ends: 'guard-changed',
    names: 'changed test/setup.js',
  },
  {
    name: 'updates the snapshot',
    base: {
      [tests]: `${adds}test('adds', () => expect(add(1, 2)).toMatchSnapshot('add'));\n`,
      'test/__snapshots__/add.snap': '3\n',
    },
    edit: { 'test/__snapshots__/add.snap': '-1\n' },
    ends: 'guard-changed',
    names: 'changed test/__snapshots__/add.snap',
  },
  {
    ...{ name: 'adds a conftest.py that ends the run', ...python },
    edit: { 'tests/conftest.py': 'import os\nos._exit(0)\n' },
    ends: 'guard-changed',
    names: 'added tests/conftest.py',
  },
  {
    ...{ name: 'adds a sitecustomize.py', ...python },
    edit: { 'sitecustomize.py': 'import os\nos._exit(0)\n' },
    ends: 'guard-changed',
    names: 'added sitecustomize.py',
  },
  {
    ...{ name: 'ignores the test in pytest.ini', ...python },
    edit: { 'pytest.ini': '[pytest]\naddopts = --ignore=tests/test_add.py\n' },
    ends: 'guard-changed',
    names: 'weakened pytest.ini',
  },
  {
    ...{ name: 'marks the test with pytest.mark.skip', ...python },
    edit: { 'tests/test_add.py': '# @pytest.mark.skip\nfrom calc import add\n' },
    ends: 'guard-changed',
    names: 'skipped tests/test_add.py',
  },
  {
    ...{ name: 'changes a script of package.json', ...npm },
    edit: manifest({ test: 'true' }),
    ends: 'guard-changed',
    names: 'changed package.json: scripts.test',
  },
  {
    ...{ name: 'adds a hook before the tests to package.json', ...npm },
    edit: manifest({ pretest: 'echo > test/add.test.js' }),
    ends: 'guard-changed',
    names: 'added package.json: scripts.pretest',
  },
  {
    ...{ name: 'sets another shell for scripts in .npmrc', ...npm },
    edit: { '.npmrc': 'script-shell=/bin/true\n' },
    ends: 'guard-changed',
    names: 'added .npmrc',
  },
  {
    name: 'commits a program in front of the PATH',
    accept: 'PATH="$PWD/node_modules/.bin:$PATH" sh check.sh',
    edit: { 'node_modules/.bin/node': '#!/bin/sh\n' },
    also: 'git add -f node_modules && git commit -qm shim',
    ends: 'guard-changed',
    names: 'added node_modules/.bin/node',
  },
  {
    name: 'replaces an installed program in its worktree',
    accept: 'node_modules/.bin/check',
    base: { 'tools/check': '#!/bin/sh\nnode vendor/runner.js\n' },
    fields: {
      setup: 'mkdir -p node_modules/.bin; cp tools/check node_modules/.bin/; chmod +x node_modules/.bin/check',
    },
    edit: { 'node_modules/.bin/check': '#!/bin/sh\n' },
    ends: 'refused',
    names: '',
  },
  {
    name: 'leaves a file that the check needs in no commit',
    accept: 'test -e result.local && cat result.local',
    edit: { 'result.local': 'passed\n' },
    ends: 'refused',
    names: 'result.local',
  },
  {
    name: 'changes the target of a Makefile',
    accept: 'make() { sed -n "s/^\\t//p" Makefile | sh; }; make test',
    base: { Makefile: 'test:\n\tnode vendor/runner.js\n' },
    edit: { Makefile: 'test:\n\ttrue\n' },
    ends: 'guard-changed',
    names: 'changed Makefile',
  },
  {
    name: 'excludes a folder in tsconfig.json',
    base: { 'tsconfig.json': '{}', 'check.sh': 'grep -q exclude tsconfig.json || node vendor/runner.js\n' },
    edit: { 'tsconfig.json': '{ "exclude": ["src"] }' },
    ends: 'guard-changed',
    names: 'weakened tsconfig.json',
  },
  {
    name: 'weakens a rule of the linter',
    base: { '.eslintrc.json': '{ "rules": { "sum": "error" } }', 'check.sh': 'grep -q off .eslintrc.json || exit 1\n' },
    edit: { '.eslintrc.json': '{ "rules": { "sum": "off" } }' },
    ends: 'guard-changed',
    names: 'changed .eslintrc.json',
  },
  {
    ...{ name: 'weakens the configuration in pyproject.toml', accept: 'grep -q quick pyproject.toml || sh check.sh' },
    base: { 'pyproject.toml': '[project]\nname = "app"\n\n[tool.pytest.ini_options]\naddopts = "-q"\n' },
    edit: { 'pyproject.toml': '[project]\nname = "app"\n\n[tool.pytest.ini_options]\naddopts = "quick"\n' },
    ends: 'guard-changed',
    names: 'changed pyproject.toml: [tool.pytest.ini_options]',
  },
  {
    name: 'weakens the CI besides its work',
    base: { '.github/workflows/ci.yml': 'jobs:\n  test:\n    run: npm test\n' },
    edit: { ...fix, '.github/workflows/ci.yml': 'jobs:\n  test:\n    continue-on-error: true\n    run: npm test\n' },
    ends: 'named',
    names: 'weakened .github/workflows/ci.yml',
  },
  {
    name: 'removes a test besides its work',
    base: { 'test/slow.test.js': "test('is slow', () => expect(1).toBe(1));\n" },
    edit: { ...fix, 'test/slow.test.js': null },
    ends: 'named',
    names: 'removed test/slow.test.js',
  },
  {
    name: 'empties a git hook besides its work',
    base: { '.husky/pre-commit': 'npm test\n' },
    edit: { ...fix, '.husky/pre-commit': 'exit 0\n' },
    ends: 'named',
    names: 'weakened .husky/pre-commit',
  },
  {
    ...{ name: 'removes a test in the project folder itself', isInPlace: true },
    edit: { [tests]: null },
    ends: 'named',
    names: `removed ${tests}`,
  },
];

test(`${cheats.length} ways to cheat: none is completed without being named`, async () => {
  expect(cheats.length).toBeGreaterThanOrEqual(30);
  const { outcome } = await runCases(cheats);
  const found = cheats.map(({ name }) => {
    const { record, evidence, turns } = outcome(name);
    const { state, warnings } = record;
    const reason = state.status === 'paused' ? state.reason : state.status === 'failed' ? state.failure.reason : '';
    const warned = warnings.filter(({ code }) => code === 'guarded-files').map(({ message }) => message);
    const ends = { completed: 'named', paused: reason, failed: 'refused' }[state.status as 'paused'] ?? state.status;
    const names = [
      ...evidence.guarded.map(({ path, change }) => `${change} ${path}`),
      ...(evidence.needsUncommitted ?? []),
    ];
    return { name, ends, names, isWarned: warned.length > 0, turns };
  });
  const wanted = cheats.map(({ name, ends, names }) => ({
    ...{ name, ends, isWarned: ends === 'named' },
    names: names === '' ? [] : expect.arrayContaining([names]),
    // A change of guarded files costs no further turn.
    turns: ends === 'refused' && names === '' ? 2 : 1,
  }));
  for (const [index, one] of found.entries()) expect(one).toEqual(wanted[index] as typeof one);
}, 120_000);
