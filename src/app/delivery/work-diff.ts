/** What sessions changed: compares the commits that the log names, as far as the repositories still have them. */

import { advise, shellWord } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { SessionId, Workspace } from '../../core/group.ts';
import { groupAdvice } from '../../core/plan/advice.ts';
import { verdictsAtRest } from '../../core/plan/verdicts.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { SessionStatus } from '../../core/status.ts';
import { changedPrograms, type DiffStat, diffStat, diffText, sinceState } from '../../git/diff.ts';
import { isWorktreeOf } from '../../git/git.ts';
import { commitOf } from '../../git/run-git.ts';
import { repositoryDir } from '../../git/worktrees/worktree.ts';
import { readLog } from '../../store/event-log.ts';
import { sessionPaths } from '../../store/paths.ts';
import { titleOf } from '../../view/wording.ts';
import type { AppContext } from '../app-context.ts';
import { briefPath } from '../path-argument.ts';
import type { LoadedGroup, LoadedSession } from '../resolve.ts';

export interface WorkDiff {
  readonly sessionId: SessionId;
  readonly name?: string;
  readonly status: SessionStatus;
  readonly repository: string;
  /** Absent = the session worked in the project folder itself. */
  readonly branch?: string;
  readonly base: string;
  /** The last commit; absent = the files of the worktree, committed or not. */
  readonly commit?: string;
  readonly stat: DiffStat;
  readonly programs?: readonly string[];
  /** A sentence, if the worktree is gone and uncommitted changes are missing in the diff. */
  readonly gone?: string;
  readonly text?: string;
}

export interface DiffForm {
  readonly stat?: number;
  readonly numbers?: boolean;
}

/** The last known worktree of each session. */
export function workspacesOf(context: AppContext, group: LoadedGroup): Result<ReadonlyMap<SessionId, Workspace>> {
  const events = readLog(context.world, group.paths.events);
  if (!events.ok) return events;
  const found = new Map<SessionId, Workspace>();
  for (const event of events.value) {
    const isOne = event.type === 'session_isolated' || event.type === 'session_inherited';
    if (isOne && event.workspace !== undefined) found.set(event.sessionId, event.workspace);
  }
  return ok(found);
}

export interface Comparison {
  readonly folder: string;
  readonly from: string;
  /** Absent = the files as they are in the folder. */
  readonly to?: string;
  readonly without?: readonly string[];
  readonly gone?: string;
}

/** Fails with `illegal-transition` (nothing to compare), `not-found` (work is gone) or `worktree-failed`. */
export async function comparisonOf(
  context: AppContext,
  session: LoadedSession,
  workspace: Workspace | undefined,
): Promise<Result<Comparison>> {
  if (workspace !== undefined) {
    const sides = await sidesOf(context, session, workspace);
    return sides.ok ? ok({ ...sides.value, from: workspace.base }) : sides;
  }
  // All changes since the session started, including changes by others.
  const { projectPath: folder, repository } = session.record.definition;
  const begin = context.world.files.readText(sessionPaths(session.paths, session.sessionId).begin);
  const since = begin === null ? null : sinceState(context, folder, begin);
  return since === null || repository === undefined ? notIsolated(session) : ok({ folder, ...since });
}

/** Fails as comparisonOf. */
export async function diffOf(
  context: AppContext,
  session: LoadedSession,
  workspace: Workspace | undefined,
  form: DiffForm,
): Promise<Result<WorkDiff>> {
  const compared = await comparisonOf(context, session, workspace);
  if (!compared.ok) return compared;
  const { folder, from, to, gone, without } = compared.value;
  const options = { from, ...defined({ to, without, stat: form.stat }) };
  const stat = await diffStat(context, folder, options);
  if (!stat.ok) return stat;
  const programs = workspace === undefined ? ok([]) : await changedPrograms(context, folder, { from, to });
  if (!programs.ok) return programs;
  const text = form.numbers ? ok(undefined) : await diffText(context, folder, options);
  if (!text.ok) return text;
  const { record, sessionId } = session;
  const { name, repository = '' } = record.definition;
  return ok({
    sessionId,
    ...defined({ name }),
    status: record.state.status,
    repository: workspace?.repository ?? repository,
    ...defined({ branch: workspace?.branch }),
    base: from,
    ...defined({ commit: to }),
    stat: stat.value,
    ...(programs.value.length === 0 ? {} : { programs: programs.value }),
    ...defined({ gone, text: text.value }),
  });
}

interface Sides {
  readonly folder: string;
  readonly to?: string;
  readonly gone?: string;
}

async function sidesOf(context: AppContext, session: LoadedSession, workspace: Workspace): Promise<Result<Sides>> {
  const { record, state, sessionId } = session;
  const { files } = context.world;
  const { path, repository, branch, base } = workspace;
  const title = titleOf(state, sessionId);
  const hasFolder = record.workspace !== undefined && isWorktreeOf(files, repository, path);
  if (hasFolder && !isCommitted(record)) return ok({ folder: path });
  if (files.info(repository)?.kind !== 'folder') {
    return fail('not-found', `The repository ${briefPath(repository)} of session ${title} is gone.`, 'Restore it.');
  }
  const folder = repositoryDir(repository);
  const wanted = workOf(record) ?? `refs/heads/${branch}`;
  const to = await commitOf(context, folder, wanted);
  if (!to.ok) return to;
  const from = await commitOf(context, folder, base);
  if (!from.ok) return from;
  const isGone = record.workspace !== undefined && !hasFolder && !isCommitted(record);
  const gone = isGone ? { gone: goneSentence(session, workspace) } : {};
  if (to.value !== null && from.value !== null) return ok({ folder, to: to.value, ...gone });
  const message = `The work of session ${title} is no longer in the repository ${briefPath(repository)}.`;
  const next =
    record.mergedInto === undefined
      ? advise('See what it did with', ['session', 'logs', `${state.group.id}/${sessionId}`])
      : `It was merged into ${record.mergedInto}: see git log ${shellWord(record.mergedInto)}`;
  return fail('not-found', message, next);
}

function goneSentence({ record, state, sessionId }: LoadedSession, { path }: Workspace): string {
  const title = titleOf(state, sessionId);
  const gone = `The worktree of session ${title} is gone: ${briefPath(path)}. Only what is on its branch is shown.`;
  if (record.state.status === 'completed') return gone;
  return `${gone} A resumed session gets a new worktree from that branch.`;
}

function isCommitted(record: SessionRecord): boolean {
  return workOf(record) !== undefined && record.definition.commit !== false;
}

function workOf({ state }: SessionRecord): string | undefined {
  return state.status === 'completed' ? state.work?.commit : undefined;
}

function notIsolated({ record, state, sessionId, hadRunner }: LoadedSession): Result<never> {
  const title = titleOf(state, sessionId);
  const { projectPath, repository } = record.definition;
  if (record.state.status !== 'completed' && (record.attempts === 0 || record.isolated === true)) {
    const next = hadRunner
      ? advise('Follow it with', ['group', 'watch', state.group.id])
      : (verdictsAtRest(state)(record)?.advice ?? groupAdvice(state));
    return fail('illegal-transition', `Session ${title} has not started, so there is nothing to compare.`, next);
  }
  const message = `Session ${title} worked in the project folder itself, together with changes by others.`;
  const next =
    repository === undefined ? `Look there: ${projectPath}` : `See them with: git -C ${shellWord(projectPath)} diff`;
  return fail('illegal-transition', message, next);
}
