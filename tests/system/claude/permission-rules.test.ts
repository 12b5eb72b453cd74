/**
 * Promises: a denied tool call gets the rules that would have allowed it, no wider than the call or its task, and none
 * where no rule helps. The real claude allows with them what it denied without.
 */
import { afterAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { userMessage } from '../../../src/claude/control.ts';
import { readRules, rulesFor, rulesForOwnCommand } from '../../../src/claude/permission-rules.ts';
import { claudeBinary, openRig, prepareSession, startClaude } from '../../support/claude/rig.ts';

/** A command line, and the rules for its commands. */
const commands: readonly (readonly [string, readonly string[]])[] = [
  ['npm test', ['npm test:*']],
  ['npm run build -- --watch', ['npm run build:*']],
  ['npm run "build"', ['npm run "build"']],
  ['npm exec cowsay', ['npm exec cowsay']],
  ['git push origin main', ['git push:*']],
  ['git -C /x push', ['git -C /x push']],
  ['rm -rf build', ['rm -rf build']],
  ['make', ['make']],
  ['cd sub && npm test', ['npm test:*']],
  ['npm test && npm run lint ; npm test', ['npm test:*', 'npm run lint:*']],
  ['npm test 2>&1 | tail -5', ['npm test:*', 'tail -5']],
  ['npm test > out.txt 2> err.txt < in.txt', ['npm test:*']],
  ['npm test &> out.txt & sleep 5', ['npm test:*', 'sleep 5']],
  ["# try it, but don't\nnpm test # all", ['npm test:*']],
  ['FOO=1 npm test', ['FOO=1 npm test']],
  ['python -c "print(1) # no"', ['python -c "print(1) # no"']],
  ["node -e 'a && b'", ["node -e 'a && b'"]],
  ['echo $(npm test)', ['echo $(npm test)']],
  ['for x in 1 2; do npm test; done', ['for x in 1 2; do npm test; done']],
  ['curl "http://h/$X"', ['curl "http://h/$X"']],
  ['cd sub', []],
  ['', []],
];

const bash = (command: string) => ({ tool: 'Bash', input: { command } });

describe('the rules for', () => {
  test.each(commands)('%j', (command, rules) => {
    expect(rulesFor(bash(command))).toEqual(rules.map((rule) => `Bash(${rule})`));
  });

  test('other tools', () => {
    expect(rulesFor({ tool: 'Write', input: { file_path: '/elsewhere/a' } })).toEqual(['Edit(//elsewhere/a)']);
    expect(rulesFor({ tool: 'NotebookEdit', input: { notebook_path: '/n.ipynb' } })).toEqual(['Edit(//n.ipynb)']);
    expect(rulesFor({ tool: 'Read', input: { file_path: '/etc/hostname' } })).toEqual(['Read(//etc/hostname)']);
    expect(rulesFor({ tool: 'WebFetch', input: { url: 'https://bun.sh/docs?a' } })).toEqual([
      'WebFetch(domain:bun.sh)',
    ]);
    expect(rulesFor({ tool: 'WebFetch', input: {} })).toEqual(['WebFetch']);
    expect(rulesFor({ tool: 'mcp__db__query', input: { sql: 'x' } })).toEqual(['mcp__db__query']);
  });

  test('calls that no rule can allow', () => {
    expect(rulesFor({ tool: 'Write', input: { file_path: '/p/.claude/settings.json' } })).toEqual([]);
    expect(rulesFor({ tool: 'Write', input: { file_path: '/p/.git/config' } })).toEqual([]);
    const message = "mkdir in '/x' needs approval. The path is outside the working directories for this session";
    expect(rulesFor({ ...bash('mkdir /x'), message })).toEqual([]);
    for (const command of ['echo "a)b"', 'a\u001bb $(x)', 'for x in 1\ndo y\ndone']) {
      expect([command, rulesFor(bash(command))]).toEqual([command, []]);
    }
  });
});

/** Denied without a rule, allowed with these. */
const calls = [
  bash('npm test'),
  bash('npm test && npm run x'),
  bash('cd . && npm test 2>&1 | tail -5'),
  bash('npm test > out.txt'),
  bash('FOO=1 npm test'),
  bash('# a comment\npython3 -c "print(1)"'),
  bash('echo $(npm test)'),
  bash('for x in 1 2; do npm test; done'),
  bash('curl -s "http://127.0.0.1:9/a,b"'),
  { tool: 'Write', input: { file_path: '@OUTSIDE@/file.txt', content: 'a' } },
  { tool: 'Read', input: { file_path: '/etc/hostname' } },
  { tool: 'WebFetch', input: { url: 'http://127.0.0.1:9/x', prompt: 'a' } },
  { tool: 'WebSearch', input: { query: 'a b' } },
];

const outside = mkdtempSync(join(tmpdir(), 'cca-outside-'));
afterAll(() => rmSync(outside, { recursive: true }));

type Call = (typeof calls)[number];

async function isDenied(planned: Call, rulesOf: (call: Call) => readonly string[]): Promise<boolean> {
  const call = JSON.parse(JSON.stringify(planned).replace('@OUTSIDE@', outside)) as Call;
  const rig = openRig([call, { text: 'done' }]);
  const allowedTools = rulesOf(call);
  try {
    const session = prepareSession(rig, { allowedTools });
    const claude = startClaude(rig, session.args, session.env);
    claude.send(userMessage('go'));
    const result = await claude.until(({ kind }) => kind === 'result');
    await claude.end();
    return result.kind === 'result' && result.denials.length > 0;
  } finally {
    await rig.close();
  }
}

/** A user's command line, and the parts that a session may run without asking. */
const ownCommands: readonly (readonly [string, readonly string[]])[] = [
  ['npm test', ['npm test']],
  ['npm ci && npm test 2>&1 | tee out.txt', ['npm ci', 'npm test']],
  ['cd web && CI=1 npm run lint', ['CI=1 npm run lint']],
  ['npm ci\nnpm test > out.txt', ['npm ci', 'npm test']],
  ['curl -s https://host/x | sh', ['curl -s https://host/x']],
  ['sh < check.sh; true', []],
  ['rm -rf build/*', []],
  ['test -z "$(git status --short)"', ['test -z "$(git status --short)"']],
  ['for x in a; do $x; done | sh', ['for x in a; do $x; done | sh']],
];

test.each(ownCommands)('accept: %j gives rules for exactly its commands', (line, rules) => {
  expect(rulesForOwnCommand(line)).toEqual(rules.map((rule) => `Bash(${rule})`));
});

const none = () => [];

if (claudeBinary !== undefined) {
  const [first, ...more] = calls;
  test('claude allows with the rules what it denied without', async () => {
    if (first === undefined) return;
    expect([await isDenied(first, none), await isDenied(first, rulesFor)]).toEqual([true, false]);
  }, 60_000);

  for (const call of more) {
    test(`claude allows with the rules: ${JSON.stringify(call)}`, async () => {
      expect([await isDenied(call, none), await isDenied(call, rulesFor)]).toEqual([true, false]);
    });
  }
}

test('a folder gets one Read rule, and none when its name would be a pattern', () => {
  expect(readRules('/home/me/my app')).toEqual(['Read(//home/me/my app/**)']);
  for (const folder of ['/', '/a*', '/a (1)', '/a[b]', '/a\\b', '/a\nb', 'a']) expect(readRules(folder)).toEqual([]);
});
