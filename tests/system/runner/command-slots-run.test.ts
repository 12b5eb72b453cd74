/**
 * Promises: set-up and acceptance commands of real runs never exceed their slots, and the sessions with the most
 * dependents go first. A waiting command uses no time, can be paused at once, and is scheduled again by the next
 * runner.
 */
import { expect, test } from 'bun:test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readGroupProgress } from '../../../src/app/watch/live-view.ts';
import type { GroupConfig, SessionDefinition } from '../../../src/core/group.ts';
import { until } from '../../support/cli.ts';
import { answerAll, expectSettled, expectWorkedOnce, Runners } from '../../support/crash-rig.ts';
import { git, Repository } from '../../support/git/repository.ts';
import type { GroupFixture, SessionSketch } from '../../support/group-fixture.ts';
import { begin, make as makeFixture, rig, withRig } from '../../support/rig-ground.ts';

withRig();

type Fields = Partial<SessionDefinition>;

/** What the commands of a group record, in order: `+name` at the start, `-name` at the end. */
const notes = (group: GroupFixture): string[] => {
  const file = join(group.folder, 'notes');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
};
/** Records its start, runs until it is released, and records its end. */
const held = (name: string) =>
  `${noted(`+${name}`)}; until [ -e "$NOTES/go-${name}" ]; do sleep 0.1; done; ${ended(name)}`;
const quick = (name: string) => `${noted(`+${name}`)}; ${ended(name)}`;
const noted = (text: string) => `echo ${text} >> "$NOTES/notes"`;
const ended = (name: string) => noted(`-${name}`);

const release = (group: GroupFixture, name: string) => writeFileSync(join(group.folder, `go-${name}`), '');
const envOf = (group: GroupFixture) => ({ ...rig.env, NOTES: group.folder });
const began = (group: GroupFixture, name: string) => until(() => notes(group).includes(`+${name}`));

/** A group with a project folder for each session, or with one repository for all of them. */
function make(sketches: readonly SessionSketch[], config: Partial<GroupConfig>, speed = 1): GroupFixture {
  return makeFixture(sketches, { maxConcurrentSessions: 30, ...config }, { speed });
}

function makeInWorktrees(sketches: readonly SessionSketch[], config: Partial<GroupConfig>, speed = 1): GroupFixture {
  let folder = '';
  const late = (fields: Fields = {}): Fields => ({
    isolate: 'worktree',
    get repository() {
      return join(folder, 'projects', 'app', '.git');
    },
    ...fields,
  });
  const placed = sketches.map((sketch) => ({ ...sketch, project: 'app', fields: late(sketch.fields) }));
  return makeFixture(
    placed,
    { maxConcurrentSessions: 30, ...config },
    {
      speed,
      beforeSessions: (made) => {
        folder = made;
        new Repository(join(made, 'projects', 'app')).commit({ 'base.txt': 'base\n' });
      },
    },
  );
}

/** The highest number of commands that ran at once, by their own records. */
function most(group: GroupFixture): number {
  let [running, highest] = [0, 0];
  for (const note of notes(group)) {
    running += note.startsWith('+') ? 1 : -1;
    highest = Math.max(highest, running);
  }
  expect(running).toBe(0);
  return highest;
}

const waitOf = (group: GroupFixture, name: string) => waitsOf(group, [name])[0];
/** Sessions that wait for a command slot. */
function waitsOf(group: GroupFixture, names: readonly string[]) {
  const { live } = readGroupProgress(group.world, group.paths.progress, group.state());
  return names.flatMap((name) => live.get(group.id(name))?.slot ?? []);
}
const stateOf = (group: GroupFixture, name: string) => group.state().sessions.get(group.id(name))?.state;
function areAccepting(group: GroupFixture, names: readonly string[]): boolean {
  const { sessions } = group.state();
  return names.every((name) => {
    const state = sessions.get(group.id(name))?.state;
    return state?.status === 'running' && state.attempt.accepting !== undefined;
  });
}

test('twenty sessions that end together are accepted three at a time', async () => {
  const names = Array.from({ length: 20 }, (_, index) => `s${index}`);
  const group = make(
    names.map((name) => ({ name, fields: { accept: held(name) } })),
    { commandsAtOnce: 3 },
  );
  answerAll(rig, names.map(group.claudeId));
  const run = group.run(envOf(group));
  await until(() => areAccepting(group, names));
  // The others were started, but a shell may take a moment to begin.
  await until(() => waitsOf(group, names).length === 17 && notes(group).length >= 3);
  expect(notes(group).length).toBe(3);
  for (const name of names) release(group, name);
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(notes(group).length).toBe(40);
  expect(most(group)).toBe(3);
}, 60_000);

test('a diamond of worktrees with set-up and acceptance works with a single slot', async () => {
  const fields = (name: string): Fields => ({ setup: quick(`setup-${name}`), accept: quick(`accept-${name}`) });
  const after = { a: [], b: ['a'], c: ['a'], d: ['b', 'c'] } as Record<string, string[]>;
  const sketches = Object.entries(after).map(([name, before]) => ({ name, after: before, fields: fields(name) }));
  const group = makeInWorktrees(sketches, { commandsAtOnce: 1 });
  answerAll(rig, Object.keys(after).map(group.claudeId));
  expect(await group.run(envOf(group)).result).toMatchObject({ kind: 'settled', status: 'completed' });
  // Set-up runs again in the fresh checkout of each acceptance.
  expect(notes(group).length).toBe(24);
  expect(most(group)).toBe(1);
  git(join(group.folder, 'projects', 'app'), 'fsck', '--strict');
}, 60_000);

test('commands that fail or exceed their timeout free their slots', async () => {
  const accept = (name: string, command: string, acceptTimeoutMs = 600_000) => ({
    name,
    fields: { acceptRetries: 0, acceptTimeoutMs, accept: command },
  });
  const group = make(
    [accept('a', 'exit 3'), accept('b', 'sleep 600', 1_000), accept('c', quick('c'))],
    { commandsAtOnce: 1, errorThreshold: 9 },
    10,
  );
  answerAll(rig, ['a', 'b', 'c'].map(group.claudeId));
  expect(await group.run(envOf(group)).result).toMatchObject({ status: 'failed' });
  expect(['a', 'b', 'c'].map((name) => stateOf(group, name)?.status)).toEqual(['failed', 'failed', 'completed']);
}, 60_000);

/** Resolves when this many milliseconds of the group's clock have passed. */
const passed = (group: GroupFixture, ms: number) => {
  const endAt = group.world.clock.now() + ms;
  return until(() => group.world.clock.now() > endAt);
};

test("waiting for a slot does not count against the command's timeout", async () => {
  // On a busy machine even the fast command takes a moment.
  const fields = { acceptTimeoutMs: 20_000 };
  const group = make(
    [
      { name: 'a', fields: { accept: held('a') } },
      { name: 'b', fields: { ...fields, accept: quick('b') } },
    ],
    { commandsAtOnce: 1 },
    10,
  );
  const run = group.run(envOf(group));
  const [a, b] = [await begin(group, 'a'), await begin(group, 'b')];
  await a.succeed();
  await began(group, 'a');
  await b.succeed();
  await until(() => waitOf(group, 'b') !== undefined);
  await passed(group, 1.1 * fields.acceptTimeoutMs);
  release(group, 'a');
  expect(await run.result).toMatchObject({ status: 'completed' });
}, 60_000);

test('killing the runner while commands wait loses none of them', async () => {
  const names = ['a', 'b', 'c'];
  const group = make(
    names.map((name) => ({ name, fields: { accept: held(name) } })),
    { commandsAtOnce: 1 },
  );
  const runners = new Runners(group, envOf(group));
  answerAll(rig, names.map(group.claudeId));
  const first = runners.start();
  await until(() => waitsOf(group, names).length === 2);
  first.kill('SIGKILL');
  await first.finished;
  for (const name of names) release(group, name);
  await runners.complete();
  expectSettled(group);
  expectWorkedOnce(group, names);
  for (const name of names) expect(notes(group)).toContain(`-${name}`);
}, 60_000);
