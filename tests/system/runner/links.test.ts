/**
 * F6: whatever a session puts a link in place of, nothing is written, chmod-ed or removed where that leads: its folder,
 * its config dir and what is in there, and each file that we write for it.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { removeEmptyConversation } from '../../../src/claude/conversation.ts';
import type { SessionPaths } from '../../../src/store/paths.ts';
import { until } from '../../support/cli.ts';
import { begin, finish, Runners, removeGroup } from '../../support/crash-rig.ts';
import { type Rig, startRig } from '../../support/fake-claude-rig.ts';
import { type GroupFixture, makeGroup } from '../../support/group-fixture.ts';

let rig: Rig;
let group: GroupFixture;
let runners: Runners;
let outside: string;
let paths: SessionPaths;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.stop());
beforeEach(() => {
  group = makeGroup([{ name: 'one' }]);
  runners = new Runners(group, rig.env);
  paths = group.session('one');
  outside = join(group.folder, 'outside');
  mkdirSync(join(outside, 'projects', 'p'), { recursive: true });
  for (const name of ['mine', 'CLAUDE.md', 'stdin.fifo', 'meta.json', `projects/p/${group.claudeId('one')}.jsonl`]) {
    writeFileSync(join(outside, name), 'mine');
    chmodSync(join(outside, name), 0o644);
  }
  for (const name of ['.', 'projects', 'projects/p']) chmodSync(join(outside, name), 0o755);
});
afterEach(() => removeGroup(group));

/** Every name below the folder with its mode and what it holds. */
function inventory(folder: string): string[] {
  const below = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  return ['.', ...below].map((name) => {
    const stats = lstatSync(join(folder, name));
    const text = stats.isFile() ? readFileSync(join(folder, name), 'utf8') : '';
    return `${name} ${(stats.mode & 0o7777).toString(8)} ${text}`;
  });
}

function replace(path: string, target: string): void {
  mkdirSync(dirname(path), { recursive: true });
  rmSync(path, { recursive: true, force: true });
  symlinkSync(target, path);
}

const folders = ['folder', 'config', 'tmp'] as const;
const files = ['transcript', 'stderr'] as const;

test.each([...folders, ...files])(
  'F6: a session whose %s is a link is not started',
  async (name) => {
    replace(paths[name], files.includes(name as 'stderr') ? join(outside, 'mine') : outside);
    const before = inventory(outside);
    const { code } = await runners.start().finished;
    expect(code).not.toBe(0);
    expect(inventory(outside)).toEqual(before);
    const state = group.state().sessions.get(group.id('one'))?.state;
    expect(state).toMatchObject({ status: 'failed', failure: { message: expect.stringContaining('symbolic link') } });
  },
  60_000,
);

const others = ['CLAUDE.md', 'settings.json', 'commands', 'skills', 'projects'];

test.each(others)(
  'F6: %s of a config dir may be a link: what it leads to stays as it is',
  async (name) => {
    replace(join(paths.config, name), name.includes('.') ? join(outside, 'mine') : outside);
    const before = inventory(outside);
    const run = runners.start();
    const fake = await rig.nextFor(group.claudeId('one'));
    await begin(fake);
    await finish(fake);
    expect((await run.finished).code).toBe(0);
    expect(inventory(outside)).toEqual(before);
  },
  60_000,
);

test.each(folders)(
  'F6: while it works it replaces its %s',
  async (name) => {
    const before = inventory(outside);
    const run = runners.start();
    const fake = await rig.nextFor(group.claudeId('one'));
    await begin(fake);
    // By then its runner reads what it prints, wherever that is moved.
    await until(() => group.events().some(({ type }) => type === 'session_identified'));
    await finish(fake);
    renameSync(paths[name], `${paths[name]}.away`);
    symlinkSync(outside, paths[name]);
    await run.finished;
    expect(inventory(outside)).toEqual(before);
  },
  60_000,
);

test.each(['requests', 'sessions'] as const)(
  'F6: while it works it replaces the %s of its group',
  async (name) => {
    writeFileSync(join(outside, 'package.json'), '{}');
    const before = inventory(outside);
    const run = runners.start();
    const fake = await rig.nextFor(group.claudeId('one'));
    await begin(fake);
    // By then its runner reads what it prints, wherever that is moved.
    await until(() => group.events().some(({ type }) => type === 'session_identified'));
    await finish(fake);
    renameSync(group.paths[name], `${group.paths[name]}.away`);
    symlinkSync(outside, group.paths[name]);
    await run.finished;
    // The next one finds it so.
    await runners.start().finished;
    expect(inventory(outside)).toEqual(before);
  },
  60_000,
);

test('F6: a conversation that is reached by a link is not removed', () => {
  replace(join(paths.config, 'projects'), join(outside, 'projects'));
  const before = inventory(outside);
  removeEmptyConversation(group.world, paths.config, group.claudeId('one'));
  replace(join(paths.config, 'projects'), join(group.folder, 'real'));
  rmSync(join(paths.config, 'projects'));
  mkdirSync(join(paths.config, 'projects'));
  symlinkSync(join(outside, 'projects', 'p'), join(paths.config, 'projects', 'p'));
  removeEmptyConversation(group.world, paths.config, group.claudeId('one'));
  expect(inventory(outside)).toEqual(before);
});
