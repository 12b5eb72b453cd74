/**
 * Promises: the late usage of a lost host is the cost of its attempt only, even if the session has continued the same
 * conversation on another host.
 */
import { expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Attempt, SessionRecord } from '../../../src/core/session-state.ts';
import { lateUsage } from '../../../src/runner/remote-attempts.ts';
import { groupPaths, sessionPaths } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { groupId, sid } from '../../support/core-events.ts';
import { resultLine } from '../../support/fake-claude-rig.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const model = 'claude-opus-4-8';
const talk = 'talk';
const startedAt = '2026-11-24T10:00:00.000Z';
const said = (id: string, output: number) => ({
  ...{ type: 'assistant', timestamp: '2026-11-24T10:01:00.000Z', session_id: talk },
  message: { id, model, content: [], usage: { input_tokens: 1_000, output_tokens: output } },
});
const ended = (usd: number) => ({ type: 'cost-state', totalCostUSD: usd, modelUsage: {} });
const init = { type: 'system', subtype: 'init', session_id: talk, model, claude_code_version: '2.1.332' };
const lines = (...all: readonly object[]) => all.map((line) => `${JSON.stringify(line)}\n`).join('');

const attempt = { id: 'a', number: 1, startedAt, identified: true, kind: 'start', offset: 0 } as unknown as Attempt;
const record = { definition: { id: sid(1) }, claudeSessionIds: [talk], lost: [] } as unknown as SessionRecord;

const folder = withTempFolder();

function put(path: string, text: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

/** `printed` is the output that arrived late. Meanwhile the session has continued here. */
function cost(printed: string) {
  const paths = sessionPaths(groupPaths(folder.path, groupId), sid(1));
  put(join(paths.config, 'projects', 'p', `${talk}.jsonl`), lines(said('b', 9_000), ended(0.5)));
  const path = put(join(folder.path, 'printed'), printed);
  return lateUsage(createRealWorld(), { record, attempt, paths, path, prices: {} });
}

test('late usage is that of the printed messages, and money is held for the last one', () => {
  const { costUsd, heldUsd = 0 } = cost(lines(init, said('a', 400)));
  expect(costUsd - heldUsd).toBeCloseTo(0.015, 9);
  expect(heldUsd).toBeGreaterThan(0);
});

test('late usage is what claude reported at its end', () => {
  const { costUsd, estimated } = cost(lines(init, said('a', 1), { session_id: talk, ...resultLine(0.07) }));
  expect([costUsd, estimated]).toEqual([0.07, undefined]);
});
