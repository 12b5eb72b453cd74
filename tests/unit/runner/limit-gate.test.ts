/**
 * Promises: whatever sessions report, the login's gate lets through one session at a time, and ever more rarely while
 * the limit holds; one episode counts once, and a limit that is near is remembered by all runs.
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

/** Waits for the gate, lets one session through and has it report; how long the gate is closed then, seconds. */
function meetAgain(resetsAtMs: number | undefined): number {
  nowMs = Math.max(nowMs, gate.read()?.untilMs ?? 0);
  expect(gate.claimProbe()).toBe(true);
  gate.close(resetsAtMs, undefined);
  return waitMs() / 1000;
}

test('a reset that is over counts as none: the waits grow', () => {
  gate.close(nowMs - 1_000, 'five_hour');
  expect(waitMs()).toBe(30_000);
  expect([1, 2, 3, 4, 5, 6].map(() => meetAgain(begin - 1_000))).toEqual([60, 120, 240, 480, 900, 900]);
});

test('a reset that is always just about to come does not let sessions hammer', () => {
  gate.close(nowMs + 1_000, 'five_hour');
  expect(waitMs()).toBe(1_000);
  const waits = [1, 2, 3, 4].map(() => meetAgain(Math.max(nowMs, gate.read()?.untilMs ?? 0) + 1_000));
  expect(waits).toEqual([30, 60, 120, 240]);
});

test('sessions that meet a limit at the same time close the gate once', () => {
  for (let session = 0; session < 6; session += 1) gate.close(undefined, undefined);
  expect(waitMs()).toBe(30_000);
  expect(meetAgain(undefined)).toBe(60);
  nowMs += 10_000;
  for (let session = 0; session < 6; session += 1) gate.close(undefined, undefined);
  expect(waitMs()).toBe(50_000);
});

test('a reset that claude names takes the place of a guess, and no guess takes its place', () => {
  gate.close(undefined, undefined);
  gate.close(nowMs + 3_600_000, 'five_hour');
  gate.close(undefined, 'throttled');
  expect(gate.read()).toMatchObject({ untilMs: nowMs + 3_600_000, limitType: 'five_hour' });
});

test('who reports late a limit whose reset is over does not close the gate again', () => {
  const resetsAtMs = nowMs + 10_000;
  gate.close(resetsAtMs, 'five_hour');
  nowMs = resetsAtMs + 500;
  gate.close(resetsAtMs, 'five_hour');
  expect(gate.read()?.untilMs).toBe(resetsAtMs);
  expect(gate.claimProbe()).toBe(true);
});

test('after it was opened the next episode begins with the shortest wait', () => {
  gate.close(undefined, undefined);
  meetAgain(undefined);
  gate.open();
  expect(gate.read()).toBeNull();
  gate.close(undefined, undefined);
  expect(waitMs()).toBe(30_000);
});

test('that a limit is near is known to every run until its window ends, whatever becomes of the gate', () => {
  expect(gate.isNear()).toBe(false);
  gate.noteNear(nowMs + 60_000);
  expect(gate.read()).toBeNull();
  gate.close(nowMs + 10_000, undefined);
  gate.open();
  expect(gate.read()).toBeNull();
  expect(open('run-2').isNear()).toBe(true);
  nowMs += 60_000;
  expect(gate.isNear()).toBe(false);
});

test('nobody is let through before the reset, then one run alone, unless it is gone or sends nothing', () => {
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
