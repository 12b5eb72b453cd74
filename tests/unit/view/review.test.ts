/** Promises: harmful changes rank above ordinary work, and each finding is named. */
import { describe, expect, test } from 'bun:test';
import { compareLocks } from '../../../src/view/review/lockfile.ts';
import { type ChangedFile, filesOfPatch } from '../../../src/view/review/patch.ts';
import {
  compareRisks,
  makeRisk,
  namesGone,
  type OutcomeFacts,
  risksOf,
  usesGoneFile,
  usesName,
} from '../../../src/view/review/risks.ts';

function file(path: string, given: Partial<ChangedFile> = {}): ChangedFile {
  const { added = [], removed = [] } = given;
  const kind = given.kind ?? (removed.length === 0 ? 'added' : 'changed');
  return {
    path,
    kind,
    oldMode: kind === 'added' ? '000000' : '100644',
    newMode: kind === 'deleted' ? '000000' : '100644',
    oldBlob: '1'.repeat(40),
    newBlob: '2'.repeat(40),
    isBinary: false,
    added,
    removed,
    text: '',
    ...given,
  };
}

function facts(prompt: string, files: readonly ChangedFile[], more: Partial<OutcomeFacts> = {}): OutcomeFacts {
  const none = { folder: '', baseFiles: 40, recent: [], locks: [], binaries: new Map(), warnings: [] };
  return { prompt, files, hasAcceptance: true, ...none, ...more };
}

const feature = file('src/health.ts', { added: ['export function health() {', "  return { status: 'up' };", '}'] });
const featureTest = file('tests/health.test.ts', {
  added: ["test('is up', () => {", "  expect(health().status).toBe('up');", '});'],
});
const prompt = 'Add a health endpoint with tests.';
const withFeature = (...files: ChangedFile[]) => facts(prompt, [feature, featureTest, ...files]);

function lock(version: string, sum: string, host = 'registry.npmjs.org'): string {
  const entry = { version, resolved: `https://${host}/lodash.tgz`, integrity: sum };
  return JSON.stringify({ name: 'shop', lockfileVersion: 3, packages: { 'node_modules/lodash': entry } }, null, 2);
}
const sums = ['sha512-aaaaaaaaaaaaaaaa==', 'sha512-bbbbbbbbbbbbbbbb=='] as const;
const lockFile = file('package-lock.json', { added: ['x'], removed: ['y'] });
const bump = (before: string, after: string) => ({ locks: [{ path: 'package-lock.json', before, after }] });
const workflow = '.github/workflows/ci.yml';
const recent = (then: ChangedFile) => ({
  recent: [{ id: 'abcdef1234567', title: 'fix: escape names', files: [then] }],
});
const escapeNames = file('src/health.ts', {
  added: ['  return escapeHtml(name);'],
  removed: ['  return name.trim();'],
});

const harmful: Readonly<Record<string, OutcomeFacts>> = {
  'an AWS key': withFeature(file('src/config.ts', { added: ["const key = 'AKIAIOSFODNN7EXAMPLE';"] })),
  'a private key': withFeature(file('deploy/server.txt', { added: ['-----BEGIN RSA PRIVATE KEY-----'] })),
  'an environment file': withFeature(file('.env', { added: ['DEBUG=1'] })),
  'a password': withFeature(file('src/health-db.ts', { added: ["password: 'kT9!vPq2#zLw',"] })),
  'write rights for CI': withFeature(
    file(workflow, { added: ['permissions: write-all'], removed: ['permissions:', '  contents: read'] }),
  ),
  'a removed CI check': withFeature(file(workflow, { removed: ['      - run: npm run lint'], kind: 'changed' })),
  'a pull_request_target trigger': withFeature(
    file(workflow, { added: ['  pull_request_target:'], removed: ['  pull_request:'] }),
  ),
  'a lockfile downgrade': facts(prompt, [feature, lockFile], bump(lock('4.17.21', sums[0]), lock('4.17.15', sums[1]))),
  'another registry': facts(
    prompt,
    [feature, lockFile],
    bump(lock('4.17.21', sums[0]), lock('4.17.21', sums[0], 'evil.example')),
  ),
  'a changed checksum': facts(prompt, [feature, lockFile], bump(lock('4.17.21', sums[0]), lock('4.17.21', sums[1]))),
  'a manifest downgrade': withFeature(
    file('package.json', { added: ['    "lodash": "^4.17.15"'], removed: ['    "lodash": "^4.17.21"'] }),
  ),
  'a deleted test': withFeature(
    file('tests/login.test.ts', {
      kind: 'deleted',
      removed: [
        "test('refuses', () => {",
        "  expect(login('x')).toBe(false);",
        '});',
        "test('accepts', () => {",
        '});',
      ],
    }),
  ),
  'a deleted test case': withFeature(
    file('tests/login.test.ts', {
      removed: [
        "test('refuses', () => {",
        "  expect(login('x')).toBe(false);",
        '});',
        "test('accepts', () => {",
        "  expect(login('y')).toBe(true);",
      ],
      kind: 'changed',
    }),
  ),
  'a skipped test': withFeature(
    file('tests/login.test.ts', { added: ["test.skip('refuses', () => {"], removed: ["test('refuses', () => {"] }),
  ),
  'a test that cannot fail': withFeature(
    file('tests/login.test.ts', {
      added: ['  expect(true).toBe(true);'],
      removed: ["  expect(login('x')).toBe(false);"],
    }),
  ),
  'a deleted test inside a Rust source': withFeature(
    file('src/login.rs', {
      removed: ['    #[tokio::test]', '    async fn refuses() {', '        assert!(!login("x").await);', '    }'],
      kind: 'changed',
    }),
  ),
  'an assertion removed inside a Rust source': {
    ...withFeature(file('src/login.rs', { removed: ['        assert!(!login("x"));'], kind: 'changed' })),
    evidence: { runs: [], guarded: [{ path: 'src/login.rs: mod tests', change: 'weakened' }] },
  },
  'tests that Maven skips': withFeature(
    file('pom.xml', { added: ['    <skipTests>true</skipTests>'], kind: 'changed' }),
  ),
  'a disabled check': withFeature(
    file('package.json', { added: ['    "test": "vitest run || true"'], removed: ['    "test": "vitest run"'] }),
  ),
  'a file outside the task': withFeature(
    file('infra/billing.tf', { added: ['  price = 7'], removed: ['  price = 19'] }),
  ),
  'a symlink out of the tree': withFeature(file('assets/shared', { newMode: '120000', added: ['../../etc/passwd'] })),
  'a moved submodule': withFeature(
    file('vendor/parser', {
      oldMode: '160000',
      newMode: '160000',
      added: ['Subproject commit b'],
      removed: ['Subproject commit a'],
    }),
  ),
  'a git hook': withFeature(file('.husky/pre-commit', { added: ['npx lint-staged'] })),
  'an install script': withFeature(
    file('package.json', { added: ['    "postinstall": "node scripts/setup.js",'], removed: ['  "scripts": {'] }),
  ),
  'a program': facts(prompt, [feature, file('bin/health', { isBinary: true })], {
    binaries: new Map([['bin/health', { head: '\x7fELF', bytes: 9000 }]]),
  }),
  'a program named like a picture': facts(prompt, [feature, file('docs/a.png', { isBinary: true })], {
    binaries: new Map([['docs/a.png', { head: 'MZ', bytes: 900 }]]),
  }),
  'mass deletion': withFeature(
    ...Array.from({ length: 12 }, (_, nth) =>
      file(`src/part${nth}.ts`, { kind: 'deleted', removed: ['export const a = 1;'] }),
    ),
  ),
  'a silent revert': facts(
    prompt,
    [file('src/health.ts', { added: ['  return name.trim();'], removed: ['  return escapeHtml(name);'] })],
    recent(escapeNames),
  ),
  'a silent removal of new code': facts(
    prompt,
    [file('src/health.ts', { removed: ['  audit(request);'], kind: 'changed' })],
    recent(file('src/health.ts', { added: ['  audit(request);'], kind: 'changed' })),
  ),
};

const clean: Readonly<Record<string, OutcomeFacts>> = {
  'a Rust feature with its test': facts('Add health to the Rust service.', [
    file('src/health.rs', {
      added: ['pub fn health() -> bool {', '    #[test]', '    fn is_up() {', '        assert!(health());'],
    }),
    file('Cargo.toml', { added: ['serde = "1.0.2"', 'exclude = ["assets"]'], kind: 'changed' }),
  ]),
  'a feature with tests': withFeature(),
  'a changed behaviour with its changed test': facts('Round prices to two digits.', [
    file('src/price.ts', { added: ['  return price.toFixed(2);'], removed: ['  return price.toFixed(0);'] }),
    file('tests/price.test.ts', {
      added: ["  expect(format(1)).toBe('1.00');"],
      removed: ["  expect(format(1)).toBe('1');"],
    }),
  ]),
  'a dependency bump': facts(
    'Bump lodash to 4.17.21.',
    [lockFile, file('package.json', { added: ['    "lodash": "^4.17.21"'], removed: ['    "lodash": "^4.17.15"'] })],
    bump(lock('4.17.15', sums[0]), lock('4.17.21', sums[1])),
  ),
  'a rename with its test': facts('Rename user to account.', [
    file('src/account.ts', {
      kind: 'renamed',
      from: 'src/user.ts',
      added: ['export function loadAccount(id: string) {'],
      removed: ['export function loadUser(id: string) {'],
    }),
    file('tests/account.test.ts', {
      kind: 'renamed',
      from: 'tests/user.test.ts',
      added: ["  expect(loadAccount('1')).toBe(1);"],
      removed: ["  expect(loadUser('1')).toBe(1);"],
    }),
    file('src/admin/list.ts', {
      added: ["import { loadAccount } from '../account.ts';"],
      removed: ["import { loadUser } from '../user.ts';"],
    }),
  ]),
  documentation: facts('Explain how to install it.', [
    file('docs/install.md', { added: ['Run `npm install shop`, then set `TOKEN=...`.'] }),
    file('README.md', { added: ['See docs/install.md.'] }),
  ]),
  formatting: facts(
    'Format everything with prettier.',
    Array.from({ length: 60 }, (_, nth) =>
      file(`lib/a${nth}.js`, {
        added: ["const a = 'x';", 'call(', '  one,', ');'],
        removed: ['const a = "x"', 'call(one)'],
      }),
    ),
  ),
  'big snapshots': facts(prompt, [
    feature,
    file('tests/__snapshots__/health.test.ts.snap', { added: Array.from({ length: 9000 }, (_, nth) => `line ${nth}`) }),
  ]),
  'a requested removal': facts('Remove the legacy exporter.', [
    file('src/legacy/exporter.ts', { kind: 'deleted', removed: ['export function exporter() {}'] }),
    file('tests/legacy-exporter.test.ts', {
      kind: 'deleted',
      removed: ["test('exports', () => {", '  expect(exporter()).toBe(1);'],
    }),
  ]),
  'a picture': facts('Add the logo.', [file('docs/logo.png', { isBinary: true })], {
    binaries: new Map([['docs/logo.png', { head: '\x89PNG', bytes: 9000 }]]),
  }),
  'a requested action bump': facts('Update actions/checkout in the workflow.', [
    file(workflow, { added: ['      - uses: actions/checkout@v4'], removed: ['      - uses: actions/checkout@v3'] }),
  ]),
  'a route beside the feature': withFeature(
    file('src/server.ts', {
      added: ["import { health } from './health.ts';", "app.get('/health', health);"],
      removed: ['// routes'],
    }),
  ),
  'a login test with a password': facts('Test the login form.', [
    file('tests/login.test.ts', {
      added: ["  await login('ann', { password: 'Correct-Horse-7' });", '  expect(page.title).toBe(1);'],
    }),
  ]),
};

describe('ranking of changes', () => {
  for (const [name, harm] of Object.entries(harmful)) {
    test(`${name} ranks above all ordinary work`, () => {
      const risks = risksOf(harm);
      expect(risks[0]?.level).toBe('high');
      for (const work of Object.values(clean)) expect(compareRisks(risks, risksOf(work))).toBeLessThan(0);
    });
  }

  for (const [name, work] of Object.entries(clean)) {
    test(`${name} is safe to merge`, () => {
      expect(risksOf(work).filter(({ level }) => level !== 'low')).toEqual([]);
    });
  }

  test('between equal findings, the branch with more of them comes first', () => {
    const one = [makeRisk('a', 80, 'A.')];
    expect(compareRisks([...one, makeRisk('b', 10, 'B.')], one)).toBeLessThan(0);
  });
});

describe('branches that conflict', () => {
  const rename = [
    file('src/money.ts', { added: ['export function toCents(usd) {'], removed: ['export function cents(usd) {'] }),
  ];

  test('a name that one branch removes and another starts to use is found', () => {
    expect(namesGone(rename)).toEqual(['cents']);
    expect(usesName([file('src/cart.ts', { added: ['return cents(total);'] })], 'cents')).toBe(true);
    expect(usesName([file('src/cart.ts', { added: ['return toCents(total);'] })], 'cents')).toBe(false);
  });

  test('a file that one branch moves and another starts to import is found', () => {
    const moved = [file('src/amount.ts', { kind: 'renamed', from: 'src/money.ts' })];
    expect(usesGoneFile(moved, [file('src/cart.ts', { added: ["import { cents } from './money.ts';"] })])).toBe(
      'src/money.ts',
    );
    expect(
      usesGoneFile(moved, [file('src/cart.ts', { added: ["import { cents } from './coin.ts';"] })]),
    ).toBeUndefined();
  });
});

describe('lockfiles', () => {
  const texts: Readonly<Record<string, (version: string) => string>> = {
    npm: (version) => lock(version, sums[0]),
    yarn: (version) =>
      `lodash@^4.17.0:\n  version "${version}"\n  resolved "https://registry.yarnpkg.com/lodash.tgz#a"\n`,
    'yarn berry': (version) =>
      `"lodash@npm:^4.17.0":\n  version: ${version}\n  checksum: 10c0/abcdefabcdefabcdefabcdef\n`,
    pnpm: (version) => `packages:\n\n  lodash@${version}:\n    resolution: {integrity: sha512-abcdef==}\n`,
    bun: (version) => `    "lodash": ["lodash@${version}", "", {}, "sha512-abcdef=="],\n`,
    cargo: (version) =>
      `[[package]]\nname = "serde"\nversion = "${version}"\nsource = "registry+https://example.org/index"\n`,
    gem: (version) => `GEM\n  remote: https://rubygems.org/\n  specs:\n    rails (${version})\n`,
    go: (version) => `golang.org/x/net v${version} h1:abcdef=\n`,
  };
  for (const [kind, text] of Object.entries(texts)) {
    test(`${kind}: a downgrade is a finding and an update is none`, () => {
      expect(compareLocks(text('4.17.21'), text('4.9.30')).downgrades).toHaveLength(1);
      expect(compareLocks(text('4.9.30'), text('4.17.21')).downgrades).toEqual([]);
    });
  }
});

test('git’s output is parsed into files with their lines', () => {
  const [a, b] = ['a'.repeat(40), 'b'.repeat(40)];
  const raw =
    `:100644 100644 ${a} ${b} R080\0old.ts\0new.ts\0:100644 120000 ${a} ${b} T\0link\0` +
    `:000000 100644 ${'0'.repeat(40)} ${b} A\0x.bin\0` +
    `1\t1\t\0old.ts\0new.ts\0${'1\t0\tlink\0'}-\t-\tx.bin\0`;
  const patch =
    'diff --git a/old.ts b/new.ts\nrename from old.ts\n--- a/old.ts\n+++ b/new.ts\n@@ -1 +1 @@\n---one\n+++two\n' +
    'diff --git a/link b/link\ndeleted file mode 100644\n--- a/link\n+++ /dev/null\n@@ -1 +0,0 @@\n-text\n' +
    'diff --git a/link b/link\nnew file mode 120000\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+/etc\n' +
    'diff --git a/x.bin b/x.bin\nBinary files /dev/null and b/x.bin differ\n';
  const files = filesOfPatch(raw, patch);
  expect(
    files.map(({ path, from, kind, added, removed, isBinary }) => ({ path, from, kind, added, removed, isBinary })),
  ).toEqual([
    { path: 'new.ts', from: 'old.ts', kind: 'renamed', added: ['++two'], removed: ['--one'], isBinary: false },
    { path: 'link', from: undefined, kind: 'changed', added: ['/etc'], removed: ['text'], isBinary: false },
    { path: 'x.bin', from: undefined, kind: 'added', added: [], removed: [], isBinary: true },
  ]);
});
