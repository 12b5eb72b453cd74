/** What a hand-over is about: which sessions' work goes into which branch of which repository, in which order. */
import { fail, ok, type Result } from '../../core/failure.ts';
import type { SessionId, Work, Workspace } from '../../core/group.ts';
import { quoted } from '../../core/id.ts';
import { planOf } from '../../core/plan.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { nextGroupStatus } from '../../core/status.ts';
import { askedIn, listed } from '../../git/scratch.ts';
import { plural } from '../../report/format.ts';
import { safeLine } from '../../report/terminal-text.ts';
import { sessionTitle } from '../../report/wording.ts';
import type { Context } from '../context.ts';

/** The work of one session. */
export interface Piece {
  readonly record: SessionRecord;
  readonly workspace: Workspace;
  readonly work: Work;
}

export interface RepositoryPlan {
  readonly repository: string;
  /** Branch that takes the work, without `refs/heads/`. */
  readonly into: string;
  /** In graph order. */
  readonly pieces: readonly Piece[];
}

export interface LeftOut {
  readonly sessionId: SessionId;
  readonly title: string;
  /** Goes on the title: `is failed`. */
  readonly why: string;
}

export interface HandOver {
  /** In the order in which the graph comes to them. */
  readonly repositories: readonly RepositoryPlan[];
  readonly leftOut: readonly LeftOut[];
  /** Merged by an earlier command. */
  readonly merged: readonly SessionId[];
}

export interface HandOverWish {
  /** The branch in every repository; absent = the one that was checked out when the work began. */
  readonly into?: string;
  /** Sessions that are not completed may be left out. */
  readonly partial: boolean;
}

export function titleOfPiece({ record }: Pick<Piece, 'record'>): string {
  return sessionTitle(record.definition.id, record.definition.name);
}

/** One line for people; paths and names in it may hold anything. */
export function say({ stderr }: Pick<Context, 'stderr'>, text: string): void {
  stderr.line(safeLine(text, 1000));
}

/** The folder by which people know a repository. */
export function placeName(repository: string): string {
  return askedIn(repository);
}

/** Fails with `illegal-transition` (the group is running or put away) and `usage`. */
export function planHandOver(state: GroupState, wish: HandOverWish): Result<HandOver> {
  const allowed = checkStatus(state);
  if (!allowed.ok) return allowed;
  const merged: SessionId[] = [];
  const leftOut: LeftOut[] = [];
  const unfinished: string[] = [];
  const pieces = new Map<string, Piece[]>();
  for (const id of planOf(state).graph.order) {
    const record = state.sessions.get(id);
    if (record === undefined) continue;
    if (record.mergedInto !== undefined) {
      merged.push(id);
      continue;
    }
    const title = sessionTitle(id, record.definition.name);
    const piece = pieceOf(record);
    if ('why' in piece) leftOut.push({ sessionId: id, title, why: piece.why });
    else pieces.set(piece.workspace.repository, [...(pieces.get(piece.workspace.repository) ?? []), piece]);
    if (record.state.status !== 'completed') unfinished.push(`${title} (${record.state.status})`);
  }
  if (unfinished.length > 0 && !wish.partial) return notComplete(state, unfinished);
  const repositories: RepositoryPlan[] = [];
  for (const [repository, work] of pieces) {
    const into = branchFor(repository, work, wish.into);
    if (!into.ok) return into;
    repositories.push({ repository, into: into.value, pieces: work });
  }
  return ok({ repositories, leftOut, merged });
}

function checkStatus({ status, group }: GroupState): Result<void> {
  if (status === 'created' || nextGroupStatus(status, 'group_merged') !== null) return ok(undefined);
  return fail(
    'illegal-transition',
    `Group ${group.id} is ${status}, so its work cannot be handed over.`,
    status === 'running'
      ? `Its runner is gone. Finish it with: claude-code-agent group run ${group.id}`
      : 'What is left of it is on branches that begin with cca/; merge them with git merge.',
  );
}

function pieceOf(record: SessionRecord): Piece | { readonly why: string } {
  const { state, workspace, isolated } = record;
  if (state.status !== 'completed') return { why: `is ${state.status}` };
  if (isolated !== true) return { why: 'worked in the project folder itself' };
  if (workspace === undefined) return { why: 'has no worktree and no branch any more' };
  if (state.work === undefined) return { why: 'left no commit' };
  return { record, workspace, work: state.work };
}

function notComplete({ group, sessions }: GroupState, unfinished: readonly string[]): Result<never> {
  const shown = unfinished.slice(0, 10).join(', ');
  const more = unfinished.length > 10 ? ` and ${unfinished.length - 10} more` : '';
  return fail(
    'usage',
    `${unfinished.length} of ${plural(sessions.size, 'session')} of ${group.id} are not completed: ${shown}${more}.`,
    `Go on with "claude-code-agent group resume ${group.id}", or take what is completed with --partial.`,
  );
}

function branchFor(repository: string, pieces: readonly Piece[], into: string | undefined): Result<string> {
  if (into !== undefined) return ok(into);
  const [first, ...others] = new Set(pieces.flatMap(({ workspace }) => workspace.target ?? []));
  const place = placeName(repository);
  if (first === undefined) {
    const message = `No branch was checked out in ${place} when the work began, so nothing says where it is to go.`;
    return fail('usage', message, 'Name the branch with --into.');
  }
  if (others.length === 0) return ok(first);
  const message = `The work in ${place} began on several branches: ${listed([first, ...others])}.`;
  return fail('usage', message, `Name one of them with --into, such as --into ${quoted(first)}.`);
}
