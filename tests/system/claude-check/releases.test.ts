/**
 * Promises: with what claude was started with once, the trial names each of the four changes that broke that, on the
 * very release that brought it, and nothing on the one before them; as it is started now all promises hold.
 */
import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { claudeBinary } from '../../support/claude/rig.ts';
import { oldLaunch } from '../../support/claude-check/old-launch.ts';
import { releasedClaude, removeFolders, seenOf, wrongIn } from '../../support/claude-check/rig.ts';
import { isLongRun } from '../../support/long.ts';

setDefaultTimeout(300_000);

const oldest = '2.1.197';
/** By release: what it was the first to break. */
const breaks = {
  '2.1.198': 'login-store',
  '2.1.215': 'fork',
  '2.1.278': 'cost',
  '2.1.312': 'compaction-kept',
} as const;

const served = isLongRun && claudeBinary !== undefined && releasedClaude(oldest) !== null;
if (isLongRun && !served) console.warn('the registry serves no releases of claude: none of them is tried');
afterEach(removeFolders);

describe('a release of claude', () => {
  for (const [version, id] of Object.entries(breaks)) {
    test.if(served)(`${version}: ${id} was broken, and is not any more`, async () => {
      const program = releasedClaude(version);
      if (program === null) throw new Error(`${version} is not served`);
      const before = await seenOf(program, oldLaunch);
      expect(before.find((one) => one.id === id)).toMatchObject({ verdict: 'broken' });
      expect(wrongIn(await seenOf(program))).toEqual([]);
    });
  }

  test.if(served)(`${oldest} keeps every promise, started as it was then and as it is now`, async () => {
    const program = releasedClaude(oldest);
    if (program === null) throw new Error(`${oldest} is not served`);
    expect(wrongIn(await seenOf(program, oldLaunch))).toEqual([]);
    expect(wrongIn(await seenOf(program))).toEqual([]);
  });
});
