/** `group merge` and `group pr`: delivers the work of a group to its target branches, or as pull requests. */

import { join, relative } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { type MergeOptions, type MergeReport, mergeGroup } from '../../../app/delivery/merge.ts';
import { mergeMessage } from '../../../app/delivery/merge-sandbox.ts';
import { isIncomplete, leftOutLines, type MergeItem, titleOfItem } from '../../../app/delivery/plan.ts';
import {
  bodyFileOf,
  createArgs,
  type Destination,
  editArgs,
  type ProposalOptions,
  type ProposalReport,
  proposalSection,
  proposalTitle,
  proposeGroup,
} from '../../../app/delivery/pull-request.ts';
import { changeGroup } from '../../../app/group-commands.ts';
import {
  type GroupReference,
  type LoadedGroup,
  loadReferredGroup,
  loadWithRunner,
  resolveGroup,
  sessionOf,
} from '../../../app/resolve.ts';
import { shellWord } from '../../../core/advice.ts';
import { defined } from '../../../core/defined.ts';
import { ok } from '../../../core/failure.ts';
import { headIn, pushArgs } from '../../../git/push.ts';
import { mergeArgs, repositoryDir, scratchArgs, shortCommit } from '../../../git/worktrees/worktree.ts';
import { plural } from '../../../view/format.ts';
import { safeLine, safeText } from '../../../view/terminal-text.ts';
import { attempt, type CommandResult, type Context, confirmed, exitCode, need } from '../../context.ts';
import { collect } from '../../options/options.ts';

const mergeExample = `
Merges in scratch worktrees first and runs each session's acceptance command
there. Branches move only if everything succeeds. A checkout of such a branch
is updated; if it has changes, the merge is refused.

Example:
  $ claude-code-agent group merge auth-refactor --dry-run
  $ claude-code-agent group merge auth-refactor
  $ claude-code-agent group merge auth-refactor --into integration`;

export function defineMerge(command: Command, context: Context): void {
  command
    .description('Merge the work of all sessions in dependency order: in all repositories or in none.')
    .argument('<group>', 'id, unique prefix or slug')
    .option('--into <branch>', 'target branch in every repository (default: the branch the work started from)')
    .option('--partial', 'merge completed sessions even if others are not completed')
    .option('--session <session>', 'only this session; can be repeated', collect)
    .option('--dry-run', 'show what would be merged; change nothing')
    .option('--keep-ignored', 'keep worktrees that contain files ignored by git')
    .option('-y, --yes', 'merge the work of a rehearsal without confirmation')
    .option('--json', 'one JSON document')
    .addHelpText('after', mergeExample)
    .action((reference, { keepIgnored, yes, json, ...given }) =>
      context.run(async () => {
        const options = { ...selectionOf(context, reference, given), ...defined({ keepIgnored }) };
        const group = await groupToDeliver(context, reference, 'Merge', options, yes);
        return group === null ? undefined : merge(context, group, options, json === true);
      }),
    );
}

interface SelectionOptions {
  readonly into?: string | undefined;
  readonly partial?: true | undefined;
  readonly session?: readonly string[] | undefined;
  readonly dryRun?: true | undefined;
}

function selectionOf(context: Context, reference: string, { into, partial, session, dryRun }: SelectionOptions) {
  const group = session && need(loadReferredGroup(context, reference));
  const only = group && session.map((one) => need(sessionOf(group, one)).sessionId);
  return { ...defined({ into, only }), partial: partial === true || session !== undefined, dryRun: dryRun === true };
}

async function merge(
  context: Context,
  group: GroupReference,
  options: MergeOptions,
  json: boolean,
): Promise<CommandResult> {
  const report = need(
    await changeGroup(context, group, {
      direct: (writer) => mergeGroup(context, writer, options),
    }),
  );
  showMerge(context, group.groupId, report, json);
  const { outcome, mergePlan } = report;
  if (outcome === 'interrupted') return exitCode.interrupted;
  return ok(isIncomplete(mergePlan, outcome !== 'nothing') ? exitCode.failed : exitCode.done);
}

const prExample = `
Merges and accepts the work in a scratch worktree, like group merge, and
pushes it to the branch cca/<slug>. Your branches do not move. Run it again to
add new work and update the text of the pull requests.

Example:
  $ claude-code-agent group pr auth-refactor --dry-run
  $ claude-code-agent group pr auth-refactor --draft`;

export function definePr(command: Command, context: Context): void {
  command
    .description('Push the work of all sessions and create one pull request per repository, with gh.')
    .argument('<group>', 'id, unique prefix or slug')
    .option('--draft', 'create drafts')
    .option('--into <branch>', 'target branch in every repository (default: the branch the work started from)')
    .option('--partial', 'include completed sessions even if others are not completed')
    .option('--session <session>', 'only this session; can be repeated', collect)
    .option('--dry-run', 'print the commands; change nothing')
    .option('-y, --yes', 'propose the work of a rehearsal without confirmation')
    .option('--json', 'one JSON document')
    .addHelpText('after', prExample)
    .action((reference, { draft, yes, json, ...given }) =>
      context.run(async () => {
        const options = { ...selectionOf(context, reference, given), draft: draft === true };
        const group = await groupToDeliver(context, reference, 'Propose', options, yes);
        return group === null ? undefined : propose(context, group, options, json === true);
      }),
    );
}

async function propose(
  context: Context,
  group: GroupReference,
  options: ProposalOptions,
  json: boolean,
): Promise<CommandResult> {
  return changeGroup(context, group, {
    direct: (writer) =>
      attempt(async () => {
        const report = need(await proposeGroup(context, writer, options));
        const { outcome } = report;
        if (outcome === 'planned') showCommands(context, writer, report, { draft: options.draft, json });
        else showProposal(context, group.groupId, report, json);
        if (outcome === 'interrupted') return exitCode.interrupted;
        return isIncomplete(report.mergePlan, outcome !== 'nothing') ? exitCode.failed : exitCode.done;
      }),
  });
}

const lineColumns = 1000;

function showMerge(context: Context, groupId: string, report: MergeReport, json: boolean): void {
  const { stdout } = context;
  if (json) stdout.json(mergeDocument(groupId, report));
  else for (const line of mergeLines(groupId, report)) stdout.line(safeLine(line, lineColumns));
}

function mergeDocument(
  groupId: string,
  { outcome, mergePlan, prepared, moves, contained, cleanUp, notes }: MergeReport,
) {
  return {
    groupId,
    outcome,
    repositories: prepared.map(({ plan, target }) => {
      const move = moves.find(({ repository }) => repository === plan.repository);
      return {
        repository: plan.repository,
        into: plan.into,
        from: target.commit,
        ...(move === undefined ? {} : { to: move.to }),
        checkouts: move?.checkouts ?? target.checkouts,
        sessions: plan.items.map((item) => ({
          id: item.record.definition.id,
          ...defined({ name: item.record.definition.name }),
          branch: item.workspace.branch,
          commit: item.source,
          ...(move === undefined ? {} : { contained: contained.has(item.record.definition.id) }),
        })),
      };
    }),
    mergedBefore: mergePlan.merged,
    leftOut: mergePlan.leftOut.map(({ sessionId, why }) => ({ sessionId, why })),
    cleaned: cleanUp.cleaned,
    kept: cleanUp.kept,
    notes: [...notes, ...cleanUp.notes],
  };
}

function mergeLines(groupId: string, report: MergeReport): string[] {
  const { outcome, mergePlan, prepared, moves, contained, cleanUp, notes } = report;
  const left = leftOutLines(mergePlan);
  switch (outcome) {
    case 'interrupted':
      return ['Interrupted: no branch was moved.'];
    case 'nothing':
      return [nothingToMerge(groupId, report), ...left, ...keptLines(report)];
    case 'planned':
      return [
        ...prepared.flatMap(({ plan, target }) => [
          `Into ${plan.into} of ${repositoryDir(plan.repository)} (${shortCommit(target.commit)}):`,
          ...plan.items.map(pieceLine),
        ]),
        ...left,
        ...notes,
        'Nothing was done.',
      ];
    case 'merged':
      return [
        ...moves.map(({ repository, into, from, to, sessionIds }) => {
          const there = sessionIds.filter((id) => contained.has(id)).length;
          const known = there === 0 ? '' : `, ${there} of them already there`;
          const where = `${into} of ${repositoryDir(repository)}`;
          if (from === to) return `${where} already has the work of ${plural(sessionIds.length, 'session')}.`;
          const step = `${shortCommit(from)} -> ${shortCommit(to)}`;
          return `Merged ${plural(sessionIds.length, 'session')} into ${where}${known} (${step}).`;
        }),
        ...left,
        ...keptLines(report),
        ...[...notes, ...cleanUp.notes],
      ];
  }
}

function nothingToMerge(groupId: string, { mergePlan }: MergeReport): string {
  const { leftOut, merged, mergedInto } = mergePlan;
  if (leftOut.some(({ work }) => work === 'uncommitted')) {
    return `Nothing of ${groupId} was merged: the remaining work is not committed.`;
  }
  if (merged.length > 0) return `All work of ${groupId} is already merged into ${mergedInto.join(' and ')}.`;
  if (leftOut.some(({ work }) => work === 'elsewhere')) {
    return `Nothing of ${groupId} was merged: no completed session has work on its own branch.`;
  }
  return `${groupId} has nothing to merge: no session left work in a worktree.`;
}

function pieceLine(item: MergeItem): string {
  const { accept } = item.record.definition;
  const then = accept === undefined ? '' : `, then: ${accept}`;
  return `  ${titleOfItem(item)}: merge ${item.workspace.branch} (${shortCommit(item.source)})${then}`;
}

function keptLines({ cleanUp, mergePlan: { titles } }: MergeReport): string[] {
  return cleanUp.kept.map(({ sessionId, why }) => `Kept the worktree of ${titles.get(sessionId) ?? sessionId}: ${why}`);
}

// Work of a rehearsal is delivered only after a confirmation.

type HandOver = Pick<MergeOptions, 'dryRun' | 'partial'>;

/** Asks for confirmation on a terminal and prints a note elsewhere. Null = the user declined. */
async function groupToDeliver(
  context: Context,
  reference: string,
  what: string,
  options: HandOver,
  yes: true | undefined,
): Promise<GroupReference | null> {
  const group = need(resolveGroup(context, reference));
  if (yes === true || !isRehearsedWork(context, group, options)) return group;
  const fact = `Group ${group.groupId} is a rehearsal: its work comes from a script, not from a model.`;
  const canAsk = context.stdinIsTerminal && context.stdout.isTerminal;
  if (!canAsk) context.stderr.line(fact);
  if (await confirmed(context, `${fact} ${what} it anyway?`, !canAsk)) return group;
  context.stderr.line('Nothing was done.');
  return null;
}

/** Skips the confirmation when the delivery would be refused anyway. */
function isRehearsedWork({ world }: Context, group: GroupReference, { dryRun, partial }: HandOver): boolean {
  const loaded = loadWithRunner(world, group);
  if (dryRun || !loaded.ok || loaded.value.state.run?.rehearsal === undefined) return false;
  const records = [...loaded.value.state.sessions.values()];
  return partial || records.every(({ state }) => state.status === 'completed');
}

function showProposal(context: Context, groupId: string, report: ProposalReport, json: boolean): void {
  const { stdout } = context;
  if (json) stdout.json(proposalDocument(groupId, report));
  else for (const line of proposalLines(groupId, report)) stdout.line(safeLine(line, lineColumns));
}

function proposalDocument(groupId: string, { outcome, destinations, proposed, mergePlan }: ProposalReport) {
  return {
    groupId,
    outcome,
    repositories: destinations.map((destination) => {
      const { plan, remote, branch } = destination;
      const done = proposed.find((one) => one.destination === destination);
      return {
        repository: plan.repository,
        remote: remote.name,
        base: remote.base,
        branch,
        ...(done === undefined
          ? {}
          : { commit: done.commit, pushed: done.pushed, url: done.url, created: done.created }),
        sessions: plan.items.map(({ record }) => record.definition.id),
      };
    }),
    leftOut: mergePlan.leftOut.map(({ sessionId, why }) => ({ sessionId, why })),
  };
}

function proposalLines(groupId: string, { outcome, mergePlan, proposed }: ProposalReport): string[] {
  const left = leftOutLines(mergePlan);
  if (outcome === 'interrupted') return ['Interrupted: nothing was pushed.'];
  if (outcome === 'nothing') return [`${groupId} has nothing to propose.`, ...left];
  const done = proposed.map(({ destination, commit, url, created }) => {
    const what = created ? 'Proposed' : 'Updated';
    return `${what}: ${url} (${destination.branch} at ${shortCommit(commit)}, into ${destination.remote.base})`;
  });
  return [...done, ...left];
}

type GroupFiles = Pick<LoadedGroup, 'state' | 'paths'>;

function showCommands(context: Context, writer: GroupFiles, report: ProposalReport, options: CommandOptions): void {
  const commands = report.destinations.map((destination, index) =>
    commandsFor(writer, destination, index + 1, options, report.destinations),
  );
  if (options.json) {
    const repositories = report.destinations.map(({ plan, remote, branch }, index) => {
      return { repository: plan.repository, remote: remote.name, base: remote.base, branch, commands: commands[index] };
    });
    context.stdout.json({ groupId: writer.state.group.id, outcome: report.outcome, repositories });
    return;
  }
  for (const line of commands.flat()) context.stdout.line(safeText(line));
  if (report.destinations.length > 1) {
    for (const nth of report.destinations.keys()) {
      const edit = editArgs(`$url${nth + 1}`, bodyFileOf(writer)).map((arg) =>
        arg.startsWith('$') ? `"${arg}"` : shellWord(arg),
      );
      context.stdout.line(`gh ${edit.join(' ')}`);
    }
  }
}

interface CommandOptions {
  readonly draft: boolean;
  readonly json: boolean;
}

function commandsFor(
  writer: GroupFiles,
  destination: Destination,
  nth: number,
  { draft }: CommandOptions,
  all: readonly Destination[],
): string[] {
  const { plan, remote, branch, start, isPushed, url } = destination;
  const { path } = destination.scratch;
  const { state } = writer;
  const repository = repositoryDir(plan.repository);
  const slug = defined({ slug: remote.slug });
  const bodyFile = bodyFileOf(writer);
  const request = {
    ...slug,
    base: remote.base,
    head: headIn(remote, branch),
    title: proposalTitle(state),
    bodyFile,
    draft,
  };
  const merges = plan.items.flatMap((item) => {
    const { accept } = item.record.definition;
    const folder = join(path, relative(item.workspace.path, item.workspace.folder));
    const message = mergeMessage(state, item);
    return [
      shell('git', ['-C', path, ...mergeArgs(item.workspace.branch, message)]),
      ...(accept === undefined ? [] : [`(cd ${shellWord(folder)} && ${shell('/bin/sh', ['-c', accept])})`]),
    ];
  });
  const ghCommand =
    url === undefined
      ? `${all.length > 1 ? `url${nth}=$(` : '('}cd ${shellWord(repository)} && ${shell('gh', createArgs(request))})`
      : all.length > 1
        ? `url${nth}=${shellWord(url)}`
        : `(cd ${shellWord(repository)} && ${shell('gh', editArgs(url, bodyFile))})`;
  return [
    ...(isPushed ? [shell('git', ['-C', repository, 'fetch', '--', remote.name, `refs/heads/${branch}`])] : []),
    shell('git', ['-C', repository, ...scratchArgs(path, start)]),
    ...merges,
    shell('git', ['-C', path, ...pushArgs(remote.name, branch)]),
    shell('git', ['-C', repository, 'worktree', 'remove', '--force', path]),
    heredoc(bodyFile, proposalSection(state, plan.items, [])),
    ghCommand,
  ];
}

function heredoc(file: string, body: string): string {
  let mark = 'BODY';
  while (body.split('\n').includes(mark)) mark += '_';
  return `cat >${shellWord(file)} <<'${mark}'\n${body}\n${mark}`;
}

function shell(program: string, args: readonly string[]): string {
  return [program, ...args].map(shellWord).join(' ');
}
