/**
 * Promises: the late usage of a lost host is the cost of its attempt only, even if the session has continued the same
 * conversation on another host.
 */
import { expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Attempt, SessionRecord } from '../../../src/core/session-state.ts';
import { lateUsage } from '../../../src/runner/remote-attempts.ts';
import { groupPaths, lateFolder, sessionPaths } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { groupId, sid } from '../../support/core-events.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const model = 'claude-opus-4-8';
const talk = 'talk';
const startedAt = '2026-11-24T10:00:00.000Z';
const at = (minute: number) => `2026-11-24T10:${String(minute).padStart(2, '0')}:00.000Z`;
const said = (id: string, minute: number, output: number) => ({
  ...{ type: 'assistant', timestamp: at(minute), session_id: talk },
  message: { id, model, content: [], usage: { input_tokens: 1_000, output_tokens: output } },
});
const ended = (usd: number) => ({ type: 'cost-state', totalCostUSD: usd, modelUsage: {} });
const init = { type: 'system', subtype: 'init', session_id: talk, model, claude_code_version: '2.1.332' };
const lines = (...all: readonly object[]) => all.map((line) => `${JSON.stringify(line)}\n`).join('');

const attempt = { id: 'a', number: 1, startedAt, identified: true, kind: 'start', offset: 0 } as unknown as Attempt;
const record = { definition: { id: sid(1) }, claudeSessionIds: [talk], lost: [] } as unknown as SessionRecord;

const folder = withTempFolder();

const own = () => sessionPaths(groupPaths(folder.path, groupId), sid(1));
const lateOf = () => join(lateFolder(own(), attempt.id), 'claude-config');

function put(path: string, text: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

/** `printed` is the output that arrived late, `late` the rest of the conversation, `here` what its folder holds. */
function cost(printed: string, late: string, here: string) {
  const paths = own();
  put(join(paths.config, 'projects', 'p', `${talk}.jsonl`), here);
  if (late !== '') put(join(lateOf(), 'projects', 'late', `${talk}.jsonl`), late);
  const path = put(join(folder.path, 'printed'), printed);
  return lateUsage(createRealWorld(), { record, attempt, paths, path, prices: {} });
}

const since = lines(said('b', 20, 9_000), ended(0.5));

test('late usage excludes what the session has spent on another host since', () => {
  const { costUsd, heldUsd = 0 } = cost(lines(init, said('a', 1, 400)), lines(said('a', 1, 400)), since);
  expect(costUsd - heldUsd).toBeCloseTo(0.015, 9);
});

test('late usage includes messages of sub-agents', () => {
  const agent = join(lateOf(), 'projects', 'late', talk, 'subagents', 'agent-1.jsonl');
  put(agent, lines(said('sub', 2, 1_000)));
  const { costUsd, heldUsd = 0 } = cost(lines(init, said('a', 1, 400)), lines(said('a', 1, 400)), since);
  expect(costUsd - heldUsd).toBeCloseTo(0.045, 9);
});

test("late usage excludes later spending even if the attempt's output is lost", () => {
  const { costUsd, heldUsd = 0 } = cost('', lines(said('a', 1, 400)), since);
  expect(costUsd - heldUsd).toBeCloseTo(0.015, 9);
});

test('late usage includes the final totals that claude wrote when it ended', () => {
  const { costUsd, estimated } = cost(lines(init, said('a', 1, 1)), lines(said('a', 1, 400), ended(0.07)), since);
  expect([costUsd, estimated]).toEqual([0.07, undefined]);
});
