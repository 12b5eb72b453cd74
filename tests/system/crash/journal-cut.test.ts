/**
 * Promises: a log truncated at any byte loads as the complete lines before the cut, can be opened for writing, and
 * leads to a sensible next run. If the last k events are lost, log and transcripts together still show what was done:
 * no session with a recorded intent runs again, for any k.
 */
import { describe, expect, test } from 'bun:test';
import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { decide } from '../../../src/core/plan/schedule.ts';
import { startEvents } from '../../../src/runner/run-start.ts';
import { loadGroup } from '../../../src/store/group-store.ts';
import { openGroupWriter } from '../../../src/store/group-writer.ts';
import type { World } from '../../../src/system/world.ts';
import { answerAll, finishAtOnce, identify } from '../../support/crash-rig.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { isLongRun } from '../../support/long.ts';
import { make, rig, withRig } from '../../support/rig-ground.ts';
import { expectOk } from '../../support/system/rig.ts';

withRig((one) => one.remove());
let group: GroupFixture;

const names = ['top', 'left', 'right', 'bottom'];
const diamond = [
  { name: 'top' },
  { name: 'left', after: ['top'] },
  { name: 'right', after: ['top'] },
  { name: 'bottom', after: ['left', 'right'] },
];

/** One session after another, so that the order of the log's lines is fixed. */
async function finishedDiamond(): Promise<void> {
  group = make(diamond, { maxConcurrentSessions: 1 });
  answerAll(rig, names.map(group.claudeId));
  expect(await group.run(rig.env).result).toMatchObject({ kind: 'settled', status: 'completed' });
}

/** `top` and `left` are completed; `right` had started and died with its runner. */
async function interruptedDiamond(): Promise<void> {
  group = make(diamond);
  const run = group.run(rig.env);
  await finishAtOnce(await rig.nextFor(group.claudeId('top')));
  const right = await rig.nextFor(group.claudeId('right'));
  await identify(right);
  await finishAtOnce(await rig.nextFor(group.claudeId('left')));
  await run.event('session_completed', group.id('left'));
  await run.event('session_identified', group.id('right'));
  run.signal('SIGHUP');
  expect(await run.result).toMatchObject({ kind: 'left' });
  right.die('SIGKILL');
  await right.ended;
}

/** Thousands of cuts test the log only: nothing is synced to disk, and snapshots are left out. */
function journalOnly(world: World): World {
  const { files } = world;
  return {
    ...world,
    files: {
      ...files,
      truncate: truncateSync,
      writeAtomic: () => {},
      openAppend: (path) => {
        const file = files.openAppend(path);
        return {
          get size() {
            return file.size;
          },
          append: (text) => file.append(text),
          appendBytes: (bytes) => file.appendBytes(bytes),
          sync: () => {},
          close: () => file.close(),
        };
      },
    },
  };
}

/** Every byte in a long run; otherwise the bytes around line ends and every tenth between them. */
const isTried = (whole: Buffer, size: number): boolean =>
  isLongRun || size % 10 === 0 || whole.subarray(Math.max(0, size - 2), size + 2).includes(10);

/** The state of the group after `seq` events, as the next run sees it. */
function expectStartable(world: World, seq: number): void {
  const writer = expectOk(openGroupWriter(world, group.root, group.groupId, 'next'));
  try {
    const { state } = writer;
    expect(state.lastSeq).toBe(seq);
    const run = { id: 'next', runner: world.machine.self };
    const events = expectOk(
      startEvents(state, { run, overrides: {}, retryFailed: false, lives: world.processes.isAlive }),
    );
    if (state.status === 'completed') {
      expect(events).toEqual([]);
      return;
    }
    writer.record(events);
    expect(state.status).toBe('running');
    const decisions = decide(state, { preparingMax: 4 });
    expect(decisions.length + state.running.size).toBeGreaterThan(0);
    for (const decision of decisions) expect(decision.do).toBeOneOf(['start', 'settle']);
  } finally {
    writer.close();
  }
}

describe.each([
  { journal: 'finished', make: finishedDiamond },
  { journal: 'interrupted', make: interruptedDiamond },
])('the log of a run that was $journal', ({ make }) => {
  test('truncated at every byte', async () => {
    await make();
    const whole = readFileSync(group.paths.events);
    const world = journalOnly(group.world);
    for (let size = whole.length; size >= 0; size -= 1) {
      if (!isTried(whole, size)) continue;
      const kept = whole.subarray(0, size);
      writeFileSync(group.paths.events, kept);
      const lines = kept.reduce((count, byte) => (byte === 10 ? count + 1 : count), 0);
      if (lines >= 2 + names.length) {
        expectStartable(world, lines - 1);
        continue;
      }
      // Header and definitions are written as a whole. Without them there is an error message, and nothing is changed.
      const loaded = loadGroup(world, group.root, group.groupId);
      if (!loaded.ok) expect(loaded.failure.reason).toBe('corrupt-file');
      const opened = openGroupWriter(world, group.root, group.groupId, 'next');
      expect(opened.ok).toBe(loaded.ok);
      if (opened.ok) opened.value.close();
      else expect(readFileSync(group.paths.events).equals(kept)).toBe(true);
    }
  }, 120_000);
});
