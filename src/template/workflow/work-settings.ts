/**
 * Where a session works and how its work is checked: what the session, its group and its project say about it, and
 * what comes of that. Whoever is nearer to the session counts.
 */

import { defined } from '../../core/defined.ts';
import type { IsolationMode, SessionDefinition } from '../../core/group.ts';
import { quoted } from '../../core/id.ts';
import { durationMs, durationPattern, durationRule } from '../../core/values.ts';
import { schema } from '../../store/schema.ts';

/** What somebody said. An absent key says nothing. */
export interface GivenWork {
  readonly isolate?: IsolationMode | undefined;
  /** A shell command; false: none, whatever others say. */
  readonly accept?: string | false | undefined;
  readonly acceptRetries?: number | undefined;
  readonly acceptTimeoutMs?: number | undefined;
  readonly setup?: string | false | undefined;
  readonly setupTimeoutMs?: number | undefined;
  readonly expectChanges?: boolean | undefined;
  /** Whether uncommitted work is committed. */
  readonly commit?: boolean | undefined;
}

export type WorkSettings = Pick<
  SessionDefinition,
  | 'repository'
  | 'isolate'
  | 'accept'
  | 'acceptRetries'
  | 'acceptTimeoutMs'
  | 'setup'
  | 'setupTimeoutMs'
  | 'expectChanges'
  | 'noCommit'
>;

/** The session's git repository; null: it is in none; undefined: nobody looked. */
export type Repository = string | null | undefined;

/** `given`: the session's own, then those of others, nearest first. What can have no effect is left out. */
export function workSettings(given: readonly GivenWork[], repository: Repository): WorkSettings {
  const first = <K extends keyof GivenWork>(key: K): GivenWork[K] =>
    given.find((work) => work[key] !== undefined)?.[key];
  const isolate = first('isolate');
  const accept = first('accept') || undefined;
  const mayHaveWorktree = isolate !== 'none' && repository !== null;
  const setup = (mayHaveWorktree && first('setup')) || undefined;
  const timeouts = { accept: first('acceptTimeoutMs'), setup: first('setupTimeoutMs') };
  const acceptRetries = first('acceptRetries');
  return {
    ...(typeof repository === 'string' ? { repository } : {}),
    ...defined({ isolate, accept }),
    ...(accept === undefined || acceptRetries === undefined ? {} : { acceptRetries }),
    ...(accept === undefined || timeouts.accept === undefined ? {} : { acceptTimeoutMs: timeouts.accept }),
    ...defined({ setup }),
    ...(setup === undefined || timeouts.setup === undefined ? {} : { setupTimeoutMs: timeouts.setup }),
    ...(first('expectChanges') === true ? { expectChanges: true } : {}),
    ...(mayHaveWorktree && first('commit') === false ? { noCommit: true } : {}),
  };
}

export interface WorkFault {
  readonly key: keyof GivenWork;
  /** Completes a sentence that begins with the key; no full stop. */
  readonly problem: string;
}

/** What a session's own settings ask for although it cannot be, or could have no effect. */
export function workFaults(own: GivenWork, settings: WorkSettings, repository: Repository): WorkFault[] {
  const faults: WorkFault[] = [];
  const refuse = (key: keyof GivenWork, problem: string) => faults.push({ key, problem });
  if (own.isolate === 'none' || repository === null) {
    const why = own.isolate === 'none' ? 'the session gets none' : 'the project is in no git repository';
    if (typeof own.setup === 'string') refuse('setup', `is run in a new worktree only, and ${why}`);
    if (own.commit === false) refuse('commit', `is about worktrees only, and ${why}`);
  }
  if (own.expectChanges === true && repository === null) {
    refuse('expectChanges', 'takes a git repository, and the project is in none');
  }
  if (settings.accept === undefined) {
    const why = 'means nothing without an accept command';
    if (own.acceptRetries !== undefined) refuse('acceptRetries', why);
    if (own.acceptTimeoutMs !== undefined) refuse('acceptTimeoutMs', why);
  }
  if (settings.setup === undefined && own.setupTimeoutMs !== undefined && typeof own.setup !== 'string') {
    refuse('setupTimeoutMs', 'means nothing without a setup command that is run');
  }
  return faults;
}

/** Why a session surely has no branch and no diff, for whoever asks for them; null when it may. No full stop. */
export function noBranchFault(session: string, isolate: IsolationMode | undefined): string | null {
  if (isolate !== 'none') return null;
  const why = 'works in the project folder itself (isolate: none)';
  return `${quoted(session)} ${why}, so it has no branch and no diff of its own; use .result`;
}

export const duration = schema((z) =>
  z
    .string(durationRule)
    .regex(durationPattern, durationRule)
    .refine((text) => durationMs(text) !== null, durationRule),
);

/** What it may be is checked where its variable is known. */
export const command = schema((z) =>
  z.union([z.string(), z.literal(false)], 'expected a shell command, or false for none'),
);
