/**
 * Promises, through the runner and with the real claude, for each context system: when somebody compacts the
 * conversation of a paused session by hand, with a real `/compact` in its own config dir, the first request after the
 * group goes on holds the session's own state and its task.
 */
import { afterEach, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { bash, ContextGround, said, systems } from '../../support/claude/context-rig.ts';
import { pinnedClaude, until } from '../../support/cli.ts';

let ground: ContextGround;
afterEach(() => ground.close());

/** As a person would do it: no mark of a worker, and the folder and config dir of the session. */
async function compactByHand({ group, env }: ContextGround): Promise<string> {
  const args = ['-p', '--model', 'claude-sonnet-4-5', '--resume', group.claudeId('a'), '--', '/compact'];
  const child = Bun.spawn([pinnedClaude(), ...args], {
    cwd: group.project('shared'),
    env: {
      PATH: process.env.PATH ?? '',
      HOME: group.folder,
      ANTHROPIC_BASE_URL: env.ANTHROPIC_BASE_URL,
      ANTHROPIC_API_KEY: 'test-key',
      CLAUDE_CONFIG_DIR: join(group.session('a').folder, 'claude-config'),
      DISABLE_AUTOUPDATER: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  expect(await child.exited).toBe(0);
  return `${stdout}${stderr}`;
}

test.each(systems)(
  '%s: state and task come back after a /compact between a pause and a resume',
  async (system) => {
    const wait = bash('touch began; [ -e go ] || sleep 60');
    ground = new ContextGround({
      systems: [system],
      steps: [bash('echo one'), bash('echo two'), wait, { text: 'done' }],
    });
    const { group, api, env } = ground;
    const mark = `the ${system} state of a`;
    ground.place(system, 'a', mark);
    const run = group.run(env);
    await until(() => existsSync(join(group.project('shared'), 'began')));
    await run.ask({ kind: 'pause', mode: 'now' });
    expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
    ground.write('go', '');

    await compactByHand(ground);
    expect(api.requests.filter(({ kind }) => kind === 'summary')).toHaveLength(1);

    const asked = api.requests.length;
    expect(await group.run(env).result).toMatchObject({ kind: 'settled', status: 'completed' });
    const resumed = said(api.requests[asked]);
    // The tools' outputs of before are gone, so what is known does not come from there.
    expect(resumed).not.toContain('echo two');
    expect(resumed).toContain('SessionStart:resume');
    expect(resumed).toContain('do a');
    expect(resumed).toContain(mark);
  },
  60_000,
);
