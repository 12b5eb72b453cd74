/** The checks of a session's work by its acceptance command; what they have shown is kept as evidence. */
import { join, relative } from 'node:path';
import { defined } from '../../core/defined.ts';
import type { Warning } from '../../core/event.ts';
import { type CheckRun, type Evidence, type GuardedChange, guardedText } from '../../core/evidence.ts';
import { ok, type Result } from '../../core/failure.ts';
import { defaultCommandTimeoutMs, type Workspace } from '../../core/group.ts';
import type { ItemRequest } from '../../core/item.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { printDiff, sinceState } from '../../git/diff.ts';
import type { Git } from '../../git/git.ts';
import { type Guard, guardedChanges, putGuarded } from '../../git/guard.ts';
import { copyIncluded } from '../../git/include.ts';
import { nameFiles, runOwn } from '../../git/run-git.ts';
import {
  aroundOf,
  checkoutOf,
  layOutLevels,
  placeBelow,
  placeInLevels,
  removeLevels,
} from '../../git/worktrees/levels.ts';
import { makeScratch, restore } from '../../git/worktrees/worktree.ts';
import { checkFolderName, type SessionPaths } from '../../store/paths.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { Rejected } from '../facts.ts';
import { lackingSetup } from '../prepare/lacking-setup.ts';
import { noteCheckout, removeCheckout, upstreamsOf } from '../prepare/workspace-links.ts';
import { sessionVariables } from '../session-variables.ts';
import { type CommandEnd, commandFailure, type ShellCommand } from '../shell-command.ts';

export interface TimedEnd {
  readonly end: CommandEnd;
  readonly ms: number;
}

type Tried = Result<TimedEnd>;

export interface CheckContext {
  readonly git: Git;
  readonly state: GroupState;
  readonly record: SessionRecord;
  readonly paths: SessionPaths;
  readonly worktrees: string;
  /** Without the variables of the session. */
  readonly env: Readonly<Record<string, string>>;
  /** The commit with all of the work; absent for a session without a worktree. */
  readonly commit: string | undefined;
  /** Fails when the command cannot be started, or the acceptance was stopped. */
  run(command: Omit<ShellCommand, 'mark'>): Promise<Tried>;
  /** In the worktree, or in the project folder. */
  runHere(accept: string): Promise<Tried>;
}

export type Checked =
  | { readonly status: 'accepted'; readonly evidence: Evidence }
  | ({ readonly status: 'rejected' } & Rejected)
  | { readonly status: 'guard-changed'; readonly request: ItemRequest; readonly evidence: Evidence };

/** A checkout of the session's commit, laid out as its workspace. */
interface FreshCheckout {
  readonly workspace: Workspace;
  readonly top: string;
  readonly env: Readonly<Record<string, string>>;
}

/** `top` is noted before anything is made. Fails as git does. */
export async function makeFresh(context: CheckContext, commit: string): Promise<Result<FreshCheckout | null>> {
  const { git, state, record, paths, worktrees } = context;
  const { files } = git.world;
  const { workspace, definition } = record;
  if (workspace === undefined) return ok(null);
  const checkout = checkoutOf(files, record);
  const home = git.env.HOME ?? '/';
  const others = upstreamsOf(files, state, record).map((one) => one.checkout);
  const top = join(worktrees, checkFolderName(state.group.id, definition.id));
  const path = placeBelow(files, top, { checkout, home, others });
  noteCheckout(files, paths, path, workspace.repository);
  const made = await makeScratch(git, workspace.repository, path, commit);
  if (!made.ok) return made;
  const around = aroundOf(git, [state.group.id, definition.id], workspace);
  const placed = others.flatMap((other): [string, string][] => {
    const place = around === null ? null : placeInLevels(around, other);
    const folder = place === null ? null : files.realPath(place);
    return folder === null ? [] : [[other, folder]];
  });
  const places = new Map(placed);
  layOutLevels(files, { top, path, checkout: files.realPath(checkout) ?? checkout, home, places });
  const there = { ...workspace, path, folder: join(path, relative(workspace.path, workspace.folder)) };
  const folderOf = (other: Workspace): string | undefined => {
    const place = places.get(other.checkout ?? '');
    return place && join(place, relative(other.path, other.folder));
  };
  const variables = sessionVariables(git, state, { ...record, workspace: there }, folderOf);
  return ok({ workspace: there, top, env: { ...context.env, ...variables } });
}

export async function removeFresh({ git, paths }: CheckContext, { workspace, top }: FreshCheckout): Promise<void> {
  // Noted until it is gone, so a failure here only leaves it for a later clean-up.
  const removed = await removeCheckout(git, paths, workspace.path);
  try {
    if (removed.ok && git.world.files.entryKind(top) !== null) removeLevels(git.world.files, top);
  } catch {}
}

/** `npm` and others end so when the command itself cannot be run. */
const notRun: ReadonlySet<number | null> = new Set([126, 127]);
const namesShown = 5;

export class Checks {
  readonly warnings: Warning[] = [];
  readonly #context: CheckContext;
  readonly #accept: string;
  readonly #fresh: FreshCheckout | null;
  readonly #runs: CheckRun[] = [];
  /** A setup command failed, not the acceptance command. */
  #failedSetup: string | null = null;
  #isPrepared = false;

  /** `fresh` null: the command runs in the worktree or in the project folder only. */
  constructor(context: CheckContext, accept: string, fresh: FreshCheckout | null) {
    this.#context = context;
    this.#accept = accept;
    this.#fresh = fresh;
  }

  /** Fails when the machine cannot run a command or git, or the acceptance was stopped. */
  async judge(): Promise<Result<Checked>> {
    const { commit, paths, record } = this.#context;
    const where = this.#fresh !== null ? 'fresh' : commit === undefined ? 'folder' : 'worktree';
    const own = await this.#check({ where, code: 'own', log: paths.acceptLog });
    if (!own.ok) return own;
    if (!own.value.end.ok) return this.#rejected(own.value);
    const guard = await this.#guard();
    if (!guard.ok) return guard;
    const { changes } = guard.value;
    if (this.#fresh !== null && commit !== undefined && changes.length > 0) {
      const base = await this.#checkAt('base-guarded', guard.value, paths.guardedLog);
      if (!base.ok) return base;
      if (!base.value.end.ok) return this.#guardChanged(changes, base.value.end.tail);
    }
    const isAsked = record.definition.prove === true;
    const unproven = isAsked ? await this.#prove(guard.value) : ok(null);
    if (!unproven.ok) return unproven;
    if (unproven.value !== null) return ok(this.#notProven(unproven.value, changes));
    const grave = changes.filter(({ change }) => change !== 'changed' && change !== 'added');
    const message = `The session changed files that guard the result: ${guardedText(grave)}.`;
    if (grave.length > 0) this.warnings.push({ code: 'guarded-files', message });
    return ok({ status: 'accepted', evidence: this.#evidence(changes, isAsked ? { proven: true } : {}) });
  }

  #evidence(
    guarded: readonly GuardedChange[] = [],
    more: Pick<Evidence, 'proven' | 'needsUncommitted'> = {},
  ): Evidence {
    const flaky = this.#runs.some((run) => run.flaky) ? { flaky: true as const } : {};
    return { runs: [...this.#runs], guarded, ...flaky, ...more };
  }

  /** A failing command is repeated once, unless it cannot be run or takes too long. */
  async #check({ where, code, log }: Pick<CheckRun, 'where' | 'code' | 'log'>): Promise<Tried> {
    const first = await this.#once(where, log);
    if (!first.ok) return first;
    const { end } = first.value;
    const repeats = !end.ok && !end.timedOut && !end.printedTooMuch && !notRun.has(end.exitCode);
    const last = repeats ? await this.#once(where, log) : first;
    if (!last.ok) return last;
    const isFlaky = repeats && last.value.end.ok;
    const exitCode = last.value.end.timedOut ? null : last.value.end.exitCode;
    const flaky = isFlaky ? { flaky: true as const } : {};
    this.#runs.push({ command: this.#accept, where, code, exitCode, ms: last.value.ms, log, ...flaky });
    const message = `The acceptance command is flaky: it failed, and passed when it was repeated. See ${log}.`;
    if (isFlaky) this.warnings.push({ code: 'flaky-check', message });
    return last;
  }

  async #once(where: CheckRun['where'], logFile: string): Promise<Tried> {
    const fresh = this.#fresh;
    if (where !== 'fresh' || fresh === null) return this.#context.runHere(this.#accept);
    const ready = await this.#prepare(fresh, logFile);
    if (!ready.ok || !ready.value.end.ok) return ready;
    const { acceptTimeoutMs: timeoutMs = defaultCommandTimeoutMs } = this.#context.record.definition;
    const cwd = fresh.workspace.folder;
    return this.#context.run({ command: this.#accept, cwd, env: fresh.env, logFile, timeoutMs });
  }

  /** Ignored files that the project names, and the setup command, once. */
  async #prepare({ workspace, env }: FreshCheckout, logFile: string): Promise<Tried> {
    const { git, record, run } = this.#context;
    const { setup, setupTimeoutMs: timeoutMs = defaultCommandTimeoutMs, projectPath } = record.definition;
    this.#failedSetup = null;
    if (this.#isPrepared) return nothingDone;
    const copied = await copyIncluded(git, workspace, projectPath);
    if (!copied.ok) return copied;
    const cwd = workspace.folder;
    const done = setup === undefined ? nothingDone : await run({ command: setup, cwd, env, logFile, timeoutMs });
    if (done.ok && done.value.end.ok) this.#isPrepared = true;
    else this.#failedSetup = setup ?? null;
    return done;
  }

  /** With the old guarded files and the new code, or the other way round. */
  async #checkAt(code: 'base-guarded' | 'base', guard: Guard, log: string): Promise<Tried> {
    const { git, record, commit = '' } = this.#context;
    const base = record.workspace?.base ?? '';
    const path = this.#fresh?.workspace.path ?? '';
    git.world.files.remove(log);
    const reset = await restore(git, path, code === 'base' ? base : commit);
    if (!reset.ok) return reset;
    if (code === 'base' || guard.affectsSetup) {
      const cleaned = await runOwn(git, path, ['clean', '-ffdxq']);
      if (!cleaned.ok) return cleaned;
      this.#isPrepared = false;
    }
    const put = await putGuarded(git, path, guard, {
      from: base,
      to: commit,
      end: code === 'base' ? 'to' : 'from',
    });
    return put.ok ? this.#check({ where: 'fresh', code, log }) : put;
  }

  async #guard(): Promise<Result<Guard>> {
    const { git, record, paths, commit } = this.#context;
    const { guard: globs, setup, projectPath } = record.definition;
    const { workspace } = record;
    const commands = [this.#accept, ...(setup === undefined ? [] : [setup])];
    if (workspace !== undefined) {
      const inside = relative(workspace.path, workspace.folder);
      // Work that is left uncommitted on purpose counts as well.
      const to = record.definition.commit === false ? undefined : commit;
      return guardedChanges(
        git,
        workspace.path,
        { from: workspace.base, ...defined({ to }) },
        { globs, commands, inside },
      );
    }
    const begin = git.world.files.readText(paths.begin);
    const since = begin === null ? null : sinceState(git, projectPath, begin);
    const top = since === null ? null : checkoutOf(git.world.files, record);
    if (since === null || top === null) return ok(nothingGuarded);
    return guardedChanges(git, top, since, { globs, commands, inside: relative(top, projectPath) });
  }

  /** The session's tests must fail on the code from before it, by the check itself. */
  async #prove(guard: Guard): Promise<Result<Unproven | null>> {
    const { paths } = this.#context;
    if (this.#fresh === null) return ok({ why: 'without a fresh checkout they cannot run without it', output: '' });
    const base = await this.#checkAt('base', guard, paths.proofLog);
    if (!base.ok) return base;
    const { end } = base.value;
    const output = end.tail;
    if (end.ok) return ok({ why: 'they also pass without it', output });
    if (this.#failedSetup !== null) return ok({ why: 'without it the set-up command fails', output });
    const isRun = !end.timedOut && !notRun.has(end.exitCode);
    return ok(isRun ? null : { why: 'without it the acceptance command cannot run or end', output });
  }

  #notProven({ why, output }: Unproven, changes: readonly GuardedChange[]): Checked {
    const next = `Add a test that fails without the change. The output is in ${this.#context.paths.proofLog}.`;
    const message = `The tests do not prove the change: ${why}.`;
    return { status: 'rejected', reason: 'not-proven', message, output, next, evidence: this.#evidence(changes) };
  }

  /** It failed; where that is because of uncommitted files, they are named. */
  async #rejected({ end }: TimedEnd): Promise<Result<Checked>> {
    const { record, paths } = this.#context;
    const { acceptTimeoutMs = defaultCommandTimeoutMs, setupTimeoutMs = defaultCommandTimeoutMs } = record.definition;
    const setup = this.#failedSetup;
    const lacks = this.#fresh === null ? [] : lackingSetup(this.#context.git.world, record.definition);
    const next = [`Its output is in ${paths.acceptLog}.`, ...lacks].join(' ');
    const lacking = this.#fresh === null || end.timedOut ? ok([]) : await this.#lacking(this.#fresh);
    if (!lacking.ok) return lacking;
    if (lacking.value.length > 0) {
      const here = await this.#check({ where: 'worktree', code: 'own', log: paths.acceptLog });
      if (!here.ok) return here;
      if (here.value.end.ok) return ok(this.#needsUncommitted(lacking.value, end.tail));
    }
    const message =
      setup === null
        ? commandFailure('The acceptance command', this.#accept, end, acceptTimeoutMs)
        : commandFailure('In a fresh checkout of its commit, the set-up command', setup, end, setupTimeoutMs);
    const evidence = this.#evidence();
    return ok({ status: 'rejected', reason: 'not-accepted', message, output: end.tail, next, evidence });
  }

  #needsUncommitted(names: readonly string[], output: string): Checked {
    const { paths } = this.#context;
    const files = nameFiles(names.slice(0, namesShown));
    return {
      status: 'rejected',
      reason: 'not-accepted',
      message: `The acceptance command passes only in the worktree, with files that are in no commit: ${files}.`,
      output,
      next:
        'Commit them, name them in .worktreeinclude, or make them with --setup; or allow them with --accept-in ' +
        `worktree. The output is in ${paths.acceptLog}.`,
      isFinal: true,
      evidence: this.#evidence([], { needsUncommitted: names }),
    };
  }

  /** Ignored files and folders of the worktree that the fresh checkout does not have. */
  async #lacking({ workspace }: FreshCheckout): Promise<Result<string[]>> {
    const { git, record } = this.#context;
    const args = ['ls-files', '-z', '--others', '--ignored', '--exclude-standard', '--directory'];
    const listed = await runOwn(git, record.workspace?.path ?? '', args);
    if (!listed.ok) return listed;
    const { files } = git.world;
    const names = listed.value.split('\0').filter((name) => name !== '');
    return ok(names.filter((name) => files.entryKind(join(workspace.path, name.replace(/\/$/, ''))) === null));
  }

  async #guardChanged(changes: readonly GuardedChange[], output: string): Promise<Result<Checked>> {
    const { git, record, paths, commit = '' } = this.#context;
    const { path = '', base = '' } = record.workspace ?? {};
    const files = changes.map((one) => `:(top,literal)${one.path.replace(/: .*$/, '')}`);
    const diff = await printDiff(git, path, { from: base, to: commit }, ['--unified=3'], files);
    if (!diff.ok) return diff;
    try {
      git.world.files.writeAtomic(paths.guardedDiff, diff.value);
    } catch (error) {
      return { ok: false, failure: systemFailure(paths.guardedDiff, error) };
    }
    const request: ItemRequest = {
      kind: 'guard',
      text: `The acceptance command passes, but not with the guarded files from before: ${guardedText(changes)}`,
      options: ['allow', 'deny'],
      requestId: `guard ${commit}`,
      toolUseId: '',
      tool: '',
      input: { commit, output, diff: paths.guardedDiff, logs: [paths.acceptLog, paths.guardedLog] },
    };
    return ok({ status: 'guard-changed', request, evidence: this.#evidence(changes) });
  }
}

interface Unproven {
  readonly why: string;
  readonly output: string;
}

const nothingDone: Tried = ok({
  end: { ok: true, exitCode: 0, timedOut: false, printedTooMuch: false, tail: '' },
  ms: 0,
});
const nothingGuarded: Guard = { changes: [], files: [], manifests: [], isReached: () => false, affectsSetup: false };
