/** `handover init`, `list` and `find`: projects that later sessions continue. */
import { resolve } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { handoverRoot, initProject, workerAssignment } from '../../../app/handover/init-project.ts';
import {
  findAssigned,
  findBySession,
  findProjects,
  type HandoverProject,
  handoverConfig,
  planningFolder,
  resumeFileName,
} from '../../../context/handover/projects.ts';
import { sessionIdPattern } from '../../../context/handover/resume-file.ts';
import { advise, commandText } from '../../../core/advice.ts';
import { formatDate, formatTable, type TableCell } from '../../../view/format.ts';
import { safeLine } from '../../../view/terminal-text.ts';
import { type Context, need, refuse } from '../../context.ts';
import { parseText } from '../../options/options.ts';

interface Given {
  readonly name?: string | undefined;
  readonly root?: string | undefined;
  readonly json?: true | undefined;
}

const initExample = `
Example:
  $ claude-code-agent handover init 02-projects/28-parser
  $ claude-code-agent handover init clients/acme --name "Acme's shop"`;

export function defineInit(command: Command, context: Context): void {
  command
    .description(
      `Create ${planningFolder}/${resumeFileName} in a project's folder. A folder outside 02-projects and ` +
        `02-builds/active is also added to ${handoverConfig} of the root, so that the hooks find it.`,
    )
    .argument('<dir>', 'folder of the project; created if missing')
    .option('--name <name>', "the project's name (default: the folder's)", parseText)
    .option('--root <dir>', 'folder in which claude is started (default: this folder)')
    .option('--json', 'one JSON document: {"project", "made", "named"}, the last two with the files that were written')
    .addHelpText('after', initExample)
    .action((dir, given) => context.run(() => init(context, dir, given)));
}

function init(context: Context, typed: string, { name, root: typedRoot, json }: Given): void {
  if (typed === '') refuse('usage', 'The path of the folder is empty.', 'Give the path of the project.');
  const root = need(handoverRoot(context, typedRoot));
  const say = (text: string): void => (json ? context.stderr : context.stdout).line(safeLine(text, 1000));
  const made = need(initProject(context, root, { folder: resolve(context.cwd, typed), name }, { line: say }));
  if (json) context.stdout.json(made);
}

const listExample = `
Example:
  $ claude-code-agent handover list
  $ claude-code-agent handover list --root ~/plans --json | jq -r '.[] | "\\(.project) \\(.nextAction)"'`;

export function defineHandoverList(command: Command, context: Context): void {
  command
    .description(
      'List the projects in 02-projects and 02-builds/active of a folder, and in the folders that its ' +
        '.claude-code-agent/handover.json names.',
    )
    .option('--root <dir>', 'folder that holds the projects (default: this folder)')
    .option('--json', 'one JSON document: an array of projects')
    .addHelpText('after', listExample)
    .action((given) => context.run(() => list(context, given)));
}

function list(context: Context, { root: typedRoot, json }: Given): void {
  const { stdout, stderr } = context;
  const { root, projects } = projectsIn(context, typedRoot);
  const sorted = projects.toSorted((a, b) => b.updatedMs - a.updatedMs);
  if (json) stdout.json(sorted.map(plain));
  else if (sorted.length > 0) stdout.lines(table(context, sorted));
  else {
    const make = commandText(['handover', 'init', 'DIR']);
    stderr.line(safeLine(`There are no projects in ${root}. Create one with: ${make}`, 1000));
  }
}

/** Prints what had to be ignored on stderr. */
function projectsIn(context: Context, typedRoot: string | undefined) {
  const root = need(handoverRoot(context, typedRoot));
  const { projects, troubles } = findProjects(context.world.files, root);
  for (const trouble of troubles) context.stderr.line(safeLine(`Ignored: ${trouble}`, 1000));
  return { root, projects };
}

function plain({ id, folder, file, facts, updatedMs }: HandoverProject): object {
  const { projectName: name, currentPhase, nextAction, filesToLoad, sessionIds, sessionId } = facts;
  const lastUpdated = new Date(updatedMs).toISOString();
  const resume = { name, currentPhase, nextAction, filesToLoad };
  return { project: id, ...resume, lastUpdated, sessionIds, sessionId, folder, file };
}

function table(context: Context, projects: readonly HandoverProject[]): string[] {
  const titles = ['PROJECT', 'PHASE', 'SESSIONS', 'UPDATED', 'NEXT ACTION'];
  const rows = projects.map(({ id, facts, updatedMs }): TableCell[] => [
    safeLine(id, 60),
    safeLine(facts.currentPhase, 20),
    String(new Set([...facts.sessionIds, facts.sessionId].filter((one) => one !== '')).size),
    formatDate(new Date(updatedMs).toISOString()),
    safeLine(facts.nextAction, 60),
  ]);
  const columns = titles.map((title) => ({ title, ...(title === 'SESSIONS' ? { align: 'right' as const } : {}) }));
  return formatTable(columns, rows, context.stdout.style);
}

const findExample = `
Example:
  $ claude-code-agent handover find 5f0c9a52-7a35-4a83-9d0b-0c1f5f9f2a11
  $ claude-code-agent handover find --root .. --json | jq -r .file      # called by claude`;

export function defineFind(command: Command, context: Context): void {
  command
    .description('Print the project whose resume-context.md lists the session, or whose last session it was.')
    .argument('[session-id]', "claude's session id (default: the one in CLAUDE_CODE_SESSION_ID)")
    .option('--root <dir>', 'folder that holds the projects (default: this folder)')
    .option('--json', 'one JSON document')
    .addHelpText('after', findExample)
    .action((id, given) => context.run(() => find(context, id, given)));
}

function find(context: Context, typed: string | undefined, { root: typedRoot, json }: Given): void {
  const id = typed ?? context.env.CLAUDE_CODE_SESSION_ID ?? '';
  if (!sessionIdPattern.test(id)) {
    const next = 'Give the id of a session: letters, digits, "-" and "_", as claude prints them.';
    refuse('usage', 'The session id is not valid.', next);
  }
  const { root, projects } = projectsIn(context, typedRoot);
  const belonging = typed === undefined ? workerAssignment(context) : null;
  const found = findAssigned(projects, root, belonging) ?? findBySession(projects, id);
  if (found === null) {
    const next = advise('See the projects with', ['handover', 'list']);
    refuse('not-found', `No project in ${root} lists the session ${id}.`, next);
  }
  const { id: project, folder, file } = found.project;
  if (json) context.stdout.json({ project, foundBy: found.by, folder, file });
  else context.stdout.line(safeLine(project, 1000));
}
