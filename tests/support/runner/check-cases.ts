/** Small repositories with a check, and what a session does to them; run as sessions of one group with fakes. */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Evidence } from '../../../src/core/evidence.ts';
import type { SessionDefinition } from '../../../src/core/group.ts';
import type { SessionRecord } from '../../../src/core/session-state.ts';
import { type FileTree, Repository, writeTree } from '../git/repository.ts';
import type { GroupFixture } from '../group-fixture.ts';
import { begin, make, rig } from '../rig-ground.ts';

export interface CheckCase {
  readonly name: string;
  /** Besides the common files, before the session. */
  readonly base?: FileTree;
  /** What the session leaves in its folder; null removes a file. */
  readonly edit: FileTree;
  /** Commands of the session after that. */
  readonly also?: string;
  readonly accept?: string;
  readonly fields?: Partial<SessionDefinition>;
  /** Files of the user's checkout that git ignores. */
  readonly ignored?: FileTree;
  readonly isInPlace?: true;
}

/** As a test runner does: all tests, as its configuration says, with snapshots and set-up files. */
const runner = `
const fs = require('node:fs'), path = require('node:path');
const read = (name) => (fs.existsSync(name) ? JSON.parse(fs.readFileSync(name, 'utf8')) : {});
const config = { ...read('jest.config.json'), ...read('vitest.config.json') };
const found = [];
const add = (mode) => (name, body) => found.push({ name, body, mode });
globalThis.it = globalThis.test = Object.assign(add('run'), { only: add('only'), skip: add('skip') });
globalThis.xit = add('skip');
globalThis.describe = Object.assign((_, body) => body(), { skip: () => {} });
globalThis.expect = (value) => ({
  toBe(wanted) { if (value !== wanted) throw new Error('expected ' + wanted + ', got ' + value); },
  toMatchSnapshot(name) {
    const saved = fs.readFileSync('test/__snapshots__/' + name + '.snap', 'utf8').trim();
    if (saved !== String(value)) throw new Error('snapshot');
  },
});
const all = (folder) => (fs.existsSync(folder) ? fs.readdirSync(folder, { recursive: true }) : []);
for (const file of config.setupFiles ?? []) require(path.resolve(file));
const ignored = config.testPathIgnorePatterns ?? config.exclude ?? [];
for (const name of all('test').filter((one) => one.endsWith('.test.js')))
  if (!ignored.some((one) => name.includes(one))) require(path.resolve('test', name));
const only = found.filter(({ mode }) => mode === 'only');
for (const { name, body } of only.length > 0 ? only : found.filter(({ mode }) => mode === 'run')) {
  try { body(); } catch (error) { console.log('not ok ' + name + ': ' + error.message); process.exitCode = 1; }
}
`;

/** A subtraction where an addition is wanted, and the tests that say so. */
export const common: FileTree = {
  'src/add.js': 'exports.add = (a, b) => a - b;\n',
  'test/add.test.js': [
    "const { add } = require('../src/add.js');",
    "test('adds', () => {\n  expect(add(1, 2)).toBe(3);\n});",
    "test('adds nothing', () => {\n  expect(add(1, 0)).toBe(1);\n});\n",
  ].join('\n'),
  'vendor/runner.js': runner,
  'check.sh': 'set -e\n. ./tools/lib.sh\nrun_tests\n',
  'tools/lib.sh': 'run_tests() {\n  node vendor/runner.js\n}\n',
  'package.json': '{\n  "name": "app",\n  "scripts": { "test": "node vendor/runner.js" },\n  "dependencies": {}\n}\n',
  '.gitignore': 'node_modules\n*.local\n',
};

export const fix: FileTree = { 'src/add.js': 'exports.add = (a, b) => a + b;\n' };

export interface CheckOutcome {
  readonly record: SessionRecord;
  readonly evidence: Evidence;
  /** Turns of the model. */
  readonly turns: number;
  /** Events of it, by type. */
  readonly events: readonly string[];
}

type Named = CheckCase & { readonly session: string };

function makeCases(cases: readonly Named[]): GroupFixture {
  const folders = new Map<string, string>();
  const sketches = cases.map(({ session, accept = 'sh check.sh', fields, isInPlace }) => ({
    name: session,
    project: session,
    fields: {
      get repository() {
        return join(folders.get(session) ?? '', '.git');
      },
      ...{ accept, acceptRetries: 1, isolate: isInPlace ? ('none' as const) : ('worktree' as const) },
      ...fields,
    },
  }));
  const beforeSessions = (folder: string) => {
    for (const { session, base = {}, ignored = {} } of cases) {
      const path = join(folder, 'projects', session);
      folders.set(session, path);
      new Repository(path).commit({ ...common, ...base });
      writeTree(path, ignored);
    }
  };
  return make(sketches, { maxConcurrentSessions: 4, errorThreshold: 1000 }, { beforeSessions });
}

/** Returns the number of turns. */
async function workOn(group: GroupFixture, { session, edit, also }: Named, end: Promise<unknown>): Promise<number> {
  const fake = await begin(group, session);
  const { cwd } = fake.hello;
  writeTree(cwd, edit);
  for (const path of Object.keys(edit).map((name) => join(cwd, name)))
    if (path.includes('bin/') && existsSync(path)) chmodSync(path, 0o755);
  if (also !== undefined) execFileSync('/bin/sh', ['-c', also], { cwd, env: identity });
  await fake.succeed();
  // Sent back, it has nothing more to add.
  const again = await Promise.race([rig.nextFor(group.claudeId(session)), end.then(() => null)]);
  if (again === null) return 1;
  await again.prompt();
  await again.init();
  await again.succeed();
  return 2;
}

/** Lets all sessions work; with `decide`, each item about guarded files is answered so. */
export async function runCases(
  cases: readonly CheckCase[],
  decide?: 'allow' | 'deny',
): Promise<{ readonly group: GroupFixture; outcome(name: string): CheckOutcome }> {
  const named = cases.map((one, index): Named => ({ ...one, session: `s${index}` }));
  const group = makeCases(named);
  const run = group.run(rig.env, {
    onEvent: (event) => {
      if (event.type !== 'item_opened' || event.kind !== 'guard' || decide === undefined) return;
      void run.ask({ kind: 'answer-item', sessionId: event.sessionId, item: event.item, given: { text: decide } });
    },
  });
  const works = named.map(async (one) => [one.name, await workOn(group, one, run.result)] as const);
  const [turns] = await Promise.all([Promise.all(works), run.result]);
  return {
    group,
    outcome(name) {
      const session = named.find((one) => one.name === name)?.session ?? '';
      const record = group.state().sessions.get(group.id(session)) as SessionRecord;
      const { id } = record.definition;
      const events = group
        .events()
        .flatMap((event) => ('sessionId' in event && event.sessionId === id ? event.type : []));
      const evidence = record.evidence ?? { runs: [], guarded: [] };
      return { record, evidence, turns: new Map(turns).get(name) ?? 0, events };
    },
  };
}

const identity = {
  ...{ PATH: process.env.PATH ?? '', HOME: '/nonexistent', GIT_CONFIG_GLOBAL: '/dev/null' },
  ...{ GIT_AUTHOR_NAME: 'S', GIT_AUTHOR_EMAIL: 's@example.org' },
  ...{ GIT_COMMITTER_NAME: 'S', GIT_COMMITTER_EMAIL: 's@example.org' },
};
