/**
 * Promises, with the real claude, a scripted API and a real Redis: a runner killed at any step of an attempt on another
 * machine costs nothing twice: the next one goes on with what is there, every step is requested once, side effects
 * happen once, and nothing is left on the machine.
 */
import { afterEach, expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { fleetPaths } from '../../../src/fleet/fleet-files.ts';
import type { RehearsalScript } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { modelOfKnownPrice } from '../../support/claude/rig.ts';
import { pinnedClaude, until } from '../../support/cli.ts';
import { Runners } from '../../support/crash-rig.ts';
import { type FleetGround, openGround } from '../../support/fleet-ground.ts';
import { git } from '../../support/git/repository.ts';
import { sampled } from '../../support/long.ts';
import { hasRedis } from '../../support/redis-server.ts';

const script: RehearsalScript = {
  version: 1,
  sessions: {
    one: {
      steps: [{ text: 'Working.', tool: 'Bash', input: { command: 'echo ran >> one.txt' } }, { text: 'one is done' }],
    },
  },
};

let api: ScriptedApi;
let ground: FleetGround;
afterEach(async () => {
  await ground.close();
  await api.stop();
});

const moments = [
  { at: 'after log session_identified' },
  // Until its lease is over nobody knows whether the machine has begun.
  { at: 'after log session_starting' },
  { at: 'before log session_started' },
  { at: 'after log session_started' },
  { at: 'before log session_accepting' },
  { at: 'after log session_accepting' },
  { at: 'before log session_completed' },
] as const;

test.if(hasRedis).each(sampled(moments, 7))(
  'killed $at',
  async (crash) => {
    const names = new Map<string, string>();
    api = startScriptedApi({ script, nameOf: (id) => names.get(id) });
    const fields = { allowedTools: ['Bash'], model: modelOfKnownPrice, accept: 'test -f one.txt' };
    ground = await openGround([{ name: 'one', fields }], {
      machines: { far: {} },
      env: { CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude() },
      login: { ANTHROPIC_BASE_URL: api.url, ANTHROPIC_API_KEY: 'test-key' },
      config: { where: 'fleet', maxBudgetUsd: 10 },
    });
    const { group, machines } = ground;
    names.set(group.claudeId('one'), 'one');
    const env = {
      CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
      ANTHROPIC_API_KEY: 'test-key',
      ANTHROPIC_BASE_URL: api.url,
    };
    const runners = new Runners(group, env);
    await runners.crash(crash);
    await runners.complete();
    expect(api.problems).toEqual([]);
    expect(api.requests.map(({ step }) => step)).toEqual([0, 1]);
    const { workspace } = group.state().sessions.get(group.id('one')) ?? {};
    expect(git(group.project('app'), 'show', `${workspace?.branch}:one.txt`)).toBe('ran');
    expect(group.state().usage.costUsd).toBeCloseTo(api.served.total.costUsd, 6);
    await until(() => readdirSync(fleetPaths(machines.far?.root ?? '').slots).length === 0);
  },
  120_000,
);
