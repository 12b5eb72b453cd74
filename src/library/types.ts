/**
 * library/: groups as values of a program of one's own, by the names of the specification. This file: what goes in and
 * comes out.
 */

import type { SessionMeta } from '../app/groups.ts';
import type { Place } from '../app/place.ts';
import type { GroupReference } from '../app/resolve.ts';
import type { PauseOutcome } from '../app/submit.ts';
import { adviceText, type CommandLine } from '../core/advice.ts';
import type { SessionSettings } from '../core/definitions.ts';
import type { Failure, FailureReason, Result } from '../core/failure.ts';
import type { GroupConfig, SessionConfig } from '../core/group.ts';
import type { GroupProgress } from '../core/progress.ts';

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

interface Behind {
  readonly place: Place;
  readonly reference: GroupReference;
}

const places = new WeakMap<object, Behind>();

export function keepPlace(group: object, behind: Behind): void {
  places.set(group, behind);
}

export function placeOf(group: object): Behind {
  const found = places.get(group);
  if (found === undefined) throw new TypeError('This is no SessionGroup.');
  return found;
}
