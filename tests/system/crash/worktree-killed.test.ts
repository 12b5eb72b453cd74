/**
 * Promises: if a runner is killed while git creates a worktree, with or without that git, the next run creates it
 * again, and no earlier git process continues beside it.
 */

import { expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { finish, identify, Runners } from '../../support/crash-rig.ts';
import { git, Repository } from '../../support/git/repository.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { kill } from '../../support/kill.ts';
import { make, rig, withRig } from '../../support/rig-ground.ts';

withRig();
let group: GroupFixture;

/** A group of one session in its own worktree, in which the first git hangs while it checks out files. */
function makeHanging(): string {
  let repository = '';
  const fields = {
    isolate: 'worktree' as const,
    get repository() {
      return join(repository, '.git');
    },
  };
  const beforeSessions = (folder: string) => {
    repository = join(folder, 'projects', 'one');
    const made = new Repository(repository);
    made.commit({ '.gitattributes': '*.bin filter=slow\n', 'a.txt': 'a\n', 'x.bin': 'x\n', 'z.txt': 'z\n' });
  };
  group = make([{ name: 'one', fields }], {}, { beforeSessions });
  const hanging = join(group.folder, 'hanging');
  const filter = `test -e '${hanging}' || { echo $$ > '${hanging}'; while :; do sleep 0.1; done; }; cat`;
  git(repository, 'config', 'filter.slow.smudge', filter);
  return hanging;
}

/** The filter and the git processes above it, nearest first. */
function gitAbove(pid: number): number[] {
  const name = /^Name:\t(.*)$/m.exec(statusOf(pid))?.[1] ?? '';
  const parent = Number(/^PPid:\t(\d+)$/m.exec(statusOf(pid))?.[1] ?? 0);
  return /^(?:git|sh|dash|bash)/.test(name) && parent > 1 ? [pid, ...gitAbove(parent)] : [];
}

const statusOf = (pid: number) =>
  existsSync(`/proc/${pid}/status`) ? readFileSync(`/proc/${pid}/status`, 'utf8') : '';

test.skipIf(process.platform !== 'linux').each([
  ['alone', null],
  ['and its git with it', 'SIGKILL'],
  ['and its git gets SIGTERM', 'SIGTERM'],
] as const)(
  'the runner is killed %s',
  async (_, signal) => {
    const hanging = makeHanging();
    const runners = new Runners(group, rig.env);
    const first = runners.start();
    while (!existsSync(hanging) || readFileSync(hanging, 'utf8') === '') await Bun.sleep(10);
    const gits = gitAbove(Number(readFileSync(hanging, 'utf8')));
    expect(gits.length).toBeGreaterThan(1);
    first.kill('SIGKILL');
    await first.finished;
    if (signal !== null) for (const pid of gits.toReversed()) kill(pid, signal);

    const second = runners.start();
    const fake = await rig.nextFor(group.claudeId('one'));
    expect(gits.filter((pid) => /^State:\t[^Z]/m.test(statusOf(pid)))).toEqual([]);
    await identify(fake);
    await finish(fake);
    expect(await second.finished).toMatchObject({ code: 0, stderr: '' });
    const folder = group.state().sessions.get(group.id('one'))?.workspace?.folder ?? '';
    expect(git(folder, 'status', '--porcelain')).toBe('');
    expect(git(folder, 'ls-files').split('\n')).toEqual(['.gitattributes', 'a.txt', 'x.bin', 'z.txt']);
    expect(git(group.project('one'), 'worktree', 'list').split('\n')).toHaveLength(2);
  },
  60_000,
);
