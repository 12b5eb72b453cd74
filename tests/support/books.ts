/** What is counted against what the scripted API served. */
import { expect } from 'bun:test';
import type { Usage } from '../../src/core/group.ts';

/** What an answer costs of which a script says nothing else. */
const answerUsd = 0.01;

/**
 * Not a cent is lost, and none is counted that was not served. Of each of the `ended` attempts one answer may be held:
 * those that were ended right behind it, before claude had written it down.
 */
export function expectServed({ costUsd, heldUsd = 0 }: Usage, servedUsd: number, ended = 0): void {
  const tolerance = 5e-7;
  expect(heldUsd).toBeLessThanOrEqual(ended * answerUsd + tolerance);
  expect(costUsd).toBeGreaterThanOrEqual(servedUsd - tolerance);
  expect(costUsd - heldUsd).toBeLessThanOrEqual(servedUsd + tolerance);
}
