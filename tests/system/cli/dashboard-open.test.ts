/**
 * Promises, in a real terminal: worktree, log and report open in the user's own tools, which get all input. The
 * dashboard returns when they have ended.
 */
import { afterEach, expect, test } from 'bun:test';
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nightUser, withNight } from '../../support/cli/night.ts';
import { launcher } from '../../support/cli/user.ts';
import { until } from '../../support/cli.ts';
import { key, TestTerminal } from '../../support/terminal.ts';

let terminal: TestTerminal;
afterEach(() => terminal.close());
withNight();

/** A tool that prints its arguments, shows a file argument, and keeps the line that is typed into it. */
function tool(name: string): string {
  const path = join(nightUser.folder, name);
  const kept = join(nightUser.folder, `${name}.typed`);
  const script = `#!/bin/sh
trap 'echo not interrupted' INT
echo "$1 $3 of $PWD"
[ -f "$3" ] && cat "$3"
echo 'type a line'
while ! read -r line; do :; done
echo "$line" > '${kept}'
`;
  writeFileSync(path, script);
  chmodSync(path, 0o755);
  return `'${path}' --with 'two words'`;
}

const typed = (name: string): string => readFileSync(join(nightUser.folder, `${name}.typed`), 'utf8');

function open(command: 'watch' | 'run', group: string): TestTerminal {
  const TMPDIR = nightUser.folder;
  const env = { ...nightUser.env, TMPDIR, VISUAL: tool('editor'), EDITOR: '/nowhere', PAGER: tool('pager') };
  terminal = new TestTerminal([launcher, 'group', command, group], { cwd: nightUser.folder, env });
  return terminal;
}

test("a session's folder opens in the editor, which gets all input, also Ctrl-C", async () => {
  const group = await nightUser.group('auth', { api: [], web: [] });
  open('watch', group);
  await terminal.shows('›○  001 api');
  terminal.type('o');
  await terminal.shows('Open the worktree (w), the log (l) or the report (r)?');
  terminal.type('w');
  await terminal.shows(`--with . of ${nightUser.project('api')}`, 'type a line');
  expect([terminal.isAlternate, terminal.isCooked, terminal.tracksMouse]).toEqual([false, true, false]);
  terminal.type(key.ctrlC);
  await terminal.shows('not interrupted');
  terminal.type('jq and the rest of the line\r');
  await terminal.until((text) => terminal.isAlternate && text.includes('001 api') && terminal.tracksMouse);
  expect(typed('editor')).toBe('jq and the rest of the line\n');
  terminal.type('j');
  await terminal.shows('›○  002 web');
  terminal.type('q');
  expect(await terminal.exited).toBe(0);
}, 60_000);

test('log and report open in the pager, and no file is left behind', async () => {
  const group = await nightUser.group('auth', { api: [] });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  await (await nightUser.begun(group, 'api')).succeed(0.25, 'All is well.');
  expect((await run.finished).code).toBe(0);
  open('watch', group);
  await terminal.shows('completed');
  for (const [answer, ...shows] of [
    ['l', 'log.txt', '== attempt 1 completed'],
    ['r', 'made by claude', 'All is well.'],
  ] as const) {
    terminal.type(`o${answer}`);
    await terminal.shows(...shows, 'type a line');
    terminal.type('\r');
    await terminal.until((text) => terminal.isAlternate && text.includes('q quit'));
  }
  await until(() => readdirSync(nightUser.folder).every((name) => !name.startsWith('claude-code-agent-')));
}, 60_000);

test('a missing tool is reported', async () => {
  const group = await nightUser.group('auth', { api: [] });
  const env = { ...nightUser.env, VISUAL: '', EDITOR: 'no-such-editor -x' };
  terminal = new TestTerminal([launcher, 'group', 'watch', group], { cwd: nightUser.folder, env });
  await terminal.shows('001 api');
  terminal.type('ow');
  await terminal.shows('Program no-such-editor -x not found');
  terminal.type('ol');
  await terminal.shows('001 api has not printed anything yet.');
}, 60_000);
