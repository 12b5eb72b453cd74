/** F1, F11: what the system refuses of one group is told with its id, and the groups beside it are deleted. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { chmodSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { User } from '../../support/cli/user.ts';
import { giveToUnprivileged, unprivileged } from '../../support/unprivileged.ts';

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
  ['', 0o000, 'Cannot write ', '/runner.lock: EACCES.'],
  ['sessions', 0o000, 'The path ', '/sessions cannot be read or changed (EACCES).'],
  ['events.jsonl', 0o000, 'The path ', '/events.jsonl cannot be read or changed (EACCES).'],
])('rm of several groups: %j of one with the mode %o keeps that one alone', (path, mode, refused, why) => {
  const [first = '', last = ''] = others;
  const { code, stderr } = runWhile(path, mode, 'rm', '--force', first, bad, last);
  const [one, two, three, ...rest] = stderr.split('\n');
  expect(code).toBe(1);
  expect([one, three]).toEqual([`Deleted ${first}.`, `Deleted ${last}.`]);
  expect(two).toBe(`${bad} stays: ${refused}${join(groups, bad)}${why}`);
  expect(rest).toEqual([expect.stringMatching(/^claude-code-agent: .*permissions/), '']);
  expect(readdirSync(groups)).toEqual([bad]);
});

test.skipIf(!unprivileged.isPossible)('rm of a group of which files stay behind does not say that it is there', () => {
  const { code, stderr } = runWhile('', 0o555, 'rm', '--force', bad, ...others);
  expect(code).toBe(1);
  expect(stderr).toStartWith(`${bad} is deleted, but not all of its files: The path ${groups}/.deleted-${bad}-`);
  expect(readdirSync(groups)).toEqual([expect.stringContaining(`.deleted-${bad}-`)]);
});

interface Pruned {
  readonly groups: readonly { readonly id: string }[];
  readonly kept: readonly { readonly id: string; readonly why: string }[];
  readonly deleted: readonly string[];
}

const ids = (all: readonly { readonly id: string }[]) => all.map(({ id }) => id).sort();

test.skipIf(!unprivileged.isPossible)('prune: a group that cannot be looked at stays, and the others go', () => {
  const dry = runWhile('sessions', 0o000, 'group', 'prune', '--keep', '0', '--dry-run', '--json');
  const why = expect.stringContaining(`${join(groups, bad, 'sessions')} cannot be read or changed (EACCES). Check `);
  expect(dry).toMatchObject({ code: 0, stderr: '' });
  const plan = JSON.parse(dry.stdout) as Pruned;
  expect({ ...plan, groups: ids(plan.groups) }).toEqual({
    groups: ids(plan.groups),
    kept: [{ id: bad, why }],
    deleted: [],
  });
  expect(ids(plan.groups)).toEqual(others.toSorted());
  const { code, stderr } = runWhile('sessions', 0o000, 'group', 'prune', '--keep', '0', '--yes');
  expect(code).toBe(0);
  expect(stderr).toStartWith(`${bad} stays. The path ${join(groups, bad, 'sessions')} cannot be read`);
  expect(stderr).toEndWith('\nDeleted 2 groups.\n');
  expect(readdirSync(groups)).toEqual([bad]);
});

test.skipIf(!unprivileged.isPossible)('prune: a group whose files cannot be removed is told, and the others go', () => {
  const { code, stdout, stderr } = runWhile('', 0o555, 'group', 'prune', '--keep', '0', '--yes', '--json');
  const left = readdirSync(groups);
  expect(code).toBe(1);
  expect(stderr).toStartWith(`${bad} is deleted, but not all of its files. The path ${join(groups, left[0] ?? '')}/`);
  const { groups: meant, kept, deleted } = JSON.parse(stdout) as Pruned;
  expect([ids(meant), deleted.toSorted()]).toEqual([[...others, bad].sort(), others.toSorted()]);
  expect(kept).toEqual([{ id: bad, why: expect.stringContaining('cannot be read or changed (EACCES)') }]);
  expect(left).toEqual([expect.stringContaining(`.deleted-${bad}-`)]);
});

test.skipIf(!unprivileged.isPossible)('doctor names a group whose sessions nobody can read, with what to do', () => {
  const sessions = join(groups, bad, 'sessions');
  const next = expect.stringContaining('Check ');
  for (const [option, check, what] of [
    ['--json', 'group', `${sessions} cannot be read (EACCES).`],
    ['--worktrees', 'worktree', `The path ${sessions} cannot be read or changed (EACCES).`],
  ] as const) {
    const { code, stdout } = runWhile('sessions', 0o000, 'doctor', '--json', option);
    expect(code).toBe(1);
    const { checks } = JSON.parse(stdout) as { checks: { check: string }[] };
    const told = checks.filter((found) => found.check === check);
    expect(told).toEqual([{ check, level: 'broken', message: what, next }] as object[] as typeof told);
  }
});

test.each(['nowhere', '20261126-000098-stray'])(
  'rm --force of a link to %s in place of a group tells of none',
  async (to) => {
    const stray = '20261126-000098-stray';
    symlinkSync(to, join(groups, stray));
    const [sentence, next] = [`There is no group "${stray}".`, 'See: claude-code-agent group list'];
    const { code, stderr } = await user.run('rm', '--force', stray, bad);
    expect([code, stderr]).toEqual([
      2,
      `${stray} stays: ${sentence}\nDeleted ${bad}.\nclaude-code-agent: ${sentence} ${next}\n`,
    ]);
  },
);
