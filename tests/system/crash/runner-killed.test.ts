/**
 * Promises, with the real claude: the runner is killed by `kill -9` in the middle of a tool call, the worker continues,
 * and the next `group run` adopts it. Requests arrive once, side effects happen once, the total is what was served, and
 * no process is left. An adopted session can be paused, metered and resumed.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RehearsalScript } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { modelOfKnownPrice } from '../../support/claude/rig.ts';
import { pinnedClaude, TestHome, until } from '../../support/cli.ts';

/** A tool that leaves a trace, then runs until the test ends it. */
const heldTool = (trace: string) => ({
  tool: 'Bash',
  input: { command: `echo ran >> ${trace}; until [ -e go ]; do sleep 0.05; done; echo released`, timeout: 600_000 },
});

const script: RehearsalScript = {
  version: 1,
  sessions: {
    one: { steps: [{ text: 'Working.', ...heldTool('one.txt') }, { text: 'one is done' }] },
    two: {
      steps: [{ text: 'Next.', tool: 'Bash', input: { command: 'echo ran >> two.txt' } }, { text: 'two is done' }],
    },
  },
};

let machine: TestHome;
let api: ScriptedApi;
let names: Map<string, string>;

beforeEach(() => {
  names = new Map();
  api = startScriptedApi({ script, nameOf: (id) => names.get(id) });
  machine = new TestHome({
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
  });
});
afterEach(async () => {
  await api.stop();
  machine.remove();
});

interface Shown {
  readonly status: string;
  readonly progress: { readonly totalCost: number; readonly sessions: readonly { readonly status: string }[] };
}

async function makeGroup(): Promise<string> {
  const group = await machine.ok('group', 'create', 'crash');
  const add = async (name: string, ...more: string[]) => {
    const allow = ['--allowed-tools', 'Bash', '--model', modelOfKnownPrice];
    const project = ['--project', machine.project(name), '--prompt', `do ${name}`, '--name', name];
    const id = await machine.ok('session', 'add', group, ...project, ...allow, ...more);
    names.set(id.slice(4), name);
  };
  await add('one');
  await add('two', '--depends-on', 'one');
  return group;
}

const trace = (name: string) => join(machine.project(name), `${name}.txt`);
const release = () => writeFileSync(join(machine.project('one'), 'go'), '');

/** Pids of live processes that carry the mark of an attempt of this test's data root. */
function workersAlive(): number[] {
  const world = createRealWorld();
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
        return environment.includes('CLAUDE_CODE_AGENT_ATTEMPT=') && environment.includes(machine.data);
      } catch {
        return false;
      }
    })
    .filter((pid) => world.processes.identify(pid) !== null);
}

/** Starts a run and kills the runner with SIGKILL once the tool of session one runs. */
async function killRunnerInTool(group: string): Promise<void> {
  const first = machine.start('group', 'run', group, '--output', 'quiet');
  await until(() => existsSync(trace('one')));
  first.kill('SIGKILL');
  await first.finished;
}

test('the worker finishes, the next run adopts it, and nothing happens twice', async () => {
  const group = await makeGroup();
  await killRunnerInTool(group);
  expect(workersAlive().length).toBeGreaterThan(0);
  release();

  const second = await machine.run('group', 'run', group, '--output', 'json');
  expect(second).toMatchObject({ code: 0 });
  const types = second.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).type);
  expect(types).toContain('session_adopted');
  expect(readFileSync(trace('one'), 'utf8')).toBe('ran\n');
  expect(readFileSync(trace('two'), 'utf8')).toBe('ran\n');
  const firstRequests = api.requests.filter((request) => request.step === 0).map((request) => request.name);
  expect(firstRequests.sort()).toEqual(['one', 'two']);
  expect(api.problems).toEqual([]);
  const shown = await machine.json<Shown>('group', 'show', group);
  expect(shown.progress.totalCost).toBeCloseTo(api.served.total.costUsd, 6);
  expect(workersAlive()).toEqual([]);
}, 60_000);

test('an adopted worker is paused with its cost known, and resumed in the same conversation', async () => {
  const group = await makeGroup();
  await killRunnerInTool(group);
  const second = machine.start('group', 'run', group, '--output', 'json');
  const events = join(machine.data, 'session-groups', group, 'events.jsonl');
  await until(() => readFileSync(events, 'utf8').includes('session_adopted'));
  second.kill('SIGTERM');
  expect(await second.finished).toMatchObject({ code: 3 });
  expect(workersAlive()).toEqual([]);
  const paused = await machine.json<Shown>('group', 'show', group);
  expect(paused.status).toBe('paused');
  expect(paused.progress.totalCost).toBeCloseTo(api.served.total.costUsd, 6);
  expect(paused.progress.totalCost).toBeGreaterThan(0);

  release();
  const third = await machine.run('group', 'run', group, '--output', 'quiet');
  expect(third).toMatchObject({ code: 0 });
  const resumed = api.requests.filter((request) => request.name === 'one')[1];
  expect(JSON.stringify(resumed?.body.messages)).toContain('do one');
  expect(JSON.stringify(resumed?.body.messages)).toContain('No one rejected anything');
  const shown = await machine.json<Shown>('group', 'show', group);
  expect(shown.progress.totalCost).toBeCloseTo(api.served.total.costUsd, 6);
  expect(workersAlive()).toEqual([]);
}, 60_000);

test('a runner killed during a rehearsal leaves its scripted API, and the next one ends it', async () => {
  const group = await makeGroup();
  const file = join(machine.folder, 'script.yaml');
  writeFileSync(file, JSON.stringify(script));
  const first = machine.start('group', 'run', group, '--rehearse', file, '--output', 'quiet');
  await until(() => existsSync(trace('one')));
  first.kill('SIGKILL');
  await first.finished;
  release();
  const second = await machine.run('group', 'run', group, '--rehearse', file, '--output', 'quiet');
  expect(second).toMatchObject({ code: 0 });
  expect(readFileSync(trace('one'), 'utf8')).toBe('ran\n');
  expect(existsSync(join(machine.data, 'session-groups', group, 'rehearsal.json'))).toBe(false);
  expect(api.requests).toEqual([]);
  expect(workersAlive()).toEqual([]);
}, 60_000);
