/** A user with groups whose sessions have worktrees, as a run leaves them; nothing is run and claude is not asked. */

import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Context } from '../../../src/cli/context.ts';
import type { EventBody } from '../../../src/core/event.ts';
import { defaultGroupConfig, noUsage, type SessionDefinition, type Workspace } from '../../../src/core/group.ts';
import { makeGroupId, makeSessionId } from '../../../src/core/id.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { createGroup, loadGroup } from '../../../src/store/group-store.ts';
import { type GroupWriter, openGroupWriter } from '../../../src/store/group-writer.ts';
import { groupPaths, sessionPaths } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import type { World } from '../../../src/system/world.ts';
import { git, Repository } from '../git/repository.ts';
import { worktreePath } from '../git/workspace-rig.ts';
import { User } from './user.ts';

export class WorktreeUser extends User {
  readonly world = createRealWorld();
  readonly repository = new Repository(join(this.folder, 'the "shop"'));
  readonly shop = this.repository.folder;
  readonly base: string;

  constructor() {
    super({ GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' });
    this.base = this.repository.commit({ 'README.md': '# Shop\n', '.gitignore': '*.log\n' });
  }

  get gitDir(): string {
    return join(this.shop, '.git');
  }

  /** A completed group; its sessions, by name, have worktrees in which nothing has been done yet. */
  group(slug: string, names: readonly string[], ended: 'completed' | 'failed' = 'completed'): WorktreeGroup {
    return new WorktreeGroup(this, slug, names, ended);
  }

  branches(): string[] {
    return git(this.shop, 'for-each-ref', '--format=%(refname:short)', 'refs/heads/').split('\n');
  }

  /** Paths of all worktrees but the first. */
  worktrees(): string[] {
    const lines = git(this.shop, 'worktree', 'list', '--porcelain').split('\n');
    return lines.flatMap((line) => (line.startsWith('worktree ') ? [line.slice('worktree '.length)] : [])).slice(1);
  }
}

export class WorktreeGroup {
  readonly user: WorktreeUser;
  readonly slug: string;
  readonly id: string;
  readonly folder: string;
  readonly #ids: ReadonlyMap<string, string>;

  constructor(user: WorktreeUser, slug: string, names: readonly string[], ended: 'completed' | 'failed') {
    this.user = user;
    this.slug = slug;
    const { world, data, shop, gitDir } = user;
    const at = Date.UTC(2026, 0, 4, 14, 30, 22);
    const createdAt = new Date(at).toISOString();
    this.id = makeGroupId(at, slug);
    this.#ids = new Map(names.map((name, index) => [name, makeSessionId(index + 1, crypto.randomUUID())]));
    const sessions = names.map(
      (name): SessionDefinition => ({
        id: this.session(name),
        name,
        description: '',
        projectPath: shop,
        prompt: 'Do it.',
        dependsOn: [],
        repository: gitDir,
        createdAt,
      }),
    );
    const definition = { id: this.id, name: slug, description: '', slug, createdAt, config: defaultGroupConfig };
    const created = createGroup(world, data, definition, sessions);
    if (!created.ok) throw new Error(created.failure.message);
    this.folder = groupPaths(data, this.id).folder;
    const runner = { id: crypto.randomUUID(), runner: world.machine.self };
    this.write((writer) => {
      writer.record([{ type: 'group_started', run: runner }]);
      for (const name of names) writer.record(this.#attempt(name, ended));
      const failed = { reason: 'sessions-failed', message: 'Sessions failed. Retry them.' };
      writer.record([ended === 'completed' ? { type: 'group_completed' } : { type: 'group_failed', ...failed }]);
    });
  }

  session(name: string): string {
    return this.#ids.get(name) as string;
  }

  path(name: string): string {
    return worktreePath(this.user.world, this.user.data, [this.id, this.session(name)], this.user.shop);
  }

  branch(name: string): string {
    return `cca/${this.slug}/${this.session(name).slice(0, 3)}-${name}`;
  }

  workspace(name: string): Workspace {
    const path = this.path(name);
    const { gitDir, base } = this.user;
    return { path, folder: path, repository: gitDir, branch: this.branch(name), base, target: 'main' };
  }

  get state(): GroupState {
    const state = loadGroup(this.user.world, this.user.data, this.id);
    if (!state.ok) throw new Error(state.failure.message);
    return state.value;
  }

  hasWorkspace(name: string): boolean {
    return this.state.sessions.get(this.session(name))?.workspace !== undefined;
  }

  write(act: (writer: GroupWriter) => void): void {
    const opened = openGroupWriter(this.user.world, this.user.data, this.id, 'command-test');
    if (!opened.ok) throw new Error(opened.failure.message);
    act(opened.value);
    opened.value.close();
  }

  async writeAsync(act: (writer: GroupWriter) => Promise<void>): Promise<void> {
    const opened = openGroupWriter(this.user.world, this.user.data, this.id, 'command-test');
    if (!opened.ok) throw new Error(opened.failure.message);
    try {
      await act(opened.value);
    } finally {
      opened.value.close();
    }
  }

  /** A commit on the session's branch. */
  commit(name: string, file = `${name}.txt`): string {
    writeFileSync(join(this.path(name), file), `work of ${name}\n`);
    git(this.path(name), 'add', '--all');
    git(this.path(name), 'commit', '--quiet', '-m', `Work of ${name}`);
    return git(this.path(name), 'rev-parse', 'HEAD');
  }

  /** As a hand-over does. */
  merge(name: string): void {
    git(this.user.shop, 'merge', '--quiet', '--no-edit', this.branch(name));
  }

  isThere(name: string): boolean {
    return existsSync(this.path(name));
  }

  #attempt(name: string, ended: 'completed' | 'failed'): EventBody[] {
    const { world, shop, base } = this.user;
    const sessionId = this.session(name);
    const paths = sessionPaths(groupPaths(this.user.data, this.id), sessionId);
    git(shop, 'worktree', 'add', '--quiet', '-b', this.branch(name), this.path(name), base);
    const workspace = this.workspace(name);
    const intent = { version: 1, state: 'made', parents: [], ...workspace };
    world.files.writeAtomic(paths.workspace, JSON.stringify(intent));
    const attempt = { id: crypto.randomUUID(), number: 1, kind: 'start', offset: 0, isolated: true } as const;
    const of = { sessionId, attemptId: attempt.id };
    const failure = { reason: 'no-result', message: 'It ended without a result.', next: 'Retry it.' } as const;
    return [
      { type: 'session_starting', sessionId, attempt },
      { type: 'session_isolated', ...of, workspace },
      ended === 'completed'
        ? {
            type: 'session_completed',
            ...of,
            result: 'Done.',
            work: { commit: base, files: 0, insertions: 0, deletions: 0 },
            usage: noUsage,
          }
        : { type: 'session_failed', ...of, ...failure, usage: noUsage },
    ];
  }
}

/** As much of a command's context as cleaning up takes; nothing is shown. */
export function quietContext(
  user: { readonly env: Record<string, string>; readonly folder: string },
  world: World,
): Context {
  const stderr = { line: () => {}, passing: () => {} };
  return { world, env: user.env, cwd: user.folder, stderr, notes: stderr } as unknown as Context;
}
