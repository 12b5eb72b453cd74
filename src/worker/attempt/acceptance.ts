/**
 * Acceptance: after claude's successful result the work is committed, counted, and checked by the acceptance command.
 */

import { cleanLine, clip } from '../../claude/text.ts';
import { defined } from '../../core/defined.ts';
import type { StopReason, Warning } from '../../core/event.ts';
import { ok, type Result } from '../../core/failure.ts';
import {
  type Changes,
  defaultCommandTimeoutMs,
  type SessionDefinition,
  type SessionId,
  type Workspace,
} from '../../core/group.ts';
import { sessionLabel } from '../../core/id.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { commitWork } from '../../git/commit.ts';
import { diffStat, sinceState } from '../../git/diff.ts';
import type { Git } from '../../git/git.ts';
import {
  changedTracked,
  clearNewFiles,
  ignoredOutput,
  ignoredSentence,
  noteIgnored,
  syncDisks,
  untrackedFiles,
} from '../../git/leftover-files.ts';
import { type GroupPaths, type SessionPaths, sessionPaths } from '../../store/paths.ts';
import type { World } from '../../system/world.ts';
import { fillPrompt } from '../../template/fill-references.ts';
import type { AcceptanceVerdict, Fact } from '../facts.ts';
import { type HostedCommand, stoppedWaiting } from '../host.ts';
import { copiesOf, copyBack, workNotPlaced } from '../prepare/handover-files.ts';
import { gatherProcesses, reap } from '../reap.ts';
import { sessionVariables } from '../session-variables.ts';
import { type RunningCommand, runShellCommand, type ShellCommand } from '../shell-command.ts';
import type { AttemptPreparer } from './attempt-setup.ts';
import { type CheckContext, type Checked, Checks, makeFresh, removeFresh, type TimedEnd } from './checks.ts';
import type { CommandSlots } from './command-slots.ts';
import { sessionFailure, unexpectedFailure } from './outcomes.ts';

export interface AcceptanceOptions {
  readonly record: SessionRecord;
  readonly state: GroupState;
  readonly worktrees: string;
  readonly attemptId: string;
  /** The prompt with results of dependencies filled in. */
  readonly task: () => string;
  readonly paths: SessionPaths;
  readonly env: Readonly<Record<string, string>>;
  readonly git: Git;
  readonly slots: CommandSlots;
  /** Runs the command on the host where the session worked; absent = this one. */
  readonly elsewhere?: (command: string, timeoutMs: number) => HostedCommand;
  /** Called once; must only enqueue. */
  readonly report: (verdict: AcceptanceVerdict) => void;
}

export function needsAcceptance({ definition, isolated }: SessionRecord): boolean {
  return isolated === true || definition.accept !== undefined || definition.expectChanges === true;
}

const noChanges: Warning = {
  code: 'no-changes',
  message: 'The session was expected to change files but changed none.',
};

export class Acceptance {
  readonly #world: World;
  readonly #options: AcceptanceOptions;
  readonly #warnings: Warning[] = [];
  #command: RunningCommand | null = null;
  #withdraw = (): void => {};
  #stopped: StopReason | 'host-lost' | null = null;
  #over = false;

  constructor(world: World, options: AcceptanceOptions) {
    this.#world = world;
    this.#options = options;
    void this.#judge().then(
      (verdict) => this.#report(verdict),
      (error) => this.#report(this.#verdict({ status: 'failed', failure: unexpectedFailure(error) })),
    );
  }

  /** Ends the command or removes it from the queue. A later attempt repeats the acceptance. */
  stop(reason: StopReason): void {
    this.#stopped ??= reason;
    this.#withdraw();
    this.#command?.stop();
  }

  halt(isHalted: boolean): void {
    this.#command?.halt(isHalted);
    const signal = isHalted ? 'SIGSTOP' : 'SIGCONT';
    for (const process of gatherProcesses(this.#world, this.#options.attemptId)) {
      this.#world.processes.signal(process, signal);
    }
  }

  leave(): void {
    this.#over = true;
    // A command that is still queued must not start: a later runner runs it again.
    this.#stopped ??= 'signal';
    this.#command?.abandon();
  }

  #report(verdict: AcceptanceVerdict): void {
    if (!this.#over) this.#options.report(verdict);
  }

  async #judge(): Promise<AcceptanceVerdict> {
    const { attemptId, record } = this.#options;
    // A command of a dead runner may still be changing files.
    await reap(this.#world, attemptId);
    const tidied = await this.#clearAfterCrash();
    if (!tidied.ok) return this.#verdict({ status: 'failed', failure: sessionFailure(tidied.failure) });
    const work = record.workspace === undefined ? null : await this.#commitWorkIn(record.workspace);
    if (work === null) await this.#checkForChanges();
    if (this.#stopped) return this.#verdict({ status: 'stopped', reason: this.#stopped });
    if (work !== null && !work.ok) return this.#verdict({ status: 'failed', failure: sessionFailure(work.failure) });
    const checked = await this.#check(work?.value.commit);
    if (this.#stopped) return this.#verdict({ status: 'stopped', reason: this.#stopped });
    if (!checked.ok) return this.#verdict({ status: 'failed', failure: sessionFailure(checked.failure) });
    if (checked.value !== null && checked.value.status !== 'accepted') return this.#verdict(checked.value);
    const evidence = defined({ evidence: checked.value?.evidence });
    return this.#verdict({ status: 'accepted', ...(work === null ? {} : { work: work.value }), ...evidence });
  }

  /** Null without a command. */
  async #check(commit: string | undefined): Promise<Result<Checked | null>> {
    const { record, state, paths, worktrees, env, git, slots } = this.#options;
    const { id: sessionId, accept, acceptIn, commit: commits } = record.definition;
    if (accept === undefined) return ok(null);
    const allowed = record.items?.findLast(({ kind }) => kind === 'guard');
    const isAllowed = allowed?.answer?.text === 'allow' && allowed.input.commit === commit;
    if (isAllowed && record.evidence !== undefined) return ok({ status: 'accepted', evidence: record.evidence });
    const context: CheckContext = {
      ...{ git, state, record, paths, worktrees, env, commit },
      run: (command) => this.#run(command),
      runHere: (command) => this.#runCommand(command),
    };
    const onStop = (withdraw: () => void): void => {
      this.#withdraw = withdraw;
    };
    const isLight = this.#options.elsewhere !== undefined;
    const isFresh = commit !== undefined && !isLight && acceptIn !== 'worktree' && commits !== false;
    const turn = { sessionId, command: 'checkout', turn: record.workspace?.repository ?? '', onStop } as const;
    // Check out before taking a slot: a checkout that waited for a slot would block all that wait for its turn.
    const made = isFresh ? await slots.take(turn, () => makeFresh(context, commit)) : ok(null);
    if (made === null) return stoppedWaiting;
    if (!made.ok) return made;
    const checks = new Checks(context, accept, made.value);
    // A command on another host needs no slot here.
    const judged = await slots.take({ sessionId, command: 'accept', isLight, onStop }, () => checks.judge());
    this.#warnings.push(...checks.warnings);
    if (made.value !== null && !this.#over) await removeFresh(context, made.value);
    return judged ?? stoppedWaiting;
  }

  /** Fails if the command is stopped, or cannot start: then another turn of claude would not help. */
  async #run(command: Omit<ShellCommand, 'mark'>): Promise<Result<TimedEnd>> {
    if (this.#stopped) return stoppedWaiting;
    const startedMs = this.#world.clock.now();
    this.#command = runShellCommand(this.#world, { ...command, mark: this.#options.attemptId });
    const end = await this.#command.ended;
    this.#command = null;
    if (this.#stopped) return stoppedWaiting;
    if (end.unstarted !== undefined) return { ok: false, failure: end.unstarted };
    return ok({ end, ms: Math.max(0, this.#world.clock.now() - startedMs) });
  }

  /** Removes files left by the command of a dead runner, which are not the session's work. */
  async #clearAfterCrash(): Promise<Result<void>> {
    const { attemptId, record, paths, git } = this.#options;
    const { files } = this.#world;
    const [owner, ...before] = (files.readText(paths.beforeAccept) ?? '').split('\0');
    const path = owner === attemptId ? record.workspace?.path : undefined;
    const cleared = path === undefined ? ok(undefined) : await clearNewFiles(git, path, before);
    if (cleared.ok) files.remove(paths.beforeAccept);
    return cleared;
  }

  #verdict<T extends object>(what: T): T & { readonly warnings: readonly Warning[] } {
    return { ...what, warnings: this.#warnings };
  }

  async #commitWorkIn(workspace: Workspace): Promise<Result<Changes>> {
    const { git, record, paths } = this.#options;
    const { definition } = record;
    const copies = copiesOf(record, paths, workspace);
    const { settled, fresh, troubles, orphaned } = await copyBack(git, copies);
    for (const message of [...troubles, ...orphaned]) this.#warnings.push({ code: 'workspace', message });
    const leave = definition.commit === false;
    const committed = await commitWork(git, workspace, commitMessage(definition, this.#options.task()), {
      leave,
      fresh: [...fresh, ...(await workNotPlaced(git, copies))],
      apart: settled,
    });
    if (!committed.ok) return committed;
    for (const message of committed.value.notes) this.#warnings.push({ code: 'workspace', message });
    const output = await this.#ignoredOutput(workspace.path);
    if (output !== null && output.length > 0) {
      const after = 'Merging deletes them with the worktree, unless you give --keep-ignored.';
      const message = `${ignoredSentence('The worktree', output)} ${after}`;
      this.#warnings.push({ code: 'workspace', message });
    }
    await syncDisks(git, workspace.repository, workspace.path);
    const { commit, stat } = committed.value;
    if (definition.expectChanges && stat.files === 0) this.#warnings.push(noChanges);
    return ok({ commit, ...stat });
  }

  /** Git-ignored files that the session wrote; null when the earlier state is unknown. */
  async #ignoredOutput(worktree: string): Promise<readonly string[] | null> {
    const { git, paths } = this.#options;
    if (this.#world.files.info(paths.ignoredBefore) === null) return null;
    const found = await ignoredOutput(git, worktree, paths.ignoredBefore);
    return found.ok ? found.value : null;
  }

  async #checkForChanges(): Promise<void> {
    const { git, record, paths } = this.#options;
    const begin = record.definition.expectChanges ? this.#world.files.readText(paths.begin) : null;
    if (begin === null) return;
    const { projectPath } = record.definition;
    const since = sinceState(git, projectPath, begin);
    const stat = since === null ? null : await diffStat(git, projectPath, since);
    if (stat?.ok && stat.value.files === 0) this.#warnings.push(noChanges);
  }

  /** Like #runCommand, on another host. Files that the command leaves there are ignored. */
  async #runElsewhere(accept: string, run: NonNullable<AcceptanceOptions['elsewhere']>): Promise<Result<TimedEnd>> {
    if (this.#stopped) return stoppedWaiting;
    const { acceptTimeoutMs = defaultCommandTimeoutMs } = this.#options.record.definition;
    const startedMs = this.#world.clock.now();
    const running = run(accept, acceptTimeoutMs);
    this.#command = { ...running, abandon: () => {}, halt: () => {} };
    const end = await running.ended;
    this.#command = null;
    if (this.#stopped) return stoppedWaiting;
    if (end.unstarted !== undefined) {
      this.#stopped ??= 'host-lost';
      return stoppedWaiting;
    }
    const log = this.#world.files.openAppend(this.#options.paths.acceptLog);
    log.append(`$ ${accept}\n${end.tail}\n`);
    log.close();
    return ok({ end, ms: Math.max(0, this.#world.clock.now() - startedMs) });
  }

  /** Fails like #run, and when its worktree cannot be inspected or cleaned. */
  async #runCommand(accept: string): Promise<Result<TimedEnd>> {
    const { record, state, paths, attemptId, git, elsewhere } = this.#options;
    if (elsewhere !== undefined) return this.#runElsewhere(accept, elsewhere);
    const { acceptTimeoutMs = defaultCommandTimeoutMs, projectPath } = record.definition;
    const worktree = record.workspace?.path;
    const before = worktree === undefined ? ok([]) : await untrackedFiles(git, worktree);
    if (!before.ok) return before;
    if (worktree !== undefined) {
      const list = [attemptId, ...before.value].join('\0');
      this.#world.files.writeAtomic(paths.beforeAccept, list, { durable: true });
    }
    const output = worktree === undefined ? null : await this.#ignoredOutput(worktree);
    const cwd = record.workspace?.folder ?? projectPath;
    const env = { ...this.#options.env, ...sessionVariables(git, state, record) };
    const ran = await this.#run({ command: accept, cwd, env, logFile: paths.acceptLog, timeoutMs: acceptTimeoutMs });
    if (worktree !== undefined) {
      const tidied = await this.#removeLeftovers(worktree, before.value);
      if (!tidied.ok) return tidied;
      this.#world.files.remove(paths.beforeAccept);
      if (output !== null) await noteIgnored(git, worktree, paths.ignoredBefore, output);
    }
    return ran;
  }

  /** Removes new files of the command and reports changed ones: neither is the session's work. */
  async #removeLeftovers(worktree: string, before: readonly string[]): Promise<Result<void>> {
    const { git, record } = this.#options;
    const cleared = await clearNewFiles(git, worktree, before);
    // With `commit: false`, the session's changes cannot be distinguished from the command's.
    if (!cleared.ok || record.definition.commit === false) return cleared;
    const changed = await changedTracked(git, worktree);
    if (!changed.ok) return changed;
    if (changed.value.length === 0) return ok(undefined);
    const names = changed.value.slice(0, namesShown).join(', ');
    const message = `The acceptance command changed tracked files, and the changes are not committed: ${names}.`;
    this.#warnings.push({ code: 'workspace', message });
    return ok(undefined);
  }
}

const namesShown = 5;

const subjectMax = 72;

export function commitMessage({ id, name, description }: SessionDefinition, task: string): string {
  // Remove the frames and headings of quoted results.
  const text = (description === '' ? task : description).replace(/<session-result[^>]*>\n?|<\/session-result>/g, '');
  const words = text.split('\n').map((line) => cleanLine(line, subjectMax).replace(/(^|\s)#+ /g, '$1'));
  const subject = `${sessionLabel(id, name)}: ${words.find((line) => line !== '') ?? 'work'}`;
  return `${clip(subject, subjectMax)}\n\nUncommitted work of session ${id}, committed by claude-code-agent.\n`;
}

/** Stop reasons that do not apply to an acceptance. */
const workerOnly: ReadonlySet<StopReason> = new Set(['timeout', 'stall', 'top-up', 'disk']);

export interface AcceptancesOptions {
  readonly paths: GroupPaths;
  readonly needs: AttemptPreparer['forCommands'] & { readonly slots: CommandSlots };
  readonly elsewhere?: (sessionId: SessionId) => AcceptanceOptions['elsewhere'];
  readonly enqueue: (fact: Fact) => void;
}

export class Acceptances {
  readonly #running = new Map<SessionId, Acceptance>();
  readonly #world: World;
  readonly #options: AcceptancesOptions;

  constructor(world: World, options: AcceptancesOptions) {
    this.#world = world;
    this.#options = options;
  }

  begin(state: GroupState, sessionId: SessionId, { isAdopted = false } = {}): void {
    const record = state.sessions.get(sessionId);
    if (record?.state.status !== 'running' || record.state.attempt.accepting === undefined) return;
    const { id: attemptId, stopping } = record.state.attempt;
    const { paths, needs, enqueue } = this.#options;
    const elsewhere = this.#options.elsewhere?.(sessionId);
    const acceptance = new Acceptance(this.#world, {
      record,
      state,
      attemptId,
      task: () => fillPrompt(record.definition, state, sessionPaths(paths, sessionId).inputs).prompt,
      paths: sessionPaths(paths, sessionId),
      ...needs,
      ...defined({ elsewhere }),
      report: (verdict) => {
        this.#running.delete(sessionId);
        enqueue({ kind: 'acceptance-ended', sessionId, attemptId, verdict });
      },
    });
    this.#running.set(sessionId, acceptance);
    // A stop may have arrived while the worker was exiting. A user's stop still applies. Others are obsolete, because
    // the work is done.
    const isOver = isAdopted ? stopping !== 'user' : stopping !== undefined && workerOnly.has(stopping);
    if (stopping !== undefined && !isOver) acceptance.stop(stopping);
  }

  has(sessionId: SessionId): boolean {
    return this.#running.has(sessionId);
  }

  stop(sessionId: SessionId, reason: StopReason): void {
    this.#running.get(sessionId)?.stop(reason);
  }

  /** Suspends acceptance commands, and lets no other command start. */
  halt(isHalted: boolean): void {
    this.#options.needs.slots.halt(isHalted);
    for (const acceptance of this.#running.values()) acceptance.halt(isHalted);
  }

  /** For a runner that exits: the next runner starts all commands again. */
  leave(): void {
    this.#options.needs.slots.close();
    for (const acceptance of this.#running.values()) acceptance.leave();
  }
}
