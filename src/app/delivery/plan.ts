/** What a hand-over is about: which sessions' work goes into which branch of which repository, in which order. */
import { advise } from '../../core/advice.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { SessionId } from '../../core/group.ts';
import { quoted } from '../../core/id.ts';
import { resumeCommand, runCommand } from '../../core/plan/advice.ts';
import { planOf } from '../../core/plan/plan.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { nextGroupStatus } from '../../core/status.ts';
import { changedPrograms } from '../../git/diff.ts';
import type { Git } from '../../git/git.ts';
import { listed, repositoryDir } from '../../git/worktrees/scratch.ts';
import { safeLine } from '../../view/terminal-text.ts';
import { sessionTitle, titleOf } from '../../view/wording.ts';
import { shellWord } from '../path-argument.ts';
import type { Place } from '../place.ts';
import {
  holding,
  isGone,
  type LeftOut,
  type MergeItem,
  mergeItemOf,
  mergeItemSince,
  programsSentence,
  titleOfItem,
} from './merge-items.ts';

export interface RepositoryPlan {
  readonly repository: string;
  readonly into: string;
  /** In graph order. */
  readonly items: readonly MergeItem[];
}

export interface MergePlan {
  readonly repositories: readonly RepositoryPlan[];
  readonly leftOut: readonly LeftOut[];
  readonly merged: readonly SessionId[];
  readonly mergedInto: readonly string[];
  readonly titles: ReadonlyMap<SessionId, string>;
}

export interface MergeSelection {
  /** The branch in every repository; absent = the one that was checked out when the work began. */
  readonly into?: string;
  /** Sessions that are not completed may be left out. */
  readonly partial: boolean;
}

export function say({ notes }: Pick<Place, 'notes'>, text: string): void {
  notes.line(safeLine(text, 1000));
}

export function placeName(repository: string): string {
  return repositoryDir(repository);
}

/** Fails with `illegal-transition` (the group is running or archived), `usage` and `worktree-failed`. */
export async function planMerge(git: Git, state: GroupState, options: MergeSelection): Promise<Result<MergePlan>> {
  const allowed = checkStatus(state);
  if (!allowed.ok) return allowed;
  const records = planOf(state).graph.order.flatMap((id) => state.sessions.get(id) ?? []);
  const unfinished = records.filter((record) => record.mergedInto === undefined && record.state.status !== 'completed');
  if (unfinished.length > 0 && !options.partial) return notComplete(state, unfinished);
  const merged: SessionRecord[] = [];
  const elsewhere: SessionRecord[] = [];
  const leftOut: LeftOut[] = [];
  const items = new Map<string, MergeItem[]>();
  for (const record of records) {
    const { workspace, mergedInto } = record;
    if (mergedInto === undefined && workspace !== undefined && isGone(git, workspace.repository)) {
      const message = `The repository ${placeName(workspace.repository)} is gone.`;
      return fail('usage', message, 'Put it back where it was, then merge again.');
    }
    const found =
      mergedInto === undefined
        ? await mergeItemOf(git, record)
        : await mergeItemSince(git, record, options.into ?? mergedInto);
    if (!found.ok) return found;
    if (found.value === null) merged.push(record);
    else if (found.value === 'elsewhere') elsewhere.push(record);
    else if ('why' in found.value) leftOut.push(found.value);
    else {
      const { repository, base } = found.value.workspace;
      const programs = await changedPrograms(git, placeName(repository), { from: base, to: found.value.source });
      if (!programs.ok) return programs;
      items.set(repository, [...(items.get(repository) ?? []), { ...found.value, programs: programs.value }]);
    }
  }
  if (elsewhere.length > 0 && options.into !== undefined) return mergedElsewhere(elsewhere, options.into);
  const repositories: RepositoryPlan[] = [];
  for (const [repository, work] of items) {
    const into = branchFor(repository, work, options.into);
    if (!into.ok) return into;
    const free = checkForeign(state, repository, into.value, options);
    if (!free.ok) return free;
    repositories.push({ repository, into: into.value, items: work });
  }
  return ok({
    repositories,
    leftOut,
    merged: merged.map(({ definition }) => definition.id),
    mergedInto: [...new Set(merged.flatMap(({ mergedInto }) => options.into ?? mergedInto ?? []))],
    titles: new Map([...state.sessions.keys()].map((id) => [id, titleOf(state, id)])),
  });
}

function checkStatus(state: GroupState): Result<void> {
  const { status, group } = state;
  if (status === 'created' || nextGroupStatus(status, 'group_merged') !== null) return ok(undefined);
  return fail(
    'illegal-transition',
    `Group ${group.id} is ${status}, so its work cannot be handed over.`,
    status === 'running'
      ? advise('Its runner is gone. Finish it with', runCommand(state))
      : 'What is left of it is on branches that begin with cca/; merge them with git merge.',
  );
}

function notComplete(state: GroupState, unfinished: readonly SessionRecord[]): Result<never> {
  const { group, sessions } = state;
  const titles = unfinished.map(({ definition, state: { status } }) => {
    return `${sessionTitle(definition.id, definition.name)} (${status})`;
  });
  const more = titles.length > 10 ? ` and ${titles.length - 10} more` : '';
  const which =
    sessions.size === 1
      ? `The only session of ${group.id} is`
      : `${titles.length} of ${sessions.size} sessions of ${group.id} ${titles.length === 1 ? 'is' : 'are'}`;
  return fail(
    'usage',
    `${which} not completed: ${titles.slice(0, 10).join(', ')}${more}.`,
    advise('Give --partial to take what is completed, or go on with', resumeCommand(state)),
  );
}

function branchFor(repository: string, items: readonly MergeItem[], into: string | undefined): Result<string> {
  if (into !== undefined) return ok(into);
  const [first, ...others] = new Set(items.flatMap(({ target }) => target ?? []));
  const place = placeName(repository);
  if (first === undefined) {
    const message = `No branch was checked out in ${place} when the work began, so nothing says where it is to go.`;
    return fail('usage', message, 'Name the branch with --into.');
  }
  if (others.length === 0) return ok(first);
  const message = `The work in ${place} is for several branches: ${listed([first, ...others])}.`;
  return fail('usage', message, `Name one of them with --into, such as --into ${quoted(first)}.`);
}

/** What sessions' branches are called, in whichever group. */
const sessionBranch = /^cca\/[^/]+\/\d{3,}(?:-|$)/;
const nameYourOwn = 'Name a branch of your own with --into.';

/** Refuses branches of sessions: what else is merged there would be taken for the session's work. */
function checkForeign(state: GroupState, repository: string, into: string, options: MergeSelection): Result<void> {
  for (const { definition, workspace } of state.sessions.values()) {
    if (workspace?.branch !== into || workspace.repository !== repository) continue;
    const title = sessionTitle(definition.id, definition.name);
    return fail('usage', `${quoted(into)} is the branch of the session ${title} itself.`, nameYourOwn);
  }
  if (options.into === undefined || !sessionBranch.test(into)) return ok(undefined);
  return fail('usage', `${quoted(into)} has the name of a session's own branch.`, nameYourOwn);
}

/** Whether some work was left where it is although nobody asked for that: then the command has not done its task. */
export function isIncomplete({ leftOut, merged, repositories }: MergePlan, isAnyDone: boolean): boolean {
  if (leftOut.some(({ work }) => work === 'uncommitted')) return true;
  if (repositories.some(({ items }) => items.some(({ uncommitted }) => uncommitted.length > 0))) return true;
  return !isAnyDone && merged.length === 0 && leftOut.some(({ work }) => work === 'elsewhere');
}

export function leftOutLines({ leftOut, repositories }: MergePlan): string[] {
  const rests = repositories.flatMap(({ items }) => items.filter(({ uncommitted }) => uncommitted.length > 0));
  return [
    ...leftOut.map(({ title, why }) => `Left out: ${title} ${why}.`),
    ...rests.map((item) => `Only its commits: ${titleOfItem(item)} ${holding(item.uncommitted)}.`),
    ...repositories.flatMap(({ items }) =>
      items.flatMap((item) => {
        const sentence = programsSentence(item.programs ?? []);
        return sentence === null ? [] : [`${titleOfItem(item)}: ${sentence}`];
      }),
    ),
  ];
}

const titlesShown = 5;

/** Says where the work is and how it gets into the branch `into`. Always fails, with `usage`. */
function mergedElsewhere(records: readonly SessionRecord[], into: string): Result<never> {
  const places = records.map(({ workspace, definition, mergedInto = '' }) => {
    const place = placeName(workspace?.repository ?? definition.repository ?? '');
    const git = `git -C ${shellWord(place)}`;
    const merge = `${git} checkout ${shellWord(into)} && ${git} merge ${shellWord(mergedInto)}`;
    return { where: `${quoted(mergedInto)} of ${place}`, merge };
  });
  const titles = records.map((record) => titleOfItem({ record }));
  const more = titles.length > titlesShown ? ` and ${titles.length - titlesShown} more` : '';
  const who = `${titles.slice(0, titlesShown).join(', ')}${more}`;
  const where = [...new Set(places.map((one) => one.where))].join(' and ');
  const commands = [...new Set(places.map(({ merge }) => merge))].join(' && ');
  const message = `${who}: merged into ${where} before, and not in ${listed([into])}.`;
  return fail('usage', message, `Merge it from there: ${commands}`);
}
