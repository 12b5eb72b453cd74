/**
 * app/claude-check/: checks a claude that never ran here before money depends on it, against the scripted API and at
 * no cost. This file: the promises that are checked, and what it means when one is broken.
 */
import type { Login } from '../../claude/launch/login.ts';

/**
 * `money`: somebody else may pay or read along, or the wrong amount is counted. `safety`: our hold on a worker. Both
 * keep a run from starting. `context`: what a session knows. `none`: a login that this user does not use.
 */
export type Weight = 'money' | 'safety' | 'context' | 'none';

export interface Claim {
  readonly id: ClaimId;
  readonly weight: Weight;
  /** What claude is to do; for a table. */
  readonly promise: string;
  /** What it means for a user when it does not; a whole sentence. */
  readonly meaning: string;
}

export type ClaimId =
  | 'login-key'
  | 'login-token'
  | 'login-store'
  | 'start'
  | 'hooks'
  | 'instructions'
  | 'mark'
  | 'deny'
  | 'payer'
  | 'cost'
  | 'interrupt'
  | 'budget'
  | 'resume'
  | 'compaction'
  | 'compaction-kept'
  | 'fork';

const rows: readonly (readonly [ClaimId, Weight, promise: string, meaning: string])[] = [
  ['login-key', 'money', 'uses an API key as a worker is given it', 'Sessions with an API key do not run.'],
  ['login-token', 'money', 'uses an OAuth token as a worker is given it', 'Sessions with an OAuth token do not run.'],
  [
    'login-store',
    'money',
    'uses a stored login as a worker is given it',
    'Sessions with the login of `claude auth login` do not run.',
  ],
  [
    'start',
    'safety',
    'starts from a FIFO, under our session id',
    'Its sessions cannot be followed, resumed or taken over.',
  ],
  [
    'hooks',
    'safety',
    'runs the SessionStart hook and hands its text to the model',
    'Sessions would work without their state and their rules.',
  ],
  [
    'instructions',
    'context',
    'reads CLAUDE.md of the config dir',
    'Sessions do not know what they are part of, nor what templates tell them.',
  ],
  ['mark', 'safety', 'hands our mark on to what it starts', 'What a session leaves running cannot be found and ended.'],
  ['deny', 'safety', 'obeys deny rules', 'A session can do what was forbidden.'],
  [
    'payer',
    'money',
    'lets no project change who pays or reads along',
    'A project’s settings can send requests to others, or have others pay.',
  ],
  [
    'cost',
    'money',
    'tells what one process has cost, also after a resume',
    'Costs are counted wrongly, so budgets do not hold.',
  ],
  [
    'interrupt',
    'safety',
    'answers an interrupt and kills the running tool',
    'A pause leaves commands running, and what they cost goes on.',
  ],
  ['budget', 'money', 'stops at --max-budget-usd', 'A session can spend more than its budget.'],
  [
    'resume',
    'money',
    'goes on with a conversation under its id',
    'After a pause a session begins anew, and what it did is paid again.',
  ],
  [
    'compaction',
    'context',
    'compacts a full window, and our hook brings the state back',
    'Long sessions end in an error, or forget their task.',
  ],
  [
    'compaction-kept',
    'context',
    'lets no project switch compaction off',
    'A project’s settings can make long sessions end in an error.',
  ],
  ['fork', 'context', 'runs the SessionStart hook of a fork', 'A forked session does not know its task and its state.'],
];

export const claims: readonly Claim[] = rows.map(([id, weight, promise, meaning]) => ({
  id,
  weight,
  promise,
  meaning,
}));

/** What the trial has seen of one promise. `untried`: nothing could be seen, because something else went wrong. */
export interface Seen {
  readonly id: ClaimId;
  readonly verdict: 'holds' | 'broken' | 'untried';
  /** What happened, for people; empty when it holds. */
  readonly what: string;
}

/** The claim about a kind of login; undefined = no trial says anything about it. */
export function claimOfLogin(kind: Login['kind']): ClaimId | undefined {
  const ids = { 'api-key': 'login-key', 'oauth-token': 'login-token', store: 'login-store', provider: undefined };
  return ids[kind] as ClaimId | undefined;
}

/** How much a claim weighs for a user with this login: another login that does not work harms nobody. */
export function weightFor({ id, weight }: Claim, login: Login['kind']): Weight {
  return id.startsWith('login-') && id !== claimOfLogin(login) ? 'none' : weight;
}

export const holds = (id: ClaimId): Seen => ({ id, verdict: 'holds', what: '' });
export const broken = (id: ClaimId, what: string): Seen => ({ id, verdict: 'broken', what });
export const untried = (id: ClaimId, what: string): Seen => ({ id, verdict: 'untried', what });

/** Holds where nothing contradicts it. */
export function seenIf(id: ClaimId, faults: readonly (string | false | undefined)[]): Seen {
  const fault = faults.find((text) => typeof text === 'string');
  return typeof fault === 'string' ? broken(id, fault) : holds(id);
}
