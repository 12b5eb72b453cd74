/** `handover list`: the projects of a folder, the one that was updated last first. */

import type { Command } from '@commander-js/extra-typings';
import { handoverRoot } from '../../../app/handover/init-project.ts';
import { findProjects, type HandoverProject } from '../../../context/handover/projects.ts';
import { commandText } from '../../../core/advice.ts';
import { ok } from '../../../core/failure.ts';
import { type Cell, formatDate, formatTable } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent handover list
  $ claude-code-agent handover list --root ~/plans --json | jq -r '.[] | "\\(.project) \\(.nextAction)"'`;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Lists the projects in 02-projects of a folder, and those below the folders that its ' +
        '.claude-code-agent/handover.json names.',
    )
    .option('--root <dir>', 'folder that holds the projects (default: this folder)')
    .option('--json', 'one JSON document: an array of projects')
    .addHelpText('after', example)
    .action(({ root, json }) => context.run(() => list(context, root, json === true)));
}

function list(context: Context, typedRoot: string | undefined, json: boolean): Work {
  const root = handoverRoot(context, typedRoot);
  if (!root.ok) return root;
  const { stdout, stderr, world } = context;
  const { projects, troubles } = findProjects(world.files, root.value);
  const sorted = projects.toSorted((a, b) => b.updatedMs - a.updatedMs);
  for (const trouble of troubles) stderr.line(safeLine(`Left out: ${trouble}`, 1000));
  if (json) stdout.line(safeJson(sorted.map(plain), 2));
  else if (sorted.length === 0) {
    stderr.line(
      safeLine(
        `There are no projects in ${root.value}. Make one with: ${commandText(['handover', 'init', 'DIR'])}`,
        1000,
      ),
    );
  } else for (const line of table(context, sorted)) stdout.line(line);
  return ok(exitCode.done);
}

function plain({ id, folder, file, facts, updatedMs }: HandoverProject): object {
  const { projectName: name, currentPhase, nextAction, filesToLoad, sessionIds, sessionId } = facts;
  const lastUpdated = new Date(updatedMs).toISOString();
  const said = { name, currentPhase, nextAction, filesToLoad };
  return { project: id, ...said, lastUpdated, sessionIds, sessionId, folder, file };
}

function table(context: Context, projects: readonly HandoverProject[]): string[] {
  const titles = ['PROJECT', 'PHASE', 'SESSIONS', 'UPDATED', 'NEXT ACTION'];
  const rows = projects.map(({ id, facts, updatedMs }): Cell[] => [
    safeLine(id, 60),
    safeLine(facts.currentPhase, 20),
    String(new Set([...facts.sessionIds, facts.sessionId].filter((one) => one !== '')).size),
    formatDate(new Date(updatedMs).toISOString()),
    safeLine(facts.nextAction, 60),
  ]);
  const columns = titles.map((title) => ({ title, ...(title === 'SESSIONS' ? { align: 'right' as const } : {}) }));
  return formatTable(columns, rows, context.stdout.style);
}
