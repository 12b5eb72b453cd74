/** A group of sessions: made, filled, looked at and asked for things, whoever runs it. */
import { createNewGroup } from '../app/create/new-group.ts';
import { addSession } from '../app/create/new-session.ts';
import { readWorkflow } from '../app/create/workflow-group.ts';
import { sessionMeta } from '../app/groups.ts';
import { pauseAndTell } from '../app/pause-group.ts';
import { createPlace, type Place } from '../app/place.ts';
import { archiveGroup, removeSession } from '../app/removal/archive-group.ts';
import { deleteGroup } from '../app/removal/delete-group.ts';
import { findSessionOf, type GroupReference, type LoadedGroup, loadWithRunner, resolveGroup } from '../app/resolve.ts';
import { submit } from '../app/submit.ts';
import { followGroup } from '../app/watch/follow-group.ts';
import { progressOf } from '../app/watch/live-view.ts';
import { defined } from '../core/defined.ts';
import type { GroupEvent } from '../core/event.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import { defaultGroupConfig } from '../core/group.ts';
import { checkSlug } from '../core/id.ts';
import type { GroupProgress } from '../core/progress.ts';
import { configProblem } from '../core/setting-values.ts';
import type { GroupStatus } from '../core/status.ts';
import { lineProblem } from '../core/values.ts';
import {
  type GroupSession,
  keepPlace,
  type NewGroupSession,
  type NewSessionGroup,
  type PauseResult,
  placeOf,
  SessionGroupError,
  unwrap,
} from './types.ts';

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

  private constructor(place: Place, reference: GroupReference) {
    this.id = reference.groupId;
    this.folder = reference.paths.folder;
    keepPlace(this, { place, reference });
  }

  /** Makes an empty group, like `group create`. */
  static async create(group: NewSessionGroup, surroundings: GroupSurroundings = {}): Promise<SessionGroup> {
    const place = here(surroundings);
    const { slug, name = slug, description = '', config = {} } = group;
    const root = unwrap(place.root());
    const definition = {
      slug: unwrap(checkSlug(slug)),
      name: unwrap(textOf('name', name)),
      description: unwrap(textOf('description', description)),
      config: { ...defaultGroupConfig, ...config },
    };
    const problem = configProblem(config);
    unwrap(problem === null ? ok(undefined) : fail('usage', `${problem}.`, ''));
    const created = unwrap(createNewGroup(place, root, { definition, sessions: [], configTemplates: [] }));
    return SessionGroup.open(created.group.id, surroundings);
  }

  /** Makes the group that a workflow describes: the path of a YAML file, or the name of a workflow template. */
  static async fromWorkflow(
    workflow: string,
    variables: Readonly<Record<string, string>> = {},
    surroundings: GroupSurroundings = {},
  ): Promise<SessionGroup> {
    const place = here(surroundings);
    const root = unwrap(place.root());
    const group = unwrap(readWorkflow(place, workflow, pairsOf(variables)));
    return SessionGroup.open(unwrap(createNewGroup(place, root, group)).group.id, surroundings);
  }

  /** A group that is there, by id, unique prefix or slug. */
  static async open(reference: string, surroundings: GroupSurroundings = {}): Promise<SessionGroup> {
    const place = here(surroundings);
    const group = unwrap(resolveGroup(place, reference));
    unwrap(loadWithRunner(place.world, group));
    return new SessionGroup(place, group);
  }

  /** Adds a session, also while the group is running. */
  async add(session: NewGroupSession): Promise<GroupSession> {
    const { place } = placeOf(this);
    const { projectPath, prompt, variables = {}, dependsOn = [], config, ...rest } = session;
    const added = await addSession(place, this.#load(), {
      ...rest,
      project: projectPath,
      prompt: prompt === undefined ? undefined : async () => ok(prompt),
      var: pairsOf(variables),
      dependsOn: dependsOn.map(idOf),
      ...defined({ config }),
    });
    const { sessionId, notes } = unwrap(added);
    for (const note of notes) place.notes.line(note);
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
    return progressOf(placeOf(this).place.world, this.#load());
  }

  /**
   * What happened to it from the beginning on, and then what happens, whoever runs it: until nobody asks for more, or
   * `signal` says so. Throws when the log is damaged, or the group is deleted.
   */
  async *events({ signal }: { readonly signal?: AbortSignal } = {}): AsyncGenerator<GroupEvent, void> {
    const { place, reference } = placeOf(this);
    const queue = new EventQueue<GroupEvent>();
    let problem: SessionGroupError | undefined;
    const follower = followGroup(
      place.world,
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
    const { place, reference } = placeOf(this);
    const { outcome, warnings } = unwrap(await pauseAndTell(place, reference, mode));
    for (const warning of warnings) place.notes.line(warning);
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

  /** Tries a failed session again, at once or with the next run; `prompt` is said to it. */
  async retrySession(session: SessionReference, { prompt }: { readonly prompt?: string } = {}): Promise<void> {
    const said = defined({ prompt });
    await this.#submit({ kind: 'retry-session', sessionId: this.#idOf(session), ...said });
  }

  /** Tells a session something; whether it hears it now or with its next attempt. */
  async say(session: SessionReference, text: string): Promise<'now' | 'next-attempt'> {
    const { place, reference } = placeOf(this);
    return unwrap(await submit(place, reference, { kind: 'say', sessionId: this.#idOf(session), text }));
  }

  /** Sets the cap, while it runs too. */
  async raiseBudget(maxBudgetUsd: number): Promise<void> {
    await this.#submit({ kind: 'edit-group', config: { maxBudgetUsd } });
  }

  /** Takes out a session that is not running. With `force` work that is in no commit is committed first. */
  async remove(session: SessionReference, { force = false }: { readonly force?: boolean } = {}): Promise<void> {
    const { place } = placeOf(this);
    const group = this.#load();
    const sessionId = this.#idOf(session);
    const record = unwrap(present(group.state.sessions.get(sessionId)));
    const command = ['session', 'remove', `${this.id}/${sessionId}`];
    const release = { force, command, tell: (note: string) => place.notes.line(note) };
    unwrap(await removeSession(place, { ...group, sessionId, record }, release));
  }

  /** Puts a finished group away. With `force` unmerged work in its worktrees is thrown away. */
  async archive({ force = false }: { readonly force?: boolean } = {}): Promise<void> {
    const { place, reference } = placeOf(this);
    unwrap(await archiveGroup(place, reference, force));
  }

  /** Deletes it with its transcripts; it must not be running. With `force` work that is in no commit is committed. */
  async delete({ force = false }: { readonly force?: boolean } = {}): Promise<void> {
    const { place, reference } = placeOf(this);
    const command = ['group', 'delete', this.id];
    const release = { force, command, tell: (note: string) => place.notes.line(note) };
    unwrap(await deleteGroup(place, reference, release));
  }

  async #submit(command: Parameters<typeof submit>[2]): Promise<void> {
    const { place, reference } = placeOf(this);
    unwrap(await submit(place, reference, command));
  }

  #load(): LoadedGroup {
    const { place, reference } = placeOf(this);
    return unwrap(loadWithRunner(place.world, reference));
  }

  #idOf(session: SessionReference): string {
    return unwrap(findSessionOf(this.#load().state, idOf(session)));
  }
}

function here({ env = process.env, onNote = () => {} }: GroupSurroundings): Place {
  return createPlace({ env, cwd: () => process.cwd(), note: onNote });
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

export class EventQueue<T> implements AsyncIterableIterator<T> {
  readonly #onReturn: () => void;
  #waiting: T[] = [];
  #reader: (() => void) | null = null;
  #isEnded = false;

  /** `onReturn` is called when the reader wants no more. */
  constructor(onReturn: () => void = () => {}) {
    this.#onReturn = onReturn;
  }

  push(event: T): void {
    if (this.#isEnded) return;
    this.#waiting.push(event);
    this.#reader?.();
  }

  end(): void {
    this.#isEnded = true;
    this.#reader?.();
  }

  async next(): Promise<IteratorResult<T>> {
    while (this.#waiting.length === 0 && !this.#isEnded) {
      await new Promise<void>((resolve) => {
        this.#reader = resolve;
      });
      this.#reader = null;
    }
    const [event] = this.#waiting.splice(0, 1);
    return event === undefined ? { done: true, value: undefined } : { done: false, value: event };
  }

  async return(): Promise<IteratorResult<T>> {
    this.#waiting = [];
    this.end();
    this.#onReturn();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
