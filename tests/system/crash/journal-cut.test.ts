/**
 * Promises: a journal cut off at any byte loads as the whole lines before the cut, can be opened for writing, and
 * gives the next run something sensible to do. A journal that lost its last k events still knows, together with the
 * transcripts, what was done: no session whose intent is on record runs again, whatever k is.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { cpSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decide } from '../../../src/core/plan/schedule.ts';
import { sightOf } from '../../../src/runner/checkouts.ts';
import { startEvents } from '../../../src/runner/run-start.ts';
import { loadGroup } from '../../../src/store/group-store.ts';
import { openGroupWriter } from '../../../src/store/group-writer.ts';
import type { World } from '../../../src/system/world.ts';
import { answerAll, begin, expectSettled, spoken, work } from '../../support/crash-rig.ts';
import { type Rig, startRig } from '../../support/fake-claude-rig.ts';
import { type GroupFixture, makeGroup } from '../../support/group-fixture.ts';
import { isLongRun } from '../../support/long.ts';
import { unwrap } from '../../support/store-world.ts';

let rig: Rig;
let group: GroupFixture;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.stop());
afterEach(() => group.remove());

const names = ['top', 'left', 'right', 'bottom'];
const diamond = [
  { name: 'top' },
  { name: 'left', after: ['top'] },
  { name: 'right', after: ['top'] },
  { name: 'bottom', after: ['left', 'right'] },
];

/** One session after the other, so that the order of the journal's lines is always the same. */
async function finishedDiamond(): Promise<void> {
  group = makeGroup(diamond, { maxConcurrentSessions: 1 });
  answerAll(rig, names.map(group.claudeId));
  expect(await group.run(rig.env).result).toMatchObject({ kind: 'settled', status: 'completed' });
}

/** `top` and `left` are done; `right` had begun and died with its runner. */
async function interruptedDiamond(): Promise<void> {
  group = makeGroup(diamond);
  const run = group.run(rig.env);
  await work(await rig.nextFor(group.claudeId('top')));
  const right = await rig.nextFor(group.claudeId('right'));
  await begin(right);
  await work(await rig.nextFor(group.claudeId('left')));
  await run.event('session_completed', group.id('left'));
  await run.event('session_identified', group.id('right'));
  run.signal('SIGHUP');
  expect(await run.result).toMatchObject({ kind: 'left' });
  right.die('SIGKILL');
  await right.ended;
}

/** Cutting thousands of times is about the journal: nothing is forced to the disk, and snapshots are left out. */
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

/** Every byte in a long run; otherwise those around the ends of lines, and every tenth between them. */
const isTried = (whole: Buffer, size: number): boolean =>
  isLongRun || size % 10 === 0 || whole.subarray(Math.max(0, size - 2), size + 2).includes(10);

/** What the group was when it had `seq` events, as far as the next run is concerned. */
function expectStartable(world: World, seq: number): void {
  const writer = unwrap(openGroupWriter(world, group.root, group.groupId, 'next'));
  try {
    const { state } = writer;
    expect(state.lastSeq).toBe(seq);
    const run = { id: 'next', runner: world.machine.self };
    const events = unwrap(
      startEvents(state, { run, overrides: {}, retryFailed: false, sight: sightOf(world, writer.paths) }),
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
])('the journal of a run that was $journal', ({ make }) => {
  test('cut at every byte', async () => {
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
      // Header and definitions are written as a whole; without them there is a sentence, and nothing is changed.
      const loaded = loadGroup(world, group.root, group.groupId);
      if (!loaded.ok) expect(loaded.failure.reason).toBe('corrupt-file');
      const opened = openGroupWriter(world, group.root, group.groupId, 'next');
      expect(opened.ok).toBe(loaded.ok);
      if (opened.ok) opened.value.close();
      else expect(readFileSync(group.paths.events).equals(kept)).toBe(true);
    }
  }, 120_000);
});

/** Goes on from a journal without its last `dropped` events; the sessions whose claude was started again. */
async function rerunWithout(dropped: number, lines: readonly string[]): Promise<string[]> {
  writeFileSync(
    group.paths.events,
    lines
      .slice(0, lines.length - dropped)
      .map((line) => `${line}\n`)
      .join(''),
  );
  const before = rig.invocations.length;
  const result = await group.run(rig.env).result;
  expect({ dropped, kind: result.kind }).toMatchObject({ kind: expect.stringMatching(/^settled|already-completed$/) });
  expectSettled(group);
  const started = rig.invocations.slice(before).map(({ claudeSessionId }) => claudeSessionId);
  return names.filter((name) => started.includes(group.claudeId(name)));
}

/** The group's folder as it is now; the returned function brings it back. */
function snapshot(): () => void {
  const copy = join(group.folder, 'copy');
  // A dead worker's FIFO holds nothing.
  cpSync(group.paths.folder, copy, { recursive: true, filter: (path) => !path.endsWith('.fifo') });
  return () => {
    rmSync(group.paths.folder, { recursive: true });
    cpSync(copy, group.paths.folder, { recursive: true });
  };
}

const journalLines = () => readFileSync(group.paths.events, 'utf8').trimEnd().split('\n');

test('without the last k events of a finished run, only sessions without an intent on record run again', async () => {
  await finishedDiamond();
  const lines = journalLines();
  const restore = snapshot();
  const again: Record<string, string> = {};
  for (let dropped = 0; lines.length - dropped >= 2 + names.length; dropped += 1) {
    restore();
    const last = JSON.parse(lines.at(-1 - dropped) as string) as { type: string; sessionId?: string };
    const name = names.find((candidate) => group.id(candidate) === last.sessionId);
    again[`${dropped}, up to ${last.type}${name === undefined ? '' : ` ${name}`}`] = (
      await rerunWithout(dropped, lines)
    ).join(' ');
  }
  expect(again).toMatchInlineSnapshot(`
    {
      "0, up to group_completed": "",
      "1, up to session_completed bottom": "",
      "10, up to session_identified left": "right bottom",
      "11, up to session_started left": "right bottom",
      "12, up to session_starting left": "right bottom",
      "13, up to session_completed top": "left right bottom",
      "14, up to session_identified top": "left right bottom",
      "15, up to session_started top": "left right bottom",
      "16, up to session_starting top": "left right bottom",
      "17, up to group_started": "top left right bottom",
      "18, up to session_added bottom": "top left right bottom",
      "2, up to session_identified bottom": "",
      "3, up to session_started bottom": "",
      "4, up to session_starting bottom": "",
      "5, up to session_completed right": "bottom",
      "6, up to session_identified right": "bottom",
      "7, up to session_started right": "bottom",
      "8, up to session_starting right": "bottom",
      "9, up to session_completed left": "right bottom",
    }
  `);
}, 120_000);

test('without the last k events of an interrupted run, what is on record as done stays done', async () => {
  await interruptedDiamond();
  const lines = journalLines();
  const restore = snapshot();
  answerAll(rig, names.map(group.claudeId));
  for (let dropped = 0; lines.length - dropped >= 2 + names.length; dropped += 1) {
    restore();
    const kept = lines.slice(0, lines.length - dropped).map((line) => JSON.parse(line));
    const begun = new Set(kept.filter(({ type }) => type === 'session_starting').map(({ sessionId }) => sessionId));
    // `right` died at work and `bottom` never began: those two have to run, whatever is on record.
    const due = names.filter((name) => name === 'right' || name === 'bottom' || !begun.has(group.id(name)));
    expect({ dropped, again: await rerunWithout(dropped, lines) }).toEqual({ dropped, again: due });
    const twice = names.filter((name) => spoken(group, name).results > 1);
    expect({ dropped, twice }).toEqual({ dropped, twice: due.filter((name) => name === 'top' || name === 'left') });
  }
}, 120_000);
