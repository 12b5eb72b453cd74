/**
 * Promises, with the real claude, for each context system: after an automatic compaction, after a pause, and after
 * runner and worker were killed, the model's next request contains the session's own state and its task.
 */
import { afterEach, expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bash, ContextGround, compacted, said, systems } from '../../support/claude/context-rig.ts';
import { until } from '../../support/cli.ts';
import { sampled } from '../../support/long.ts';

let ground: ContextGround;
afterEach(() => ground.close());

// In a short run the other systems are tested in context-two.test.ts.
test.each(sampled(['handover', 'cpm', 'faber'] as const, systems.length))(
  '%s: state and task return after a compaction',
  async (system) => {
    ground = new ContextGround({ systems: [system], steps: compacted });
    const { group, api, env } = ground;
    const mark = `the ${system} state of a`;
    ground.place(system, 'a', mark);
    expect(await group.run(env).result).toMatchObject({ kind: 'settled', status: 'completed' });
    expect(api.requests.filter(({ kind }) => kind === 'summary')).toHaveLength(1);
    const after = ground.asked('a').at(-1);
    expect(after).toContain('The conversation was compacted. Your task');
    expect(after).toContain(mark);
    const { warnings } = group.state().sessions.get(group.id('a')) ?? { warnings: [] };
    expect(warnings).toEqual([]);
  },
  60_000,
);

test.each(sampled(systems.toReversed(), systems.length))(
  '%s: state and task return after a pause and after a kill',
  async (system) => {
    const wait = (name: string) => bash(`touch ${name}; [ -e go-${name} ] || sleep 60`);
    ground = new ContextGround({ systems: [system], steps: [wait('first'), wait('second'), { text: 'done' }] });
    const { group, api, env } = ground;
    const mark = `the ${system} state of a`;
    ground.place(system, 'a', mark);
    const begun = (name: string) => until(() => existsSync(join(group.project('shared'), name)));
    const run = group.run(env);
    await begun('first');
    await run.ask({ kind: 'pause', mode: 'now' });
    expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
    ground.write('go-first', '');

    const before = api.requests.length;
    const second = group.run(env);
    await begun('second');
    const resumed = said(api.requests[before]);
    expect(resumed).toContain('do a');
    expect(resumed).toContain(mark);
    // Both at once, as at a power loss.
    const session = group.state().sessions.get(group.id('a'))?.state;
    if (session?.status !== 'running' || !session.attempt.process) throw new Error('nothing runs');
    second.signal('SIGHUP');
    await second.result;
    process.kill(session.attempt.process.pid, 'SIGKILL');
    ground.write('go-second', '');

    const asked = api.requests.length;
    expect(await group.run(env).result).toMatchObject({ kind: 'settled', status: 'completed' });
    expect(said(api.requests[asked])).toContain('do a');
    expect(said(api.requests[asked])).toContain(mark);
  },
  60_000,
);

test('CLAUDE.md names the progress file, and hooks.log records every call', async () => {
  ground = new ContextGround({ systems: ['cpm', 'handover'], steps: [{ text: 'done' }] });
  const { group, api, env } = ground;
  expect(await group.run(env).result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(said(api.requests[0])).toContain(`docs/plans/.cpm-progress-${group.claudeId('a')}.md`);
  const lines = readFileSync(join(group.session('a').folder, 'hooks.log'), 'utf8')
    .trim()
    .split('\n');
  const calls = lines.map((line) => JSON.parse(line) as { system: string; event: string });
  for (const system of ['task', 'cpm', 'handover']) {
    expect(calls).toContainEqual(expect.objectContaining({ system, event: 'session-start', source: 'startup' }));
  }
}, 60_000);
