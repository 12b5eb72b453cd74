/**
 * Promises: the rows of the CPM specification's acceptance table that are marked `[manual]`, with the real claude. The
 * model is scripted: it does what our CLAUDE.md and the skills tell it to, at the paths that they name, and what lies
 * on disk afterwards is checked. Not covered: whether a real model follows them.
 */
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test';
import { cpSync, existsSync, readdirSync, readFileSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { cpmInstructions, cpmRules } from '../../../src/context/cpm/state.ts';
import { installHooks } from '../../../src/context/install.ts';
import type { Step } from '../../../src/rehearsal/script.ts';
import { bash } from '../../support/claude/context-rig.ts';
import { claudeBinary, openRig, patienceMs, type Rig } from '../../support/claude/rig.ts';
import { packageRoot } from '../../support/cli.ts';

setDefaultTimeout(patienceMs);
const withClaude = test.skipIf(claudeBinary === undefined);
const longWithClaude = test.if(claudeBinary !== undefined);

let cleanUp: () => Promise<void> = async () => {};
afterEach(() => cleanUp());

const skills = readdirSync(join(packageRoot, 'templates/configs/cpm/skills'));

/** A claude with the 14 skills, our CLAUDE.md and our hooks, as a session of a group has them. */
function open(id: string, steps: readonly Step[]): Rig {
  const rig = openRig(steps);
  cleanUp = () => rig.close();
  const launcher = join(packageRoot, 'bin', 'claude-code-agent');
  rig.write('config/settings.json', installHooks({}, launcher, ['cpm']));
  rig.write('config/CLAUDE.md', `${cpmRules}\n\n${cpmInstructions(id)}`);
  cpSync(join(packageRoot, 'templates/configs/cpm/skills'), join(rig.configDir, 'skills'), { recursive: true });
  return rig;
}

/** Runs claude to its end; it must succeed. */
async function run({ project, env, children }: Rig, ...args: string[]): Promise<void> {
  const tools = 'Bash,Write,Read,Skill';
  const flags = ['-p', '--model', 'claude-sonnet-4-5', '--permission-mode', 'acceptEdits', '--allowed-tools', tools];
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

const asked = (rig: Rig) =>
  rig.api.requests.filter(({ kind }) => kind === 'step').map(({ body }) => JSON.stringify(body.messages));
const plans = (project: string) => readdirSync(join(project, 'docs/plans')).toSorted();
const progress = (mark: string, skill = 'cpm:do') =>
  `# CPM Session State\n\n**Skill**: ${skill}\n**Phase**: 2 of 4 — Build\n**Output target**: docs/epics/01.md\n\n` +
  `## Next Action\nGo on with ${mark}.\n`;

/** The path that our CLAUDE.md tells a model. */
function namedPath(instructions: string): string {
  const path = /`(docs\/plans\/\.cpm-progress-[^`]+)`/.exec(instructions)?.[1];
  if (path === undefined) throw new Error('CLAUDE.md names no progress file');
  return path;
}

withClaude('1. Skills write to `.cpm-progress-{session_id}.md` instead of `.cpm-progress.md`', async () => {
  const id = crypto.randomUUID();
  const path = namedPath(cpmInstructions(id));
  const rig = open(id, [
    { tool: 'Write', input: { file_path: `{{project}}/${path}`, content: progress('story 1') } },
    { text: 'done' },
  ]);
  await run(rig, '--session-id', id, '--', '/do docs/epics/01.md');
  const [first] = asked(rig);
  // The skill gives the pattern, the hook the id: together they are the path that CLAUDE.md names.
  expect(first).toContain('`docs/plans/.cpm-progress-{session_id}.md`');
  expect(first).toContain(`CPM_SESSION_ID: ${id}`);
  expect(path).toBe(`docs/plans/.cpm-progress-${id}.md`);
  expect(first).toContain(path);
  expect(plans(rig.project)).toEqual([`.cpm-progress-${id}.md`]);
  expect(readFileSync(join(rig.project, path), 'utf8')).toBe(progress('story 1'));
});

const rowsOfAdoption = [
  '5. Skill creates new progress file with current session ID',
  'Old progress file (previous session ID) is deleted after new file confirmed',
].join('; ');

withClaude(rowsOfAdoption, async () => {
  const [old, fork] = [crypto.randomUUID(), crypto.randomUUID()];
  const [from, to] = [old, fork].map((id) => `docs/plans/.cpm-progress-${id}.md`);
  const own = 'docs/plans/.cpm-progress-$CLAUDE_CODE_SESSION_ID.md';
  const rig = open(old, [
    { tool: 'Write', input: { file_path: `{{project}}/${from}`, content: progress('story 1') } },
    { text: 'done' },
    // As CLAUDE.md says: written under the id that Bash knows, read back, and only then is the old one deleted.
    bash(`cp ${from} "${own}"`),
    bash(`ls -A docs/plans; cat "${own}"`),
    bash(`rm ${from}`),
    { text: 'taken over' },
  ]);
  await run(rig, '--session-id', old, '--', 'Begin.');
  await run(rig, '--resume', old, '--fork-session', '--session-id', fork, '--', 'Go on.');
  const forked = asked(rig).slice(2);
  expect(forked[0]).toContain('- **Adoption**: ');
  expect(forked[0]).toContain(
    `--- CPM SESSION STATE (cpm:do — 2 of 4 — Build — docs/epics/01.md) [.cpm-progress-${old}.md] ---`,
  );
  // When the new file was read back, both were there.
  const readBack = forked[2]?.slice((forked[1] as string).length) ?? '';
  for (const part of [old, fork, 'Go on with story 1.']) expect(readBack).toContain(part);
  expect(plans(rig.project)).toEqual([`.cpm-progress-${fork}.md`]);
  expect(readFileSync(join(rig.project, to as string), 'utf8')).toBe(progress('story 1'));
});

const rowsOfSkills = [
  '6. All 14 SKILL.md files reference `CPM_SESSION_ID` in State Management',
  'Progress file path uses session ID pattern consistently',
].join('; ');

withClaude(rowsOfSkills, async () => {
  expect(skills).toHaveLength(14);
  const rig = open(crypto.randomUUID(), [
    { tools: skills.map((skill) => ({ tool: 'Skill', input: { skill } })) },
    { text: 'done' },
  ]);
  await run(rig, '--', 'Show all skills.');
  // What the model gets when it uses them, not only what lies on disk.
  const said = asked(rig).at(-1) ?? '';
  const section = readFileSync(join(packageRoot, 'templates/cpm/state-management.md'), 'utf8');
  const where = section.split('\n').find((line) => line.startsWith('- **Where**')) ?? '';
  expect(where).toContain('`docs/plans/.cpm-progress-{session_id}.md`');
  expect(where).toContain('the last `CPM_SESSION_ID` in your context');
  expect(said.split(JSON.stringify(where).slice(1, -1))).toHaveLength(15);
});

const rowsOfOrphans = [
  '9. Stale file message suggests deletion with file path',
  'User sees enough context to decide without understanding session IDs',
].join('; ');

longWithClaude(rowsOfOrphans, async () => {
  const [gone, fresh] = [crypto.randomUUID(), crypto.randomUUID()];
  const id = crypto.randomUUID();
  const path = `docs/plans/.cpm-progress-${gone}.md`;
  const rig = open(id, [bash(`rm '{{project}}/${path}'`), { text: 'removed' }]);
  const stale = rig.write(`project/${path}`, progress('story 9', 'cpm:epics'));
  const old = Date.now() / 1000 - 73.5 * 3600;
  utimesSync(stale, old, old);
  rig.write(`project/docs/plans/.cpm-progress-${fresh}.md`, progress('story 1'));
  await run(rig, '--session-id', id, '--', 'Go on.');
  const [first = ''] = asked(rig);
  // The skill, the phase, what it worked on and its age: nobody has to know whose id is in the name.
  const label = 'cpm:epics — 2 of 4 — Build — docs/epics/01.md';
  const line = `STALE: ${label} — file: ${stale} (73h old). To remove: delete ${stale}`;
  expect(first).toContain(line);
  expect(first).not.toContain('Go on with story 9.');
  // The path is good enough to act on, and nothing else goes.
  expect(existsSync(stale)).toBe(false);
  expect(plans(rig.project)).toEqual([`.cpm-progress-${fresh}.md`]);
});
