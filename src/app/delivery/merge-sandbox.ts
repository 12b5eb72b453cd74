/** Merges and accepts the work of sessions in scratch worktrees. No branch moves. */
import { dirname, join, relative } from 'node:path';
import { attemptMark, commandEnvironment } from '../../claude/launch/environment.ts';
import { shellWord } from '../../core/advice.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { defaultCommandTimeoutMs, type SessionId, type Workspace } from '../../core/group.ts';
import { planOf } from '../../core/plan/plan.ts';
import type { GroupState } from '../../core/state.ts';
import { type Git, isWorktreeOf } from '../../git/git.ts';
import { copyIncluded } from '../../git/include.ts';
import { isAncestor, nameFiles } from '../../git/run-git.ts';
import { layOutLevels, placeBelow } from '../../git/worktrees/levels.ts';
import {
  changedSince,
  makeScratch,
  mergeInto,
  quotedNames,
  removeScratch,
  repositoryDir,
  restore,
} from '../../git/worktrees/worktree.ts';
import type { GroupWriter } from '../../store/group-writer.ts';
import type { ScratchPlace } from '../../store/merge-journal.ts';
import { type GroupPaths, mergeFolderName, sessionPaths } from '../../store/paths.ts';
import { systemFailure } from '../../store/system-failure.ts';
import { delay } from '../../system/clock.ts';
import type { World } from '../../system/world.ts';
import { gatherProcesses, reap } from '../../worker/reap.ts';
import { sessionVariables } from '../../worker/session-variables.ts';
import {
  type CommandEnd,
  commandFailure,
  type RunningCommand,
  runShellCommand,
  type ShellCommand,
} from '../../worker/shell-command.ts';
import type { AppContext } from '../app-context.ts';
import { endProcessBy, onSignal } from '../signals.ts';
import { type MergeItem, type RepositoryPlan, titleOfItem, uncommittedOf, warnOnce } from './plan.ts';
import { removeAround } from './worktree-cleanup.ts';

/** How long to wait for git processes of a killed command, which normally end by themselves. */
const patienceMs = 60_000;
const lookMs = 20;

export function markedGit({ world, env }: Pick<AppContext, 'world' | 'env'>, mark: string): Git {
  return { world, env, mark: { [attemptMark]: mark } };
}

/** Waits until the processes of a killed command have ended. `end`: end the processes that are not git. */
export async function waitForGitExit(
  world: World,
  mark: string,
  { end }: { readonly end: boolean },
): Promise<Result<void>> {
  if (end) await reap(world, mark);
  for (let waited = 0; gatherProcesses(world, mark).length > 0; waited += lookMs) {
    if (waited > patienceMs) {
      const pids = gatherProcesses(world, mark).map(({ pid }) => pid);
      const message = `A git command of an interrupted merge is still running: process ${pids.join(', ')}.`;
      return fail('busy', message, 'Wait for it or end it, then run the command again.');
    }
    await delay(world.clock, lookMs);
  }
  return ok(undefined);
}

export interface SandboxMerge {
  readonly plan: RepositoryPlan;
  readonly start: string;
  readonly startName: string;
  readonly scratch: ScratchPlace;
}

export interface Integrated {
  readonly task: SandboxMerge;
  readonly commit: string;
  /** Sessions whose work the target already contained. */
  readonly contained: ReadonlySet<SessionId>;
  /** In the order in which they were merged. */
  readonly merged: readonly MergeItem[];
}

export function mergeMessage({ group }: GroupState, item: MergeItem): string {
  return `Merge ${item.workspace.branch}\n\nWork of session ${titleOfItem(item)} of group ${group.id}.\n`;
}

/** The user's checkout in which the sessions of a repository started. */
function checkoutOf({ repository, items }: RepositoryPlan): string {
  return items[0]?.workspace.checkout ?? repositoryDir(repository);
}

export class MergeSandbox {
  readonly git: Git;
  /** Value of the mark in the environment of all its processes. */
  readonly mark: string;
  readonly #context: AppContext;
  readonly #paths: GroupPaths;
  readonly #state: GroupState;
  readonly #env: Readonly<Record<string, string>>;
  readonly #worktrees: string;
  #command: RunningCommand | null = null;
  #interrupted = false;

  /** `worktrees`: the folder for scratch worktrees. */
  constructor(context: AppContext, { paths, state }: Pick<GroupWriter, 'paths' | 'state'>, worktrees: string) {
    this.mark = context.world.random.uuid();
    this.git = markedGit(context, this.mark);
    this.#context = context;
    this.#paths = paths;
    this.#state = state;
    this.#worktrees = worktrees;
    this.#env = commandEnvironment(context.env);
  }

  get isInterrupted(): boolean {
    return this.#interrupted;
  }

  /** Runs `work`. The first signal stops it in order, the second one at once. */
  async whileListening<T>(work: () => Promise<T>): Promise<T> {
    const ignore = onSignal(this.#context.world.clock, (signal) => {
      if (this.#interrupted) {
        ignore();
        endProcessBy(signal);
        return;
      }
      this.#interrupted = true;
      warnOnce(this.#context, 'Stopping ...');
      this.#command?.stop();
    });
    try {
      return await work();
    } finally {
      ignore();
    }
  }

  /** The scratch worktree of the `nth` repository, counted from 1. */
  scratchFor(plan: RepositoryPlan, nth: number): ScratchPlace {
    const { world, env } = this.#context;
    const top = join(this.#worktrees, mergeFolderName(this.#state.group.id), String(nth));
    const folders = { checkout: checkoutOf(plan), home: env.HOME ?? '/', others: [] };
    return { repository: plan.repository, path: placeBelow(world.files, top, folders), top };
  }

  /**
   * Merges the work in all repositories, then runs each acceptance command with all of it merged, so that a change over
   * several repositories is checked as one. Keeps the scratch worktrees.
   */
  async integrate(tasks: readonly SandboxMerge[]): Promise<Result<Integrated[]>> {
    const done: Integrated[] = [];
    for (const task of tasks) {
      const integrated = await this.#mergeAll(task);
      if (this.#interrupted) return interrupted();
      if (!integrated.ok) return integrated;
      done.push(integrated.value);
    }
    const accepted = await this.#acceptAll(done);
    return accepted.ok ? ok(done) : accepted;
  }

  async #mergeAll(task: SandboxMerge): Promise<Result<Integrated>> {
    const { plan, start, scratch } = task;
    const contained = new Set<SessionId>();
    let commit = start;
    let isMade = false;
    const before: MergeItem[] = [];
    for (const item of plan.items) {
      const { id } = item.record.definition;
      const known = await isAncestor(this.git, repositoryDir(plan.repository), item.source, commit);
      if (!known.ok) return known;
      if (known.value) {
        contained.add(id);
        continue;
      }
      if (!isMade) {
        warnOnce(this.#context, `Merging in a scratch worktree of ${repositoryDir(plan.repository)} ...`);
        const made = await makeScratch(this.git, plan.repository, scratch.path, start);
        if (!made.ok) return made;
        isMade = true;
      }
      const merged = await this.#merge(task, item, before);
      if (!merged.ok) return merged;
      commit = merged.value;
      before.push(item);
      if (this.#interrupted) return interrupted();
    }
    return ok({ task, commit, contained, merged: before });
  }

  /** Runs the acceptance commands in graph order over all repositories. */
  async #acceptAll(integrated: readonly Integrated[]): Promise<Result<void>> {
    const made = integrated.filter(({ merged }) => merged.length > 0);
    const { world, env } = this.#context;
    const places = new Map(made.map(({ task: { plan, scratch } }) => [checkoutOf(plan), scratch.path]));
    for (const { task } of made) {
      const { path, top } = task.scratch;
      layOutLevels(world.files, { top, path, checkout: checkoutOf(task.plan), home: env.HOME ?? '/', places });
    }
    const order = [...planOf(this.#state).graph.order];
    // Set up also without an acceptance command, because other sessions may depend on the set-up.
    const items = made.flatMap((one) => one.merged.map((item) => ({ one, item })));
    const at = ({ item }: (typeof items)[number]) => order.indexOf(item.record.definition.id);
    if (items.every(({ item }) => item.record.definition.accept === undefined)) return ok(undefined);
    const prepared = new Set<string>();
    for (const { one, item } of items.toSorted((a, b) => at(a) - at(b))) {
      const accepted = await this.#accept(one, item, prepared, made);
      if (!accepted.ok) return accepted;
    }
    return ok(undefined);
  }

  async #merge(task: SandboxMerge, item: MergeItem, before: readonly MergeItem[]): Promise<Result<string>> {
    const { plan, start, startName, scratch } = task;
    const message = mergeMessage(this.#state, item);
    const merged = await mergeInto(this.git, scratch.path, item.source, message);
    if (!merged.ok) return merged;
    if ('commit' in merged.value) return ok(merged.value.commit);
    const sides: readonly Side[] = [
      { title: plan.into, name: startName, commit: start },
      ...before.map((one) => ({ title: titleOfItem(one), name: one.workspace.branch, commit: one.source })),
    ];
    return conflictFailure(this.git, item, sides, merged.value.conflicts);
  }

  async #accept(
    { task, commit }: Integrated,
    item: MergeItem,
    prepared: Set<string>,
    all: readonly Integrated[],
  ): Promise<Result<void>> {
    const { definition } = item.record;
    const { accept, acceptTimeoutMs = defaultCommandTimeoutMs } = definition;
    const paths = sessionPaths(this.#paths, definition.id);
    const logFile = join(paths.folder, 'merge-accept.log');
    const cwd = join(task.scratch.path, relative(item.workspace.path, item.workspace.folder));
    try {
      this.git.world.files.makeFolder(paths.folder);
      this.git.world.files.remove(logFile);
      this.git.world.files.makeFolder(cwd);
    } catch (error) {
      return { ok: false, failure: systemFailure(logFile, error) };
    }
    const env = this.#environmentOf(task, item, cwd, all);
    const ready = await this.#prepare(task, item, { cwd, env }, prepared);
    if (!ready.ok || accept === undefined) return ready;
    warnOnce(this.#context, `Accepting ${titleOfItem(item)} ...`);
    const end = await this.#run({ command: accept, cwd, env, logFile, timeoutMs: acceptTimeoutMs, mark: this.mark });
    if (this.#interrupted) return interrupted();
    if (end.ok) return restore(this.git, task.scratch.path, commit);
    const what = `On the work merged into ${task.plan.into}, the acceptance command of ${titleOfItem(item)}`;
    return fail(
      'not-accepted',
      commandFailure(what, accept, end, acceptTimeoutMs),
      `No branch was moved. Its output is in ${logFile}. Correct the work in ${item.workspace.path}, commit it ` +
        'there and run the command again.',
    );
  }

  #environmentOf({ scratch }: SandboxMerge, { record, workspace }: MergeItem, cwd: string, all: readonly Integrated[]) {
    const there = { ...workspace, path: scratch.path, folder: cwd };
    const folderOf = (other: Workspace): string | undefined => {
      const merged = all.find(({ task: { plan } }) => plan.repository === other.repository)?.task.scratch.path;
      return merged && join(merged, relative(other.path, other.folder));
    };
    return { ...this.#env, ...sessionVariables(this.git, this.#state, { ...record, workspace: there }, folderOf) };
  }

  /** Copies ignored files and runs the set-up command, once per project of a scratch worktree. */
  async #prepare(
    task: SandboxMerge,
    item: MergeItem,
    { cwd, env }: Pick<ShellCommand, 'cwd' | 'env'>,
    prepared: Set<string>,
  ): Promise<Result<void>> {
    const { id, setup, setupTimeoutMs = defaultCommandTimeoutMs, projectPath } = item.record.definition;
    const key = `${setup}\0${cwd}`;
    if (prepared.has(key)) return ok(undefined);
    prepared.add(key);
    const copied = await copyIncluded(
      this.git,
      { ...item.workspace, path: task.scratch.path, folder: cwd },
      projectPath,
    );
    if (!copied.ok) return copied;
    if (setup === undefined || this.#interrupted) return ok(undefined);
    const logFile = join(sessionPaths(this.#paths, id).folder, 'merge-setup.log');
    const end = await this.#run({ command: setup, cwd, env, logFile, timeoutMs: setupTimeoutMs, mark: this.mark });
    if (end.ok) return ok(undefined);
    const what = `In a scratch worktree, the set-up command of ${titleOfItem(item)}`;
    const next = `No branch was moved. Its output is in ${logFile}. Correct it and run the command again.`;
    return fail('setup-failed', commandFailure(what, setup, end, setupTimeoutMs), next);
  }

  async #run(options: ShellCommand): Promise<CommandEnd> {
    this.#command = runShellCommand(this.git.world, options);
    const end = await this.#command.ended;
    this.#command = null;
    return end;
  }
}

export async function clearScratches(git: Git, places: readonly ScratchPlace[]): Promise<Result<void>> {
  let result: Result<void> = ok(undefined);
  for (const { repository, path } of places) {
    const removed = await removeScratch(git, repository, path);
    if (!removed.ok) result = removed;
  }
  for (const top of new Set(places.map(({ top }) => dirname(top)))) {
    const removed = removeAround(git, top);
    if (!removed.ok) result = removed;
  }
  return result;
}

function interrupted(): Result<never> {
  return fail('busy', 'The command was interrupted.', 'No branch was moved.');
}

interface Side {
  readonly title: string;
  readonly name: string;
  readonly commit: string;
}

/**
 * Always fails: with `merge-conflict`, the conflicting sessions and git commands to merge, or with git's reason.
 * `sides`: the target, then the merged work in order.
 */
async function conflictFailure(
  git: Git,
  item: MergeItem,
  sides: readonly Side[],
  files: readonly string[],
): Promise<Result<never>> {
  const { path, branch, repository } = item.workspace;
  const guilty: Side[] = [];
  for (const side of sides) {
    const changed = await changedSince(git, repository, item.source, side.commit, files);
    if (!changed.ok) return changed;
    if (changed.value) guilty.push(side);
  }
  // A renamed folder may conflict with files that no side changed.
  const others = guilty.length > 0 ? guilty : sides;
  const isThere = isWorktreeOf(git.world.files, repository, path);
  const folder = shellWord(isThere ? path : repositoryDir(repository));
  const uncommitted = await uncommittedOf(git, item.workspace);
  if (!uncommitted.ok) return uncommitted;
  const names = nameFiles(uncommitted.value);
  const first = names === '' ? '' : `First commit the uncommitted files in ${path}: ${names}. `;
  const checkout = isThere ? [] : [`checkout ${shellWord(branch)}`];
  const steps = [...checkout, ...others.map(({ name }) => `merge ${shellWord(name)}`)];
  const commands = steps.map((step) => `git -C ${folder} ${step}`).join('", then "');
  const whom = others.map(({ title }) => title).join(' and ');
  return fail(
    'merge-conflict',
    `Merge conflict between ${titleOfItem(item)} and ${whom} in ${repositoryDir(repository)}: both changed ` +
      `${quotedNames(files)}.`,
    `No branch was moved. ${first}Merge with "${commands}", resolve and commit the conflict, ` +
      'then run the command again.',
  );
}
