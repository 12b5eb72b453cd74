/** The real claude against the scripted API: what fifty sessions take, and how fast a pause and a resume are. */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { GroupEvent } from '../src/core/event.ts';
import type { RehearsalScript } from '../src/rehearsal/script.ts';
import { type CapturedRequest, type ScriptedApi, startScriptedApi } from '../src/rehearsal/scripted-api.ts';
import { createRealWorld } from '../src/system/real-world.ts';
import { pinnedClaude } from '../tests/support/cli.ts';
import { type GroupFixture, makeGroup as makeFixture } from '../tests/support/group-fixture.ts';
import { type Benchmark, type Effort, type Figure, measured } from './support/figures.ts';
import { makeFolder, makeGroupOnDisk } from './support/group-on-disk.ts';
import { measureRun, type RunnerFigures, runnerRows } from './support/runner-process.ts';

const fullSessions = 50;
const quickSessions = 4;
const concurrent = 8;
const lookMs = 5;

export const real: Benchmark = {
  about: ({ isQuick, rounds }) =>
    `${isQuick ? quickSessions : fullSessions} sessions of the real claude, ${concurrent} at a time, three requests ` +
    `each, ${rounds === 1 ? 'once' : `${rounds} times`}; as many pauses.`,
  async run(effort) {
    return [...(await measureSessions(effort)), ...(await measurePauses(effort))];
  },
};

function playing(script: RehearsalScript, onRequest?: (request: CapturedRequest) => void): ScriptedApi {
  const told = onRequest === undefined ? {} : { onRequest };
  return startScriptedApi({ script, nameOf: () => undefined, capture: false, ...told });
}

function claudeEnv(api: ScriptedApi): Record<string, string> {
  return {
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
  };
}

async function measureSessions({ isQuick, rounds }: Effort): Promise<Figure[]> {
  const sessions = isQuick ? quickSessions : fullSessions;
  const runs: RunnerFigures[] = [];
  for (let round = 0; round < rounds; round += 1) runs.push(await runOnce(sessions));
  return runnerRows(runs, sessions);
}

async function runOnce(sessions: number): Promise<RunnerFigures> {
  const step = (command: string) => ({ text: 'Working.', tool: 'Bash', input: { command } });
  const steps = [step('seq 1 300'), step('echo done >> work.txt'), { text: 'The work is done.' }];
  const api = playing({ version: 1, sessions: { '*': { steps } } });
  const folder = makeFolder();
  try {
    const group = makeGroupOnDisk(createRealWorld(), folder, { sessions, fields: { allowedTools: ['Bash'] } });
    const figures = await measureRun(group, claudeEnv(api), concurrent);
    if (api.problems.length > 0) throw new Error(api.problems.join('\n'));
    return figures;
  } finally {
    await api.stop();
    folder.remove();
  }
}

interface Latencies {
  readonly pauseMs: number;
  readonly resumeMs: number;
}

async function measurePauses({ rounds }: Effort): Promise<Figure[]> {
  const latencies: Latencies[] = [];
  for (let round = 0; round < rounds; round += 1) latencies.push(await pauseAndResume());
  const pauses = latencies.map(({ pauseMs }) => pauseMs);
  const resumes = latencies.map(({ resumeMs }) => resumeMs);
  return [
    measured('pause in a tool call, request to group_paused', pauses),
    measured('resume to first API request', resumes),
  ];
}

/** One session that is paused in the middle of a command and then goes on to its end. */
async function pauseAndResume(): Promise<Latencies> {
  const group = makeFixture([{ name: 'one', fields: { allowedTools: ['Bash'] } }]);
  const begun = join(group.project('one'), 'begun');
  mkdirSync(group.project('one'), { recursive: true });
  // The model asks for it again after the pause; then it is quick.
  const command = 'test -e begun || { touch begun; sleep 60; }';
  let requestedMs = Number.NaN;
  const script = { version: 1 as const, sessions: { '*': { steps: [tool(command), { text: 'Done.' }] } } };
  const api = playing(script, () => {
    if (Number.isNaN(requestedMs)) requestedMs = performance.now();
  });
  try {
    const pauseMs = await pauseAfter(group, claudeEnv(api), begun);
    requestedMs = Number.NaN;
    const resumeAt = performance.now();
    const { kind } = await group.run(claudeEnv(api)).result;
    if (kind !== 'settled') throw new Error(`the resumed run was ${kind}`);
    return { pauseMs, resumeMs: requestedMs - resumeAt };
  } finally {
    await api.stop();
    group.remove();
  }
}

function tool(command: string) {
  return { text: 'Working.', tool: 'Bash', input: { command } };
}

/** Runs until the file is there, then asks for a pause as another process would; milliseconds until it is logged. */
async function pauseAfter(group: GroupFixture, env: Readonly<Record<string, string>>, begun: string): Promise<number> {
  let pausedMs = Number.NaN;
  const onEvent = ({ type }: GroupEvent) => {
    if (type === 'group_paused') pausedMs = performance.now();
  };
  const running = group.run(env, { onEvent });
  while (!existsSync(begun)) await Bun.sleep(lookMs);
  const askedMs = performance.now();
  await running.ask({ kind: 'pause', mode: 'now' });
  await running.result;
  if (Number.isNaN(pausedMs)) throw new Error('the group did not pause');
  return pausedMs - askedMs;
}
