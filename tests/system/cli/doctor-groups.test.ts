/** Promises of `doctor` about the data root: a cure fits its trouble and works, and nothing there can hold it up. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { makeFifo } from '../../../src/system/libc.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { User } from '../../support/cli/user.ts';
import { giveToUnprivileged, unprivileged } from '../../support/unprivileged.ts';

let user: User;
let groups: string;
beforeEach(() => {
  user = new User();
  groups = join(user.data, 'session-groups');
});
afterEach(() => user.remove());

interface Finding {
  readonly check: string;
  readonly level: string;
  readonly message: string;
  readonly next: string;
}

async function findings(): Promise<Finding[]> {
  const { checks } = JSON.parse((await user.run('doctor', '--json')).stdout) as { checks: Finding[] };
  return checks.filter(({ check }) => check === 'group' || check === 'groups');
}

test.each([
  ['header', '"version":3', '"version":9', 'says version 9'],
  ['event', '"type":"group_created"', '"type":"group_imagined"', 'an event that this version does not know'],
])('a group whose %s is of a newer version is not damaged: the program is too old', async (_, from, to, what) => {
  const group = await user.ok('group', 'create', 'later');
  const log = join(groups, group, 'events.jsonl');
  writeFileSync(log, readFileSync(log, 'utf8').replace(from, to));
  const [found, ...others] = await findings();
  expect(others).toEqual([]);
  expect(found).toMatchObject({ check: 'group', level: 'warning' });
  expect(found?.message).toStartWith(`${group} was written by a newer version of claude-code-agent: Line `);
  expect(found?.message).toContain(what);
  expect(found?.next).toContain('Upgrade claude-code-agent');
  expect(JSON.stringify(found)).not.toMatch(/damaged|delete/);
});

test.each(['rubbish\n', '', '{"type":"header","version":3,"groupId":"x"}\n'])(
  'a damaged group (%j) can be deleted as told, which is told once',
  async (log) => {
    const group = await user.ok('group', 'create', 'bad');
    writeFileSync(join(groups, group, 'events.jsonl'), log);
    const [found] = await findings();
    expect(found).toMatchObject({ level: 'broken' });
    expect(found?.message).toStartWith(`${group} is damaged: `);
    expect(found?.message).not.toMatch(/backup|delete/);
    expect(found?.next.match(/backup/g)).toHaveLength(1);
    const [, command = ''] = found?.next.match(/or: claude-code-agent (.*)$/) ?? [];
    expect(await user.run(...command.split(' '), '--force')).toMatchObject({ code: 0 });
    expect(await findings()).toMatchObject([{ level: 'ok' }]);
  },
);

const strays: Readonly<Record<string, readonly [what: string, make: (path: string) => void]>> = {
  'a file': ['is not a folder', (path) => writeFileSync(path, '')],
  'a FIFO': ['is not a folder', (path) => makeFifo(path, 0o600)],
  'a dangling link': ['leads nowhere', (path) => symlinkSync('nowhere', path)],
  'a link to itself': ['leads back to itself', (path) => symlinkSync(path, path)],
  'a link to a file': ['is not a folder', (path) => symlinkSync('/dev/null', path)],
};

test.each(Object.keys(strays))(
  '%s with the name of a group is no group: it is removed by hand, as told',
  async (name) => {
    const [what, make] = strays[name] as (typeof strays)[string];
    mkdirSync(groups, { recursive: true });
    const path = join(groups, '20261122-000004-stray');
    make(path);
    const [found, ...others] = await findings();
    expect(others).toEqual([]);
    expect(found).toMatchObject({ check: 'group', level: 'broken' });
    expect(found?.message).toContain(what);
    expect(JSON.stringify(found)).not.toMatch(/damaged|group delete/);
    const [, command = ''] = found?.next.match(/: (rm .*)$/) ?? [];
    expect(Bun.spawnSync(['sh', '-c', command]).exitCode).toBe(0);
    expect(await findings()).toMatchObject([{ check: 'groups', level: 'ok' }]);
    expect(existsSync('/dev/null')).toBe(true);
  },
);

test.each(Object.keys(strays))(
  '%s with the name of a group stops no command that looks at all groups',
  async (name) => {
    const group = await user.ok('group', 'create', 'good');
    (strays[name] as (typeof strays)[string])[1](join(groups, '20261122-000004-stray'));
    expect(await user.run('group', 'list')).toMatchObject({ code: 0 });
    expect(await user.run('stop', '--all')).toMatchObject({ code: 0 });
    expect(await user.run('doctor', '--worktrees')).toMatchObject({ code: 0 });
    expect(await user.json('group', 'show', 'good')).toMatchObject({ id: group });
    expect(await user.run('group', 'show', '20261122-000004-stray')).toMatchObject({ code: 2 });
  },
);

test.skipIf(!unprivileged.isPossible).each([0o000, 0o300, 0o100])(
  'a folder of groups that cannot be read (%o) is told in a sentence, and doctor checks all else',
  async (mode) => {
    const group = await user.ok('group', 'create', 'good');
    giveToUnprivileged(user.folder);
    chmodSync(groups, mode);
    const run = (...args: string[]) => {
      const command = [...unprivileged.prefix, user.program, ...args];
      const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd: '/', env: user.env });
      return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
    };
    const trouble = `The data folder cannot be ${user.data}: ${groups} cannot be read (EACCES).`;
    const next = 'Check who owns it and its permissions, or set CLAUDE_CODE_AGENT_HOME to a folder of yours.';
    for (const line of ['group list', 'stop --all', `group show ${group}`, 'group create more', 'doctor --worktrees']) {
      const refused = { code: 2, stdout: '', stderr: `claude-code-agent: ${trouble} ${next}\n` };
      expect(run(...line.split(' '))).toEqual(refused);
    }
    const { code, stdout, stderr } = run('doctor', '--json');
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    const { checks } = JSON.parse(stdout) as { checks: Finding[] };
    expect(checks.filter(({ check }) => check === 'data')).toEqual([
      { check: 'data', level: 'broken', message: trouble, next },
    ]);
    expect(checks.map(({ check }) => check)).toEqual(expect.arrayContaining(['bun', 'claude', 'git', 'limits']));
    chmodSync(groups, 0o700);
    expect(run('group', 'list')).toMatchObject({ code: 0 });
  },
);

const elsewhere: readonly (readonly [string, string, (path: string) => void])[] = [
  ['a file', 'is not a folder', (path) => writeFileSync(path, '')],
  ['a FIFO', 'is not a folder', (path) => makeFifo(path, 0o600)],
  ['a link to nothing', 'is a link that leads nowhere', (path) => symlinkSync('/nowhere/mounted', path)],
  ['a link to itself', 'is a symbolic link that leads back to itself', (path) => symlinkSync(path, path)],
];

test.each(elsewhere)(
  '%s in place of the folder of groups, or of all data, is told by every command',
  async (_, what, put) => {
    const next = 'Set CLAUDE_CODE_AGENT_HOME to a folder of yours, or to a path where one can be made.';
    for (const path of [user.data, groups]) {
      rmSync(user.data, { recursive: true, force: true });
      mkdirSync(dirname(path), { recursive: true });
      put(path);
      const trouble = `The data folder cannot be ${user.data}: ${path} ${what}.`;
      const refused = { code: 2, stdout: '', stderr: `claude-code-agent: ${trouble} ${next}\n` };
      for (const line of ['group list', 'ps', 'group create more'])
        expect(await user.run(...line.split(' '))).toEqual(refused);
      const { stdout } = await user.run('doctor', '--json');
      expect((JSON.parse(stdout) as { checks: object[] }).checks).toContainEqual({
        check: 'data',
        level: 'broken',
        message: trouble,
        next,
      });
    }
  },
);

test.each(['new\nline', 'esc\u001b[31m'])(
  'what is left under a name that no terminal shows (%j): no command',
  async (name) => {
    await user.ok('group', 'create', 'good');
    mkdirSync(join(groups, `.deleted-${name}`));
    expect(await findings()).toMatchObject([
      { check: 'group', level: 'warning', next: 'Creating or deleting any group clears it away.' },
    ]);
    await user.ok('group', 'create', 'more');
    expect(await findings()).toMatchObject([{ level: 'ok' }]);
  },
);

test.each(['.deleted-', '.new-'])('what is left of a group (%s) is named and cleared as told', async (prefix) => {
  await user.ok('group', 'create', 'good');
  const path = join(groups, `${prefix}20261122-000004-gone-1`);
  mkdirSync(join(path, 'sessions'), { recursive: true });
  utimesSync(path, 1, 1);
  const [found, ...others] = await findings();
  expect(others).toEqual([]);
  expect(found).toMatchObject({ check: 'group', level: 'warning' });
  expect(found?.message).toContain(path);
  const [, command = ''] = found?.next.match(/: (rm -rf .*)$/) ?? [];
  expect(Bun.spawnSync(['sh', '-c', command]).exitCode).toBe(0);
  expect(await findings()).toMatchObject([{ check: 'groups', level: 'ok' }]);
});

test('what a living process is deleting is left to it, and cleared away when it has died', async () => {
  const path = join(groups, '.deleted-20261122-000004-going-1');
  mkdirSync(path, { recursive: true });
  const { locks, machine } = createRealWorld();
  const lock = locks.tryLock(join(path, 'runner.lock'), { identity: machine.self, runId: 'short-1' });
  await user.ok('group', 'create', 'good');
  expect(await findings()).toMatchObject([{ check: 'groups', level: 'ok' }]);
  expect(existsSync(path)).toBe(true);
  lock?.release();
  expect(await findings()).toMatchObject([{ check: 'group', level: 'warning' }]);
  await user.ok('group', 'create', 'more');
  expect(await findings()).toMatchObject([{ check: 'groups', level: 'ok' }]);
});
