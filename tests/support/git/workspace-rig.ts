/** A user's repository and folders for worktrees, with the real git and without the machine's configuration. */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeFailure, type Failure, type Result } from '../../../src/core/failure.ts';
import type { Workspace } from '../../../src/core/group.ts';
import { findRepository, type Git } from '../../../src/git/git.ts';
import { placeBelow } from '../../../src/git/worktrees/levels.ts';
import type { MadeWorkspace, WorkspacePlan } from '../../../src/git/worktrees/workspace.ts';
import { workspaceName, worktreesFolder } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import type { World } from '../../../src/system/world.ts';
import { type FileTree, git, Repository, writeTree } from './repository.ts';

/** Where a run creates the worktree of a session. `project`: its checkout, or a folder in that. */
export function worktreePath(
  { files }: World,
  root: string,
  [groupId, sessionId]: readonly [groupId: string, sessionId: string],
  project: string,
): string {
  const checkout = findRepository(files, project)?.top ?? project;
  const place = { checkout, home: '/home/nobody', others: [] };
  return placeBelow(files, join(worktreesFolder(root), workspaceName(groupId, sessionId)), place);
}

export class WorkspaceRig {
  /** Real path, with spaces and quotes in it. */
  readonly folder: string;
  readonly repository: Repository;
  readonly world: World;
  readonly git: Git;
  readonly globalConfig: string;

  constructor(name = `user's "repo"`) {
    this.folder = realpathSync(mkdtempSync(join(tmpdir(), 'cca worktree ')));
    this.repository = new Repository(join(this.folder, name));
    this.globalConfig = join(this.folder, 'gitconfig');
    writeFileSync(this.globalConfig, '[user]\n\tname = Ada\n\temail = ada@example.org\n');
    mkdirSync(join(this.folder, 'home'));
    this.world = createRealWorld();
    this.git = this.gitOf(this.world);
  }

  gitOf(world: World, variables: Readonly<Record<string, string>> = {}): Git {
    return {
      world,
      env: {
        PATH: process.env.PATH ?? '',
        HOME: join(this.folder, 'home'),
        GIT_CONFIG_GLOBAL: this.globalConfig,
        GIT_CONFIG_SYSTEM: '/dev/null',
        ...variables,
      },
    };
  }

  get top(): string {
    return this.repository.folder;
  }

  get gitDir(): string {
    return join(this.top, '.git');
  }

  /** In the user's checkout. */
  run(...args: string[]): string {
    return git(this.top, ...args);
  }

  /** The input of makeWorkspace for the session of that number; its folder is created. */
  plan(number = 1, changes: Partial<WorkspacePlan> = {}): WorkspacePlan {
    const folder = join(this.folder, 'sessions', String(number));
    mkdirSync(folder, { recursive: true });
    return {
      projectPath: this.top,
      repository: this.gitDir,
      path: join(folder, 'worktree'),
      branch: `cca/group/00${number}-work`,
      intentFile: join(folder, 'workspace.json'),
      parents: [],
      ...changes,
    };
  }

  /** Commits to new branches of that name and start, without touching the checkout; returns its id. */
  sideCommit(name: string, start: string, tree: FileTree): string {
    const folder = join(this.folder, `side ${name}`);
    this.run('worktree', 'add', '--quiet', '-b', name, folder, start);
    writeTree(folder, tree);
    git(folder, 'add', '--all');
    git(folder, 'commit', '--quiet', '-m', name);
    const commit = git(folder, 'rev-parse', 'HEAD');
    this.run('worktree', 'remove', folder);
    return commit;
  }

  /** Everything of the user's checkout that must not change. */
  checkout(top = this.top): unknown {
    const index = join(git(top, 'rev-parse', '--absolute-git-dir'), 'index');
    return {
      head: git(top, 'symbolic-ref', '--quiet', 'HEAD'),
      status: git(top, '--no-optional-locks', 'status', '--porcelain', '-z', '--untracked-files=all', '--ignored'),
      stash: git(top, 'stash', 'list'),
      index: statSync(index).mtimeMs,
      files: readdirSync(top).sort(),
      config: readFileSync(join(this.gitDir, 'config'), 'utf8'),
    };
  }

  /** Throws when an object is missing or damaged. */
  fsck(): void {
    git(this.top, 'fsck', '--strict', '--no-dangling');
  }

  branches(): string[] {
    return this.run('for-each-ref', '--format=%(refname:short)', 'refs/heads/cca')
      .split('\n')
      .filter((name) => name !== '');
  }

  /** Paths of the worktrees besides the user's own. */
  worktrees(): string[] {
    return this.run('worktree', 'list', '--porcelain', '-z')
      .split('\0')
      .flatMap((field) => (field.startsWith('worktree ') ? [field.slice('worktree '.length)] : []))
      .slice(1);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export function value<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(`${result.failure.reason}: ${describeFailure(result.failure)}`);
}

export function failure<T>(result: Result<T>): Failure {
  if (!result.ok) return result.failure;
  throw new Error(`It did not fail: ${JSON.stringify(result.value)}`);
}

export function made(result: Result<MadeWorkspace>): Workspace {
  return value(result).workspace;
}

/** A world that crashes before, or after, the given program call or file write (counted from 1). */
export class SimulatedCrash extends Error {}

export function crashingWorld(world: World, at: number, when: 'before' | 'after'): { world: World; count(): number } {
  let calls = 0;
  const step = <T>(work: () => T): T => {
    calls += 1;
    if (calls > at || (calls === at && when === 'before')) throw new SimulatedCrash();
    const result = work();
    if (calls < at) return result;
    if (result instanceof Promise) {
      return result.then(() => {
        throw new SimulatedCrash();
      }) as T;
    }
    throw new SimulatedCrash();
  };
  return {
    count: () => calls,
    world: {
      ...world,
      files: {
        ...world.files,
        writeAtomic: (...args) => step(() => world.files.writeAtomic(...args)),
        remove: (...args) => step(() => world.files.remove(...args)),
      },
      processes: Object.assign(Object.create(world.processes), {
        run: (options: Parameters<World['processes']['run']>[0]) => step(() => world.processes.run(options)),
      }),
    },
  };
}
