/** `cpm show`: one progress file of a project, by default the newest. */
import type { Command } from '@commander-js/extra-typings';
import { findListed, loadProgress, plainProgress } from '../../../app/cpm/progress-files.ts';
import { briefPath } from '../../../app/path-argument.ts';
import { fail, ok } from '../../../core/failure.ts';
import { safeJson, safeText } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent cpm show
  $ claude-code-agent cpm show 4b1c --project ./api`;

export function define(command: Command, context: Context): void {
  command
    .description('Prints a progress file without escape codes. Without an id, the one that was written last.')
    .argument('[id]', 'session id or unique prefix of one; legacy for the file without an id')
    .option('--project <dir>', 'folder of the project (default: this folder)')
    .option('--json', 'one JSON document, the text in it')
    .addHelpText('after', example)
    .action((id, { project, json }) => context.run(() => show(context, id, project, json === true)));
}

function show(context: Context, id: string | undefined, project: string | undefined, json: boolean): Work {
  const loaded = loadProgress(context, project);
  if (!loaded.ok) return loaded;
  const [newest] = [...loaded.value.listed].sort((one, other) => one.file.ageMs - other.file.ageMs);
  if (newest === undefined) {
    const message = `There are no progress files in ${briefPath(loaded.value.folder)}.`;
    return fail('not-found', message, 'Name the folder of a project with --project.');
  }
  const found = id === undefined ? ok(newest) : findListed(loaded.value, id);
  if (!found.ok) return found;
  const { file, text, truncated, trouble } = found.value;
  if (trouble !== null) {
    return fail('corrupt-file', `${briefPath(file.path)} ${trouble}.`, 'Look at what is there under that name.');
  }
  if (json) context.stdout.line(safeJson({ ...plainProgress(found.value), text, truncated }, 2));
  else context.stdout.line(safeText(text).trimEnd());
  if (truncated) context.stderr.line(`There is more in ${briefPath(file.path)}.`);
  return ok(exitCode.done);
}
