/**
 * Promises, with the real claude and hooks written by `hook install`: a session that worked on one of two projects is
 * recorded in that one by a compaction, and gets it back after the compaction, a resume and /compact.
 */
import { afterEach, expect, test } from 'bun:test';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readResumeFile } from '../../../../src/context/handover/resume-file.ts';
import { installHooks } from '../../../../src/context/install.ts';
import { claudeBinary, openRig, type Rig, stepLimitMs } from '../../../support/claude/rig.ts';
import { checkoutRoot } from '../../../support/cli.ts';

let rig: Rig | undefined;
afterEach(() => rig?.close());

async function run({ project, env, children }: Rig, ...args: string[]): Promise<void> {
  const flags = ['-p', '--model', 'claude-sonnet-4-5', '--permission-mode', 'acceptEdits', '--allowed-tools', 'Bash'];
  const child = Bun.spawn([claudeBinary as string, ...flags, ...args], {
    cwd: project,
    env,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  children.push(child);
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) !== 0) throw new Error(`claude ended with ${child.exitCode}: ${stdout}${stderr}`);
}

test.if(claudeBinary !== undefined)(
  'through an automatic compaction, a resume and /compact',
  async () => {
    const used = openRig([
      { tool: 'Write', input: { file_path: '{{project}}/02-projects/28-b/notes.md', content: 'x' } },
      { tool: 'Bash', input: { command: 'echo two' }, usage: { input: 70_000 } },
      { text: 'done' },
      { text: 'more' },
      { text: 'and more' },
    ]);
    rig = used;
    const launcher = join(checkoutRoot, 'bin', 'claude-code-agent');
    used.write('config/settings.json', installHooks({ autoCompactWindow: 100_000 }, launcher, ['handover']));
    for (const [id, updated] of [
      ['27-a', '2026-01-03T00:00:00Z'],
      ['28-b', '2026-01-02T00:00:00Z'],
    ]) {
      const lines = [`last_updated: "${updated}"`, 'session_ids: ["first"]', `next_action: "NEXT-${id}"`];
      const files = 'files_to_load: ["01-planning/03-plan.md"]';
      used.write(
        `project/02-projects/${id}/01-planning/resume-context.md`,
        `---\n${[...lines, files].join('\n')}\n---\nText of ${id}.\n`,
      );
      used.write(`project/02-projects/${id}/01-planning/03-plan.md`, `PLAN-${id}`);
    }
    mkdirSync(join(used.project, '.claude'));
    const session = crypto.randomUUID();
    const requests = () =>
      used.api.requests.filter(({ kind }) => kind === 'step').map(({ body }) => JSON.stringify(body));

    await run(used, '--session-id', session, '--', 'Work on the second project.');
    // The session is new, so the start shows the project that was updated last.
    expect(requests()[0]).toContain('NEXT-27-a');
    const resume = (id: string) =>
      readFileSync(join(used.project, '02-projects', id, '01-planning', 'resume-context.md'), 'utf8');
    expect(readResumeFile(resume('28-b'))).toMatchObject({ sessionIds: ['first', session], sessionId: session });
    expect(resume('28-b')).toEndWith('---\nText of 28-b.\n');
    expect(readResumeFile(resume('27-a')).sessionIds).toEqual(['first']);
    const after = requests()[2];
    expect(after).toContain('SessionStart:compact');
    expect(after).toContain('NEXT-28-b');
    expect(after).toContain('PLAN-28-b');
    expect(after).not.toContain('PLAN-27-a');

    await run(used, '--resume', session, '--', 'Go on.');
    expect(requests().at(-1)).toContain('SessionStart:resume hook success: HANDOVER: project 28-b');
    await run(used, '--resume', session, '--', '/compact');
    await run(used, '--resume', session, '--', 'And on.');
    expect(requests().at(-1)).toContain('SessionStart:compact');
    expect(requests().at(-1)).toContain('PLAN-28-b');
  },
  stepLimitMs,
);
