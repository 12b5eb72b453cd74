/**
 * Promises, with the real claude, for each context system: two sessions that work in one project at the same time each
 * get their own state after a compaction. A FABER run belongs to its worktree: in one tree both sessions get it, each
 * with its own record; in two trees each gets its own run.
 */
import { afterEach, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ContextName } from '../../../src/core/definitions.ts';
import { ContextGround, type ContextSetting, compacted } from '../../support/claude/context-rig.ts';
import { git, Repository } from '../../support/git/repository.ts';

let ground: ContextGround;
afterEach(() => ground.close());

const names = ['a', 'b'];
const others: Readonly<Record<string, string>> = { a: 'b', b: 'a' };
const stateOf = (name: string) => `state of ${name} alone`;

function begin(systems: readonly ContextName[], more: Partial<ContextSetting> = {}): ContextGround {
  ground = new ContextGround({ systems, steps: compacted, names, ...more });
  return ground;
}

async function runToItsEnd({ group, env }: ContextGround): Promise<void> {
  expect(await group.run(env).result).toMatchObject({ kind: 'settled', status: 'completed' });
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

interface SessionRecord {
  readonly session_id: string;
  readonly started_at: string;
  readonly ended_at: string | null;
}

function records(used: ContextGround): SessionRecord[] {
  const path = join(used.group.project('shared'), '.fractary/runs/run-1/state.json');
  return JSON.parse(readFileSync(path, 'utf8')).sessions.session_history;
}

test('faber: two sessions of one work tree share its run, each as itself, after a compaction', async () => {
  const used = begin(['faber']);
  used.place('faber', 'a', 'state of the run');
  await runToItsEnd(used);
  for (const name of names) {
    const text = used.asked(name).at(-1);
    expect(text).toContain('state of the run');
    expect(text).toContain(`(session_start) for ${used.group.claudeId(name)}, session`);
    expect(text).toContain('SessionStart:compact');
  }
  const ids = new Set(records(used).map(({ session_id }) => session_id));
  expect([...ids].toSorted()).toEqual(names.map((name) => used.group.claudeId(name)).toSorted());
  // The last record of each session says that it has ended.
  for (const id of ids) expect(records(used).findLast((one) => one.session_id === id)?.ended_at).toBeString();
}, 60_000);

test('faber: two sessions in their own worktrees each get their own run after a compaction', async () => {
  const used = begin(['faber'], { projectOf: (name) => `tree-${name}` });
  const main = used.group.project('main');
  new Repository(main).commit({ 'README.md': '# Shop\n' });
  for (const name of names) {
    git(main, 'worktree', 'add', '-q', '-b', `feature/${name}`, used.group.project(`tree-${name}`));
    used.place('faber', name, stateOf(name), `tree-${name}`);
  }
  await runToItsEnd(used);
  for (const name of names) expectOwn(name, used.asked(name).at(-1));
}, 60_000);
