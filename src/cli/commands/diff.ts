/** `group diff` and `session diff`: what sessions changed in their worktrees. */
import { basename, dirname } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { finishInterruptedMerge } from '../../app/delivery/merge.ts';
import { programsSentence } from '../../app/delivery/plan.ts';
import { diffOf, type WorkDiff, workspacesOf } from '../../app/delivery/work-diff.ts';
import { type LoadedGroup, loadReferredGroup, loadReferredSession, resolveGroup } from '../../app/resolve.ts';
import { describeFailure, type Failure, ok, publicFailure } from '../../core/failure.ts';
import type { SessionId } from '../../core/group.ts';
import { diffLines, safeLine, spelledLine } from '../../view/terminal-text.ts';
import { statusTone, titleOf } from '../../view/wording.ts';
import { type CommandResult, type Context, exitCode, need, refuse, refuseWith } from '../context.ts';

const groupExample = `
Example:
  $ claude-code-agent group diff auth-refactor --stat
  $ claude-code-agent group diff auth-refactor | less
  $ claude-code-agent group diff auth-refactor --stat --json | jq '.repositories[].sessions[].stat'`;

const columnsMax = 1000;

export function defineGroupDiff(command: Command, context: Context): void {
  command
    .description('Show what the sessions of a group changed, by repository.')
    .argument('<group>', 'id, unique prefix or slug')
    .option('--stat', 'one line for each file')
    .option('--json', 'one JSON document: repositories with their sessions, commits, numbers and texts')
    .addHelpText('after', groupExample)
    .action((reference, options) => context.run(() => printGroup(context, reference, options)));
}

interface Options {
  readonly stat?: true | undefined;
  readonly json?: true | undefined;
}

/** A session without a diff, and why. */
interface Without {
  readonly sessionId: SessionId;
  readonly failure: Failure;
}

async function printGroup(context: Context, reference: string, { stat, json }: Options): Promise<CommandResult> {
  const found = need(resolveGroup(context, reference));
  need(await finishInterruptedMerge(context, found));
  const group = need(loadReferredGroup(context, found.groupId));
  const form = stat ? { stat: context.stdout.columns, numbers: json === true } : {};
  const workspaces = need(workspacesOf(context, group));
  const diffs: WorkDiff[] = [];
  const without: Without[] = [];
  for (const [sessionId, record] of group.state.sessions) {
    const session = { ...group, sessionId, record };
    const diff = await diffOf(context, session, workspaces.get(sessionId), form);
    if (diff.ok) diffs.push(diff.value);
    else without.push({ sessionId, failure: diff.failure });
  }
  if (json) context.stdout.json(document(group, diffs, without));
  else if (diffs.length === 0) return nothing(group, without);
  else showGroup(context, group, diffs, without);
  return ok(without.some(({ failure }) => isTrouble(failure)) ? exitCode.failed : exitCode.done);
}

/** A session that has not started, or works in the checkout itself, is not a problem. */
function isTrouble({ reason }: Failure): boolean {
  return reason !== 'illegal-transition';
}

function nothing({ state }: LoadedGroup, without: readonly Without[]): CommandResult {
  const [first] = without;
  const { id } = state.group;
  if (first === undefined) return refuse('illegal-transition', `Group ${id} has no sessions.`, 'Add some first.');
  if (without.length === 1) return refuseWith(first.failure);
  const trouble = without.find(({ failure }) => isTrouble(failure));
  if (trouble !== undefined) return refuseWith(trouble.failure);
  const message = `No session of group ${id} has a worktree.`;
  return refuse('illegal-transition', message, first.failure.next);
}

function byRepository(diffs: readonly WorkDiff[]): ReadonlyMap<string, readonly WorkDiff[]> {
  return Map.groupBy(diffs, ({ repository }) => repository);
}

function document({ state }: LoadedGroup, diffs: readonly WorkDiff[], without: readonly Without[]): unknown {
  return {
    groupId: state.group.id,
    repositories: [...byRepository(diffs)].map(([repository, sessions]) => ({ repository, sessions })),
    without: without.map(({ sessionId, failure }) => ({ sessionId, ...publicFailure(failure) })),
  };
}

function showGroup(
  context: Context,
  group: LoadedGroup,
  diffs: readonly WorkDiff[],
  without: readonly Without[],
): void {
  const { stdout, stderr } = context;
  const { style } = stdout;
  for (const [repository, sessions] of byRepository(diffs)) {
    const top = basename(repository) === '.git' ? dirname(repository) : repository;
    stdout.line(style('strong', spelledLine(top)));
    for (const diff of sessions) {
      const { sessionId, status, branch } = diff;
      const where = branch === undefined ? 'in the project folder itself, including changes by others' : branch;
      const title = safeLine(titleOf(group.state, sessionId), columnsMax);
      stdout.line(`${title}  ${style(statusTone(status), status)}  ${spelledLine(where)}  ${statWords(diff)}`);
      if (diff.gone !== undefined) stderr.line(spelledLine(diff.gone));
      warnOfPrograms(context, diff);
      if (diff.text) printText(context, diff.text);
      stdout.line();
    }
  }
  for (const { failure } of without) stderr.line(safeLine(describeFailure(failure), columnsMax));
}

const sessionExample = `
Compares the session's branch, or its worktree while it is not completed, with
the commit it started from. Without a worktree, compares the project folder
with its state when the session started, including changes by others. Control
characters are escaped.

Example:
  $ claude-code-agent session diff auth-refactor/api
  $ claude-code-agent session diff auth-refactor/api --stat
  $ claude-code-agent session diff auth-refactor/api --json | jq -r '"git diff \\(.base) \\(.branch)"'`;

export function defineSessionDiff(command: Command, context: Context): void {
  command
    .description('Show what a session changed.')
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .option('--stat', 'one line for each file')
    .option('--json', 'one JSON document: commits, numbers and the text')
    .addHelpText('after', sessionExample)
    .action((reference, options) => context.run(() => printSessionDiff(context, reference, options)));
}

async function printSessionDiff(context: Context, reference: string, { stat, json }: Options): Promise<CommandResult> {
  const session = need(loadReferredSession(context, reference));
  const workspaces = need(workspacesOf(context, session));
  const { sessionId, state } = session;
  const form = stat ? { stat: context.stdout.columns, numbers: json === true } : {};
  const diff = need(await diffOf(context, session, workspaces.get(sessionId), form));
  if (json) context.stdout.json(diff);
  else showSession(context, diff, titleOf(state, sessionId));
}

function showSession(context: Context, diff: WorkDiff, title: string): void {
  const { gone, text = '' } = diff;
  warnOfPrograms(context, diff);
  if (gone !== undefined) context.stderr.line(spelledLine(gone));
  if (text !== '') printText(context, text);
  else if (gone === undefined) context.stderr.line(`Session ${title} changed no files.`);
  else context.stderr.line('Nothing was committed.');
}

/** The output of a program is cut at this length, see system/processes/program.ts. */
const cutBytes = 64 << 20;

/** Prints a diff line by line, with a note if it was cut. */
export function printText({ stdout, stderr }: Context, text: string): void {
  stdout.line(diffLines(text, stdout.style).join('\n'));
  if (Buffer.byteLength(text) >= cutBytes) {
    stderr.line('The diff is cut at 64 MiB. See all of it with git diff.');
  }
}

/** Warns on stderr about changed files that start programs. */
export function warnOfPrograms({ stderr }: Context, { programs = [] }: Pick<WorkDiff, 'programs'>): void {
  const sentence = programsSentence(programs);
  if (sentence !== null) stderr.line(spelledLine(sentence));
}

/** `3 files changed, +10 -2`. */
export function statWords({ stat: { files, insertions, deletions } }: Pick<WorkDiff, 'stat'>): string {
  const changed = files === 1 ? '1 file changed' : `${files} files changed`;
  return files === 0 ? 'nothing changed' : `${changed}, +${insertions} -${deletions}`;
}
