/**
 * Worktrees of a large repository: ours, one after another as a run makes those of one repository, beside a loop of
 * plain `git worktree add`.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { branchName, makeWorkspace } from '../src/git/worktrees/workspace.ts';
import { createRealWorld } from '../src/system/real-world.ts';
import { type Benchmark, type Figure, measured, median, ratio } from './support/figures.ts';
import { type BenchFolder, makeFolder } from './support/group-on-disk.ts';

const filesAll = 20_000;
const quickFiles = 1_000;
const filesInFolder = 200;
const count = 4;

export const worktrees: Benchmark = {
  about: ({ isQuick }) =>
    `${count} worktrees of a repository of ${isQuick ? quickFiles : filesAll} files, ours beside git's, each one ` +
    'after another.',
  async run({ isQuick, rounds }) {
    const folder = makeFolder();
    try {
      makeRepository(folder, isQuick ? quickFiles : filesAll);
      const plain: number[] = [];
      const ours: number[] = [];
      // Taken in turns, each first as often as second, so that whatever else the machine does hits both.
      for (let round = 0; round < rounds; round += 1) {
        const isPlainFirst = round % 2 === 0;
        if (isPlainFirst) plain.push(plainLoop(folder, round));
        ours.push(await ourLoop(folder, round));
        if (!isPlainFirst) plain.push(plainLoop(folder, round));
      }
      return figuresOf(plain, ours);
    } finally {
      folder.remove();
    }
  },
};

function figuresOf(plain: readonly number[], ours: readonly number[]): Figure[] {
  const against = ratio(median(ours), median(plain));
  return [
    { ...measured(`git worktree add, ${count} times`, plain), ratio: '1' },
    {
      ...measured(`makeWorkspace, ${count} times`, ours),
      ratio: `${against} git worktree add`,
      note: 'branch, intent and checks too',
    },
  ];
}

/** Sources of a common size, in folders of a common size. */
function makeRepository({ project, env }: BenchFolder, files: number): void {
  for (let first = 0; first < files; first += filesInFolder) {
    const path = join(project, 'src', `part-${first / filesInFolder}`);
    mkdirSync(path, { recursive: true });
    for (let number = first; number < first + filesInFolder; number += 1) {
      writeFileSync(join(path, `module-${number}.ts`), sourceOf(number));
    }
  }
  git(project, env, 'init', '--quiet', '--initial-branch=main');
  // What git tidies up by itself in the background would be part of what is measured.
  git(project, env, 'config', 'gc.auto', '0');
  git(project, env, 'add', '--all');
  const who = ['-c', 'user.name=bench', '-c', 'user.email=bench@localhost', '-c', 'commit.gpgSign=false'];
  git(project, env, ...who, 'commit', '--quiet', '-m', 'Everything');
  git(project, env, 'gc', '--quiet');
}

function sourceOf(number: number): string {
  const lines = Array.from({ length: 40 }, (_, line) => `export const value${line} = ${number * 40 + line};`);
  return `/** Module ${number}. */\n${lines.join('\n')}\n`;
}

function plainLoop({ path, project, env }: BenchFolder, round: number): number {
  const paths = Array.from({ length: count }, (_, number) => join(path, `plain-${round}-${number}`));
  const begin = performance.now();
  for (const [number, worktree] of paths.entries()) {
    git(project, env, 'worktree', 'add', '--quiet', '-b', `plain/${round}-${number}`, worktree, 'HEAD');
  }
  const ms = performance.now() - begin;
  for (const worktree of paths) git(project, env, 'worktree', 'remove', '--force', worktree);
  return ms;
}

async function ourLoop({ path, project, env }: BenchFolder, round: number): Promise<number> {
  const runner = { world: createRealWorld(), env };
  const repository = join(project, '.git');
  const plans = Array.from({ length: count }, (_, number) => {
    const folder = join(path, `ours-${round}-${number}`);
    mkdirSync(folder);
    const sessionId = `${String(number + 1).padStart(3, '0')}-${crypto.randomUUID()}`;
    return {
      projectPath: project,
      repository,
      path: join(folder, 'worktree'),
      branch: branchName(`bench-${round}`, sessionId, `session-${number + 1}`),
      intentFile: join(folder, 'workspace.json'),
      parents: [],
    };
  });
  const begin = performance.now();
  for (const plan of plans) {
    const made = await makeWorkspace(runner, plan);
    if (!made.ok) throw new Error(`${made.failure.message} ${made.failure.next}`);
  }
  const ms = performance.now() - begin;
  for (const plan of plans) git(project, env, 'worktree', 'remove', '--force', plan.path);
  return ms;
}

function git(cwd: string, env: Readonly<Record<string, string>>, ...args: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(['git', ...args], { cwd, env, stdin: 'ignore', stdout: 'ignore' });
  if (exitCode !== 0) throw new Error(`git ${args.join(' ')} ended with ${exitCode}: ${stderr}`);
}
