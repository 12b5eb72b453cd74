/**
 * Promises, in a real terminal: without a command the program lists all groups; enter opens the dashboard of one and q
 * returns; n starts a group from a workflow; d deletes after a question; the terminal is restored. Without a terminal
 * it prints the help.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { launcher, User } from '../../support/cli/user.ts';
import { key, type TerminalWish, TestTerminal } from '../../support/terminal.ts';

const timeoutMs = 120_000;
let user: User;
let terminals: TestTerminal[];
beforeEach(() => {
  user = new User();
  terminals = [];
});
afterEach(() => {
  for (const terminal of terminals) terminal.close();
  user.remove();
});

function open({ env, ...size }: Partial<TerminalWish> = {}): TestTerminal {
  const terminal = new TestTerminal([launcher], { cwd: user.folder, env: { ...user.env, ...env }, ...size });
  terminals.push(terminal);
  return terminal;
}

function expectRestored({ isAlternate, isCooked, wraps, showsCursor }: TestTerminal): void {
  const restored = { isAlternate: false, isCooked: true, wraps: true, showsCursor: true };
  expect({ isAlternate, isCooked, wraps, showsCursor }).toEqual(restored);
}

/** Log lines of a group that was started and is now blocked. */
function hold(group: string): void {
  const events = join(user.data, 'session-groups', group, 'events.jsonl');
  const last = JSON.parse(readFileSync(events, 'utf8').trim().split('\n').at(-1) as string) as {
    seq: number;
    at: string;
  };
  const runner = { pid: 1, startTime: '1', host: 'gone', bootId: 'gone' };
  const bodies = [
    { type: 'group_started', run: { id: 'run', runner } },
    { type: 'group_paused', reason: 'budget', message: 'The budget is used up.' },
  ];
  for (const [index, body] of bodies.entries()) {
    const event = { seq: last.seq + 1 + index, at: last.at, groupId: group, ...body };
    appendFileSync(events, `${JSON.stringify(event)}\n`);
  }
}

test(
  'all groups are listed, those that wait for the user first; enter opens one, and q returns and leaves',
  async () => {
    const held = await user.makeGroup('held');
    await user.makeGroup('fresh');
    hold(held);
    const home = open();
    await home.shows('1 waiting for you', '2 groups', 'held', 'The budget', 'fresh', 'q quit');
    expect(home.isAlternate).toBe(true);
    const rows = home.lines();
    expect(rows.findIndex((row) => row.includes('held'))).toBeLessThan(rows.findIndex((row) => row.includes('fresh')));
    home.type(key.down);
    await home.until((screen) => /^│›.*fresh/m.test(screen));
    home.type(key.enter);
    await home.shows('Not started yet', '001 api', '002 web');
    home.type('q');
    await home.until((screen) => /^│›.*fresh/m.test(screen) && screen.includes('2 groups'));
    home.type('q');
    expect(await home.exited).toBe(0);
    expectRestored(home);
  },
  timeoutMs,
);

test(
  'a new group appears, and help is shown',
  async () => {
    const home = open();
    await home.shows('There are no groups yet.');
    home.type('?');
    await home.shows('Any key returns.');
    home.type('x');
    await home.shows('There are no groups yet.');
    await user.makeGroup('late');
    await home.shows('1 group', 'late');
    home.type(key.ctrlC);
    expect(await home.exited).toBe(0);
    expectRestored(home);
  },
  timeoutMs,
);

test(
  'd deletes after a question and reports it',
  async () => {
    await user.makeGroup('first');
    await user.makeGroup('second');
    const home = open();
    await home.shows('first', 'second');
    home.type('d');
    await home.shows('Delete second with its transcripts (y)?');
    home.type('n');
    await home.shows('enter open');
    expect(await user.json('ls')).toHaveLength(2);
    home.type('d');
    await home.shows('(y)?');
    home.type('y');
    await home.shows('Deleted', '1 group');
    expect(await user.json('ls')).toMatchObject([{ slug: 'first' }]);
    home.type('q');
    expect(await home.exited).toBe(0);
  },
  timeoutMs,
);

test(
  'n rehearses a workflow of this folder, in the dashboard',
  async () => {
    const project = JSON.stringify(user.project('a'));
    writeFileSync(join(user.folder, 'mine.yaml'), `version: 1\nsessions:\n  api: { project: ${project}, prompt: x }\n`);
    writeFileSync(join(user.folder, 'other.yaml'), 'a: b\n');
    const home = open();
    await home.shows('There are no groups yet.');
    home.type('n');
    await home.shows('A new group from', 'mine.yaml', 'template, shipped');
    expect(home.text()).not.toContain('other.yaml');
    home.type(key.enter);
    await home.shows('Rehearse mine.yaml at no cost (enter, r), or run it for real (y)?');
    home.type(key.enter);
    await home.shows('rehearsal', '001 api');
    home.type('q');
    await home.shows('1 group', 'fake');
    home.type('q');
    expect(await home.exited).toBe(0);
    expect(await user.ok('watch', '@', '--output', 'text')).toContain('completed');
  },
  timeoutMs,
);

test(
  'without a terminal, or on a dumb one, it prints the help',
  async () => {
    const help = await user.run();
    expect(help).toMatchObject({ code: 2, stdout: '' });
    expect(help.stderr).toStartWith('Usage: claude-code-agent');
    for (const env of [{ TERM: 'dumb' }, { CI: '1' }]) {
      const terminal = open({ env, rows: 60 });
      expect(await terminal.exited).toBe(2);
      expect(terminal.text()).toContain('Usage: claude-code-agent');
      expect(terminal.raw).not.toContain('\u001b[?1049h');
    }
  },
  timeoutMs,
);
