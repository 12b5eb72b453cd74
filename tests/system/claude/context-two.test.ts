/**
 * Promises, through the runner and with the real claude, for each context system: two sessions that work in one project
 * at the same time each get their own state, after a compaction and after a pause and resume. A run of FABER belongs to
 * its work tree: in one tree both get it, each with a record of its own; in two trees each gets its own.
 */
import { afterEach, expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ContextName } from '../../../src/core/definitions.ts';
import { bash, ContextGround, compacted, type Setting } from '../../support/claude/context-rig.ts';
import { until } from '../../support/cli.ts';
import { git, Repository } from '../../support/git/repository.ts';

let ground: ContextGround;
afterEach(() => ground.close());

const names = ['a', 'b'];
const others: Readonly<Record<string, string>> = { a: 'b', b: 'a' };
const stateOf = (name: string) => `state of ${name} alone`;

/** Waits in its first step until the test lets it go on. */
const waiting = [bash('touch began-$CLAUDE_CODE_SESSION_ID; [ -e go ] || sleep 60'), { text: 'done' }] as const;

function begin(systems: readonly ContextName[], more: Partial<Setting> = {}): ContextGround {
  ground = new ContextGround({ systems, steps: compacted, names, ...more });
  return ground;
}

async function runToItsEnd({ group, env }: ContextGround): Promise<void> {
  expect(await group.run(env).result).toMatchObject({ kind: 'settled', status: 'completed' });
}

/** Runs both until each has begun its first step, pauses all, and runs to the end; what was asked first then. */
async function pauseAndResume(used: ContextGround): Promise<(name: string) => string | undefined> {
  const { group, env } = used;
  const run = group.run(env);
  await until(() => names.every((name) => used.asked(name).length > 0 && began(used, name)));
  await run.ask({ kind: 'pause', mode: 'now' });
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
  const before = new Map(names.map((name) => [name, used.asked(name).length]));
  for (const name of names) used.write('go', '', used.projectOf(name));
  await runToItsEnd(used);
  return (name) => used.asked(name)[before.get(name) as number];
}

function began(used: ContextGround, name: string): boolean {
  return existsSync(join(used.group.project(used.projectOf(name)), `began-${used.group.claudeId(name)}`));
}

function expectOwn(name: string, text: string | undefined): void {
  expect(text).toContain(stateOf(name));
  expect(text).not.toContain(stateOf(others[name] as string));
}

test.each(['cpm', 'handover'] as const)(
  '%s: each session of one project gets its own state after a compaction',
  async (system) => {
    const used = begin([system]);
    for (const name of names) used.place(system, name, stateOf(name));
    await runToItsEnd(used);
    for (const name of names) expectOwn(name, used.asked(name).at(-1));
  },
  60_000,
);

test.each(['handover', 'cpm'] as const)(
  '%s: each session of one project gets its own state after a pause and resume',
  async (system) => {
    const used = begin([system], { steps: waiting });
    for (const name of names) used.place(system, name, stateOf(name));
    const resumed = await pauseAndResume(used);
    for (const name of names) expectOwn(name, resumed(name));
  },
  60_000,
);

interface SessionRecord {
  readonly session_id: string;
  readonly started_at: string;
  readonly ended_at: string | null;
}

function records(used: ContextGround): SessionRecord[] {
  const path = join(used.group.project('shared'), '.fractary/runs/run-1/state.json');
  return JSON.parse(readFileSync(path, 'utf8')).sessions.session_history;
}

const interruptions = [
  ['a compaction', 'compact'],
  ['a pause and resume', 'resume'],
] as const;
test.each([...interruptions])(
  'faber: two sessions of one work tree share its run, each as itself, after %s',
  async (_, how) => {
    const used = begin(['faber'], how === 'resume' ? { steps: waiting } : {});
    used.place('faber', 'a', 'state of the run');
    let after: (name: string) => string | undefined = (name) => used.asked(name).at(-1);
    if (how === 'resume') after = await pauseAndResume(used);
    else await runToItsEnd(used);
    for (const name of names) {
      const text = after(name);
      expect(text).toContain('state of the run');
      expect(text).toContain(`(session_start) for ${used.group.claudeId(name)}, session`);
      expect(text).toContain(`SessionStart:${how}`);
    }
    const ids = new Set(records(used).map(({ session_id }) => session_id));
    expect([...ids].toSorted()).toEqual(names.map((name) => used.group.claudeId(name)).toSorted());
    // The last word on each session is that it has ended.
    for (const id of ids) expect(records(used).findLast((one) => one.session_id === id)?.ended_at).toBeString();
  },
  60_000,
);

const stories = [
  ['a compaction', compacted],
  ['a pause and resume', waiting],
] as const;
test.each([...stories])(
  'faber: two sessions of one project in work trees of their own each get their own run, after %s',
  async (_, steps) => {
    const used = begin(['faber'], { steps, projectOf: (name) => `tree-${name}` });
    const main = used.group.project('main');
    new Repository(main).commit({ 'README.md': '# Shop\n' });
    for (const name of names) {
      git(main, 'worktree', 'add', '-q', '-b', `feature/${name}`, used.group.project(`tree-${name}`));
      used.place('faber', name, stateOf(name), `tree-${name}`);
    }
    let after: (name: string) => string | undefined = (name) => used.asked(name).at(-1);
    if (steps === waiting) after = await pauseAndResume(used);
    else await runToItsEnd(used);
    for (const name of names) expectOwn(name, after(name));
  },
  60_000,
);
