/**
 * Promises: the gate of a login lets one session through at a time, less often as the limit lasts. One episode counts
 * once, and every run knows about a limit that is near.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LimitGate, openLimitGate } from '../../../src/runner/limit-gate.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import type { World } from '../../../src/system/world.ts';

const begin = Date.parse('2026-01-04T14:30:22Z');
let root = '';
let nowMs = begin;
let world: World;
let gate: LimitGate;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'cca gate '));
  nowMs = begin;
  const real = createRealWorld();
  world = { ...real, clock: { ...real.clock, now: () => nowMs } };
  gate = open('run-1');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const open = (runId: string) => openLimitGate(world, { root, key: 'key', runId });
const waitMs = () => (gate.read()?.untilMs ?? 0) - nowMs;

/**
 * Waits for the gate, lets one session through, makes it report, and returns how many seconds the gate then stays
 * closed.
 */
function meetAgain(resetsAtMs: number | undefined): number {
  nowMs = Math.max(nowMs, gate.read()?.untilMs ?? 0);
  expect(gate.claimProbe()).toBe(true);
  gate.close(resetsAtMs, undefined);
  return waitMs() / 1000;
}

test('a reset in the past counts as no reset, and the waits grow', () => {
  gate.close(nowMs - 1_000, 'five_hour');
  expect(waitMs()).toBe(30_000);
  expect([1, 2, 3, 4, 5, 6].map(() => meetAgain(begin - 1_000))).toEqual([60, 120, 240, 480, 900, 900]);
});

test('a reset that always stays just ahead does not cause frequent attempts', () => {
  gate.close(nowMs + 1_000, 'five_hour');
  expect(waitMs()).toBe(1_000);
  const waits = [1, 2, 3, 4].map(() => meetAgain(Math.max(nowMs, gate.read()?.untilMs ?? 0) + 1_000));
  expect(waits).toEqual([30, 60, 120, 240]);
});

test('sessions that meet a usage limit at the same time close the gate once', () => {
  for (let session = 0; session < 6; session += 1) gate.close(undefined, undefined);
  expect(waitMs()).toBe(30_000);
  expect(meetAgain(undefined)).toBe(60);
  nowMs += 10_000;
  for (let session = 0; session < 6; session += 1) gate.close(undefined, undefined);
  expect(waitMs()).toBe(50_000);
});

test('a reset reported by claude replaces a guessed one, and never the other way round', () => {
  gate.close(undefined, undefined);
  gate.close(nowMs + 3_600_000, 'five_hour');
  gate.close(undefined, 'throttled');
  expect(gate.read()).toMatchObject({ untilMs: nowMs + 3_600_000, limitType: 'five_hour' });
});

test('a late report of a limit whose reset has passed does not close the gate again', () => {
  const resetsAtMs = nowMs + 10_000;
  gate.close(resetsAtMs, 'five_hour');
  nowMs = resetsAtMs + 500;
  gate.close(resetsAtMs, 'five_hour');
  expect(gate.read()?.untilMs).toBe(resetsAtMs);
  expect(gate.claimProbe()).toBe(true);
});

test('after the gate opened the next episode starts with the shortest wait', () => {
  gate.close(undefined, undefined);
  meetAgain(undefined);
  gate.open();
  expect(gate.read()).toBeNull();
  gate.close(undefined, undefined);
  expect(waitMs()).toBe(30_000);
});

test('before the reset no run passes the gate, then one at a time, unless that run ends or sends nothing', () => {
  gate.close(nowMs + 60_000, 'five_hour');
  nowMs += 59_999;
  expect(gate.claimProbe()).toBe(false);
  nowMs += 1;
  expect([gate.claimProbe(), open('run-2').claimProbe()]).toEqual([true, false]);
  expect([gate.read()?.probe, open('run-2').read()?.probe]).toEqual(['mine', 'other']);
  nowMs += 10 * 60_000;
  expect(open('run-2').claimProbe()).toBe(true);
  const { processes } = world;
  world = { ...world, processes: { ...processes, isAlive: () => false } };
  expect(open('run-3').read()?.probe).toBe('none');
  expect(open('run-3').claimProbe()).toBe(true);
});
