/**
 * Promises, with the real claude and a scripted API: runner and workers are killed several times in a run at random
 * moments, and the next command completes the group. No conversation is restarted, no process is left, and spent and
 * held money together cover what the API served. `TEST_KILLS=200` runs more than the usual few kills.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import type { RehearsalScript } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { modelOfKnownPrice } from '../../support/claude/rig.ts';
import { pinnedClaude } from '../../support/cli.ts';
import { markedProcesses, Runners, removeGroup } from '../../support/crash-rig.ts';
import { draw, testSeed } from '../../support/draw.ts';
import { type GroupFixture, makeGroup } from '../../support/group-fixture.ts';

const killsEach = 4;
const seeds = Math.ceil(Number(process.env.TEST_KILLS ?? 12) / killsEach);
/** About the duration of a run of three sessions. */
const longestMs = 2_500;
const names = ['one', 'two', 'three'];

const steps = (name: string) => [
  { text: 'Working.', tool: 'Bash', input: { command: `sleep 0.2; echo ran >> ${name}.txt` } },
  { text: 'Still working.', tool: 'Bash', input: { command: `sleep 0.2; echo again >> ${name}.txt` } },
  { text: `${name} is done` },
];
const script: RehearsalScript = {
  version: 1,
  sessions: Object.fromEntries(names.map((name) => [name, { steps: steps(name) }])),
};

let api: ScriptedApi;
let group: GroupFixture;
let runners: Runners;
beforeEach(() => {
  const fields = { allowedTools: ['Bash'], model: modelOfKnownPrice, retries: 5 };
  group = makeGroup([
    { name: 'one', fields },
    { name: 'two', after: ['one'], fields },
    { name: 'three', after: ['one'], fields },
  ]);
  const known = new Map(names.map((name) => [group.claudeId(name), name]));
  api = startScriptedApi({ script, nameOf: (id) => known.get(id) });
  runners = new Runners(group, {
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
  });
});
afterEach(async () => {
  await api.stop();
  removeGroup(group);
});

/** Kills the runner after a random time, in every second case with all its workers. */
async function runAndKill(seed: number, nth: number): Promise<void> {
  const run = runners.start();
  await Promise.race([run.finished, Bun.sleep(draw(seed, nth, longestMs))]);
  if (draw(seed, nth + 100, 2) === 0) for (const pid of markedProcesses(group)) endQuietly(pid);
  run.kill('SIGKILL');
  await run.finished;
}

function endQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has just exited by itself.
  }
}

test.each(Array.from({ length: seeds }, (_, index) => index + testSeed))(
  `${killsEach} kills, seed %d`,
  async (seed) => {
    for (let nth = 0; nth < killsEach; nth += 1) await runAndKill(seed, nth);
    const { code } = await runners.start().finished;
    const { status, sessions, usage } = group.state();
    expect({ code: code === 0 || status === 'completed', status }).toEqual({ code: true, status: 'completed' });
    expect(api.problems).toEqual([]);
    for (const name of names) {
      // A killed tool is not repeated: the model would see in the next request what is missing.
      const asked = api.requests.filter((request) => request.name === name && request.kind === 'step');
      expect(new Set(asked.map(({ step }) => step))).toEqual(new Set([0, 1, 2]));
      expect(sessions.get(group.id(name))?.claudeSessionIds).toEqual([group.claudeId(name)]);
    }
    // Sums of cents are inexact in binary floating point.
    expect(usage.costUsd).toBeGreaterThanOrEqual(api.served.total.costUsd - 1e-6);
    expect(markedProcesses(group)).toEqual([]);
  },
  120_000,
);
