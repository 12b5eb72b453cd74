/**
 * Promises: whatever the runner is doing when it is killed, and again in the run after that, a diamond of sessions is
 * completed by the next one: no attempt was worked on by two processes or gave two results, costs are those that were
 * printed. Moments are drawn from all calls a run makes; a failure names the seed and the moments.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { answerAll, expectSettled, Runners, spoken } from '../support/crash-rig.ts';
import { type Rig, startRig } from '../support/fake-claude-rig.ts';
import { type GroupFixture, makeGroup } from '../support/group-fixture.ts';

const seeds = Array.from({ length: process.env.TEST_LONG ? 50 : 10 }, (_, index) => index + 1);
const names = ['top', 'left', 'right', 'bottom'];

let rig: Rig;
let group: GroupFixture;
/** Calls that a run makes which nobody disturbs. */
let calls = 0;

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

/** A number below `max` that depends on the seed and the draw alone (the mixing steps of splitmix32). */
function draw(seed: number, nth: number, max: number): number {
  let mixed = (seed * 0x9e3779b9 + nth * 0x85ebca6b) >>> 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
  return ((mixed ^ (mixed >>> 15)) >>> 0) % max;
}

test.each(seeds)(
  'seed %d',
  async (seed) => {
    const runners = makeDiamond();
    const moments: string[] = [];
    for (let nth = 0; nth <= seed % 2; nth += 1) {
      const at = 1 + draw(seed, nth, calls);
      const trace = join(group.folder, `trace-${nth}`);
      const { code, stderr } = await runners.startAltered({ at, trace }).finished;
      moments.push(`${at}: ${readFileSync(trace, 'utf8').trimEnd().split('\n').at(-1)}`);
      // A second run has less to do, so it may be over before its moment comes.
      expect({ moments, stderr, ended: code === null || code === 0 }).toMatchObject({ ended: true });
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
