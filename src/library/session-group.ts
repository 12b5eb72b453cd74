/** library/: groups as values of a program of one’s own: made, filled, run and asked for things. */

import { type AppContext, createAppContext } from '../app/app-context.ts';
import { createNewGroup } from '../app/create/new-group.ts';
import { addSession } from '../app/create/new-session.ts';
import { readWorkflow } from '../app/create/workflow-group.ts';
import { finishInterruptedMerge } from '../app/delivery/merge.ts';
import { type PauseOutcome, submit } from '../app/group-commands.ts';
import { pauseAndNotify } from '../app/pause-group.ts';
import { archiveGroup, removeSession } from '../app/removal/archive-group.ts';
import { deleteGroup } from '../app/removal/delete-group.ts';
import {
  findSessionOf,
  type GroupReference,
  type LoadedGroup,
  loadWithRunner,
  resolveGroup,
  type SessionMeta,
  sessionMeta,
} from '../app/resolve.ts';
import { type RunHereOptions, runHere } from '../app/run/run-here.ts';
import type { RunConfig } from '../app/run/run-options.ts';
import { followGroup } from '../app/watch/follow-group.ts';
import { progressOf } from '../app/watch/live-view.ts';
import { adviceText, type CommandLine } from '../core/advice.ts';
import { defined } from '../core/defined.ts';
import type { SessionSettings } from '../core/definitions.ts';
import type { GroupEvent } from '../core/event.ts';
import { type Failure, type FailureReason, fail, ok, type Result } from '../core/failure.ts';
import { defaultGroupConfig, type GroupConfig, type SessionConfig } from '../core/group.ts';
import { checkSlug } from '../core/id.ts';
import type { GroupProgress } from '../core/progress.ts';
import type { ConversationChoice } from '../core/session-state.ts';
import { configProblem } from '../core/setting-values.ts';
import type { GroupStatus } from '../core/status.ts';
import { lineProblem } from '../core/values.ts';

/** Settings of a group, as they stand in its meta.json; absent ones have the defaults of `group create`. */
export type SessionGroupConfig = Partial<Omit<GroupConfig, 'prices' | 'onEvent'>>;

/** How many sessions run at once, and what happens when some fail. */
export interface ConcurrencyConfig {
  /** Default: 3. */
  readonly maxConcurrent?: number;
  /** Default: true. */
  readonly respectDependencies?: boolean;
  /** At the threshold the group pauses (default) or fails. */
  readonly pauseOnError?: boolean;
  /** So many failed sessions, and nothing new starts; default: 2. */
  readonly errorThreshold?: number;
}

/** What a group may cost. */
export interface BudgetConfig {
  /** Hard cap in US dollars over all sessions and attempts. */
  readonly maxBudgetUsd?: number;
  /** Default: pause. */
  readonly onBudgetExceeded?: 'stop' | 'warn' | 'pause';
  /** Share of the budget at which one warning is given; default: 0.8. */
  readonly warningThreshold?: number;
}

export interface NewSessionGroup {
  /** Short name in lower-case letters, digits and hyphens; part of the id. */
  readonly slug: string;
  /** For people; absent = the slug. */
  readonly name?: string;
  readonly description?: string;
  readonly config?: SessionGroupConfig;
}

export interface NewGroupSession extends Omit<SessionSettings, 'outputSchema' | 'accept' | 'setup'> {
  /** Folder of the project; a relative path is meant from the current folder. */
  readonly projectPath: string;
  /** The task; absent = a prompt template makes it. */
  readonly prompt?: string;
  /** Prompt template that makes the task, or a config template: a name or a path. */
  readonly template?: string;
  /** What the session finds in its config dir. */
  readonly configTemplate?: string;
  /** Values for variables of templates. */
  readonly variables?: Readonly<Record<string, string>>;
  /** Sessions that must complete first: the session itself, its id, its number or its name. */
  readonly dependsOn?: readonly (string | { readonly id: string })[];
  /** What is generated into its config dir. */
  readonly config?: SessionConfig;
  /** Shell command that must succeed before the session is completed; false = not the project's own either. */
  readonly accept?: string | false;
  /** Shell command that is run once in a new worktree; false = not the project's own either. */
  readonly setup?: string | false;
}

/** A session as its meta.json tells it. */
export type GroupSession = SessionMeta;

/** How a failed session is tried again: what is said to it, and with which conversation it goes on. */
export type RetryOptions = ConversationChoice & { readonly prompt?: string };

/** What came of pausing a group. */
export type PauseResult = PauseOutcome;

/** How a run ended. */
export interface GroupResult {
  readonly status: 'completed' | 'failed' | 'paused';
  readonly reason?: string;
  readonly message?: string;
  readonly sessions: readonly GroupSession[];
  readonly progress: GroupProgress;
}

export class SessionGroupError extends Error {
  override readonly name = 'SessionGroupError';
  /** The code that commands show as well, such as `busy`, `usage` or `not-found`. */
  readonly reason: FailureReason;
  /** What can be done about it; may be empty. */
  readonly next: string;
  readonly commands: readonly CommandLine[];

  constructor(failure: Failure) {
    super(failure.message);
    this.reason = failure.reason;
    this.next = adviceText(failure.next);
    this.commands = failure.next.commands;
  }
}

export function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new SessionGroupError(result.failure);
}

interface Internals {
  readonly context: AppContext;
  readonly reference: GroupReference;
}

const internals = new WeakMap<object, Internals>();

export function keepInternals(group: object, own: Internals): void {
  internals.set(group, own);
}

export function internalsOf(group: object): Internals {
  const found = internals.get(group);
  if (found === undefined) throw new TypeError('This is no SessionGroup.');
  return found;
}

/** Where groups lie and what their sessions get; absent parts are those of this process. */
export interface GroupSurroundings {
  /** The data folder, the login and everything else is found by it. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Is told in a line of what is worth a word: nothing is printed. */
  readonly onNote?: (line: string) => void;
}

type SessionReference = string | { readonly id: string };

export class SessionGroup {
  /** `YYYYMMDD-HHMMSS-slug`. */
  readonly id: string;
  /** Its folder on disk: events.jsonl, meta.json, transcripts. */
  readonly folder: string;

  private constructor(context: AppContext, reference: GroupReference) {
    this.id = reference.groupId;
    this.folder = reference.paths.folder;
    keepInternals(this, { context, reference });
  }

  /** Makes an empty group, like `group create`. */
  static async create(group: NewSessionGroup, surroundings: GroupSurroundings = {}): Promise<SessionGroup> {
    const context = contextFor(surroundings);
    const { slug, name = slug, description = '', config = {} } = group;
    const root = unwrap(context.root());
    const definition = {
      slug: unwrap(checkSlug(slug)),
      name: unwrap(textOf('name', name)),
      description: unwrap(textOf('description', description)),
      config: { ...defaultGroupConfig, ...config },
    };
    const problem = configProblem(config);
    unwrap(problem === null ? ok(undefined) : fail('usage', `${problem}.`, ''));
    const created = unwrap(createNewGroup(context, root, { definition, sessions: [], configTemplates: [] }));
    return SessionGroup.open(created.group.id, surroundings);
  }

  /** Makes the group that a workflow describes: the path of a YAML file, or the name of a workflow template. */
  static async fromWorkflow(
    workflow: string,
    variables: Readonly<Record<string, string>> = {},
    surroundings: GroupSurroundings = {},
  ): Promise<SessionGroup> {
    const context = contextFor(surroundings);
    const root = unwrap(context.root());
    const group = unwrap(readWorkflow(context, workflow, pairsOf(variables)));
    return SessionGroup.open(unwrap(createNewGroup(context, root, group)).group.id, surroundings);
  }

  /** A group that is there, by id, unique prefix or slug. */
  static async open(reference: string, surroundings: GroupSurroundings = {}): Promise<SessionGroup> {
    const context = contextFor(surroundings);
    const group = unwrap(resolveGroup(context, reference));
    unwrap(loadWithRunner(context.world, group));
    return new SessionGroup(context, group);
  }

  /** Adds a session, also while the group is running. */
  async add(session: NewGroupSession): Promise<GroupSession> {
    const { context } = internalsOf(this);
    const { projectPath, prompt, variables = {}, dependsOn = [], config, ...rest } = session;
    const added = await addSession(context, this.#load(), {
      ...rest,
      project: projectPath,
      prompt: prompt === undefined ? undefined : async () => ok(prompt),
      var: pairsOf(variables),
      dependsOn: dependsOn.map(idOf),
      ...defined({ config }),
    });
    const { sessionId, notes } = unwrap(added);
    for (const note of notes) context.notes.line(note);
    return this.session(sessionId);
  }

  async status(): Promise<GroupStatus> {
    return this.#load().state.status;
  }

  /** All sessions in the order in which they were added. */
  async sessions(): Promise<readonly GroupSession[]> {
    return [...this.#load().state.sessions.values()].map(sessionMeta);
  }

  /** One of them, by id, number or name. */
  async session(reference: SessionReference): Promise<GroupSession> {
    const { state } = this.#load();
    const id = unwrap(findSessionOf(state, idOf(reference)));
    return sessionMeta(unwrap(present(state.sessions.get(id))));
  }

  /** How it stands at this moment. */
  async progress(): Promise<GroupProgress> {
    return progressOf(internalsOf(this).context.world, this.#load());
  }

  /**
   * The group's past events, then new ones, from any runner. Ends when the consumer stops iterating or `signal` aborts.
   * Throws when the log is damaged, or the group is deleted.
   */
  async *events({ signal }: { readonly signal?: AbortSignal } = {}): AsyncGenerator<GroupEvent, void> {
    const { context, reference } = internalsOf(this);
    const queue = new EventQueue<GroupEvent>();
    let problem: SessionGroupError | undefined;
    const follower = followGroup(
      context.world,
      reference,
      (event) => queue.push(event),
      (failure) => {
        problem = new SessionGroupError(failure);
        queue.end();
      },
    );
    const stop = () => queue.end();
    signal?.addEventListener('abort', stop);
    if (signal?.aborted) stop();
    try {
      yield* queue;
      if (problem !== undefined) throw problem;
    } finally {
      signal?.removeEventListener('abort', stop);
      follower.close();
    }
  }

  /**
   * Stops all sessions so that they can go on later, and returns when that is done. `drain`: running ones finish first;
   * `freeze`: everything is halted where it stands, for a minute at most.
   */
  async pause(mode: 'now' | 'drain' | 'freeze' = 'now'): Promise<PauseResult> {
    const { context, reference } = internalsOf(this);
    const { outcome, warnings } = unwrap(await pauseAndNotify(context, reference, mode));
    for (const warning of warnings) context.notes.line(warning);
    return outcome;
  }

  /** Stops one session; the others go on. */
  async pauseSession(session: SessionReference): Promise<void> {
    await this.#submit({ kind: 'pause-session', sessionId: this.#idOf(session) });
  }

  /** Lets a paused session go on when there is a slot, at once or with the next run. */
  async resumeSession(session: SessionReference, { maxBudgetUsd }: { readonly maxBudgetUsd?: number } = {}) {
    const budget = defined({ maxBudgetUsd });
    await this.#submit({ kind: 'resume-session', sessionId: this.#idOf(session), ...budget });
  }

  /**
   * Tries a failed session again, at once or with the next run; `prompt` is said to it. `fresh` begins a new
   * conversation, `rewind` leaves out so many of the model's last messages.
   */
  async retrySession(session: SessionReference, how: RetryOptions = {}): Promise<void> {
    await this.#submit({ kind: 'retry-session', sessionId: this.#idOf(session), ...how });
  }

  /** Tells a session something; whether it hears it now or with its next attempt. */
  async say(session: SessionReference, text: string): Promise<'now' | 'next-attempt'> {
    const { context, reference } = internalsOf(this);
    return unwrap(await submit(context, reference, { kind: 'say', sessionId: this.#idOf(session), text }));
  }

  /** Sets the cap, while it runs too. */
  async raiseBudget(maxBudgetUsd: number): Promise<void> {
    await this.#submit({ kind: 'edit-group', config: { maxBudgetUsd } });
  }

  /** Takes out a session that is not running. With `force` work that is in no commit is committed first. */
  async remove(session: SessionReference, { force = false }: { readonly force?: boolean } = {}): Promise<void> {
    const { context } = internalsOf(this);
    const group = this.#load();
    const sessionId = this.#idOf(session);
    const record = unwrap(present(group.state.sessions.get(sessionId)));
    const command = ['session', 'remove', `${this.id}/${sessionId}`];
    const release = { force, command, tell: (note: string) => context.notes.line(note) };
    unwrap(await removeSession(context, { ...group, sessionId, record }, release));
  }

  /** Puts a finished group away. With `force` unmerged work in its worktrees is thrown away. */
  async archive({ force = false }: { readonly force?: boolean } = {}): Promise<void> {
    const { context, reference } = internalsOf(this);
    unwrap(await archiveGroup(context, reference, force));
  }

  /** Deletes it with its transcripts; it must not be running. With `force` work that is in no commit is committed. */
  async delete({ force = false }: { readonly force?: boolean } = {}): Promise<void> {
    const { context, reference } = internalsOf(this);
    const command = ['group', 'delete', this.id];
    const release = { force, command, tell: (note: string) => context.notes.line(note) };
    unwrap(await deleteGroup(context, reference, release));
  }

  async #submit(command: Parameters<typeof submit>[2]): Promise<void> {
    const { context, reference } = internalsOf(this);
    unwrap(await submit(context, reference, command));
  }

  #load(): LoadedGroup {
    const { context, reference } = internalsOf(this);
    return unwrap(loadWithRunner(context.world, reference));
  }

  #idOf(session: SessionReference): string {
    return unwrap(findSessionOf(this.#load().state, idOf(session)));
  }
}

function contextFor({ env = process.env, onNote = () => {} }: GroupSurroundings): AppContext {
  return createAppContext({ env, cwd: () => process.cwd(), note: onNote });
}

function idOf(session: SessionReference): string {
  return typeof session === 'string' ? session : session.id;
}

function pairsOf(variables: Readonly<Record<string, string>>): string[] {
  return Object.entries(variables).map(([name, value]) => `${name}=${value}`);
}

function textOf(what: string, text: string): Result<string> {
  const problem = lineProblem(text) ?? (what === 'name' && text.trim() === '' ? 'must not be blank' : null);
  return problem === null ? ok(text.trim()) : fail('usage', `The ${what} of the group ${problem}.`, '');
}

function present<T>(value: T | undefined): Result<T> {
  return value === undefined ? fail('gone', 'The session is gone.', '') : ok(value);
}

// Events in the order in which they happen, for one reader who takes them when it is ready.

class EventQueue<T> {
  readonly #waiting: T[] = [];
  #wake = (): void => {};
  #isEnded = false;

  push(event: T): void {
    if (this.#isEnded) return;
    this.#waiting.push(event);
    this.#wake();
  }

  end(): void {
    this.#isEnded = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    try {
      for (;;) {
        yield* this.#waiting.splice(0);
        if (this.#waiting.length > 0) continue;
        if (this.#isEnded) return;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      this.end();
    }
  }
}

export interface RunnerOptions {
  /**
   * Against the scripted model on this machine, at no cost: true, or the path of a script. A group that was begun so
   * stays a rehearsal.
   */
  readonly rehearse?: boolean | string;
  /** A version of claude that is used although it failed a required check. */
  readonly acceptClaude?: string;
  /** Once aborted, everything that runs is paused as by a Ctrl-C. */
  readonly signal?: AbortSignal;
}

/** Holds for later runs of the group until given again. */
export type RunSettings = ConcurrencyConfig & Omit<BudgetConfig, 'warningThreshold'>;

/** A run that has begun. */
export interface SessionGroupRun {
  /** What happens, from the beginning of this run to its end; for one reader. Throws as `result` does. */
  readonly events: AsyncIterableIterator<GroupEvent>;
  /** Throws a SessionGroupError when the run could not begin. */
  readonly result: Promise<GroupResult>;
}

export class SessionGroupRunner {
  readonly #options: RunnerOptions;

  constructor(options: RunnerOptions = {}) {
    this.#options = options;
  }

  /** Runs the group until every session has completed, or nothing more can be done. Goes on with a paused one. */
  run(group: SessionGroup, config: RunSettings = {}): Promise<GroupResult> {
    return this.#run(group, config, false, () => {});
  }

  /** The same, to be watched meanwhile. */
  start(group: SessionGroup, config: RunSettings = {}): SessionGroupRun {
    return this.#watched((tell) => this.#run(group, config, false, tell));
  }

  /**
   * Goes on with a paused, failed or interrupted group; failed sessions are tried again. One that is frozen under a
   * runner of its own is thawed there, and the result is null.
   */
  async resume(group: SessionGroup, config: RunSettings = {}): Promise<GroupResult | null> {
    const { context, reference } = internalsOf(group);
    const { state, hadRunner } = unwrap(loadWithRunner(context.world, reference));
    if (hadRunner && state.frozenUntil !== undefined) {
      if (unwrap(await submit(context, reference, { kind: 'thaw' })) === 'thawed') return null;
    }
    return this.#run(group, config, true, () => {});
  }

  #watched(run: (tell: (event: GroupEvent) => void) => Promise<GroupResult>): SessionGroupRun {
    const queue = new EventQueue<GroupEvent>();
    const result = run((event) => queue.push(event)).finally(() => queue.end());
    // A consumer of the events gets the error from them; without this an unhandled rejection would end the process.
    result.catch(() => {});
    async function* events(): AsyncGenerator<GroupEvent, void> {
      yield* queue;
      await result;
    }
    return { events: events(), result };
  }

  async #run(
    group: SessionGroup,
    settings: RunSettings,
    retryFailed: boolean,
    tell: (event: GroupEvent) => void,
  ): Promise<GroupResult> {
    const { context, reference } = internalsOf(group);
    const { rehearse, acceptClaude, signal } = this.#options;
    const { maxConcurrent, ...same } = settings;
    const config: RunConfig = {
      ...same,
      ...defined({ maxConcurrentSessions: maxConcurrent, acceptClaude }),
    };
    const problem = configProblem(config);
    if (problem !== null) unwrap(fail('usage', `${problem}.`, ''));
    const ways: RunHereOptions = {
      openDisplay: async () => ({
        isScreen: false,
        reporter: { event: (event) => tell(event), progress() {}, waiting() {}, summarize() {} },
        onSignal(handler) {
          const stop = () => handler('SIGTERM');
          if (signal?.aborted) stop();
          signal?.addEventListener('abort', stop);
          return () => signal?.removeEventListener('abort', stop);
        },
        close: async () => {},
      }),
      finishMerge: () => finishInterruptedMerge(context, reference),
    };
    const asRehearsal = rehearse === false ? undefined : rehearse;
    const ran = unwrap(await runHere(context, reference, { config, rehearse: asRehearsal, retryFailed }, ways));
    if (ran.kind === 'refused') unwrap({ ok: false, failure: ran.failure });
    if (ran.kind === 'interrupted') unwrap(fail('internal', 'A signal interrupted the run before it began.', ''));
    if (ran.kind === 'called-off') unwrap(fail('usage', 'The group was paused before the run began.', ''));
    const loaded = unwrap(loadWithRunner(context.world, reference));
    const { status, reason, message, sessions } = loaded.state;
    const known =
      status === 'completed' || status === 'failed' || status === 'paused' ? ok(status) : leftBehind(status);
    return {
      status: unwrap(known),
      ...(reason === undefined || status === 'completed' ? {} : { reason }),
      ...(message === undefined || status === 'completed' ? {} : { message }),
      sessions: [...sessions.values()].map(sessionMeta),
      progress: progressOf(context.world, loaded),
    };
  }
}

function leftBehind(status: string): ReturnType<typeof fail> {
  return fail('internal', `The run was left while the group is ${status}; its workers go on.`, 'Run it again.');
}
