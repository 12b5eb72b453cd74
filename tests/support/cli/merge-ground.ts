/** A user with several repositories and a group whose sessions have worked in worktrees of them; nothing is run. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { EventBody } from '../../../src/core/event.ts';
import { defaultGroupConfig, noUsage, type SessionDefinition, type Workspace } from '../../../src/core/group.ts';
import { makeGroupId, makeSessionId } from '../../../src/core/id.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { createGroup, loadGroup } from '../../../src/store/group-store.ts';
import { type GroupWriter, openGroupWriter } from '../../../src/store/group-writer.ts';
import { type GroupPaths, groupPaths, sessionPaths } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { type FileTree, git, Repository, writeTree } from '../git/repository.ts';
import { worktreePath } from '../git/workspace-rig.ts';
import { User } from './user.ts';

export interface WorkSketch {
  readonly name: string;
  readonly repository: string;
  /** What the session changed; absent = nothing. */
  readonly tree?: FileTree;
  /** What a tree cannot say, done in the worktree before its commit. */
  readonly change?: (folder: string) => void;
  readonly after?: readonly string[];
  /** Below the root of the repository. */
  readonly project?: string;
  readonly status?: 'completed' | 'failed' | 'pending';
  readonly isolated?: boolean;
  /** Branch that was checked out; null = none was. */
  readonly target?: string | null;
  readonly result?: string;
  readonly fields?: Partial<SessionDefinition>;
}

/** Everything about a repository that a refused command must not change. */
export interface RepositoryState {
  readonly refs: string;
  readonly status: string;
  readonly worktrees: string;
}

export class MergeUser extends User {
  readonly world = createRealWorld();
  readonly #repositories = new Map<string, Repository>();

  constructor(env: Readonly<Record<string, string>> = {}) {
    super({ GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null', ...env });
  }

  /** Made with a first commit when it is missing. */
  repository(name: string): Repository {
    const known = this.#repositories.get(name);
    if (known !== undefined) return known;
    const made = new Repository(join(this.folder, 'code', name));
    made.commit({ 'README.md': `# ${name}\n`, 'shared.txt': 'one\ntwo\nthree\n', '.gitignore': '*.ignored\n' });
    this.#repositories.set(name, made);
    return made;
  }

  folderOf(name: string): string {
    return this.repository(name).folder;
  }

  tip(name: string, branch = 'main'): string {
    return git(this.folderOf(name), 'rev-parse', `refs/heads/${branch}`);
  }

  snapshot(name: string): RepositoryState {
    const folder = this.folderOf(name);
    return {
      refs: git(folder, 'for-each-ref'),
      status: git(folder, 'status', '--porcelain', '--untracked-files=all', '--ignored'),
      worktrees: git(folder, 'worktree', 'list', '--porcelain'),
    };
  }

  /** Sound, without a scratch worktree, and its checkout is what its branch says. */
  expectSound(name: string): void {
    const folder = this.folderOf(name);
    git(folder, 'fsck', '--strict');
    const left = git(folder, 'worktree', 'list', '--porcelain')
      .split('\n')
      .filter((line) => line.startsWith('worktree ') && line.includes('-merge-'));
    if (left.length > 0) throw new Error(`left behind: ${left.join(', ')}`);
  }

  mergeGroup(slug: string, sketches: readonly WorkSketch[], status?: 'failed' | 'paused'): MergeGroup {
    return new MergeGroup(this, slug, sketches, status);
  }
}

export class MergeGroup {
  readonly id: string;
  readonly paths: GroupPaths;
  readonly #user: MergeUser;
  readonly #slug: string;
  readonly #ids: ReadonlyMap<string, string>;
  readonly #commits = new Map<string, string>();
  readonly #projects = new Map<string, string>();

  constructor(user: MergeUser, slug: string, sketches: readonly WorkSketch[], ended?: 'failed' | 'paused') {
    this.#user = user;
    this.#slug = slug;
    const at = Date.UTC(2026, 0, 4, 14, 30, 22);
    const createdAt = new Date(at).toISOString();
    this.id = makeGroupId(at, slug);
    this.paths = groupPaths(user.data, this.id);
    this.#ids = new Map(sketches.map(({ name }, index) => [name, makeSessionId(index + 1, crypto.randomUUID())]));
    for (const { name, repository } of sketches) this.#projects.set(name, user.folderOf(repository));
    const sessions = sketches.map(({ name, repository, after = [], project = '', fields }): SessionDefinition => {
      const folder = user.folderOf(repository);
      return {
        id: this.session(name),
        name,
        description: `The ${name} part`,
        projectPath: join(folder, project),
        prompt: `Do ${name}.`,
        dependsOn: after.map((other) => this.session(other)),
        repository: join(folder, '.git'),
        createdAt,
        ...fields,
      };
    });
    const definition = { id: this.id, name: 'The "shop"', description: 'All of it.', slug, createdAt };
    const created = createGroup(user.world, user.data, { ...definition, config: defaultGroupConfig }, sessions);
    if (!created.ok) throw new Error(created.failure.message);
    this.write((writer) => {
      writer.record([{ type: 'group_started', run: { id: crypto.randomUUID(), runner: user.world.machine.self } }]);
      for (const sketch of sketches) writer.record(this.#attempt(sketch, sketches));
      const said = { reason: 'sessions-failed', message: 'Not all is done.' };
      writer.record([ended === undefined ? { type: 'group_completed' } : { type: `group_${ended}`, ...said }]);
    });
  }

  session(name: string): string {
    return this.#ids.get(name) as string;
  }

  path(name: string): string {
    const { world, data } = this.#user;
    return worktreePath(world, data, [this.id, this.session(name)], this.#projects.get(name) ?? '');
  }

  branch(name: string): string {
    return `cca/${this.#slug}/${this.session(name).slice(0, 3)}-${name}`;
  }

  commit(name: string): string {
    return this.#commits.get(name) as string;
  }

  get state(): GroupState {
    const state = loadGroup(this.#user.world, this.#user.data, this.id);
    if (!state.ok) throw new Error(state.failure.message);
    return state.value;
  }

  mergedInto(name: string): string | undefined {
    return this.state.sessions.get(this.session(name))?.mergedInto;
  }

  /** Neither a journal nor scratch worktrees are left. */
  isTidy(): boolean {
    return !existsSync(join(this.paths.folder, 'merge.json')) && !existsSync(join(this.paths.folder, 'merge'));
  }

  /** Sessions that still have a worktree. */
  worktrees(): string[] {
    return [...this.#ids.keys()].filter((name) => existsSync(this.path(name)));
  }

  files(name: string): string[] {
    return readdirSync(sessionPaths(this.paths, this.session(name)).folder).sort();
  }

  write(act: (writer: GroupWriter) => void): void {
    const opened = openGroupWriter(this.#user.world, this.#user.data, this.id, 'command-test');
    if (!opened.ok) throw new Error(opened.failure.message);
    act(opened.value);
    opened.value.close();
  }

  #attempt(sketch: WorkSketch, all: readonly WorkSketch[]): EventBody[] {
    const { name, repository, status = 'completed', isolated = true } = sketch;
    if (status === 'pending') return [];
    const sessionId = this.session(name);
    const id = crypto.randomUUID();
    const of = { sessionId, attemptId: id };
    const isolation = isolated ? ({ isolated: true } as const) : {};
    const starting = { id, number: 1, kind: 'start', offset: 0, ...isolation } as const;
    const bodies: EventBody[] = [{ type: 'session_starting', sessionId, attempt: starting }];
    const parents = all.filter((other) => sketch.after?.includes(other.name) && other.repository === repository);
    const workspace = this.#workspace(sketch, parents);
    if (isolated) bodies.push({ type: 'session_isolated', ...of, workspace });
    if (status === 'failed') {
      const failure = { reason: 'no-result', message: 'It ended without a result.', next: 'Retry it.' } as const;
      return [...bodies, { type: 'session_failed', ...of, ...failure, usage: noUsage }];
    }
    const work = { commit: this.commit(name), files: 2, insertions: 7, deletions: 3 };
    const result = sketch.result ?? `${name} is done.`;
    return [...bodies, { type: 'session_completed', ...of, result, ...(isolated ? { work } : {}), usage: noUsage }];
  }

  #workspace(
    { name, repository, tree = {}, change, project = '', target }: WorkSketch,
    parents: readonly WorkSketch[],
  ): Workspace {
    const folder = this.#user.folderOf(repository);
    const path = this.path(name);
    const branch = this.branch(name);
    const [first, ...others] = parents.map((parent) => this.commit(parent.name));
    const base = first ?? git(folder, 'rev-parse', 'HEAD');
    git(folder, 'worktree', 'add', '--quiet', '-b', branch, path, base);
    for (const other of others) git(path, 'merge', '--quiet', '--no-edit', other);
    if (Object.keys(tree).length > 0) {
      writeTree(path, tree);
      change?.(path);
      git(path, 'add', '--all', '--force');
      git(path, 'commit', '--quiet', '-m', `Work of ${name}`);
    }
    this.#commits.set(name, git(path, 'rev-parse', 'HEAD'));
    const goal = target === undefined ? { target: 'main' } : target === null ? {} : { target };
    return { path, folder: join(path, project), repository: join(folder, '.git'), branch, base, ...goal };
  }
}
