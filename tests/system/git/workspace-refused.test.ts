/**
 * Promises: if a worktree cannot be created, one sentence names the reason and the next step, nothing is left behind,
 * and repository and checkout are unchanged.
 */

import { afterEach, beforeEach, expect, test } from 'bun:test';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { adviceText, advise } from '../../../src/core/advice.ts';
import { describeFailure } from '../../../src/core/failure.ts';
import { makeWorkspace } from '../../../src/git/worktrees/workspace.ts';
import { sessionFailure } from '../../../src/worker/attempt/outcomes.ts';
import { failure, WorkspaceRig } from '../../support/git/workspace-rig.ts';
import { unprivileged } from '../../support/unprivileged.ts';

let rig: WorkspaceRig;
beforeEach(() => {
  rig = new WorkspaceRig();
});
afterEach(() => {
  Bun.spawnSync(['chmod', '-R', 'u+rwX', rig.folder]);
  rig.remove();
});

const begin = (): string => rig.repository.commit({ 'a.txt': 'a\n' });

const refused: readonly {
  readonly title: string;
  readonly prepare: () => Parameters<WorkspaceRig['plan']>[1];
  readonly says: RegExp;
}[] = [
  {
    title: 'no commit yet',
    prepare: () => ({}),
    says: /no commit yet.*git commit --allow-empty.*--isolate none/,
  },
  {
    title: 'a bare repository',
    prepare: () => {
      begin();
      const bare = rig.repository.bare(join(rig.folder, 'bare.git'));
      return { projectPath: bare, repository: bare };
    },
    says: /bare repository.*git worktree add/,
  },
  {
    title: 'a base that is not there',
    prepare: () => {
      begin();
      return { base: '1234567890'.repeat(4) };
    },
    says: /123456789012 is not in the repository.*git fetch/,
  },
  {
    title: 'a project that git ignores',
    prepare: () => {
      rig.repository.commit({ '.gitignore': 'build/\n' });
      mkdirSync(join(rig.top, 'build/my app'), { recursive: true });
      return { projectPath: join(rig.top, 'build/my app') };
    },
    says: /"build\/my app" of the project is not committed/,
  },
  {
    title: 'a project that is gone',
    prepare: () => {
      begin();
      return { projectPath: join(rig.top, 'gone') };
    },
    says: /gone no longer exists/,
  },
  {
    title: 'something else at the path',
    prepare: () => {
      begin();
      const { path } = rig.plan();
      mkdirSync(path);
      writeFileSync(join(path, 'precious.txt'), 'mine\n');
      return {};
    },
    says: /already exists and is not a worktree/,
  },
];

for (const { title, prepare, says } of refused) {
  test(`refused in one sentence, with nothing left behind: ${title}`, async () => {
    const plan = rig.plan(1, prepare());
    const hasHistory = existsSync(join(rig.gitDir, 'index'));
    const before = hasHistory ? [rig.checkout(), rig.run('for-each-ref')] : [];
    const had = existsSync(plan.path);
    const { reason, message, next } = failure(await makeWorkspace(rig.git, plan));
    expect(reason).toMatch(/^(?:worktree-failed|project-missing)$/);
    expect(`${message} ${adviceText(next)}`).toMatch(says);
    expect(message).not.toContain('\n');
    expect(existsSync(plan.path)).toBe(had);
    expect(existsSync(plan.intentFile)).toBe(false);
    if (!hasHistory) return;
    expect([rig.checkout(), rig.run('for-each-ref')]).toEqual(before);
    expect(rig.worktrees()).toEqual([]);
    rig.fsck();
  });
}

test('without git', async () => {
  begin();
  const plan = rig.plan();
  const found = failure(await makeWorkspace(rig.gitOf(rig.world, { PATH: rig.folder }), plan));
  expect(found).toMatchObject({ reason: 'worktree-failed', next: advise('Install git, then try again.') });
  expect(sessionFailure(found).next).toMatch(/^Install git.*--isolate none\.$/);
  expect(existsSync(plan.intentFile)).toBe(false);
});

test.skipIf(!unprivileged.isPossible)('a repository without write permission', async () => {
  begin();
  chmodSync(rig.folder, 0o755);
  const programs = join(rig.folder, 'programs');
  mkdirSync(programs);
  const real = Bun.which('git');
  writeFileSync(join(programs, 'git'), `#!/bin/sh\nexec ${unprivileged.prefix.join(' ')} '${real}' "$@"\n`);
  chmodSync(join(programs, 'git'), 0o755);
  Bun.spawnSync(['chmod', '-R', 'a-w', rig.gitDir]);
  const asNobody = rig.gitOf(rig.world, { PATH: `${programs}:${process.env.PATH}` });
  const plan = rig.plan();
  const before = [rig.checkout(), rig.run('for-each-ref')];
  if (unprivileged.isOther) {
    const foreign = failure(await makeWorkspace(asNobody, plan));
    expect(describeFailure(foreign)).toMatch(/dubious ownership.*safe\.directory/);
  }
  writeFileSync(rig.globalConfig, '[safe]\n\tdirectory = *\n');
  const { reason, message, next } = sessionFailure(failure(await makeWorkspace(asNobody, plan)));
  expect(reason).toBe('worktree-failed');
  expect(`${message} ${next}`).toMatch(/unable to create directory.*write permission.*--isolate none/);
  expect([rig.checkout(), rig.run('for-each-ref')]).toEqual(before);
  expect(existsSync(plan.intentFile)).toBe(false);
  rig.fsck();
});
