/**
 * Promises, for every row of the tables in tests/support/cli/bad-input: the exit code, one sentence that names the
 * problem and one with the next step, no cursor movement, no stack trace, no changed byte of the data root, and every
 * intact group is still listed afterwards.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Lock } from '../../../../src/system/world.ts';
import {
  environments,
  refusals,
  scripts,
  strangeFiles,
  strangeSnapshots,
} from '../../../support/cli/bad-input/file-table.ts';
import { Ground, makeEveryStatus } from '../../../support/cli/bad-input/ground.ts';
import { damagedLogs } from '../../../support/cli/bad-input/log-table.ts';
import {
  expectRefusal,
  type Mistake,
  type MistakeOutcome,
  mistakeTitle,
  runMistakes,
} from '../../../support/cli/bad-input/mistake.ts';
import { wrongMoments } from '../../../support/cli/bad-input/state-table.ts';
import { giveToUnprivileged, unprivileged } from '../../../support/unprivileged.ts';

const atOnceMax = 4;
const patienceMs = 60_000;

const grounds: Ground[] = [];
const locks: Lock[] = [];

/** A data root with a group in every status; another process seems to run the last one. */
function newGround(): Ground {
  const ground = new Ground();
  grounds.push(ground);
  makeEveryStatus(ground);
  const { world } = ground;
  const live = ground.paths(ground.groups.at(-1) as string).lock;
  const lock = world.locks.tryLock(live, { identity: world.machine.self, runId: 'live' });
  if (lock === null) throw new Error(`${live} is not free`);
  locks.push(lock);
  return ground;
}

/** Runs the mistakes in parallel, then checks each outcome and the data root. */
function describeTable(
  title: string,
  ground: Ground,
  intact: readonly string[],
  rows: readonly Mistake[],
  atOnce = atOnceMax,
): void {
  const needsUser = rows.some((row) => row.unprivileged);
  const isPossible = !needsUser || unprivileged.isPossible;
  describe(title, () => {
    let outcomes: readonly MistakeOutcome[];
    let before: Readonly<Record<string, string>>;
    beforeAll(async () => {
      if (!isPossible) return;
      if (needsUser) giveToUnprivileged(ground.folder);
      before = ground.record();
      outcomes = await runMistakes(ground, rows, atOnce);
    }, patienceMs);
    for (const [index, row] of rows.entries()) {
      test.skipIf(!isPossible)(mistakeTitle(row, ground), () => expectRefusal(row, outcomes[index] as MistakeOutcome));
    }
    test.skipIf(!isPossible)('nothing was written', () => expect(ground.record()).toEqual(before));
    test.skipIf(!isPossible)('the other groups are listed', async () => {
      const listed = await ground.json<{ id: string; problem?: unknown }[]>('group', 'list');
      const readable = listed.filter(({ problem }) => problem === undefined).map(({ id }) => id);
      expect(readable).toEqual(expect.arrayContaining([...intact]));
      const table = await ground.ok('group', 'list');
      for (const id of intact) expect(table).toContain(id);
    });
  });
}

const ground = newGround();
const groups = [...ground.groups];
// One after another: two runners of one group would conflict.
describeTable('wrong moments', ground, groups, wrongMoments(ground), 1);
describeTable('rehearsal scripts', ground, groups, scripts(ground));
describeTable('environments', ground, groups, environments(ground));

for (const [title, tableOf] of [
  ['damaged logs', damagedLogs],
  ['strange files', strangeFiles],
  ['strange snapshots', strangeSnapshots],
  ['refused by the system', refusals],
] as const) {
  const damaged = newGround();
  const intact = [...damaged.groups];
  describeTable(title, damaged, intact, tableOf(damaged));
}

afterAll(() => {
  for (const lock of locks) lock.release();
  for (const each of grounds) each.remove();
}, patienceMs);
