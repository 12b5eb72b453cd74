/** `group pr`: pushes merged and accepted work to a new branch and opens a pull request. No local branch moves. */
import { join } from 'node:path';
import { repositoryVariables } from '../../claude/launch/variables.ts';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { planOf } from '../../core/plan/plan.ts';
import type { GroupState } from '../../core/state.ts';
import { foreignText } from '../../core/text.ts';
import { changedPrograms } from '../../git/diff.ts';
import type { Git } from '../../git/git.ts';
import { fetchBranch, headIn, type PushRemote, pushCommit, remoteOf, remoteTip } from '../../git/push.ts';
import { isAncestor } from '../../git/run-git.ts';
import { type MergeTarget, readTarget } from '../../git/target.ts';
import { repositoryDir } from '../../git/worktrees/worktree.ts';
import type { GroupWriter } from '../../store/group-writer.ts';
import { parseOwn } from '../../store/json.ts';
import type { ScratchPlace } from '../../store/merge-journal.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { RunOutput, World } from '../../system/world.ts';
import { plural } from '../../view/format.ts';
import { safeLine, safeText } from '../../view/terminal-text.ts';
import type { AppContext } from '../app-context.ts';
import { beginMerge, inScratches } from './merge.ts';
import type { Integrated, MergeSandbox, SandboxMerge } from './merge-sandbox.ts';
import {
  type MergeItem,
  type MergePlan,
  type MergeSelection,
  programsSentence,
  type RepositoryPlan,
  titleOfItem,
  warnOnce,
} from './plan.ts';

/** Most groups of one slug that can push to a remote. */
const namesMax = 50;

export interface ProposalOptions extends MergeSelection {
  readonly dryRun: boolean;
  readonly draft: boolean;
}

export interface Destination {
  readonly plan: RepositoryPlan;
  readonly target: MergeTarget;
  readonly remote: PushRemote;
  readonly branch: string;
  readonly scratch: ScratchPlace;
  /** The commit to merge onto: the pushed branch if it exists, else the target branch. */
  readonly start: string;
  readonly isPushed: boolean;
  readonly url?: string;
}

export interface Proposed {
  readonly destination: Destination;
  readonly commit: string;
  readonly pushed: boolean;
  readonly url: string;
  readonly created: boolean;
}

export interface ProposalReport {
  readonly outcome: 'proposed' | 'nothing' | 'planned' | 'interrupted';
  readonly mergePlan: MergePlan;
  readonly destinations: readonly Destination[];
  readonly proposed: readonly Proposed[];
}

/**
 * The caller holds the lock. Fails with `usage` (nothing was tried), like MergeSandbox.integrate (nothing was pushed),
 * and with `worktree-failed`, `spawn-failed` and `not-logged-in` if git push or gh failed. Can be repeated.
 */
export async function proposeGroup(
  context: AppContext,
  writer: GroupWriter,
  options: ProposalOptions,
): Promise<Result<ProposalReport>> {
  const begun = await beginMerge(context, writer, options);
  if (!begun.ok) return begun;
  const { bench, mergePlan } = begun.value;
  const destinations = await choosePlaces(bench, writer, mergePlan, options);
  if (!destinations.ok) return destinations;
  const report = { mergePlan, destinations: destinations.value, proposed: [] };
  if (destinations.value.length === 0) return ok({ ...report, outcome: 'nothing' });
  if (options.dryRun) return ok({ ...report, outcome: 'planned' });
  const ready = await checkHosts(context, destinations.value);
  if (!ready.ok) return ready;
  const pushed = await pushAll(context, writer, bench, destinations.value);
  if (!pushed.ok) return bench.isInterrupted ? ok({ ...report, outcome: 'interrupted' }) : pushed;
  if (pushed.value.length === 0) return ok({ ...report, outcome: 'nothing' });
  const proposed = await requestAll(context, writer, pushed.value, options.draft);
  if (proposed.ok) return ok({ ...report, outcome: 'proposed', proposed: proposed.value });
  const names = pushed.value.map(
    ({ destination }) =>
      `${destination.branch} of ${destination.remote.name} (${repositoryDir(destination.plan.repository)})`,
  );
  const { failure } = proposed;
  return fail(failure.reason, `${failure.message} Pushed already: ${names.join(', ')}.`, failure.next);
}

async function choosePlaces(
  bench: MergeSandbox,
  writer: GroupWriter,
  { repositories }: MergePlan,
  options: ProposalOptions,
): Promise<Result<Destination[]>> {
  const { git } = bench;
  const { slug } = writer.state.group;
  const known = readProposals(git.world, writer);
  if (!known.ok) return known;
  const destinations: Destination[] = [];
  for (const plan of repositories) {
    const { repository, into } = plan;
    const target = await readTarget(git, repository, into);
    if (!target.ok) return target;
    const remote = await remoteOf(git, repository, into);
    if (!remote.ok) return remote;
    const { name } = remote.value;
    const before = known.value.find((one) => one.repository === repository && one.remote === name);
    const branch = await branchIn(repository, name, before);
    if (!branch.ok) return branch;
    const { tip } = branch.value;
    if (tip !== null && !options.dryRun) {
      const fetched = await fetchBranch(git, repository, name, branch.value.branch);
      if (!fetched.ok) return fetched;
    }
    destinations.push({
      plan,
      target: target.value,
      remote: remote.value,
      branch: branch.value.branch,
      scratch: bench.scratchFor(plan, destinations.length + 1),
      start: tip ?? target.value.commit,
      isPushed: tip !== null,
      ...defined({ url: before?.url }),
    });
  }
  return ok(destinations);

  /** The branch of this group on the remote, or an unused name. */
  async function branchIn(
    repository: string,
    remote: string,
    before: Proposal | undefined,
  ): Promise<Result<{ readonly branch: string; readonly tip: string | null }>> {
    for (let nth = 1; nth <= namesMax; nth += 1) {
      const branch = before?.branch ?? `cca/${slug}${nth === 1 ? '' : `-${nth}`}`;
      const tip = await remoteTip(git, repository, remote, branch);
      if (!tip.ok) return tip;
      if (before !== undefined || tip.value === null) return ok({ branch, tip: tip.value });
    }
    const which = `${namesMax} branches such as cca/${slug}`;
    const message = `${remote} of ${repositoryDir(repository)} has ${which} already.`;
    return fail('usage', message, 'Delete those that are no longer needed with: git push --delete');
  }
}

async function checkHosts(context: AppContext, destinations: readonly Destination[]): Promise<Result<void>> {
  for (const { plan, remote } of destinations) {
    const ready = await checkGh(context, repositoryDir(plan.repository), remote.slug);
    if (!ready.ok) return fail(ready.failure.reason, `${ready.failure.message} ${nothingPushed}`, ready.failure.next);
  }
  return ok(undefined);
}

const nothingPushed = 'Nothing was pushed.';

interface Pushed {
  readonly destination: Destination;
  readonly commit: string;
  readonly pushed: boolean;
}

/** Merges and accepts everything before the first push. Skips repositories without new work. */
async function pushAll(
  context: AppContext,
  writer: GroupWriter,
  bench: MergeSandbox,
  destinations: readonly Destination[],
): Promise<Result<Pushed[]>> {
  const tasks = destinations.map(
    // Commits that others added to the pushed branch are on no local branch, so the conflict message names the commit.
    ({ plan, start, isPushed, scratch }): SandboxMerge => ({
      plan,
      start,
      startName: isPushed ? start : plan.into,
      scratch,
    }),
  );
  return inScratches(bench, writer, tasks, async () => {
    const integrated = await bench.integrate(tasks);
    return integrated.ok ? pushIntegrated(context, writer, bench, destinations, integrated.value) : integrated;
  });
}

async function pushIntegrated(
  context: AppContext,
  writer: GroupWriter,
  { git }: MergeSandbox,
  destinations: readonly Destination[],
  integrated: readonly Integrated[],
): Promise<Result<Pushed[]>> {
  const done: Pushed[] = [];
  for (const [index, { task, commit }] of integrated.entries()) {
    const destination = destinations[index] as Destination;
    const { branch, remote, plan, isPushed } = destination;
    if (commit === task.start) {
      if (isPushed) done.push({ destination, commit, pushed: false });
      else warnOnce(context, `${plan.into} of ${repositoryDir(plan.repository)} is already up to date.`);
      continue;
    }
    // Log before the push, so that a later command recognises the branch.
    const noted = note(writer, git.world, destination);
    if (!noted.ok) return noted;
    const pushed = await pushCommit(git, { repository: plan.repository, remote: remote.name, branch, commit });
    if (!pushed.ok) {
      const names = done.map((one) => one.destination.branch).join(', ');
      const before = names === '' ? nothingPushed : `Pushed already: ${names}.`;
      const { reason, message, next } = pushed.failure;
      return fail(reason, `${repositoryDir(plan.repository)}: ${message} ${before}`, next);
    }
    warnOnce(context, `Pushed ${branch} to ${remote.name} of ${repositoryDir(plan.repository)}.`);
    done.push({ destination, commit, pushed: true });
  }
  return ok(done);
}

/**
 * What the group has pushed and opened, one entry per repository: written before a branch is pushed, so that a later
 * command knows which remote branches are the group's own.
 */
interface Proposal {
  readonly repository: string;
  readonly remote: string;
  readonly branch: string;
  readonly url?: string;
  /** What was pushed when its pull request was opened or updated. */
  readonly commit?: string;
}

/** The address of the pull request that contains this commit. */
export async function addressOf(
  git: Git,
  proposals: readonly Proposal[],
  repository: string,
  commit: string,
): Promise<string | undefined> {
  for (const { repository: other, commit: pushed, url } of proposals) {
    if (pushed === undefined || other !== repository) continue;
    const found = await isAncestor(git, repositoryDir(repository), commit, pushed);
    if (found.ok && found.value) return url;
  }
  return undefined;
}

type Listed = Pick<GroupWriter, 'paths'>;

function listPath({ paths }: Listed): string {
  return join(paths.folder, 'pull-requests.json');
}

export function readProposals({ files }: World, writer: Listed): Result<readonly Proposal[]> {
  const text = files.readText(listPath(writer));
  const list = text === null ? { proposals: [] } : parseOwn<{ readonly proposals: readonly Proposal[] }>(text);
  if (list !== null) return ok(list.proposals);
  const message = `${listPath(writer)} is not a valid list of pull requests.`;
  return fail('corrupt-file', message, 'Move it away. Branches that were pushed before are then treated as foreign.');
}

function note(
  writer: GroupWriter,
  world: World,
  { plan: { repository }, remote, branch, url: known }: Destination,
  opened?: { readonly url: string; readonly commit: string },
): Result<void> {
  const read = readProposals(world, writer);
  if (!read.ok) return read;
  const isThis = (one: Proposal) => one.repository === repository && one.remote === remote.name;
  const others = read.value.filter((one) => !isThis(one));
  const { url = known, commit = read.value.find(isThis)?.commit } = opened ?? {};
  const proposals = [...others, { repository, remote: remote.name, branch, ...defined({ url, commit }) }];
  try {
    world.files.writeAtomic(listPath(writer), JSON.stringify({ version: 1, proposals }, null, 2), { durable: true });
    return ok(undefined);
  } catch (error) {
    return { ok: false, failure: systemFailure(listPath(writer), error) };
  }
}

/** Creates or updates one pull request per repository, with links between them. */
async function requestAll(
  context: AppContext,
  writer: GroupWriter,
  pushed: readonly Pushed[],
  draft: boolean,
): Promise<Result<Proposed[]>> {
  const { state } = writer;
  const found: (Proposed & { readonly body: string; readonly items: readonly DescribedItem[] })[] = [];
  for (const { destination, commit, pushed: isNew } of pushed) {
    const { plan, remote, branch } = destination;
    const cwd = repositoryDir(plan.repository);
    const open = await findRequest(context, cwd, remote.slug, branch);
    if (!open.ok) return open;
    const items = await itemsIn(context, state, destination, commit);
    if (!items.ok) return items;
    const body = open.value?.body ?? proposalSection(state, items.value, relatedTo(destination, found));
    const url = open.value === null ? await create(context, writer, destination, body, draft) : ok(open.value.url);
    if (!url.ok) return url;
    const noted = note(writer, context.world, destination, { url: url.value, commit });
    if (!noted.ok) return noted;
    const about = { body, items: items.value };
    found.push({ destination, commit, pushed: isNew, url: url.value, created: open.value === null, ...about });
  }
  for (const { destination, url, body, items } of found) {
    const wanted = withOurSection(body, proposalSection(state, items, relatedTo(destination, found)));
    if (wanted === body) continue;
    const edited = await withBody(writer, context, wanted, (file) =>
      text(context, repositoryDir(destination.plan.repository), editArgs(url, file)),
    );
    if (!edited.ok) return edited;
  }
  return ok(found.map(({ body: _body, items: _items, ...proposed }) => proposed));
}

type DescribedItem = Pick<MergeItem, 'record' | 'work' | 'programs'>;

/** What is merged now, and what the pull request contains already or brings along. In graph order. */
async function itemsIn(
  git: Git,
  state: GroupState,
  { plan: { repository, items }, target }: Destination,
  commit: string,
): Promise<Result<DescribedItem[]>> {
  const folder = repositoryDir(repository);
  const found: DescribedItem[] = [];
  for (const id of planOf(state).graph.order) {
    const record = state.sessions.get(id);
    const planned = items.find((item) => item.record.definition.id === id);
    if (planned !== undefined) found.push(planned);
    const { workspace, state: now } = record ?? {};
    const work = now?.status === 'completed' ? now.work : undefined;
    if (planned !== undefined || record === undefined || work === undefined) continue;
    if (workspace?.repository !== repository || work.commit === workspace.base) continue;
    const isIn = await isAncestor(git, folder, work.commit, commit);
    const isBefore = await isAncestor(git, folder, work.commit, target.commit);
    if (!isIn.ok || !isIn.value || (isBefore.ok && isBefore.value)) continue;
    const programs = await changedPrograms(git, folder, { from: workspace.base, to: work.commit });
    if (!programs.ok) return programs;
    found.push({ record, work, programs: programs.value });
  }
  return ok(found);
}

function relatedTo(
  destination: Destination,
  others: readonly { readonly destination: Destination; readonly url: string }[],
): Related[] {
  return others.flatMap((other) =>
    other.destination === destination ? [] : [{ repository: other.destination.plan.repository, url: other.url }],
  );
}

async function create(
  context: AppContext,
  writer: GroupWriter,
  { plan, remote, branch }: Destination,
  body: string,
  draft: boolean,
): Promise<Result<string>> {
  const request = {
    base: remote.base,
    head: headIn(remote, branch),
    title: proposalTitle(writer.state),
    draft,
    slug: remote.slug,
  };
  const printed = await withBody(writer, context, body, (bodyFile) =>
    text(context, repositoryDir(plan.repository), createArgs({ ...request, bodyFile })),
  );
  if (!printed.ok) return printed;
  const url = printed.value.trim().split('\n').at(-1)?.trim() ?? '';
  if (/^https?:\/\/\S+$/.test(url)) return ok(url);
  const next = 'Look for the pull request on the server, then run the command again.';
  return fail('spawn-failed', 'gh printed no URL of a pull request.', next);
}

export function bodyFileOf({ paths }: Pick<GroupWriter, 'paths'>): string {
  return join(paths.folder, 'pull-request.md');
}

async function withBody<T>(
  writer: GroupWriter,
  { world: { files } }: AppContext,
  body: string,
  act: (file: string) => Promise<Result<T>>,
): Promise<Result<T>> {
  const file = bodyFileOf(writer);
  try {
    files.writeAtomic(file, body);
    return await act(file);
  } catch (error) {
    return { ok: false, failure: systemFailure(file, error) };
  } finally {
    files.remove(file);
  }
}

const timeoutMs = 2 * 60_000;

/** gh must not prompt, and its output is parsed. */
const quiet = { GH_PROMPT_DISABLED: '1', GH_NO_UPDATE_NOTIFIER: '1', NO_COLOR: '1', GH_PAGER: 'cat' };

/** Without a slug, gh uses the repository of the folder. */
function repositoryArgs(slug: string | undefined): string[] {
  return slug === undefined ? [] : ['--repo', slug];
}

interface NewRequest {
  readonly slug?: string | undefined;
  readonly base: string;
  readonly head: string;
  readonly title: string;
  readonly bodyFile: string;
  readonly draft: boolean;
}

export function createArgs({ slug, base, head, title, bodyFile, draft }: NewRequest): string[] {
  return [
    ...['pr', 'create', ...repositoryArgs(slug), `--base=${base}`, `--head=${head}`],
    ...[`--title=${title}`, '--body-file', bodyFile, ...(draft ? ['--draft'] : [])],
  ];
}

export function editArgs(url: string, bodyFile: string): string[] {
  return ['pr', 'edit', url, '--body-file', bodyFile];
}

async function checkGh(context: AppContext, cwd: string, slug: string | undefined): Promise<Result<void>> {
  const host = slug?.split('/')[0];
  const ran = await run(context, cwd, ['auth', 'status', ...(host === undefined ? [] : ['--hostname', host])]);
  if (!ran.ok) return ran;
  if (ran.value.exitCode === 0) return ok(undefined);
  const where = host === undefined ? '' : ` --hostname ${host}`;
  return fail('not-logged-in', 'The program gh is not logged in.', `Log in with "gh auth login${where}".`);
}

async function findRequest(
  context: AppContext,
  cwd: string,
  slug: string | undefined,
  head: string,
): Promise<Result<{ readonly url: string; readonly body: string } | null>> {
  const args = ['pr', 'list', ...repositoryArgs(slug), '--head', head, '--state', 'open', '--json', 'url,body'];
  const printed = await text(context, cwd, args);
  if (!printed.ok) return printed;
  try {
    const [first] = JSON.parse(printed.value) as { url?: unknown; body?: unknown }[];
    if (first === undefined) return ok(null);
    if (typeof first.url === 'string') return ok({ url: first.url, body: foreignText(first.body ?? '') });
  } catch {}
  return fail('claude-error', 'gh printed an unexpected answer.', 'Update gh, then try again.');
}

/** Output of gh. Fails with `spawn-failed` and the reason that gh printed. */
async function text(context: AppContext, cwd: string, args: readonly string[]): Promise<Result<string>> {
  const ran = await run(context, cwd, args);
  if (!ran.ok) return ran;
  const { exitCode, stdout, stderr } = ran.value;
  if (exitCode === 0) return ok(stdout);
  const reason = safeLine(stderr.trim().split('\n').at(-1) ?? '', 400) || `exit ${exitCode}`;
  const message = `gh ${args.slice(0, 2).join(' ')} failed: ${reason.replace(/\.+$/, '')}.`;
  return fail('spawn-failed', message, 'Fix that and run the command again; it continues where it stopped.');
}

async function run(context: AppContext, cwd: string, args: readonly string[]): Promise<Result<RunOutput>> {
  const kept = Object.entries(context.env).flatMap(([name, value]) =>
    value === undefined || repositoryVariables.has(name) ? [] : [[name, value] as const],
  );
  const env = { ...Object.fromEntries(kept), ...quiet };
  const ran = await context.world.processes.run({ program: 'gh', args, cwd, env, timeoutMs });
  if (ran.ok || ran.failure.reason !== 'not-found') return ran;
  return fail('spawn-failed', 'The program gh was not found.', 'Install it from https://cli.github.com.');
}

/** GitHub takes 65,536 characters. */
const bodyMax = 60_000;
const answerMax = 6_000;
const titleMax = 200;

/** Marks our part of a description. Text around it is kept. */
const begin = '<!-- claude-code-agent: begin -->';
const end = '<!-- claude-code-agent: end -->';

interface Related {
  readonly repository: string;
  readonly url: string;
}

export function proposalTitle({ group }: GroupState): string {
  return safeLine(group.name, titleMax) || group.slug;
}

export function proposalSection(
  { group }: GroupState,
  items: readonly DescribedItem[],
  related: readonly Related[],
): string {
  const head = [
    ...(group.description === '' ? [] : [plain(group.description), '']),
    ...(related.length === 0 ? [] : ['Related pull requests:', ...related.map(relatedLine), '']),
  ];
  const perPiece = Math.min(answerMax, Math.floor(bodyMax / Math.max(1, items.length)) - 400);
  const body = items.flatMap((item) => [...pieceText(item, Math.max(0, perPiece)), '']);
  return `${[begin, ...head, ...body].join('\n').slice(0, bodyMax)}\n${end}`;
}

function relatedLine({ repository, url }: Related): string {
  return `- ${url} (${safeLine(repositoryDir(repository).split('/').at(-1) ?? '', 80)})`;
}

function pieceText(item: DescribedItem, answerLimit: number): string[] {
  const { record, work } = item;
  const { description } = record.definition;
  const programs = programsSentence(item.programs ?? []);
  const what = description === '' ? '' : `: ${safeLine(description, 120)}`;
  const answer = record.state.status === 'completed' ? plain(record.state.result).trim() : '';
  const shown = answer.length > answerLimit ? `${answer.slice(0, answerLimit).trimEnd()} …` : answer;
  const quoted = shown.split('\n').map((line) => (line === '' ? '>' : `> ${line}`));
  return [
    `### ${titleOfItem(item)}${what}`,
    '',
    `${plural(work.files, 'file')} changed, +${work.insertions} -${work.deletions}`,
    ...(programs === null ? [] : ['', plain(programs)]),
    ...(shown === '' ? [] : ['', ...quoted]),
  ];
}

/** Defuses text of a model: no end of our part, no mentions, no keywords that close issues. */
function plain(text: string): string {
  return safeText(text)
    .replaceAll('<!--', '&lt;!--')
    .replace(/(^|[^\w`])@(?=[A-Za-z0-9])/g, '$1@\u200b')
    .replace(/\b(close[sd]?|fix(?:e[sd])?|resolve[sd]?)(:?\s+)(?=(?:[\w./-]*#|https?:)\S*\d)/gi, '$1\u200b$2');
}

/** Replaces our part of a description, or appends it. */
export function withOurSection(text: string, section: string): string {
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from >= 0 && to > from) return `${text.slice(0, from)}${section}${text.slice(to + end.length)}`;
  return text.trim() === '' ? section : `${text.trimEnd()}\n\n${section}`;
}
