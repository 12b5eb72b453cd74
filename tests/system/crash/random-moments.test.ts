/**
 * Promises: whatever the runner is doing when it is killed, and again in the run after that, a diamond of sessions is
 * completed by the next one: no attempt was worked on by two processes or gave two results, costs are those that were
 * printed. Moments are drawn from the calls a run makes; a failure names the seed and the moments.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { answerAll, expectSettled, Runners, spoken } from '../../support/crash-rig.ts';
import { draw } from '../../support/draw.ts';
import { type Rig, startRig } from '../../support/fake-claude-rig.ts';
import { type GroupFixture, makeGroup } from '../../support/group-fixture.ts';
import { isLongRun } from '../../support/long.ts';

const seeds = Array.from({ length: isLongRun ? 50 : 4 }, (_, index) => index + 1);
/** Runs of the same group differ by a few calls; a moment in this share of them comes in every run. */
const certainShare = 0.9;
const names = ['top', 'left', 'right', 'bottom'];

let rig: Rig;
let group: GroupFixture;
/** Calls that a run makes which nobody disturbs. */
let calls = 0;
/** How many runs were to be killed after a first one, and how many were. */
const later = { tried: 0, killed: 0 };

function makeDiamond(): Runners {
  group = makeGroup([
    { name: 'top' },
    { name: 'left', after: ['top'] },
    { name: 'right', after: ['top'] },
    { name: 'bottom', after: ['left', 'right'] },
  ]);
  answerAll(rig, names.map(group.claudeId));
  return new Runners(group, rig.env);
}

beforeAll(async () => {
  rig = await startRig();
  const trace = join(makeDiamond().group.folder, 'trace');
  const { code } = await new Runners(group, rig.env).startAltered({ trace }).finished;
  expect(code).toBe(0);
  calls = readFileSync(trace, 'utf8').trimEnd().split('\n').length;
  group.remove();
}, 60_000);
afterAll(() => rig.stop());
afterEach(() => group.remove());

test.each(seeds)(
  'seed %d',
  async (seed) => {
    const runners = makeDiamond();
    const moments: string[] = [];
    let left = calls;
    for (let nth = 0; nth <= seed % 2; nth += 1) {
      const at = 1 + draw(seed, nth, Math.ceil(left * certainShare));
      const trace = join(group.folder, `trace-${nth}`);
      const { code, stderr } = await runners.startAltered({ at, trace }).finished;
      moments.push(`${at}: ${readFileSync(trace, 'utf8').trimEnd().split('\n').at(-1)}`);
      // What a second run has left to do is only known about, so it may be over before its moment comes.
      const killed = code === null || (nth > 0 && code === 0);
      expect({ moments, code, stderr, killed }).toMatchObject({ killed: true });
      left -= at;
      if (nth > 0) later.tried += 1;
      if (nth > 0 && code === null) later.killed += 1;
    }
    const { code, stderr } = await runners.start().finished;
    expect({ seed, moments, code, stderr }).toMatchObject({ code: 0 });
    expectSettled(group);
    const state = group.state();
    for (const name of names) {
      const { workers, results, costUsd } = spoken(group, name);
      const record = state.sessions.get(group.id(name));
      const once = new Set(workers.map(({ attempt }) => attempt)).size === workers.length;
      // Only a worker that spoke while it was being ended, after which a further attempt is made, adds a result.
      const enough = results >= 1 && results <= (record?.attempts ?? 0);
      expect({ seed, moments, name, results, once, enough }).toMatchObject({ once: true, enough: true });
      expect(record?.usage.costUsd).toBeCloseTo(costUsd, 9);
    }
  },
  60_000,
);

test('most of the second runs were killed, too', () => {
  expect(later.tried).toBe(seeds.filter((seed) => seed % 2 === 1).length);
  expect({ ...later, most: later.killed / later.tried >= 0.8 }).toMatchObject({ most: true });
});
