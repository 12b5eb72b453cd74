/**
 * Promises of examples/faber-run: started as its README describes, with the real claude and a scripted model, it makes
 * a FABER run whose five phases are recorded by five sessions. Nothing is denied, and the result works.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { claudeBinary } from '../../../support/claude/rig.ts';
import { checkoutRoot } from '../../../support/cli.ts';

const example = join(checkoutRoot, 'examples', 'faber-run');
let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'cca example ')));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function sh(script: string, ...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = Bun.spawn(['sh', join(example, script), ...args], {
    cwd: '/',
    env: {
      PATH: process.env.PATH ?? '',
      HOME: folder,
      CLAUDE_CODE_AGENT_HOME: join(folder, 'data'),
      CLAUDE_CODE_AGENT_BUN: process.execPath,
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { code: await child.exited, stdout, stderr };
}

test.if(claudeBinary !== undefined)(
  'five sessions carry a work item through one run',
  async () => {
    const ran = await sh('run.sh', join(folder, 'a folder'));
    if (ran.code !== 0) throw new Error(`${ran.stderr}${ran.stdout}`);
    const shop = join(folder, 'a folder', 'shop');
    expect(ran.stdout).toMatch(/^Status +completed$/m);
    expect(ran.stdout).toMatch(/^Finished +frame, architect, build, evaluate, release$/m);
    const runs = readdirSync(join(shop, '.fractary/runs'));
    expect(runs).toHaveLength(1);
    const state = JSON.parse(readFileSync(join(shop, '.fractary/runs', runs[0] as string, 'state.json'), 'utf8'));
    expect(state).toMatchObject({
      status: 'completed',
      artifacts: { spec_path: '{project_root}/docs/work-items/258/spec.md' },
      sessions: { total_sessions: 5 },
    });
    const groups = join(folder, 'data', 'session-groups');
    const sessions = join(groups, readdirSync(groups)[0] as string, 'sessions');
    for (const session of readdirSync(sessions)) {
      const lines = readFileSync(join(sessions, session, 'transcript.jsonl'), 'utf8')
        .trim()
        .split('\n');
      expect(lines.filter((line) => line.includes('"is_error":true'))).toEqual([]);
      expect(lines.filter((line) => line.includes('"permission_denials":[]'))).toHaveLength(1);
    }
    const prices = await import(join(shop, 'src', 'prices.js'));
    expect([1250, 5, 0].map(prices.showPrice)).toEqual(['12.50 €', '0.05 €', '0.00 €']);
    expect(readFileSync(join(shop, 'test', 'prices.test.js'), 'utf8')).toContain("'0.05 €'");
  },
  120_000,
);

test('setup refuses an existing project, and the scripts are plain POSIX sh', async () => {
  expect(await sh('setup.sh', folder)).toMatchObject({ code: 0, stderr: '' });
  expect(await sh('setup.sh', folder)).toMatchObject({ code: 2, stdout: '' });
  expect(await sh('setup.sh')).toMatchObject({ code: 2 });
  for (const file of ['setup.sh', 'run.sh']) {
    expect(Bun.spawnSync(['sh', '-n', join(example, file)]).exitCode).toBe(0);
  }
});
