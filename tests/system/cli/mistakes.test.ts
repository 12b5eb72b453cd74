/**
 * Promises: bad input gives one sentence with a next step on stderr, nothing on stdout, the documented exit code, no
 * stack trace, and leaves nothing behind. Mistyped commands and options suggest the nearest; help of every level has an
 * example.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expectAdvice } from '../../support/cli/bad-input/mistake.ts';
import { User } from '../../support/cli/user.ts';

let user: User;
let group: string;
let log: string;
beforeAll(async () => {
  user = new User();
  group = await user.makeGroup();
  log = join(user.data, 'session-groups', group, 'events.jsonl');
  writeFileSync(join(user.folder, 'file'), 'x');
  writeFileSync(join(user.folder, 'nul.md'), 'a\0b');
  writeFileSync(join(user.folder, 'long.md'), 'x'.repeat(1024 * 1024 + 1));
  writeFileSync(join(user.folder, 'latin-1.md'), Buffer.from([0x66, 0xfc, 0x72]));
  symlinkSync('round', join(user.folder, 'round'));
});
afterAll(() => user.remove());

const add = ['session', 'add', 'auth', '--project', '.'];

test.each<[string[], number, string]>([
  [['grup', 'list'], 2, 'Did you mean group?'],
  [['group', 'lst'], 2, 'Did you mean list?'],
  [['group', 'run', 'auth', '--concurent', '3'], 2, 'Did you mean --concurrent?'],
  [['group', 'list', 'extra'], 2, 'Too many arguments'],
  [['group', 'list', '--status', 'odd'], 2, 'Allowed choices are'],
  [['group', 'create'], 2, "Missing required argument 'slug'"],
  [['group', 'create', 'Not A Slug'], 2, 'Try "not-a-slug"'],
  [['group', 'create', '../evil'], 2, 'slug'],
  [['group', 'create', 'x', '--concurrent', '257'], 2, 'whole number from 1 to 256'],
  [['group', 'create', 'x', '--max-budget-usd', 'NaN'], 2, 'amount in US dollars'],
  [['group', 'create', 'x', '--max-budget-usd', '0'], 2, 'amount in US dollars'],
  [['group', 'create', 'x', '--warning-threshold', '1.1'], 2, 'share above 0'],
  [['group', 'create', 'x', '--on-budget-exceeded', 'explode'], 2, 'stop, warn, pause'],
  [['group', 'create', 'x', '--name', ' '], 2, 'must not be blank'],
  [['group', 'create', '\u001b[31mred'], 2, 'Try "'],
  [['group', 'create', 'a'.repeat(65)], 2, 'has 65 characters where 64 are allowed'],
  [['group', 'create', '-x'], 2, "'-x'"],
  [['group', 'list', '--jsn'], 2, 'Did you mean --json?'],
  [['group', 'create', 'x', '--name'], 2, "'--name <text>' argument missing"],
  [['group', 'show', 'nope'], 2, 'There is no group "nope"'],
  [['group', 'show', ''], 2, 'There is no group ""'],
  [['group', 'graph', 'auth', '--format', 'png'], 2, 'text, mermaid, dot, svg'],
  [['group', 'run', 'auth', '--rehearse', 'nope.yaml'], 2, 'There is no rehearsal script'],
  [['run', 'Fix the tests'], 2, 'For one prompt: '],
  [['group', 'run', 'auth', '--detached'], 2, "Unknown option '--detached'"],
  [['group', 'pause', 'auth'], 2, 'has not been started'],
  [['group', 'pause', 'auth', '--drain', '--freeze'], 2, "'--drain' cannot be used with option '--freeze'"],
  [['group', 'budget', 'auth', '--raise-to', '0'], 2, 'amount in US dollars'],
  [['group', 'why', 'auth', 'nope'], 2, 'There is no session "nope"'],
  [['group', 'run', 'auth', '--on-limit', 'cry'], 2, 'wait, pause'],
  [['group', 'run', 'auth', '--commands-at-once', '0'], 2, 'whole number from 1 to 256'],
  [['group', 'run', 'auth', '--min-free-memory', '1GB'], 2, 'whole number from 0'],
  [['session', 'retry', 'auth/api'], 2, 'is pending and cannot be retried'],
  [['session', 'retry', 'auth/api', '--prompt', ' '], 2, 'is blank'],
  [['session', 'resume', 'auth/web'], 2, 'waits for 001 api'],
  [['session', 'say', 'auth/api', ''], 2, 'is blank'],
  [['session', 'pause', 'auth/9'], 2, 'There is no session "9"'],
  [['stop'], 2, 'Give --all'],
  [[...add, '--prompt', 'x', '--retries', '21'], 2, 'whole number from 0 to 20'],
  [[...add, '--prompt', 'x', '--timeout', '90'], 2, 'such as 90s'],
  [[...add, '--prompt', 'x', '--stall-timeout', '1m1h'], 2, 'such as 90s'],
  [['session', 'add', 'auth', '--prompt', 'x'], 2, "Required option '--project <dir>'"],
  [['session', 'add', 'auth', '--project', 'nope', '--prompt', 'x'], 2, 'does not exist'],
  [['session', 'add', 'auth', '--project', 'file', '--prompt', 'x'], 2, 'is not a folder'],
  [add, 2, 'has no task'],
  [[...add, '--prompt', ' \n'], 2, 'is blank'],
  [[...add, '--prompt', 'x', '--prompt-file', 'nul.md'], 2, 'Give one of them'],
  [[...add, '--prompt-file', 'nul.md'], 2, 'NUL'],
  [[...add, '--prompt-file', 'long.md'], 2, '1 MiB'],
  [[...add, '--prompt-file', 'nope.md'], 2, 'does not exist'],
  [[...add, '--prompt-file', '.'], 2, 'is a folder'],
  [[...add, '--prompt-file', 'latin-1.md'], 2, 'is not UTF-8'],
  [[...add, '--prompt', '-'], 2, 'standard input is blank'],
  [[...add, '--prompt', 'x', '--var', 'x'], 2, 'of --var has no "="'],
  [[...add, '--prompt', 'x', '--var', '__proto__=x'], 2, 'and is not "__proto__"'],
  [[...add, '--prompt', 'x', '--depends-on', 'nope/api'], 2, 'no group "nope"'],
  [[...add, '--prompt', 'x', '--name', 'me', '--depends-on', 'me'], 2, 'There is no session "me"'],
  [['session', 'add', 'auth', '--project', 'round', '--prompt', 'x'], 2, 'is a symlink loop'],
  [['session', 'add', 'auth', '--project', 'x/'.repeat(3_000), '--prompt', 'x'], 2, 'is longer than a path can be'],
  [['session', 'add', 'auth', '--project', 'no\u001b[31mwhere', '--prompt', 'x'], 2, 'where" does not exist'],
  [[...add, '--prompt', 'x', '--name', 'api'], 2, 'Two sessions of the group are named api'],
  [[...add, '--prompt', 'x', '--name', '007'], 2, 'not only digits'],
  [[...add, '--prompt', 'x', '--name', 'a/b'], 2, 'letters, digits'],
  [[...add, '--prompt', 'x', '--depends-on', 'nope'], 2, 'There is no session "nope"'],
  [[...add, '--prompt', 'x', '--permission-mode', 'odd'], 2, 'Allowed choices are'],
  [[...add, '--prompt', 'x', '--allowed-tools', '--model'], 2, 'permission rules'],
  [[...add, '--prompt', 'x', '--allowed-tools', 'Bash(git'], 2, 'permission rules'],
  [[...add, '--prompt', 'x', '--model', '-x'], 2, 'a letter or digit first'],
  [
    [...add, '--prompt', 'x', '--model', 'x'.repeat(201)],
    2,
    'one word of at most 200 letters, digits and . _ : / @ [ ] -',
  ],
  [['session', 'show', 'auth/9'], 2, 'There is no session "9"'],
  [['session', 'show', '1'], 2, 'Give numbers and names with their group'],
  [['session', 'logs', 'auth/api', '--grep', '('], 2, 'regular expression'],
  [['session', 'remove', 'auth/api'], 2, 'needed by 002 web'],
  [['group', 'archive', 'auth'], 1, 'only completed, failed and paused'],
  [['completion', 'tcsh'], 2, 'bash, zsh, fish'],
  [['group', 'create', 'x', '--name', 'a\u001b]0;t\u0007b'], 2, 'one line of plain text'],
])('%j', async (args, code, words) => {
  const before = [readFileSync(log, 'utf8'), readdirSync(join(user.data, 'session-groups'))];
  const mistake = await user.run(...args);
  expect(mistake.stderr).toContain(words);
  expect(mistake).toMatchObject({ code, stdout: '' });
  expect(mistake.stderr).toMatch(/^claude-code-agent: [^\n]+\n$/);
  expectAdvice(mistake.stderr);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: nothing of the input may control the terminal.
  expect(mistake.stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f]|\n\s+at /);
  expect([readFileSync(log, 'utf8'), readdirSync(join(user.data, 'session-groups'))]).toEqual(before);
});

test('an ambiguous reference lists the matching groups', async () => {
  const other = new User();
  try {
    const ids = [await other.ok('group', 'create', 'one'), await other.ok('group', 'create', 'two')];
    const { code, stderr } = await other.run('group', 'show', ids[0]?.slice(0, 4) as string);
    expect(code).toBe(2);
    for (const id of ids) expect(stderr).toContain(id);
  } finally {
    other.remove();
  }
});

test.each([[[]], [['group']], [['session']]])('%j alone shows help on stderr and is a usage error', async (args) => {
  const { code, stdout, stderr } = await user.run(...args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain('Usage: claude-code-agent');
});

const commands = [
  'create',
  'list',
  'show',
  'graph',
  'run',
  'resume',
  'watch',
  'pause',
  'budget',
  'why',
  'archive',
  'delete',
];
const levels = [
  [],
  ['group'],
  ...commands.map((name) => ['group', name]),
  ['session'],
  ...['add', 'list', 'show', 'remove', 'logs', 'pause', 'resume', 'retry', 'say'].map((name) => ['session', name]),
  ['stop'],
  ['doctor'],
  ['completion'],
];

test.each(levels.map((level) => [level]))('%j --help has a worked example, on stdout', async (level) => {
  const { code, stdout, stderr } = await user.run(...level, '--help');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain(['Usage: claude-code-agent', ...level].join(' '));
  expect(stdout).toMatch(/\nExample:\n {2}\$ /);
});

test('hidden commands are not in the help', async () => {
  const { stdout } = await user.run('--help');
  expect(stdout).not.toContain('rehearsal-serve');
  expect(stdout).not.toContain('complete ');
});

test('the data folder contains nothing but the group', () => {
  expect(readdirSync(user.data)).toEqual(['session-groups']);
  expect(existsSync(join(user.home, '.local'))).toBe(false);
});
