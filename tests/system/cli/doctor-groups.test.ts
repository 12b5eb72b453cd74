/** Promises of `doctor` about the data root: each problem has a fix that works, and no content can block it. */
import { beforeEach, expect, test } from 'bun:test';
import { mkdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { user, withUser } from '../../support/cli/user.ts';

let groups: string;
withUser();
beforeEach(() => {
  groups = join(user.data, 'session-groups');
});

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
  ['header', '"version":3', '"version":9', 'has version 9'],
  ['event', '"type":"group_created"', '"type":"group_imagined"', 'an event that this version does not know'],
])('a group whose %s is from a newer version is reported as such, not as damaged', async (_, from, to, what) => {
  const group = await user.ok('group', 'create', 'later');
  const log = join(groups, group, 'events.jsonl');
  writeFileSync(log, readFileSync(log, 'utf8').replace(from, to));
  const [found, ...others] = await findings();
  expect(others).toEqual([]);
  expect(found).toMatchObject({ check: 'group', level: 'warning' });
  expect(found?.message).toStartWith('Line ');
  expect(found?.message).toContain(what);
  expect(found?.next).toContain('Use the newer version of claude-code-agent');
  expect(JSON.stringify(found)).not.toMatch(/damaged|delete/);
});

test.each(['rubbish\n', '', '{"type":"header","version":3,"groupId":"x"}\n'])(
  'a damaged group (%j) is reported once and can be deleted as advised',
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

const strays: Readonly<Record<string, (path: string) => void>> = {
  'a file': (path) => writeFileSync(path, ''),
  'a dangling link': (path) => symlinkSync('nowhere', path),
};

test.each(Object.keys(strays))('%s with the name of a group stops no command that reads all groups', async (name) => {
  const group = await user.ok('group', 'create', 'good');
  strays[name]?.(join(groups, '20261122-000004-stray'));
  expect(await user.run('group', 'list')).toMatchObject({ code: 0 });
  expect(await user.run('stop', '--all')).toMatchObject({ code: 0 });
  expect(await user.run('doctor', '--worktrees')).toMatchObject({ code: 0 });
  expect(await user.json('group', 'show', 'good')).toMatchObject({ id: group });
  expect(await user.run('group', 'show', '20261122-000004-stray')).toMatchObject({ code: 2 });
});

test.each(['.deleted-', '.new-'])('leftovers of a group (%s) are named and removed as advised', async (prefix) => {
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
