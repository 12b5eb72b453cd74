/** library/: session groups for other programs: create, fill, run and control them. */

import { type AppContext, createAppContext } from '../app/app-context.ts';
import { createNewGroup } from '../app/create/new-group.ts';
import { addSession } from '../app/create/new-session.ts';
import { readWorkflow } from '../app/create/workflow-group.ts';
import { type PauseOutcome, submit } from '../app/group-commands.ts';
import { pauseAndNotify } from '../app/pause-group.ts';
import { archiveGroup, deleteGroup, removeSession } from '../app/removal.ts';
import {
  findSessionOf,
  type GroupReference,
  type LoadedGroup,
  loadWithRunner,
  resolveGroup,
  type SessionMeta,
  sessionMeta,
  sessionOf,
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
import { configProblem, lineProblem } from '../core/setting-values.ts';
import type { GroupStatus } from '../core/status.ts';

/** Settings of a group as in meta.json. Absent settings have the defaults of `group create`. */
export type SessionGroupConfig = Partial<Omit<GroupConfig, 'prices' | 'onEvent'>>;

/** Concurrency and error handling. */
export interface ConcurrencyConfig {
  /** Default: 3. */
  readonly maxConcurrent?: number;
  /** Default: true. */
  readonly respectDependencies?: boolean;
  /** At the threshold the group pauses (default) or fails. */
  readonly pauseOnError?: boolean;
  /** Nothing new starts after this many failed sessions; default: 2. */
  readonly errorThreshold?: number;
}

/** What a group may cost. */
export interface BudgetConfig {
  /** Hard cap in US dollars over all sessions and attempts. */
  readonly maxBudgetUsd?: number;
  /** Default: pause. */
  readonly onBudgetExceeded?: 'stop' | 'warn' | 'pause';
  /** Share of the budget at which `budget_warning` is emitted; default: 0.8. */
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
  /** Project folder, absolute or relative to the current folder. */
  readonly projectPath: string;
  /** The task; absent = from the prompt template. */
  readonly prompt?: string;
  /** Name or path of a prompt template for the task, or of a config template. */
  readonly template?: string;
  /** Name or path of the config template. */
  readonly configTemplate?: string;
  /** Values of template variables. */
  readonly variables?: Readonly<Record<string, string>>;
  /** Sessions that must complete first: the session itself, its id, its number or its name. */
  readonly dependsOn?: readonly (string | { readonly id: string })[];
  /** Settings for the generated config dir. */
  readonly config?: SessionConfig;
  /** Shell command that must succeed before the session is completed; false = none, even if the project sets one. */
  readonly accept?: string | false;
  /** Shell command to run once in a new worktree; false = none, even if the project sets one. */
  readonly setup?: string | false;
}

/** A session as in its meta.json. */
export type GroupSession = SessionMeta;

/** How to retry a session: an additional message, and which conversation to continue. */
export type RetryOptions = ConversationChoice & { readonly prompt?: string };

/** The result of a pause. */
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
  /** Reason code, such as `busy`, `usage` or `not-found`. */
  readonly reason: FailureReason;
  /** The suggestion; may be empty. */
  readonly next: string;
  readonly commands: readonly CommandLine[];

  constructor(failure: Failure) {
    super(failure.message);
    this.reason = failure.reason;
    this.next = adviceText(failure.next);
    this.commands = failure.next.commands;
  }
}

function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new SessionGroupError(result.failure);
}

interface Internals {
  readonly context: AppContext;
  readonly reference: GroupReference;
}

const internals = new WeakMap<object, Internals>();

function internalsOf(group: object): Internals {
  const found = internals.get(group);
  if (found === undefined) throw new TypeError('This is not a SessionGroup.');
  return found;
}

/** The environment of groups; defaults to that of this process. */
export interface GroupSurroundings {
  /** Determines the data folder, the login and the environment of sessions. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Receives progress messages. The library prints nothing. */
  readonly onNote?: (line: string) => void;
}

type SessionReference = string | { readonly id: string };

export class SessionGroup {
  /** `YYYYMMDD-HHMMSS-slug`. */
  readonly id: string;
  /** The folder of the group: events.jsonl, meta.json and transcripts. */
  readonly folder: string;

  private constructor(context: AppContext, reference: GroupReference) {
    this.id = reference.groupId;
    this.folder = reference.paths.folder;
    internals.set(this, { context, reference });
  }

  /** Creates an empty group, like `group create`. */
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

  /** Creates the group of a workflow: the path of a YAML file, or the name of a template. */
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

  /** Opens an existing group by id, unique prefix or slug. */
  static async open(reference: string, surroundings: GroupSurroundings = {}): Promise<SessionGroup> {
    const context = contextFor(surroundings);
    const group = unwrap(resolveGroup(context, reference));
    unwrap(loadWithRunner(context.world, group));
    return new SessionGroup(context, group);
  }

  /** Adds a session, even while the group runs. */
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

  /** All sessions in the order of their creation. */
  async sessions(): Promise<readonly GroupSession[]> {
    return [...this.#load().state.sessions.values()].map(sessionMeta);
  }

  /** One session by id, number or name. */
  async session(reference: SessionReference): Promise<GroupSession> {
    return sessionMeta(unwrap(sessionOf(this.#load(), idOf(reference))).record);
  }

  /** The current progress. */
  async progress(): Promise<GroupProgress> {
    return progressOf(internalsOf(this).context.world, this.#load());
  }

  /**
   * The group's past events, then new ones, from any runner. Ends when the consumer stops iterating or `signal` aborts.
   * Throws if the log is damaged or the group is deleted.
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
   * Pauses the group and resolves when it is paused. `drain`: running sessions finish first. `freeze`: suspends all
   * processes for at most a minute.
   */
  async pause(mode: 'now' | 'drain' | 'freeze' = 'now'): Promise<PauseResult> {
    const { context, reference } = internalsOf(this);
    const { outcome, warnings } = unwrap(await pauseAndNotify(context, reference, mode));
    for (const warning of warnings) context.notes.line(warning);
    return outcome;
  }

  /** Pauses one session; the others continue. */
  async pauseSession(session: SessionReference): Promise<void> {
    await this.#submit({ kind: 'pause-session', sessionId: this.#idOf(session) });
  }

  /** Resumes a paused session when a slot is free, or with the next run. */
  async resumeSession(session: SessionReference, { maxBudgetUsd }: { readonly maxBudgetUsd?: number } = {}) {
    const budget = defined({ maxBudgetUsd });
    await this.#submit({ kind: 'resume-session', sessionId: this.#idOf(session), ...budget });
  }

  /**
   * Retries a failed session when a slot is free, or with the next run. `prompt` is an additional message. `fresh`
   * starts a new conversation; `rewind` drops the model's last messages.
   */
  async retrySession(session: SessionReference, how: RetryOptions = {}): Promise<void> {
    await this.#submit({ kind: 'retry-session', sessionId: this.#idOf(session), ...how });
  }

  /** Sends a message to a session. Returns whether it was sent now or is kept for the next attempt. */
  async say(session: SessionReference, text: string): Promise<'now' | 'next-attempt'> {
    const { context, reference } = internalsOf(this);
    return unwrap(await submit(context, reference, { kind: 'say', sessionId: this.#idOf(session), text }));
  }

  /** Sets the cap, even while the group runs. */
  async raiseBudget(maxBudgetUsd: number): Promise<void> {
    await this.#submit({ kind: 'edit-group', config: { maxBudgetUsd } });
  }

  /** Removes a session that is not running. `force` commits uncommitted work first. */
  async remove(session: SessionReference, { force = false }: { readonly force?: boolean } = {}): Promise<void> {
    const { context } = internalsOf(this);
    const loaded = unwrap(sessionOf(this.#load(), idOf(session)));
    const command = ['session', 'remove', `${this.id}/${loaded.sessionId}`];
    const release = { force, command, tell: (note: string) => context.notes.line(note) };
    unwrap(await removeSession(context, loaded, release));
  }

  /** Archives a finished group. `force` discards unmerged work. */
  async archive({ force = false }: { readonly force?: boolean } = {}): Promise<void> {
    const { context, reference } = internalsOf(this);
    unwrap(await archiveGroup(context, reference, force));
  }

  /** Deletes a group that is not running, with its transcripts. `force` commits uncommitted work first. */
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

// Events in order, for one reader that takes them when it is ready.

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
   * Rehearse with the scripted model at no cost: true, or the path of a script. A rehearsed group stays a rehearsal.
   */
  readonly rehearse?: boolean | string;
  /** Version of claude to use even if a required check failed. */
  readonly acceptClaude?: string;
  /** Aborting pauses the group like Ctrl-C. */
  readonly signal?: AbortSignal;
}

/** Settings that are kept for later runs. */
export type RunSettings = ConcurrencyConfig & Omit<BudgetConfig, 'warningThreshold'>;

/** A started run. */
export interface SessionGroupRun {
  /** The events of this run, for one reader. Throws as `result` does. */
  readonly events: AsyncIterableIterator<GroupEvent>;
  /** Throws a SessionGroupError if the run could not start. */
  readonly result: Promise<GroupResult>;
}

export class SessionGroupRunner {
  readonly #options: RunnerOptions;

  constructor(options: RunnerOptions = {}) {
    this.#options = options;
  }

  /** Runs or continues the group until every session has completed or nothing more can start. */
  run(group: SessionGroup, config: RunSettings = {}): Promise<GroupResult> {
    return this.#run(group, config, false, () => {});
  }

  /** Like `run`, with the events of the run. */
  start(group: SessionGroup, config: RunSettings = {}): SessionGroupRun {
    return this.#watched((tell) => this.#run(group, config, false, tell));
  }

  /**
   * Continues a paused, failed or interrupted group and retries failed sessions. Returns null for a frozen group, which
   * its own runner continues.
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
    // The reader of the events gets the error from them; this prevents an unhandled rejection.
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
    };
    const asRehearsal = rehearse === false ? undefined : rehearse;
    const ran = unwrap(await runHere(context, reference, { config, rehearse: asRehearsal, retryFailed }, ways));
    if (ran.kind === 'refused') unwrap({ ok: false, failure: ran.failure });
    if (ran.kind === 'interrupted') unwrap(fail('internal', 'A signal interrupted the run before it started.', ''));
    if (ran.kind === 'called-off') unwrap(fail('usage', 'The group was paused before the run started.', ''));
    const loaded = unwrap(loadWithRunner(context.world, reference));
    const { status, reason, message, sessions } = loaded.state;
    if (status !== 'completed' && status !== 'failed' && status !== 'paused') {
      const message = `The run was left while the group is ${status}; its workers continue.`;
      return unwrap(fail('internal', message, 'Run it again.'));
    }
    return {
      status,
      ...(reason === undefined || status === 'completed' ? {} : { reason }),
      ...(message === undefined || status === 'completed' ? {} : { message }),
      sessions: [...sessions.values()].map(sessionMeta),
      progress: progressOf(context.world, loaded),
    };
  }
}
