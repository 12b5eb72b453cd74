/** After claude's successful result: the work is committed, counted, and checked by the acceptance command. */

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
import type { Git } from '../../git/git.ts';
import { type GroupPaths, type SessionPaths, sessionPaths } from '../../store/paths.ts';
import type { World } from '../../system/world.ts';
import { fillPrompt } from '../../template/fill-references.ts';
import type { AcceptanceVerdict, Fact } from '../facts.ts';
import type { HostedCommand } from '../host.ts';
import { gatherProcesses, reap } from '../reap.ts';
import { sessionVariables } from '../session-variables.ts';
import { commandFailure, type RunningCommand, runShellCommand } from '../shell-command.ts';
import type { AttemptPreparer } from './attempt-setup.ts';
import type { CommandSlots } from './command-slots.ts';
import { sessionFailure, unexpectedFailure } from './outcomes.ts';

export interface AcceptanceOptions {
  readonly record: SessionRecord;
  readonly attemptId: string;
  /** The prompt with quoted results filled in. */
  readonly task: () => string;
  readonly paths: SessionPaths;
  readonly env: Readonly<Record<string, string>>;
  readonly git: Git;
  readonly slots: CommandSlots;
  /** Runs the command on the host where the session worked; absent = this one. */
  readonly elsewhere?: (command: string, timeoutMs: number) => HostedCommand;
  /** Contract: only enqueues; called once. */
  readonly report: (verdict: AcceptanceVerdict) => void;
}

/** Whether there is anything to do between claude's result and the end of the session. */
export function needsAcceptance({ definition, isolated }: SessionRecord): boolean {
  return isolated === true || definition.accept !== undefined || definition.expectChanges === true;
}

interface Rejection {
  readonly message: string;
  readonly output: string;
}

const noChanges: Warning = {
  code: 'no-changes',
  message: 'The session was expected to change something, and no file is different.',
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

  /** Ends the command or its waiting. claude's work stays: a later attempt continues from here. */
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
    // Not started either: a later runner runs the acceptance command again.
    this.#stopped ??= 'signal';
    this.#command?.abandon();
  }

  #report(verdict: AcceptanceVerdict): void {
    if (!this.#over) this.#options.report(verdict);
  }

  async #judge(): Promise<AcceptanceVerdict> {
    const { attemptId, record } = this.#options;
    // A dead runner may have left a command that still changes files.
    await reap(this.#world, attemptId);
    const tidied = await this.#clearAfterCrash();
    if (!tidied.ok) return this.#verdict({ status: 'failed', failure: sessionFailure(tidied.failure) });
    const work = record.workspace === undefined ? null : await this.#workIn(record.workspace);
    if (work === null) await this.#lookForChanges();
    if (this.#stopped) return this.#verdict({ status: 'stopped', reason: this.#stopped });
    if (work !== null && !work.ok) return this.#verdict({ status: 'failed', failure: sessionFailure(work.failure) });
    const ran = await this.#commandInSlot();
    if (!ran.ok) return this.#verdict({ status: 'failed', failure: sessionFailure(ran.failure) });
    const rejected = ran.value;
    if (this.#stopped) return this.#verdict({ status: 'stopped', reason: this.#stopped });
    if (rejected !== null) {
      return this.#verdict({ status: 'rejected', ...rejected, logFile: this.#options.paths.acceptLog });
    }
    return this.#verdict({ status: 'accepted', ...(work === null ? {} : { work: work.value }) });
  }

  /** Files left by the command of a dead runner are not the session's work; changes of a later attempt are. */
  async #clearAfterCrash(): Promise<Result<void>> {
    const { attemptId, record, paths, git } = this.#options;
    const { files } = this.#world;
    const [of, ...before] = (files.readText(paths.beforeAccept) ?? '').split('\0');
    const path = of === attemptId ? record.workspace?.path : undefined;
    const cleared = path === undefined ? ok(undefined) : await (await leavings()).clearNewFiles(git, path, before);
    if (cleared.ok) files.remove(paths.beforeAccept);
    return cleared;
  }

  #verdict<T extends object>(what: T): T & { readonly warnings: readonly Warning[] } {
    return { ...what, warnings: this.#warnings };
  }

  async #workIn(workspace: Workspace): Promise<Result<Changes>> {
    const { git, record, paths } = this.#options;
    const { definition } = record;
    const { copyBack: carryBack, copiesOf, workNotPlaced } = await import('../prepare/handover-files.ts');
    const { commitWork } = await import('../../git/commit.ts');
    const { syncDisks } = await import('../../git/leftover-files.ts');
    const copies = copiesOf(record, paths, workspace);
    const { settled, fresh, troubles, homeless } = await carryBack(git, copies);
    for (const message of [...troubles, ...homeless]) this.#warnings.push({ code: 'workspace', message });
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
      const { ignoredSentence } = await import('../../git/ignored-output.ts');
      const after = 'The merge removes them with it, unless it is given --keep-ignored.';
      const message = `${ignoredSentence('The worktree', output)} ${after}`;
      this.#warnings.push({ code: 'workspace', message });
    }
    await syncDisks(git, workspace.repository, workspace.path);
    const { commit, stat } = committed.value;
    if (definition.expectChanges && stat.files === 0) this.#warnings.push(noChanges);
    return ok({ commit, ...stat });
  }

  /** Ignored files that the session wrote; null when the earlier state is unknown. */
  async #ignoredOutput(worktree: string): Promise<readonly string[] | null> {
    const { git, paths } = this.#options;
    if (this.#world.files.info(paths.ignoredBefore) === null) return null;
    const found = await (await import('../../git/ignored-output.ts')).ignoredOutput(git, worktree, paths.ignoredBefore);
    return found.ok ? found.value : null;
  }

  async #lookForChanges(): Promise<void> {
    const { git, record, paths } = this.#options;
    const begin = record.definition.expectChanges ? this.#world.files.readText(paths.begin) : null;
    if (begin === null) return;
    const { sinceState, worktreeStat } = await import('../../git/diff.ts');
    const { projectPath } = record.definition;
    const since = sinceState(git, projectPath, begin);
    const stat = since === null ? null : await worktreeStat(git, projectPath, since);
    if (stat?.ok && stat.value.files === 0) this.#warnings.push(noChanges);
  }

  /** As #runCommand; also null without a command, or when it was stopped before it had a slot. */
  async #commandInSlot(): Promise<Result<Rejection | null>> {
    const { record, slots } = this.#options;
    const { id: sessionId, accept } = record.definition;
    if (accept === undefined) return ok(null);
    const onStop = (withdraw: () => void): void => {
      this.#withdraw = withdraw;
    };
    // On another host it uses no slot here.
    const isLight = this.#options.elsewhere !== undefined;
    const command = { sessionId, command: 'accept', isLight, onStop } as const;
    return (await slots.take(command, () => this.#runCommand(accept))) ?? ok(null);
  }

  /** As #runCommand. Files that the command leaves there are ignored. */
  async #runElsewhere(accept: string, run: NonNullable<AcceptanceOptions['elsewhere']>) {
    const { acceptTimeoutMs = defaultCommandTimeoutMs } = this.#options.record.definition;
    const running = run(accept, acceptTimeoutMs);
    this.#command = { ...running, abandon: () => {}, halt: () => {} };
    const end = await running.ended;
    this.#command = null;
    if (end.unstarted !== undefined) {
      this.#stopped ??= 'host-lost';
      return ok(null);
    }
    const log = this.#world.files.openAppend(this.#options.paths.acceptLog);
    log.append(`$ ${accept}\n${end.tail}\n`);
    log.close();
    const message = commandFailure('The acceptance command', accept, end, acceptTimeoutMs);
    return ok(end.ok ? null : { message, output: end.tail });
  }

  /** Null when it succeeded. Fails when its worktree cannot be inspected or cleaned. */
  async #runCommand(accept: string): Promise<Result<Rejection | null>> {
    const { record, paths, env, attemptId, git, elsewhere } = this.#options;
    if (elsewhere !== undefined) return this.#runElsewhere(accept, elsewhere);
    const { acceptTimeoutMs = defaultCommandTimeoutMs, projectPath } = record.definition;
    const worktree = record.workspace?.path;
    const before = worktree === undefined ? ok([]) : await (await leavings()).untrackedFiles(git, worktree);
    if (!before.ok) return before;
    if (worktree !== undefined) {
      const list = [attemptId, ...before.value].join('\0');
      this.#world.files.writeAtomic(paths.beforeAccept, list, { durable: true });
    }
    const output = worktree === undefined ? null : await this.#ignoredOutput(worktree);
    const cwd = record.workspace?.folder ?? projectPath;
    const options = {
      cwd,
      env,
      logFile: paths.acceptLog,
      timeoutMs: acceptTimeoutMs,
      mark: attemptId,
    };
    this.#command = runShellCommand(this.#world, { command: accept, ...options });
    const end = await this.#command.ended;
    this.#command = null;
    // Another turn of claude would not help on a machine that cannot start a shell.
    if (end.unstarted !== undefined) return { ok: false, failure: end.unstarted };
    if (worktree !== undefined) {
      const tidied = await this.#tidy(worktree, before.value);
      if (!tidied.ok) return tidied;
      this.#world.files.remove(paths.beforeAccept);
      if (output !== null) {
        const { noteIgnored } = await import('../../git/ignored-output.ts');
        await noteIgnored(git, worktree, paths.ignoredBefore, output);
      }
    }
    const what = 'The acceptance command';
    return ok(end.ok ? null : { message: commandFailure(what, accept, end, acceptTimeoutMs), output: end.tail });
  }

  /** Files left by the command are not the session's work: new ones are removed, changed ones are reported. */
  async #tidy(worktree: string, before: readonly string[]): Promise<Result<void>> {
    const { git, record } = this.#options;
    const { changedTracked, clearNewFiles } = await leavings();
    const cleared = await clearNewFiles(git, worktree, before);
    // Work left uncommitted on purpose cannot be distinguished from the command's changes.
    if (!cleared.ok || record.definition.commit === false) return cleared;
    const changed = await changedTracked(git, worktree);
    if (!changed.ok) return changed;
    if (changed.value.length === 0) return ok(undefined);
    const names = changed.value.slice(0, namesShown).join(', ');
    const message = `The acceptance command changed files that are in git, which is part of no commit: ${names}.`;
    this.#warnings.push({ code: 'workspace', message });
    return ok(undefined);
  }
}

const namesShown = 5;

const leavings = () => import('../../git/leftover-files.ts');

/** UTF-16 units of the subject line, as git and tools that show its history have it. */
const subjectMax = 72;

/** The session's task as the subject, then its id. `task` is its prompt, filled in. */
export function commitMessage({ id, name, description }: SessionDefinition, task: string): string {
  // Quoted results of other sessions are in frames; several have headings.
  const text = (description === '' ? task : description).replace(/<session-result[^>]*>\n?|<\/session-result>/g, '');
  const words = text.split('\n').map((line) => cleanLine(line, subjectMax).replace(/(^|\s)#+ /g, '$1'));
  const subject = `${sessionLabel(id, name)}: ${words.find((line) => line !== '') ?? 'work'}`;
  return `${clip(subject, subjectMax)}\n\nUncommitted work of session ${id}, committed by claude-code-agent.\n`;
}

/** Stops that concern the worker alone. */
const passing: ReadonlySet<StopReason> = new Set(['timeout', 'stall', 'slice', 'disk']);

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

  begin(state: GroupState, sessionId: SessionId, { isTakenOver = false } = {}): void {
    const record = state.sessions.get(sessionId);
    if (record?.state.status !== 'running' || record.state.attempt.accepting === undefined) return;
    const { id: attemptId, stopping } = record.state.attempt;
    const { paths, needs, enqueue } = this.#options;
    const elsewhere = this.#options.elsewhere?.(sessionId);
    const variables = sessionVariables(needs.git, state, record);
    const acceptance = new Acceptance(this.#world, {
      record,
      attemptId,
      task: () => fillPrompt(record.definition, state, sessionPaths(paths, sessionId).inputs).prompt,
      paths: sessionPaths(paths, sessionId),
      ...needs,
      env: { ...needs.env, ...variables },
      ...defined({ elsewhere }),
      report: (verdict) => {
        this.#running.delete(sessionId);
        enqueue({ kind: 'judged', sessionId, attemptId, verdict });
      },
    });
    this.#running.set(sessionId, acceptance);
    // A stop that came while the worker was ending has had no effect yet. One that was to let the worker continue, or
    // was begun by a dead runner, is obsolete because the work is done; a user's stop holds.
    const isOver = isTakenOver ? stopping !== 'user' : stopping !== undefined && passing.has(stopping);
    if (stopping !== undefined && !isOver) acceptance.stop(stopping);
  }

  has(sessionId: SessionId): boolean {
    return this.#running.has(sessionId);
  }

  stop(sessionId: SessionId, reason: StopReason): void {
    this.#running.get(sessionId)?.stop(reason);
  }

  /** No command of any kind starts meanwhile. */
  halt(isHalted: boolean): void {
    this.#options.needs.slots.halt(isHalted);
    for (const acceptance of this.#running.values()) acceptance.halt(isHalted);
  }

  /** Releases all of them; the next runner starts them, and all waiting commands, again. */
  leave(): void {
    this.#options.needs.slots.close();
    for (const acceptance of this.#running.values()) acceptance.leave();
  }
}
