/**
 * Promises, with the real claude and a scripted API: a runner killed before the prompt, before the first line, or
 * after the result but before it is logged, costs nothing twice: every step is requested once, side effects happen
 * once, the total is what was served, nothing is left running.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RehearsalScript } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { modelOfKnownPrice } from '../../support/claude/rig.ts';
import { pinnedClaude } from '../../support/cli.ts';
import { Runners, removeGroup } from '../../support/crash-rig.ts';
import { type GroupFixture, makeGroup } from '../../support/group-fixture.ts';
import { sampled } from '../../support/long.ts';

const steps = (name: string) => [
  { text: 'Working.', tool: 'Bash', input: { command: `echo ran >> ${name}.txt` } },
  { text: `${name} is done` },
];
const script: RehearsalScript = {
  version: 1,
  sessions: { one: { steps: steps('one') }, two: { steps: steps('two') } },
};

let api: ScriptedApi;
let group: GroupFixture;
beforeEach(() => {
  const fields = { allowedTools: ['Bash'], model: modelOfKnownPrice };
  group = makeGroup([
    { name: 'one', fields },
    { name: 'two', after: ['one'], fields },
  ]);
  const names = new Map(['one', 'two'].map((name) => [group.claudeId(name), name]));
  api = startScriptedApi({ script, nameOf: (id) => names.get(id) });
});
afterEach(async () => {
  await api.stop();
  removeGroup(group);
});

const moments = [
  { at: 'after log session_started', starts: 3 },
  // Stopped, so that it cannot say anything before the next runner looks.
  { at: 'after prompt', how: 'frozen', starts: 3 },
  { at: 'before log session_completed', starts: 2 },
] as const;

test.each(sampled(moments, 3))(
  'killed $at',
  async ({ starts, ...crash }) => {
    const runners = new Runners(group, {
      ANTHROPIC_BASE_URL: api.url,
      ANTHROPIC_API_KEY: 'test-key',
      CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
    });
    await runners.crash(crash);
    await runners.complete();
    expect(api.problems).toEqual([]);
    const requests = api.requests.map(({ name, step }) => `${name} ${step}`);
    expect(requests).toEqual(['one 0', 'one 1', 'two 0', 'two 1']);
    for (const name of ['one', 'two']) {
      expect(readFileSync(join(group.project(name), `${name}.txt`), 'utf8')).toBe('ran\n');
    }
    expect(group.state().usage.costUsd).toBeCloseTo(api.served.total.costUsd, 6);
    expect(group.events().filter(({ type }) => type === 'session_starting').length).toBe(starts);
  },
  120_000,
);
