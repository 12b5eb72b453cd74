/** Groups whose sessions work in worktrees of a repository with projects of the handover system. */
import { expect } from 'bun:test';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readResumeFile } from '../../../src/context/handover/resume-file.ts';
import type { SessionDefinition } from '../../../src/core/group.ts';
import { isolatedBunFlags } from '../../../src/system/own-program.ts';
import type { Invocation } from '../fake-claude-rig.ts';
import { type FileTree, git, Repository } from '../git/repository.ts';
import { fixtureRoot, type GroupFixture } from '../group-fixture.ts';
import { begin, make as makeFixture, rig } from '../rig-ground.ts';

export const resume = '02-projects/28-b/01-planning/resume-context.md';
export const resumeFileText = (next: string, body = 'Notes.\n') =>
  `---\nsession_id: ""\nsession_ids: []\n\n# LOADING\nnext_action: "${next}"\n` +
  `files_to_load: ["plan.md"]\n---\n\n${body}`;

/** Sessions in one repository, each with a worktree; the project's files are committed unless `later` brings them. */
export function makeHandoverGroup(
  sketches: readonly {
    readonly name: string;
    readonly after?: readonly string[];
    fields?: Partial<SessionDefinition>;
  }[],
  {
    tree = { [resume]: resumeFileText('plan') },
    later = {},
  }: { readonly tree?: FileTree; readonly later?: Record<string, string> } = {},
): GroupFixture {
  let folder = '';
  const all = sketches.map(({ fields, ...sketch }) => {
    const late: Partial<SessionDefinition> = {
      isolate: 'worktree',
      get repository() {
        return join(folder, '.git');
      },
      ...fields,
    };
    return { ...sketch, project: 'app', fields: late };
  });
  return makeFixture(
    all,
    {},
    {
      beforeSessions: (root) => {
        folder = join(root, 'projects', 'app');
        new Repository(folder).commit({ 'base.txt': 'base\n', '.gitignore': 'ignored\n', ...tree });
        for (const [path, content] of Object.entries(later)) write(folder, path, content);
      },
    },
  );
}

export function write(folder: string, path: string, content: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), content);
}

export const read = (folder: string) => readFileSync(join(folder, resume), 'utf8');
export const own = (group: GroupFixture) => read(group.project('app'));
export const facts = (group: GroupFixture) => readResumeFile(own(group));
export const warnings = (group: GroupFixture, name: string) =>
  group
    .state()
    .sessions.get(group.id(name))
    ?.warnings.map(({ message }) => message) ?? [];

/** As claude edits the file. */
export function edit(fake: Invocation, from: string, to: string): void {
  const before = read(fake.hello.cwd);
  expect(before).toContain(from);
  writeFileSync(join(fake.hello.cwd, resume), before.replace(from, to));
}

/** The session changes the file and commits it; the project has the change after the run. */
export async function commitsItsState(group: GroupFixture): Promise<void> {
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  edit(a, '"plan"', '"build"');
  git(a.hello.cwd, 'commit', '--quiet', '--all', '-m', 'State');
  await a.succeed();
  expect(await run.result).toMatchObject({ status: 'completed' });
  expect(facts(group).nextAction).toBe('build');
}

/** The real hook's output in the worker. */
export function hook(fake: Invocation, event: string, sessionId: string): string {
  const ran = Bun.spawnSync(
    [process.execPath, ...isolatedBunFlags, join(fixtureRoot, 'src', 'hook-main.ts'), 'handover', event],
    {
      env: { ...fake.hello.env, CLAUDE_PROJECT_DIR: fake.hello.cwd },
      stdin: Buffer.from(JSON.stringify({ session_id: sessionId })),
      stdout: 'pipe',
    },
  );
  return ran.stdout.toString();
}

export const unchanged = (group: GroupFixture, branch: string) =>
  expect(git(group.project('app'), 'diff', '--name-only', 'main', branch)).not.toContain('resume-context');
