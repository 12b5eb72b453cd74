/** `group diff`: what the sessions of a group changed, repository by repository. */
import { basename, dirname } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { finishInterruptedMerge } from '../../../app/delivery/finish.ts';
import { diffOf, type WorkDiff, workspacesOf } from '../../../app/delivery/work-diff.ts';
import { type LoadedGroup, loadReferredGroup, resolveGroup } from '../../../app/resolve.ts';
import { describeFailure, type Failure, fail, ok, publicFailure } from '../../../core/failure.ts';
import type { SessionId } from '../../../core/group.ts';
import { spelledLine } from '../../../view/diff-text.ts';
import { safeLine } from '../../../view/terminal-text.ts';
import { statusTone, titleOf } from '../../../view/wording.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { printJson, printText, statWords, warnOfPrograms } from '../../work-diff-text.ts';

const example = `
Example:
  $ claude-code-agent group diff auth-refactor --stat
  $ claude-code-agent group diff auth-refactor | less
  $ claude-code-agent group diff auth-refactor --stat --json | jq '.repositories[].sessions[].stat'`;

const columnsMax = 1000;

export function define(command: Command, context: Context): void {
  command
    .description('Prints what the sessions of a group changed in their worktrees, repository by repository.')
    .argument('<group>', 'id, unique prefix or slug')
    .option('--stat', 'one line for each file')
    .option('--json', 'one JSON document: repositories with their sessions, commits, numbers and texts')
    .addHelpText('after', example)
    .action((reference, { stat, json }) =>
      context.run(() => print(context, reference, { stat: stat === true, json: json === true })),
    );
}

interface Options {
  readonly stat: boolean;
  readonly json: boolean;
}

/** A session of which there is no difference. */
interface Without {
  readonly sessionId: SessionId;
  readonly failure: Failure;
}

async function print(context: Context, reference: string, { stat, json }: Options): Promise<Work> {
  const found = resolveGroup(context, reference);
  if (!found.ok) return found;
  const finished = await finishInterruptedMerge(context, found.value);
  if (!finished.ok) return finished;
  const group = loadReferredGroup(context, found.value.groupId);
  if (!group.ok) return group;
  const form = stat ? { stat: context.stdout.columns, numbers: json } : {};
  const workspaces = workspacesOf(context, group.value);
  if (!workspaces.ok) return workspaces;
  const diffs: WorkDiff[] = [];
  const without: Without[] = [];
  for (const [sessionId, record] of group.value.state.sessions) {
    const session = { ...group.value, sessionId, record };
    const diff = await diffOf(context, session, workspaces.value.get(sessionId), form);
    if (diff.ok) diffs.push(diff.value);
    else without.push({ sessionId, failure: diff.failure });
  }
  if (json) printJson(context, document(group.value, diffs, without));
  else if (diffs.length === 0) return nothing(group.value, without);
  else show(context, group.value, diffs, without);
  return ok(without.some(({ failure }) => isTrouble(failure)) ? exitCode.failed : exitCode.done);
}

/** A session that has not begun, or that works in the checkout itself, is as it should be. */
function isTrouble({ reason }: Failure): boolean {
  return reason !== 'illegal-transition';
}

function nothing({ state }: LoadedGroup, without: readonly Without[]): Work {
  const [first] = without;
  const { id } = state.group;
  if (first === undefined) return fail('illegal-transition', `The group ${id} has no sessions.`, 'Add some first.');
  if (without.length === 1) return { ok: false, failure: first.failure };
  const trouble = without.find(({ failure }) => isTrouble(failure));
  if (trouble !== undefined) return { ok: false, failure: trouble.failure };
  const message = `No session of the group ${id} has worked in a worktree of its own.`;
  return fail('illegal-transition', message, first.failure.next);
}

function byRepository(diffs: readonly WorkDiff[]): ReadonlyMap<string, readonly WorkDiff[]> {
  const repositories = new Map<string, WorkDiff[]>();
  for (const diff of diffs) {
    const known = repositories.get(diff.repository);
    if (known === undefined) repositories.set(diff.repository, [diff]);
    else known.push(diff);
  }
  return repositories;
}

function document({ state }: LoadedGroup, diffs: readonly WorkDiff[], without: readonly Without[]): unknown {
  return {
    groupId: state.group.id,
    repositories: [...byRepository(diffs)].map(([repository, sessions]) => ({ repository, sessions })),
    without: without.map(({ sessionId, failure }) => ({ sessionId, ...publicFailure(failure) })),
  };
}

function show(context: Context, group: LoadedGroup, diffs: readonly WorkDiff[], without: readonly Without[]): void {
  const { stdout, stderr } = context;
  const { style } = stdout;
  for (const [repository, sessions] of byRepository(diffs)) {
    const top = basename(repository) === '.git' ? dirname(repository) : repository;
    stdout.line(style('strong', spelledLine(top)));
    for (const diff of sessions) {
      const { sessionId, status, branch } = diff;
      const title = safeLine(titleOf(group.state, sessionId), columnsMax);
      stdout.line(`${title}  ${style(statusTone(status), status)}  ${spelledLine(branch)}  ${statWords(diff)}`);
      if (diff.gone !== undefined) stderr.line(spelledLine(diff.gone));
      warnOfPrograms(context, diff);
      if (diff.text) printText(context, diff.text);
      stdout.line();
    }
  }
  for (const { failure } of without) stderr.line(safeLine(describeFailure(failure), columnsMax));
}
