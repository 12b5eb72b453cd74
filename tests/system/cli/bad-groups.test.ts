/**
 * F1, F11: one bad group never stops the others. Whatever stands in the place of its files, every command that looks at
 * several groups ends, says it in a sentence and does its work on the others; above all `stop --all`; and the bad one
 * can still be deleted.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test';
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { User } from '../../support/cli/user.ts';
import { type Rig, startRig } from '../../support/fake-claude-rig.ts';
import { giveToUnprivileged, unprivileged } from '../../support/unprivileged.ts';

let rig: Rig;
/** Has a completed group, which is copied for each test. */
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

/** What is done to it, and whether it can be read all the same. */
const damages: Readonly<Record<string, readonly [Damage, 'readable' | 'unreadable']>> = {
  'a damaged log': [inLog((text) => text.replace('"seq":3', '"seq":')), 'unreadable'],
  'a log that cannot have happened': [inLog((text) => text.replace('"number":1', '"number":7')), 'unreadable'],
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

test.each(Object.keys(damages))('F1, F11: %s keeps nobody from the others', async (name) => {
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

test('F1, F11: one that cannot be deleted keeps nobody from being deleted', async () => {
  const good = await user.makeGroup('good');
  writeFileSync(join(groups, bad, 'merge.json'), 'no journal');
  const { code, stderr } = await user.run('rm', bad, good, '--force');
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(`${bad} stays: `) });
  expect(stderr).toContain(`Deleted ${good}.`);
  expect(readdirSync(groups)).toEqual([bad]);
});

test('F1, F11: a group that nobody can read is stopped all the same', async () => {
  const good = await user.makeGroup('good');
  const run = user.start('group', 'run', good);
  const fake = await rig.nextFor(await claudeId(user, `${good}/1`));
  await fake.prompt();
  const log = join(groups, good, 'events.jsonl');
  const whole = readFileSync(log, 'utf8');
  const lines = whole.split('\n');
  writeFileSync(log, whole.replace(lines[1] as string, 'x'.repeat((lines[1] as string).length)));
  const stop = await user.run('stop', '--all');
  expect([stop.code, stop.stderr]).toEqual([1, expect.stringContaining('was told to pause it')]);
  expect((await run.finished).code).toBe(3);
  await fake.ended;
});

test.skipIf(!unprivileged.isPossible)('F1, F11: a group of somebody else keeps nobody from the others', async () => {
  const good = await user.makeGroup('good');
  giveToUnprivileged(user.folder);
  const theirs = join(groups, bad);
  const run = (...args: string[]) => {
    const command = [...unprivileged.prefix, user.program, ...args];
    const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd: '/', env: user.env });
    return `${exitCode} ${stderr}${stdout}`;
  };
  for (const place of [theirs, join(theirs, 'events.jsonl'), join(theirs, 'runner.lock'), join(theirs, 'meta.json')]) {
    chmodSync(place, 0o000);
    for (const args of looks) {
      const said = run(...args);
      expect(said).not.toMatch(/Unexpected trouble|defect|undefined|The system refused/);
      if (args[0] !== 'doctor') expect(said).toContain('good');
    }
    // The path that was refused is named, not the folder that it lies in.
    if (place.endsWith('runner.lock')) {
      for (const word of ['run', 'resume', 'pause'])
        expect(run('group', word, bad)).toContain(`Cannot write ${place}: EACCES`);
    }
    if (!place.endsWith('meta.json')) expect(run('stop', '--all')).toMatch(new RegExp(`^1 ${bad}: .*EACCES`));
    chmodSync(place, place === theirs ? 0o700 : 0o600);
  }
  expect(run('group', 'create', 'more')).toStartWith('0 ');
  expect(run('group', 'show', good)).toStartWith('0 ');
});
