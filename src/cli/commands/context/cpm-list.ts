/** `cpm list`: the progress files of a project, how old they are and what they are about. */

import type { Command } from '@commander-js/extra-typings';
import { type ListedProgress, loadProgress, plainProgress } from '../../../app/cpm/progress-files.ts';
import { commandText } from '../../../core/advice.ts';
import { ok } from '../../../core/failure.ts';
import { type Cell, formatDuration, formatTable, plural } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent cpm list
  $ claude-code-agent cpm list --project ./api --json | jq -r '.[] | select(.stale) | .file'`;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Lists the progress files in docs/plans of a project, newest first. One that was not written for more than 48 ' +
        'hours is marked as stale: its session was most likely given up.',
    )
    .option('--project <dir>', 'folder of the project (default: this folder)')
    .option('--json', 'one JSON document: an array of progress files')
    .addHelpText('after', example)
    .action(({ project, json }) => context.run(() => list(context, project, json === true)));
}

function list(context: Context, project: string | undefined, json: boolean): Work {
  const loaded = loadProgress(context, project);
  if (!loaded.ok) return loaded;
  const { folder, listed, oddNames } = loaded.value;
  if (oddNames > 0) {
    context.stderr.line(`${plural(oddNames, 'file')} in docs/plans left out: no session id can be called that.`);
  }
  if (json) {
    context.stdout.line(safeJson(listed.map(plainProgress), 2));
    return ok(exitCode.done);
  }
  if (listed.length === 0) {
    context.stderr.line(`There are no progress files in ${safeLine(folder, 400)}.`);
    return ok(exitCode.done);
  }
  for (const line of table(context, listed)) context.stdout.line(line);
  if (listed.some(({ file }) => file.stale)) {
    context.stderr.line(`Remove the stale ones with: ${commandText(['cpm', 'clean'])}`);
  }
  return ok(exitCode.done);
}

function table(context: Context, listed: readonly ListedProgress[]): string[] {
  const columns = [{ title: 'SESSION' }, { title: 'AGE' }, { title: '' }, { title: 'SKILL' }];
  const more = [{ title: 'PHASE' }, { title: 'WORKS ON' }];
  const cells = listed.map(({ id, file, header, trouble }): Cell[] => [
    id,
    formatDuration(file.ageMs),
    file.stale ? { text: 'stale', tone: 'warn' } : '',
    trouble === null ? safeLine(header.skill ?? 'unknown', 40) : { text: safeLine(trouble, 80), tone: 'bad' },
    safeLine(header.phase ?? '', 60),
    safeLine(header.artifact ?? '', 60),
  ]);
  return formatTable([...columns, ...more], cells, context.stdout.style);
}
