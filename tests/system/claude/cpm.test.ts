/**
 * Promises, with the real claude, the rows of the CPM specification about its context: the id after a start, the own
 * state after a real compaction, and progress files at the path in our CLAUDE.md, also adopted and stale ones. The
 * model is scripted, so whether a real model follows the skills is not covered.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { cpmInstructions, cpmRules } from '../../../src/context/cpm/state.ts';
import type { Step } from '../../../src/rehearsal/script.ts';
import { isolatedBunFlags } from '../../../src/system/own-program.ts';
import { bash } from '../../support/claude/context-rig.ts';
import { claudeBinary, openRig, type Rig, stepLimitMs } from '../../support/claude/rig.ts';

setDefaultTimeout(stepLimitMs);

const hookMain = join(import.meta.dir, '../../../src/hook-main.ts');

let rig: Rig | undefined;
let id: string;
beforeEach(() => {
  id = crypto.randomUUID();
});
afterEach(() => rig?.close());

/** A claude with the CLAUDE.md and hooks of CPM, which compacts above 67,000 tokens. */
function open(steps: readonly Step[]): Rig {
  rig = openRig(steps);
  const entry = (event: string) => ({
    hooks: [
      { type: 'command', command: process.execPath, args: [...isolatedBunFlags, hookMain, 'cpm', event], timeout: 30 },
    ],
  });
  rig.write('config/CLAUDE.md', `${cpmRules}\n\n${cpmInstructions(id)}`);
  rig.write('config/settings.json', {
    autoCompactWindow: 100_000,
    hooks: {
      SessionStart: [{ matcher: 'startup|resume|clear|compact|fork', ...entry('session-start') }],
      PreCompact: [entry('pre-compact')],
    },
  });
  return rig;
}

/** Runs claude to its end, which must be a success. */
async function run({ project, env }: Rig, ...args: string[]): Promise<void> {
  if (claudeBinary === undefined) throw new Error('claude is not installed');
  const flags = ['-p', '--model', 'claude-sonnet-4-5', '--permission-mode', 'acceptEdits', '--allowed-tools', 'Bash'];
  const child = Bun.spawn([claudeBinary, ...flags, ...args], {
    cwd: project,
    env,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  rig?.children.push(child);
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) !== 0) throw new Error(`claude ended with ${child.exitCode}: ${stdout}${stderr}`);
}

/** The path as the model reads it. */
function namedPath(): string {
  const path = /`(docs\/plans\/\.cpm-progress-[^`]+)`/.exec(cpmInstructions(id))?.[1];
  if (path === undefined) throw new Error('CLAUDE.md names no progress file');
  return path;
}

const state = (mark: string) =>
  `# CPM Session State\n\n**Skill**: cpm:spec\n**Phase**: 3 of 6 — ${mark}\n\n## Next Action\nAsk about ${mark}.\n`;

/** The request that claude sent to the model for the next step or for a summary. */
function asked(kind: 'step' | 'summary'): string[] {
  return (rig?.api.requests ?? [])
    .filter((request) => request.kind === kind)
    .map(({ body }) => JSON.stringify(body.messages));
}

const other = '00000009-0000-4000-8000-000000000000';
const withClaude = test.skipIf(claudeBinary === undefined);

withClaude(
  "1, 2, 3: the named file is written, Claude's context contains `CPM_SESSION_ID` after session start",
  async () => {
    const used = open([
      { tool: 'Write', input: { file_path: `{{project}}/${namedPath()}`, content: state('OWN-STATE') } },
      { tool: 'Bash', input: { command: 'echo two' }, usage: { input: 70_000 } },
      { text: 'done' },
    ]);
    rig?.write(`project/docs/plans/.cpm-progress-${other}.md`, state('OTHER-STATE'));
    await run(used, '--session-id', id, '--', 'Write the specification.');

    // 1. Two concurrent skills in the same project produce separate progress files.
    expect(readFileSync(join(used.project, namedPath()), 'utf8')).toBe(state('OWN-STATE'));
    expect(existsSync(join(used.project, `docs/plans/.cpm-progress-${other}.md`))).toBe(true);
    const [first, , after] = asked('step');
    expect(first).toContain(`CPM_SESSION_ID: ${id}`);
    expect(first).toContain('OTHER-STATE');
    // 3. Post-compaction context contains correct session state.
    const [summary] = asked('summary');
    expect(summary).toContain(`CPM: this session (CPM_SESSION_ID: ${id}) is at work: cpm:spec`);
    expect(after).toContain(`CPM_SESSION_ID: ${id}`);
    expect(after).toContain('SessionStart:compact');
    expect(after).toContain('Ask about OWN-STATE.');
    expect(after).not.toContain('OTHER-STATE');
  },
);

const rowsOfAdoption = [
  '5. Skill creates new progress file with current session ID',
  'Old progress file (previous session ID) is deleted after new file confirmed',
].join('; ');

withClaude(rowsOfAdoption, async () => {
  const [old, fork] = [crypto.randomUUID(), crypto.randomUUID()];
  const [from, to] = [old, fork].map((id) => `docs/plans/.cpm-progress-${id}.md`);
  const own = 'docs/plans/.cpm-progress-$CLAUDE_CODE_SESSION_ID.md';
  const used = open([
    { tool: 'Write', input: { file_path: `{{project}}/${from}`, content: state('story 1') } },
    { text: 'done' },
    // As CLAUDE.md prescribes: written under the id that Bash knows, read back, and only then is the old file deleted.
    bash(`cp ${from} "${own}"`),
    bash(`ls -A docs/plans; cat "${own}"`),
    bash(`rm ${from}`),
    { text: 'taken over' },
  ]);
  await run(used, '--session-id', old, '--', 'Begin.');
  await run(used, '--resume', old, '--fork-session', '--session-id', fork, '--', 'Go on.');
  const forked = asked('step').slice(2);
  expect(forked[0]).toContain('- **Adoption**: ');
  expect(forked[0]).toContain(`--- CPM SESSION STATE (cpm:spec — 3 of 6 — story 1) [.cpm-progress-${old}.md] ---`);
  // When the new file was read back, both existed.
  const readBack = forked[2]?.slice((forked[1] as string).length) ?? '';
  for (const part of [old, fork, 'Ask about story 1.']) expect(readBack).toContain(part);
  expect(readdirSync(join(used.project, 'docs/plans')).toSorted()).toEqual([`.cpm-progress-${fork}.md`]);
  expect(readFileSync(join(used.project, to as string), 'utf8')).toBe(state('story 1'));
});

const rowsOfOrphans = [
  '9. Stale file message suggests deletion with file path',
  'User sees enough context to decide without understanding session IDs',
].join('; ');

withClaude(rowsOfOrphans, async () => {
  const [gone, fresh] = [crypto.randomUUID(), crypto.randomUUID()];
  const path = `docs/plans/.cpm-progress-${gone}.md`;
  const used = open([bash(`rm '{{project}}/${path}'`), { text: 'removed' }]);
  const stale = used.write(`project/${path}`, state('story 9'));
  const old = Date.now() / 1000 - 73.5 * 3600;
  utimesSync(stale, old, old);
  used.write(`project/docs/plans/.cpm-progress-${fresh}.md`, state('story 1'));
  await run(used, '--session-id', id, '--', 'Go on.');
  const [first = ''] = asked('step');
  // The skill, its phase, its subject and its age, so that the user does not need the id in the name.
  const label = 'cpm:spec — 3 of 6 — story 9';
  const line = `STALE: ${label} — file: ${stale} (73h old). To remove: delete ${stale}`;
  expect(first).toContain(line);
  expect(first).not.toContain('Ask about story 9.');
  // The path is enough to act on, and no other file is deleted.
  expect(existsSync(stale)).toBe(false);
  expect(readdirSync(join(used.project, 'docs/plans')).toSorted()).toEqual([`.cpm-progress-${fresh}.md`]);
});
