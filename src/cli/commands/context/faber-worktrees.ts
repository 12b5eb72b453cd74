/** `faber worktrees`: the work trees that were made for runs, and with --prune the removal of those that are over. */

import type { Command } from '@commander-js/extra-typings';
import { projectHere } from '../../../app/faber/here.ts';
import {
  type Repository,
  removeFinished,
  repositoryOf,
  viewWorktrees,
  type WorktreeView,
} from '../../../app/faber/worktrees.ts';
import { commandText } from '../../../core/advice.ts';
import { ok } from '../../../core/failure.ts';
import { formatTable, plural } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { confirmed } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent faber worktrees
  $ claude-code-agent faber worktrees --prune`;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Lists the work trees of FABER runs. --prune removes those whose run is over or gone; changes that are not ' +
        'committed keep a work tree, files that git ignores do not. Branches stay.',
    )
    .option('--prune', 'remove what is over')
    .option('-y, --yes', 'answer every question with yes')
    .option('--force', 'do not ask, and do not wait for the end of sessions')
    .option('--project <dir>', 'the project (default: the current folder)')
    .option('--json', 'one JSON document: an array of work trees, or of what became of them')
    .addHelpText('after', example)
    .action((given) => context.run(() => worktrees(context, given)));
}

interface Given {
  readonly yes?: true | undefined;
  readonly prune?: true | undefined;
  readonly force?: true | undefined;
  readonly project?: string | undefined;
  readonly json?: true | undefined;
}

async function worktrees(context: Context, given: Given): Promise<Work> {
  const project = projectHere(context, given.project);
  if (!project.ok) return project;
  const repository = await repositoryOf(context, project.value);
  if (!repository.ok) return repository;
  const views = viewWorktrees(context, repository.value);
  if (!views.ok) return views;
  if (given.prune === true) return prune(context, repository.value, views.value, given);
  list(context, views.value, given.json === true);
  return ok(exitCode.done);
}

function list({ stdout, stderr }: Context, views: readonly WorktreeView[], json: boolean): void {
  if (json) {
    const shown = views.map((view) => ({
      work_id: view.workId,
      run_id: view.runId,
      status: view.status,
      branch: view.branch,
      path: view.path,
      created_at: view.createdAt,
    }));
    stdout.line(safeJson(shown, 2));
    return;
  }
  if (views.length === 0) {
    const make = commandText(['faber', 'start', '--work-id', 'ID', '--worktree']);
    stderr.line(`There are no work trees of runs. Make one with: ${make}`);
    return;
  }
  const columns = [{ title: 'WORK' }, { title: 'STATUS' }, { title: 'RUN' }, { title: 'BRANCH' }, { title: 'PATH' }];
  const rows = views.map(({ workId, status, runId, branch, path }) =>
    [workId, status, runId, branch, path].map((text) => safeLine(text, 300)),
  );
  for (const line of formatTable(columns, rows, stdout.style)) stdout.line(line);
}

async function prune(
  context: Context,
  repository: Repository,
  views: readonly WorktreeView[],
  { yes, force, json }: Given,
): Promise<Work> {
  const over = views.filter(({ status }) => status !== 'in progress');
  // An entry whose folder is gone holds nothing that could be lost.
  const folders = over.filter(({ status }) => status !== 'missing');
  if (folders.length > 0) {
    const question = `Remove ${plural(folders.length, 'work tree')}: ${folders.map(({ path }) => path).join(', ')}?`;
    const sure = await confirmed(context, question, yes === true || force === true);
    if (!sure) return ok(exitCode.failed);
  }
  const results = [];
  for (const view of over) {
    results.push(await removeFinished(context, repository, view, { openSessionsToo: force === true }));
  }
  if (json === true) context.stdout.line(safeJson(results, 2));
  else if (results.length === 0) context.stdout.line('There is nothing to remove.');
  else {
    for (const { removed, path, why } of results) {
      context.stdout.line(safeLine(`${removed ? 'Removed' : 'Kept'} ${path}. ${why}`, 600));
    }
  }
  return ok(results.every(({ removed }) => removed) ? exitCode.done : exitCode.failed);
}
