/** Checks after a fault on the hosts of a group: each session once, paid exactly, nothing left. */
import { expect } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sessionUuid } from '../../src/core/id.ts';
import { fleetPaths } from '../../src/fleet/fleet-files.ts';
import { firstMessageUsd } from './books.ts';
import { until } from './cli.ts';
import { markedProcesses } from './crash-rig.ts';
import {
  type ChaosFault,
  type ChaosResult,
  describe,
  keysLeft,
  runChaos,
  stepsOfEach,
  storyOf,
} from './fleet-chaos.ts';
import { git } from './git/repository.ts';
import { type Noted, stepUsd } from './stepping-claude.ts';

/** The last message is dropped a moment later. */
const looksMax = 100;

/** Runs the whole scenario. `opened` gets the function that ends the group and its hosts, even after a failure. */
export async function expectAllOnce(trouble: ChaosFault, opened: (close: () => Promise<void>) => void): Promise<void> {
  let story = (): string => '';
  try {
    const result = await runChaos(trouble, (ground, closing) => {
      opened(closing);
      story = () => storyOf(ground);
    });
    await expectOnce(result);
  } catch (error) {
    throw new Error(`${describe(trouble)}\n${story()}`, { cause: error });
  }
}

const numbersOf = (noted: readonly Noted[], word: Noted['word']): readonly number[] =>
  noted.flatMap((one) => (one.word === word ? [one.numbers[0] ?? 0] : []));

async function expectOnce({ ground, noted, trouble }: ChaosResult): Promise<void> {
  const { group, machines } = ground;
  const events = group.events();
  const state = group.state();
  expect(state.status).toBe('completed');
  // Two at one time, a conversation that was started twice, or a missing one.
  expect(noted.filter(({ word }) => ['second', 'again', 'forgot'].includes(word))).toEqual([]);
  const lost = new Set(events.flatMap((event) => (event.type === 'session_host_lost' ? [event.attemptId] : [])));
  for (const [id, { workspace }] of state.sessions) {
    expect(events.filter((event) => event.type === 'session_completed' && event.sessionId === id)).toHaveLength(1);
    const uuid = sessionUuid(id);
    const own = noted.filter(({ claudeSessionId }) => claudeSessionId === uuid);
    const written = git(group.project('app'), 'show', `${workspace?.branch}:${uuid}.txt`).split('\n').map(Number);
    expectWork(own, written, lost);
  }
  await until(() => markedProcesses(ground.group).length === 0);
  expectPaid(ground);
  for (const { root } of Object.values(machines)) await until(() => readdirSync(fleetPaths(root).slots).length === 0);
  // Data that returned with an old Redis belongs to no session any more.
  if (trouble.kind !== 'redis as it was') {
    for (let looks = 0; keysLeft(ground).length > 0 && looks < looksMax; looks += 1) await Bun.sleep(100);
    expect(keysLeft(ground)).toEqual([]);
  }
  expect(git(group.project('app'), 'for-each-ref', 'refs/claude-code-agent')).toBe('');
}

function expectWork(own: readonly Noted[], written: readonly number[], lost: ReadonlySet<string>): void {
  const steps = Array.from({ length: stepsOfEach }, (_, index) => index + 1);
  const repeated = new Set<number>();
  let before: readonly Noted[] = [];
  for (const begin of own.filter(({ word }) => word === 'begin')) {
    const [done = 0, asked = 0] = begin.numbers;
    const did = Math.max(0, ...numbersOf(before, 'did'));
    // A session of a lost host continues from its last checkpoint; any other continues where it was, and its
    // interrupted step may have been finished unrecorded.
    if (before.length > 0 && !lost.has(before[0]?.attemptId ?? '')) expect([did, did + 1]).toContain(done);
    if (asked > done) repeated.add(done + 1);
    before = own.filter(({ attemptId }) => attemptId === begin.attemptId);
  }
  const counts = steps.map((step) => written.filter((one) => one === step).length);
  expect({
    written,
    isWhole: counts.every((count, index) => count === 1 || (count > 1 && repeated.has(index + 1))),
  }).toEqual({
    written: written.toSorted((a, b) => a - b),
    isWhole: true,
  });
  expect(written.filter((step) => !steps.includes(step))).toEqual([]);
}

/** The output of its claudes on all hosts, which shows the model's requests. */
function expectPaid({ group, machines }: ChaosResult['ground']): void {
  let asked = 0;
  for (const { root } of Object.values(machines)) {
    const sessions = join(fleetPaths(root).work, 'session-groups', group.groupId, 'sessions');
    const folders = (() => {
      try {
        return readdirSync(sessions);
      } catch {
        return [];
      }
    })();
    for (const id of folders) {
      const path = join(sessions, id, 'transcript.jsonl');
      // It may have been ordered here and started on another host.
      const transcript = existsSync(path) ? readFileSync(path, 'utf8') : '';
      asked += transcript.split('\n').filter((line) => line.includes('"type":"assistant"')).length;
    }
  }
  const { usage, reservedUsd } = group.state();
  const { costUsd, heldUsd = 0 } = usage;
  expect(reservedUsd).toBeCloseTo(0, 9);
  // For a killed claude one more message is held, whether it was requested or not.
  const attempts = group.events().filter(({ type }) => type === 'session_starting').length;
  expect(heldUsd).toBeLessThanOrEqual((attempts - 1) * firstMessageUsd);
  expect(costUsd - heldUsd).toBeCloseTo(asked * stepUsd, 9);
}
