/** What a person reviews after a run: the work of each session with its risks, and whether it goes together. */
import { createHash } from 'node:crypto';
import { join, relative } from 'node:path';
import { defined } from '../../core/defined.ts';
import { describeFailure, ok, type Result } from '../../core/failure.ts';
import type { SessionId, Workspace } from '../../core/group.ts';
import { openItems } from '../../core/item.ts';
import { isAnsweredPause } from '../../core/plan/plan.ts';
import { costHistory, type History, kindOf } from '../../core/plan/preview.ts';
import { verdictsAtRest } from '../../core/plan/verdicts.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import { listNames } from '../../core/text.ts';
import { diffText, recentDiffs } from '../../git/diff.ts';
import type { Git } from '../../git/git.ts';
import { commitOf, isAncestor, runOwn } from '../../git/run-git.ts';
import { tipOf } from '../../git/target.ts';
import { conflictsOf, isMerged, repositoryDir } from '../../git/worktrees/worktree.ts';
import { parseOwn } from '../../store/json.ts';
import { mergeFolderName, worktreesFolder } from '../../store/paths.ts';
import { type ChangedFile, filesOfPatch, isLock } from '../../view/review/patch.ts';
import {
  haltOf,
  headlineOf,
  orderRows,
  type Review,
  type ReviewKind,
  type ReviewRow,
} from '../../view/review/review.ts';
import {
  declarationOf,
  isSafe,
  makeRisk,
  namesGone,
  type OutcomeFacts,
  type Risk,
  risksOf,
  sortRisks,
  usesGoneFile,
  usesName,
} from '../../view/review/risks.ts';
import { problemText, projectName, titleOf } from '../../view/wording.ts';
import type { AppContext } from '../app-context.ts';
import { changeGroup } from '../group-commands.ts';
import { inboxOf } from '../inbox.ts';
import { liveRunner, whileBusy } from '../live-runner.ts';
import { tryPath } from '../path-argument.ts';
import type { LoadedGroup } from '../resolve.ts';
import { samplesByGroup } from '../watch/live-view.ts';
import { checkUnion } from './merge.ts';
import { sourceOf } from './plan.ts';
import { addressOf, readProposals } from './pull-request.ts';
import { type Comparison, comparisonOf, workspacesOf } from './work-diff.ts';

/** How far back a change is looked for that the work undoes. */
const recentMax = 20;
const headBytesMax = 16 * 1024 * 1024;

/** The work that a session left, and the facts about it. */
interface Outcome {
  readonly record: SessionRecord;
  readonly workspace?: Workspace;
  readonly compared?: Comparison;
  readonly files: readonly ChangedFile[];
  readonly risks: readonly Risk[];
  readonly pullRequest?: string;
  /** Its target branch already contains it, such as through a session that was built on it. */
  readonly isContained?: boolean;
}

/**
 * Of all sessions or `only` these. Fails as readLog does; what git cannot say of one session is a risk of that session.
 */
export async function readReview(
  context: AppContext,
  group: LoadedGroup,
  check: boolean,
  only?: ReadonlySet<SessionId>,
): Promise<Result<Review>> {
  const workspaces = workspacesOf(context, group);
  if (!workspaces.ok) return workspaces;
  const proposals = readProposals(context.world, group);
  if (!proposals.ok) return proposals;
  const { state } = group;
  const records = [...state.sessions.values()].filter(({ definition: { id } }) => only?.has(id) ?? true);
  const outcomes = await whileBusy(context, 'Reading the changes', async (say) => {
    const found: Outcome[] = [];
    for (const [index, record] of records.entries()) {
      say(`Reading the changes: session ${index + 1} of ${records.length}`);
      const { id } = record.definition;
      const outcome = await outcomeOf(context, group, record, workspaces.value.get(id));
      const { compared: { to } = {}, workspace, files } = outcome;
      const isWork = to !== undefined && workspace !== undefined && files.length > 0;
      const pullRequest = isWork && (await addressOf(context, proposals.value, workspace.repository, to));
      found.push(pullRequest ? { ...outcome, pullRequest } : outcome);
    }
    return withConflicts(context, group, found);
  });
  const history = costHistory([...samplesByGroup(context.world, group.root, group.groupId)].flat());
  const hasRunner = liveRunner(context.world, group) !== null;
  const rowsOf = (all: readonly Outcome[]) => all.map((outcome) => rowOf(group, outcome, history, hasRunner));
  const union = check ? await unionOf(context, group, rowsOf(outcomes), outcomes) : undefined;
  const broken = union?.culprits ?? [];
  const judged = outcomes.map((outcome): Outcome => {
    if (!broken.includes(outcome.record.definition.id) || union === undefined) return outcome;
    return { ...outcome, risks: sortRisks([...outcome.risks, makeRisk('breaks-together', 70, union.text)]) };
  });
  const rows = orderRows(rowsOf(judged));
  const items = inboxOf(state);
  return ok({
    version: 1,
    groupId: state.group.id,
    name: state.group.name,
    headline: headlineOf(state, rows, items.length, hasRunner),
    rows,
    decisions: items.filter(({ session }) => session === null),
    ...defined({ halt: haltOf(state, hasRunner), union: union?.text }),
  });
}

function rowOf({ state }: LoadedGroup, outcome: Outcome, history: History, hasRunner: boolean): ReviewRow {
  const { record, workspace, files, risks, pullRequest } = outcome;
  const { definition, usage, finished } = record;
  const { id, projectPath, prompt } = definition;
  const now = record.state;
  const ended = now.status === 'completed' ? now.result : finished?.result;
  const isOpen = openItems(record).length > 0;
  // What is asked is said by the decision.
  const trouble = isOpen ? undefined : problemText(state, record, verdictsAtRest(state)(record))?.message;
  const paused = now.status === 'paused' && !isAnsweredPause(record) ? now.reason : undefined;
  const reason = now.status === 'failed' ? now.failure.reason : paused;
  const isRunning = state.status === 'running';
  const unfinished = hasRunner ? 'The group is still running.' : 'The group was interrupted and is not finished.';
  const notMergeable = isRunning ? unfinished : whyNotMergeable(outcome);
  return {
    sessionId: id,
    title: titleOf(state, id),
    project: projectName(projectPath),
    kind: rowKind(outcome),
    status: now.status,
    ...defined({ reason, branch: workspace?.branch, notMergeable, pullRequest }),
    asked: prompt,
    said: [trouble, ended].filter(Boolean).join('\n'),
    decisions: openItems(record),
    risks,
    files: files.map(({ path, from, kind, isBinary, text, added, removed }) => {
      return { path, ...defined({ from }), kind, isBinary, text, insertions: added.length, deletions: removed.length };
    }),
    evidence: record.evidence?.runs ?? [],
    costUsd: usage.costUsd,
    ...defined({ quoteUsd: history.forecast(kindOf(definition, state))?.costUsd.p90 }),
  };
}

function rowKind({ record, workspace, files, risks, pullRequest, isContained }: Outcome): ReviewKind {
  if (openItems(record).length > 0) return 'decision';
  const { status } = record.state;
  if (isAnsweredPause(record)) return 'waiting';
  if (status === 'failed' || status === 'paused') return 'unfinished';
  if (status !== 'completed') return 'waiting';
  if (record.mergedInto !== undefined || isContained) return 'merged';
  if (pullRequest !== undefined) return 'proposed';
  if (!isSafe(risks)) return 'risk';
  return workspace !== undefined && files.length === 0 ? 'unchanged' : 'safe';
}

function whyNotMergeable({ record, workspace, files, isContained }: Outcome): string | undefined {
  const into = record.mergedInto ?? (isContained ? workspace?.target : undefined);
  if (into !== undefined) return `It is merged into ${into}.`;
  if (record.state.status !== 'completed') return 'The session is not completed.';
  if (workspace === undefined) return 'It worked in the project folder itself, so there is no branch.';
  return files.length === 0 ? 'It changed nothing.' : undefined;
}

async function outcomeOf(
  context: AppContext,
  group: LoadedGroup,
  record: SessionRecord,
  workspace: Workspace | undefined,
): Promise<Outcome> {
  const about = { record, ...defined({ workspace }), files: [], risks: [] };
  if (record.attempts === 0 && record.inherited === undefined) return about;
  const session = { ...group, record, sessionId: record.definition.id };
  const compared = await comparisonOf(context, session, workspace);
  if (!compared.ok) {
    const isOrdinary = compared.failure.reason === 'illegal-transition';
    return { ...about, risks: isOrdinary ? [] : [makeRisk('unreadable', 60, describeFailure(compared.failure))] };
  }
  const work = record.state.status === 'completed' ? record.state.work : undefined;
  const isCommit = workspace !== undefined && work !== undefined && compared.value.to !== undefined;
  // Like a merge: commits that a person added on the branch are included.
  const source = isCommit ? await sourceOf(context, record, workspace, work) : ok(compared.value.to);
  const to = source.ok ? source.value : compared.value.to;
  const found = await factsOf(context, record, workspace, { ...compared.value, ...defined({ to }) });
  if (!found.ok) return { ...about, risks: [makeRisk('unreadable', 60, describeFailure(found.failure))] };
  return { ...about, ...found.value, risks: risksOf(found.value) };
}

async function factsOf(
  git: Git,
  { definition, state, warnings, evidence }: SessionRecord,
  workspace: Workspace | undefined,
  compared: Comparison,
): Promise<Result<OutcomeFacts & Pick<Outcome, 'compared' | 'isContained'>>> {
  const { folder, to, without } = compared;
  const from = await startOf(git, workspace, compared);
  const options = { from, ...defined({ to, without }) };
  const patch = await diffText(git, folder, options);
  if (!patch.ok) return patch;
  const raw = await diffText(git, folder, { ...options, raw: true });
  if (!raw.ok) return raw;
  const files = filesOfPatch(raw.value, patch.value);
  const paths = files.flatMap(({ path, from: former }) => [path, ...(former === undefined ? [] : [former])]);
  const recent = paths.length === 0 ? ok([]) : await recentDiffs(git, folder, { tip: from, paths, max: recentMax });
  if (!recent.ok) return recent;
  const base = await runOwn(git, folder, ['ls-tree', '-r', '--name-only', '--full-tree', '-z', from]);
  if (!base.ok) return base;
  const { locks, binaries } = await contentsOf(git, workspace?.path ?? folder, files);
  return ok({
    compared,
    isContained: from === to && from !== compared.from,
    prompt: definition.prompt,
    folder: workspace === undefined ? '' : relative(workspace.path, workspace.folder),
    files,
    baseFiles: base.value.split('\0').length - 1,
    recent: recent.value.map((one) => ({ ...one, files: filesOfPatch(one.raw, one.patch) })),
    ...{ locks, binaries, warnings },
    ...defined({ evidence }),
    hasAcceptance: definition.accept !== undefined || state.status !== 'completed',
  });
}

/** The commit where its work began. Later merges from its target are not its work, unless it reverted them. */
async function startOf(git: Git, workspace: Workspace | undefined, { folder, from, to }: Comparison): Promise<string> {
  if (workspace?.target === undefined || to === undefined) return from;
  const asked = await runOwn(git, folder, ['merge-base', `refs/heads/${workspace.target}`, to]);
  const common = asked.ok ? asked.value.trim() : from;
  const isLater = common !== from && (await isAncestor(git, folder, from, common));
  return isLater !== false && isLater.ok && isLater.value ? common : from;
}

async function contentsOf(git: Git, top: string, files: readonly ChangedFile[]) {
  const read = async (blob: string, path: string): Promise<string> => {
    if (!/^0+$/.test(blob)) {
      const printed = await runOwn(git, top, ['cat-file', 'blob', blob], { encoding: 'latin1' });
      if (printed.ok) return printed.value;
    }
    const { world } = git;
    const found = tryPath(() => world.files.readBytes(join(top, path), 0, headBytesMax));
    return found.ok ? Buffer.from(found.value).toString('latin1') : '';
  };
  const locks: OutcomeFacts['locks'][number][] = [];
  const binaries = new Map<string, { readonly head: string; readonly bytes: number }>();
  for (const { path, kind, oldBlob, newBlob, isBinary } of files) {
    if (isLock(path) && kind === 'changed') {
      locks.push({ path, before: laidOut(await read(oldBlob, path)), after: laidOut(await read(newBlob, path)) });
    }
    if (!isBinary || kind === 'deleted') continue;
    const text = await read(newBlob, path);
    binaries.set(path, { head: text.slice(0, 16), bytes: text.length });
  }
  return { locks, binaries };
}

function laidOut(text: string): string {
  const whole = parseOwn(text);
  return whole === null ? text : JSON.stringify(whole, null, 2);
}

/** Adds what stands against a merge into the target, and against one with another branch of the same repository. */
async function withConflicts(
  context: AppContext,
  group: LoadedGroup,
  outcomes: readonly Outcome[],
): Promise<Outcome[]> {
  const scratch = join(worktreesFolder(group.root), mergeFolderName(group.groupId), 'review');
  const name = ({ record }: Outcome) => titleOf(group.state, record.definition.id);
  const open = outcomes.filter(({ record, compared }) => record.mergedInto === undefined && compared?.to !== undefined);
  const conflicts = async (repository: string, one: string, other: string) => {
    const found = await conflictsOf(context, repository, [one, other], scratch);
    return found.ok ? found.value : [];
  };
  const judged = new Map<Outcome, Outcome>();
  for (const one of open) {
    const { repository = '', target = '', base } = one.workspace ?? {};
    const own = one.compared?.to ?? '';
    const tip = target === '' ? ok(null) : await tipOf(context, repository, target);
    const into = tip.ok && tip.value !== null && tip.value !== base ? tip.value : null;
    const files = into === null ? [] : await conflicts(repository, into, own);
    // Work that is not to be merged conflicts with nothing.
    const others = open.filter(
      (other) => other !== one && other.workspace?.repository === repository && !isGrave(other),
    );
    const partners: string[] = [];
    const broken: string[] = [];
    for (const other of others) {
      const both = sharesFiles(one, other) ? await conflicts(repository, own, other.compared?.to ?? '') : [];
      if (both.length > 0) partners.push(`${name(other)} (${listNames(both, 2)})`);
      const taken = await breaks(context, one, other);
      if (taken !== null) broken.push(`It removes ${taken}, which ${name(other)} begins to use.`);
      const used = await breaks(context, other, one);
      if (used !== null) broken.push(`It begins to use ${used}, which ${name(other)} removes.`);
    }
    const risks = [...one.risks, ...broken.slice(0, 3).map((text) => makeRisk('breaks-together', 71, text))];
    if (files.length > 0)
      risks.push(makeRisk('conflict', 65, `It conflicts with ${target} in ${listNames(files, 4)}.`));
    if (partners.length > 0) risks.push(makeRisk('conflict', 45, `It conflicts with ${listNames(partners, 4)}.`));
    const isSquashed =
      into !== null && one.files.length > 0 && (await isMerged(context, repositoryDir(repository), own, into));
    judged.set(one, { ...one, isContained: one.isContained || isSquashed, risks: sortRisks(risks) });
  }
  return outcomes.map((outcome) => judged.get(outcome) ?? outcome);
}

function isGrave({ risks }: Outcome): boolean {
  return risks[0]?.level === 'high';
}

function sharesFiles(one: Outcome, other: Outcome): boolean {
  const names = ({ files }: Outcome) => new Set(files.flatMap(({ path, from }) => [path, from ?? path]));
  return !names(one).isDisjointFrom(names(other));
}

/** What `one` takes away that `other` begins to use, as far as texts tell. */
async function breaks(git: Git, one: Outcome, other: Outcome): Promise<string | null> {
  const file = usesGoneFile(one.files, other.files);
  if (file !== undefined) return file;
  const { folder, to = '' } = one.compared ?? { folder: '' };
  for (const name of namesGone(one.files).filter((gone) => usesName(other.files, gone))) {
    const found = await runOwn(git, repositoryDir(one.workspace?.repository ?? folder), [
      ...['grep', '-q', '--extended-regexp', '-e', declarationOf(name), to, '--'],
    ]);
    // It fails where nothing is found.
    if (!found.ok) return name;
  }
  return null;
}

interface Union {
  readonly culprits: readonly SessionId[];
  readonly text: string;
}

/** Whether all safe work passes its checks together, as long as there is more than one piece and a check. */
async function unionOf(
  context: AppContext,
  group: LoadedGroup,
  rows: readonly ReviewRow[],
  outcomes: readonly Outcome[],
): Promise<Union | undefined> {
  const safe = new Set(
    rows.flatMap((row) => (row.kind === 'safe' && row.notMergeable === undefined ? row.sessionId : [])),
  );
  const parts = outcomes.filter(({ record }) => safe.has(record.definition.id));
  if (parts.length < 2 || parts.every(({ record }) => record.definition.accept === undefined)) return undefined;
  const key = await unionKey(context, parts);
  const file = join(group.paths.folder, 'union.json');
  const known = tryPath(() => JSON.parse(context.world.files.readText(file) ?? '{}') as Union & { key?: string });
  if (known.ok && known.value.key === key) return known.value;
  const quiet = Object.create(context, { notes: { value: { ...context.notes, line: () => {} } } }) as AppContext;
  const checked = await whileBusy(context, `Checking the work of ${parts.length} sessions together`, () =>
    changeGroup(quiet, group, { direct: (writer) => checkUnion(quiet, writer, [...safe]) }),
  );
  if (!checked.ok) {
    return { culprits: [], text: `What is safe was not checked together: ${describeFailure(checked.failure)}` };
  }
  const { failure, culprits } = checked.value;
  const titles = culprits.map((id) => titleOf(group.state, id));
  const why = failure === undefined ? '' : describeFailure(failure);
  const text =
    failure === undefined
      ? `The work of ${parts.length} sessions passes its checks together.`
      : titles.length > 1
        ? `${titles.join(' and ')} pass their checks alone, but not together. ${why}`
        : `Merged into its target, ${titles.join('')} does not pass its check. ${why}`;
  const union = { culprits, text };
  context.world.files.writeAtomic(file, JSON.stringify({ key, ...union }));
  return union;
}

/** Changes with the work, its checks and the branches that it is for. */
async function unionKey(git: Git, parts: readonly Outcome[]): Promise<string> {
  const hash = createHash('sha256');
  for (const { record, workspace, compared } of parts) {
    const { repository = '', target = '' } = workspace ?? {};
    const tip = await commitOf(git, repositoryDir(repository), `refs/heads/${target}`);
    const { accept, setup } = record.definition;
    hash.update(JSON.stringify([compared?.to, tip.ok ? tip.value : null, accept, setup]));
  }
  return hash.digest('hex');
}
