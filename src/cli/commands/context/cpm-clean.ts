/** `cpm clean`: removes progress files of sessions that were given up. */
import type { Command } from '@commander-js/extra-typings';
import {
  chooseProgress,
  type ListedProgress,
  loadProgress,
  removalTrouble,
  removeProgress,
} from '../../../app/cpm/progress-files.ts';
import { progressFolder } from '../../../context/cpm/state.ts';
import { fail, ok } from '../../../core/failure.ts';
import { plural } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { confirmed } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent cpm clean
  $ claude-code-agent cpm clean 4b1c --project ./api --force`;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Removes progress files that were not written for more than 48 hours. One that is younger is removed only when ' +
        'it is named. Asks first, unless --force is given.',
    )
    .argument('[id...]', 'session ids or unique prefixes; legacy for the file without an id')
    .option('--project <dir>', 'folder of the project (default: this folder)')
    .option('-y, --yes', 'answer every question with yes')
    .option('--force', 'do not ask')
    .option('--json', 'one JSON document: {"removed": names of files}')
    .addHelpText('after', example)
    .action((ids, given) => context.run(() => clean(context, ids, given)));
}

interface Given {
  readonly project?: string | undefined;
  readonly yes?: true | undefined;
  readonly force?: true | undefined;
  readonly json?: true | undefined;
}

async function clean(context: Context, ids: readonly string[], { project, yes, force, json }: Given): Promise<Work> {
  const nothing = (why: string): Work => {
    context.stderr.line(why);
    if (json) context.stdout.line(safeJson({ removed: [] }, 2));
    return ok(exitCode.done);
  };
  const loaded = loadProgress(context, project);
  if (!loaded.ok) return loaded;
  const chosen = chooseProgress(loaded.value, ids);
  if (!chosen.ok) return chosen;
  const removable: ListedProgress[] = [];
  for (const one of chosen.value) {
    const trouble = removalTrouble(context.world.files, loaded.value.folder, one);
    if (trouble === null) removable.push(one);
    else if (ids.length === 0) context.stderr.line(`Left alone: ${one.file.name} ${trouble}.`);
    else return cannotRemove(one, trouble);
  }
  if (removable.length === 0) return nothing('There are no stale progress files to remove.');
  const sure = await confirmed(context, question(removable), yes === true || force === true);
  if (!sure) return nothing('Nothing was removed.');
  return removeAll(context, loaded.value.folder, removable, json === true);
}

function cannotRemove({ file }: ListedProgress, trouble: string): Work {
  return fail('usage', `${progressFolder}/${file.name} ${trouble}.`, 'Nothing was removed; remove it yourself.');
}

function question(chosen: readonly ListedProgress[]): string {
  const what = chosen.map(({ id, header }) => `${id} (${safeLine(header.skill ?? 'unknown', 40)})`);
  return `Remove ${plural(chosen.length, 'progress file')}: ${safeLine(what.join(', '), 800)}?`;
}

function removeAll(context: Context, folder: string, chosen: readonly ListedProgress[], json: boolean): Work {
  const { removed, failed } = removeProgress(context, folder, chosen);
  context.stderr.line(`Removed ${plural(removed.length, 'progress file')}${listOf(removed)}.`);
  if (json) context.stdout.line(safeJson({ removed }, 2));
  if (failed.length === 0) return ok(exitCode.done);
  const message = `Not everything could be removed: ${safeLine(failed.join(', '), 800)}.`;
  return fail('write-failed', message, 'Check the permissions of the folder, then try again.');
}

function listOf(names: readonly string[]): string {
  return names.length === 0 ? '' : `: ${safeLine(names.join(', '), 800)}`;
}
