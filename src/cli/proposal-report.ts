/** What `group pr` did, for people and as JSON; and what it would do, as commands for a shell. */
import { join, relative } from 'node:path';
import { mergeMessage, scratchPlace } from '../app/delivery/merge-sandbox.ts';
import { leftOutLines } from '../app/delivery/plan.ts';
import {
  bodyFileOf,
  createArgs,
  type Destination,
  editArgs,
  type ProposalReport,
  proposalSection,
  proposalTitle,
} from '../app/delivery/pull-request.ts';
import { shellWord } from '../app/path-argument.ts';
import type { LoadedGroup } from '../app/resolve.ts';
import { defined } from '../core/defined.ts';
import { pushArgs } from '../git/push.ts';
import { mergeArgs, repositoryDir, scratchArgs, shortCommit } from '../git/worktrees/scratch.ts';
import { safeJson, safeLine, safeText } from '../view/terminal-text.ts';
import type { Context } from './context.ts';

const lineColumns = 1000;

export function showProposal(context: Context, groupId: string, report: ProposalReport, json: boolean): void {
  const { stdout } = context;
  if (json) stdout.line(safeJson(document(groupId, report), 2));
  else for (const line of lines(groupId, report)) stdout.line(safeLine(line, lineColumns));
}

function document(groupId: string, { outcome, destinations, proposed, mergePlan }: ProposalReport) {
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

function lines(groupId: string, { outcome, mergePlan, proposed }: ProposalReport): string[] {
  const left = leftOutLines(mergePlan);
  if (outcome === 'interrupted') return ['Interrupted: nothing was pushed.'];
  if (outcome === 'nothing') return [`${groupId} has nothing to propose.`, ...left];
  const done = proposed.map(({ destination, commit, url, created }) => {
    const what = created ? 'Proposed' : 'Brought up to date';
    return `${what}: ${url} (${destination.branch} at ${shortCommit(commit)}, into ${destination.remote.base})`;
  });
  return [...done, ...left];
}

/** A shell script that does the same by hand. */
type Asked = Pick<LoadedGroup, 'state' | 'paths'>;

export function showCommands(context: Context, writer: Asked, report: ProposalReport, options: Options): void {
  const commands = report.destinations.map((destination, index) =>
    commandsFor(writer, destination, index + 1, options, report.destinations),
  );
  if (options.json) {
    const repositories = report.destinations.map(({ plan, remote, branch }, index) => {
      return { repository: plan.repository, remote: remote.name, base: remote.base, branch, commands: commands[index] };
    });
    context.stdout.line(safeJson({ groupId: writer.state.group.id, outcome: report.outcome, repositories }, 2));
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

interface Options {
  readonly draft: boolean;
  readonly json: boolean;
}

function commandsFor(
  writer: Asked,
  destination: Destination,
  nth: number,
  { draft }: Options,
  all: readonly Destination[],
): string[] {
  const { plan, remote, branch, start, isPushed, url } = destination;
  const { state, paths } = writer;
  const { path } = scratchPlace(paths, state, plan.repository, nth);
  const repository = repositoryDir(plan.repository);
  const slug = defined({ slug: remote.slug });
  const bodyFile = bodyFileOf(writer);
  const request = { ...slug, base: remote.base, head: branch, title: proposalTitle(state), bodyFile, draft };
  const merges = plan.items.flatMap((item) => {
    const { accept } = item.record.definition;
    const folder = join(path, relative(item.workspace.path, item.workspace.folder));
    const message = mergeMessage(state, item);
    return [
      shell('git', ['-C', path, ...mergeArgs(item.workspace.branch, message)]),
      ...(accept === undefined ? [] : [`(cd ${shellWord(folder)} && ${shell('/bin/sh', ['-c', accept])})`]),
    ];
  });
  const asked =
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
    asked,
  ];
}

/** The text goes into the file as it stands. */
function heredoc(file: string, body: string): string {
  let mark = 'BODY';
  while (body.split('\n').includes(mark)) mark += '_';
  return `cat >${shellWord(file)} <<'${mark}'\n${body}\n${mark}`;
}

function shell(program: string, args: readonly string[]): string {
  return [program, ...args].map(shellWord).join(' ');
}
