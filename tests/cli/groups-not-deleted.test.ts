/** F1, F11: what the system refuses of one group is told with its id, and the groups beside it are deleted. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { chmodSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { giveToUnprivileged, unprivileged } from '../support/unprivileged.ts';
import { User } from './user.ts';

let user: User;
let groups: string;
let bad: string;
let others: readonly string[];
beforeEach(async () => {
  user = new User();
  groups = join(user.data, 'session-groups');
  others = [await user.makeGroup('first'), await user.makeGroup('last')];
  bad = await user.makeGroup('bad');
});
afterEach(() => user.remove());

/** As somebody to whom permissions apply, while `path` in the bad group has this mode. */
function runWhile(path: string, mode: number, ...args: string[]) {
  giveToUnprivileged(user.folder);
  const place = join(groups, bad, path);
  chmodSync(place, mode);
  const command = [...unprivileged.prefix, user.program, ...args];
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd: '/', env: user.env });
  for (const name of readdirSync(groups)) {
    if (name.includes(bad)) chmodSync(join(groups, name, path), 0o700);
  }
  const said = { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
  expect(said.stderr).not.toMatch(/The system refused|Unexpected trouble/);
  return said;
}

test.skipIf(!unprivileged.isPossible).each([
  ['', 0o000, 'runner.lock cannot be read or changed (EACCES).'],
  ['sessions', 0o000, 'sessions cannot be read or changed (EACCES).'],
  ['events.jsonl', 0o000, 'events.jsonl cannot be read or changed (EACCES).'],
])('rm of several groups: %j of one with the mode %o keeps that one alone', (path, mode, what) => {
  const [first = '', last = ''] = others;
  const { code, stderr } = runWhile(path, mode, 'rm', '--force', first, bad, last);
  const [one, two, three, ...rest] = stderr.split('\n');
  expect(code).toBe(1);
  expect([one, three]).toEqual([`Deleted ${first}.`, `Deleted ${last}.`]);
  expect(two).toStartWith(`${bad} stays: ${join(groups, bad)}/`);
  expect(two).toEndWith(what);
  expect(rest).toEqual([expect.stringMatching(/^claude-code-agent: .*permissions/), '']);
  expect(readdirSync(groups)).toEqual([bad]);
});

test.skipIf(!unprivileged.isPossible)('rm of a group of which files stay behind does not say that it is there', () => {
  const { code, stderr } = runWhile('', 0o555, 'rm', '--force', bad, ...others);
  expect(code).toBe(1);
  expect(stderr).toStartWith(`${bad} is deleted, but not all of its files: ${groups}/.deleted-${bad}-`);
  expect(readdirSync(groups)).toEqual([expect.stringContaining(`.deleted-${bad}-`)]);
});
