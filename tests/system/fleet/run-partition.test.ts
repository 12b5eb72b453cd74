/**
 * Promises, with the real claude and a scripted API that every machine reaches: a machine that is cut off from Redis
 * alone stops by itself before its session goes on elsewhere. At no instant two of them ask the model, no cent is lost
 * or counted twice, and the cap holds all the time.
 */
import { afterEach, expect, test } from 'bun:test';
import { attemptMark } from '../../../src/claude/launch/environment.ts';
import type { GroupEvent } from '../../../src/core/event.ts';
import type { Step } from '../../../src/rehearsal/script.ts';
import { type CapturedRequest, type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { expectServed } from '../../support/books.ts';
import { modelOfKnownPrice } from '../../support/claude/rig.ts';
import { pinnedClaude } from '../../support/cli.ts';
import { type CuttableProxy, startProxy } from '../../support/cuttable-proxy.ts';
import { type FleetGround, openGround } from '../../support/fleet-ground.ts';
import { git } from '../../support/git/repository.ts';
import type { RunningGroup } from '../../support/group-fixture.ts';
import { hasRedis } from '../../support/redis-server.ts';
import { until } from '../../support/system/rig.ts';

const partitionTest = test.if(hasRedis);
const cap = 5;
/** Longer than a busy machine may stand still before it is cut off. */
const leaseMs = 6_000;
const stepsMax = 300;

interface Asked {
  /** Name of the machine. */
  readonly from: string;
  readonly request: CapturedRequest;
}

let ground: FleetGround;
let api: ScriptedApi;
let proxy: CuttableProxy;
let asked: Asked[];
/** The most that was spent, reserved and held together when an event was logged. */
let mostUsd: number;
/** The session works until this is set. */
let isEnough: boolean;

afterEach(async () => {
  await ground.close();
  proxy.close();
  await api.stop();
});

/** One session, which calls a tool twice a second, on a machine that can be cut off; another machine waits. */
async function begin(lease = leaseMs): Promise<RunningGroup> {
  [asked, mostUsd, isEnough] = [[], 0, false];
  let from = '';
  const call: Step = { text: 'On.', tool: 'Bash', input: { command: 'echo once >> work.txt; sleep 0.5' } };
  const steps = Array<Step>(stepsMax).fill(call);
  const script = { version: 1 as const, sessions: { '*': { steps }, enough: { steps: [{ text: 'Done.' }] } } };
  api = startScriptedApi({
    script,
    // The machines have bases of their own, which tells them apart.
    nameOf: (_, path) => {
      from = path.split('/')[1] ?? '';
      return isEnough ? 'enough' : undefined;
    },
    onRequest: (request) => asked.push({ from, request }),
  });
  const common = { ANTHROPIC_API_KEY: 'test-key', CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude() };
  const fields = { allowedTools: ['Bash'], model: modelOfKnownPrice };
  ground = await openGround([{ name: 'a', fields }], {
    leaseMs: lease,
    machines: {},
    env: common,
    redis: ['appendonly yes', 'appendfsync everysec'],
    config: { where: 'fleet', maxBudgetUsd: cap, maxConcurrentSessions: 10 },
  });
  proxy = await startProxy(ground.server.port);
  ground.addMachine('one', { redisPort: proxy.port, env: { ANTHROPIC_BASE_URL: `${api.url}/one` } });
  const run = ground.group.run({}, { onEvent: noteMoney });
  // By then its second checkpoint has been made.
  await until(() => asked.length >= 28);
  ground.addMachine('two', { env: { ANTHROPIC_BASE_URL: `${api.url}/two` } });
  return run;
}

function noteMoney(_: GroupEvent): void {
  const { usage, reservedUsd } = ground.group.state();
  mostUsd = Math.max(mostUsd, usage.costUsd + reservedUsd);
}

const of = (machine: string): readonly CapturedRequest[] =>
  asked.flatMap(({ from, request }) => (from === machine ? [request] : []));

/** Without the marks of the cache, which move on with every request. */
function messagesOf(request: CapturedRequest | undefined): readonly string[] {
  const withoutMarks = (name: string, value: unknown) => (name === 'cache_control' ? undefined : value);
  return (request?.body.messages ?? []).map((message) => JSON.stringify(message, withoutMarks));
}

function attempts(): readonly string[] {
  return ground.group.events().flatMap((event) => (event.type === 'session_starting' ? [event.attempt.id] : []));
}

/** The session comes to its end; the books are those of the API, and nothing lives on. */
async function expectWhole(run: RunningGroup): Promise<void> {
  isEnough = true;
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  // All but the last attempt were ended where they stood.
  expectServed(ground.group.state().usage, api.served.total.costUsd, attempts().length - 1);
  expect(mostUsd).toBeLessThanOrEqual(cap);
  expect(api.problems).toEqual([]);
  const left = attempts().flatMap((id) => ground.group.world.processes.findMarked(attemptMark, id));
  expect(left).toEqual([]);
}

/** Those of one machine all lie before those of the other, which goes on with what was said to the first. */
function expectMovedOnce(): void {
  const froms = asked.map(({ from }) => from);
  expect(froms.filter((from, index) => from !== froms[index - 1])).toEqual(['one', 'two']);
  const before = messagesOf(of('one').at(-1));
  const after = messagesOf(of('two')[0]);
  // What came after the last checkpoint is lost, and the model is told so.
  const kept = after.findIndex((message, index) => message !== before[index]);
  expect(kept).toBeGreaterThanOrEqual(4);
  expect(after.slice(kept).join('')).toContain('machine');
}

partitionTest(
  'cut off from Redis alone and healed later: it stops by itself, the session moves, its books come late and are exact',
  async () => {
    const run = await begin();
    proxy.cut();
    const lost = await run.event('session_host_lost');
    expect(lost).toMatchObject({ host: 'one' });
    await until(() => of('two').length >= 3);
    expectMovedOnce();
    const { usage } = ground.group.state();
    expect(usage.heldUsd).toBeGreaterThan(0);
    proxy.heal();
    await run.event('session_booked');
    await expectWhole(run);
    expectMovedOnce();
    const { workspace } = ground.group.state().sessions.get(ground.group.id('a')) ?? {};
    expect(git(ground.group.project('app'), 'show', `${workspace?.branch}:work.txt`)).toContain('once');
  },
  180_000,
);
