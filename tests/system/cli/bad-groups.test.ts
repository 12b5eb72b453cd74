/**
 * Promises: one damaged group never stops the others. Every command on several groups ends, names the damage in one
 * sentence and does its work on the others, above all `stop --all`. The damaged group can still be deleted.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { User } from '../../support/cli/user.ts';
import { type FakeClaudeHarness, startRig } from '../../support/fake-claude-rig.ts';

let rig: FakeClaudeHarness;
/** Contains a completed group, which is copied for each test. */
let model: User;
let bad: string;
let user: User;
let groups: string;

beforeAll(async () => {
  rig = await startRig();
  model = new User(rig.env);
  bad = await model.makeGroup('bad');
  rig.answerEach(await claudeId(model, `${bad}/1`), (fake) => fake.init().then(() => fake.succeed()));
  rig.answerEach(await claudeId(model, `${bad}/2`), (fake) => fake.init().then(() => fake.succeed()));
  await model.ok('group', 'run', bad);
});
afterAll(() => {
  model.remove();
  rig.stop();
});
beforeEach(() => {
  user = new User(rig.env);
  groups = join(user.data, 'session-groups');
  cpSync(join(model.data, 'session-groups'), groups, { recursive: true });
});
afterEach(() => user.remove());

async function claudeId(of: User, reference: string): Promise<string> {
  return (await of.json<{ id: string }>('session', 'show', reference)).id.slice(4);
}

type Damage = (folder: string) => void;

function inPlace(name: string, put: (path: string) => void): Damage {
  return (folder) => {
    rmSync(join(folder, name), { recursive: true, force: true });
    put(join(folder, name));
  };
}

function inLog(change: (text: string) => string): Damage {
  return (folder) => {
    const log = join(folder, 'events.jsonl');
    writeFileSync(log, change(readFileSync(log, 'utf8')));
    rmSync(join(folder, 'meta.json'));
  };
}

/** The damage, and whether the group can still be read. */
const damages: Readonly<Record<string, readonly [Damage, 'readable' | 'unreadable']>> = {
  'a damaged log': [inLog((text) => text.replace('"seq":3', '"seq":')), 'unreadable'],
  'a log that is not a possible event': [inLog((text) => text.replace('"number":1', '"number":7')), 'unreadable'],
  'a future version': [inLog((text) => text.replace('"version":3', '"version":9')), 'unreadable'],
  'a version before 0.3': [inLog((text) => text.replace('"version":3', '"version":2')), 'unreadable'],
  'a future event': [inLog((text) => text.replace('"type":"group_created"', '"type":"later"')), 'unreadable'],
  'a poison name': [inLog((text) => text.replaceAll('claude-opus-4-8', 'constructor')), 'readable'],
  'an endless sum': [inLog((text) => text.replaceAll(/"costUsd":0.01/g, '"costUsd":1e308')), 'readable'],
  'no log': [(folder) => rmSync(join(folder, 'events.jsonl')), 'unreadable'],
  'a folder as log': [inPlace('events.jsonl', (path) => mkdirSync(path)), 'unreadable'],
};

const looks: readonly (readonly string[])[] = [
  ['group', 'list'],
  ['group', 'list', '--json'],
  ['group', 'show', 'good'],
  ['group', 'plan', 'good'],
  ['doctor', '--json'],
  ['doctor', '--worktrees'],
  ['complete', '--', 'group', 'show', ''],
];

test.each(Object.keys(damages))('%s does not affect the other groups', async (name) => {
  const [damage, kind] = damages[name] as (typeof damages)[string];
  const good = await user.makeGroup('good');
  const first = await claudeId(user, `${good}/1`);
  const run = user.start('group', 'run', good);
  const fake = await rig.nextFor(first);
  await fake.prompt();
  damage(join(groups, bad));
  for (const args of looks) {
    const { code, stdout, stderr } = await user.run(...args);
    const said = `${args.join(' ')}: ${code} ${stderr}${stdout}`;
    expect(said).not.toMatch(/Unexpected trouble|defect|undefined|Infinity|The system refused/);
    if (args[0] !== 'doctor') expect(said).toContain('good');
  }
  expect((await user.run('session', 'show', first.slice(0, 12).replace(/^/, '001-'))).code).toBe(0);
  const stop = await user.run('stop', '--all');
  expect(`${stop.code} ${stop.stderr}`).toMatch(kind === 'readable' ? /^0 $/ : new RegExp(`^1 ${bad}: .*\n$`));
  expect(stop.stdout).toContain(`Paused ${good}.`);
  expect((await run.finished).code).toBe(3);
  await fake.ended;
  await user.ok('group', 'delete', bad, '--force');
  expect(readdirSync(groups)).toEqual([good]);
});

test('a group that cannot be deleted does not stop the deletion of others', async () => {
  const good = await user.makeGroup('good');
  const merging = await user.makeGroup('merging');
  writeFileSync(join(groups, merging, 'merge.json'), 'no journal');
  const { code, stderr } = await user.run('rm', merging, good, '--force');
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(`${merging} was not deleted: `) });
  expect(stderr).toContain(`Deleted ${good}.`);
  expect(readdirSync(groups).sort()).toEqual([bad, merging].sort());
});
