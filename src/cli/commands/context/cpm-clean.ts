/** `cpm clean`: removes progress files of sessions that were given up. */
import type { Command } from '@commander-js/extra-typings';
import { progressFolder } from '../../../context/cpm/state.ts';
import { tryPath } from '../../../control/path-argument.ts';
import {
  findListed,
  type ListedProgress,
  loadProgress,
  type ProjectProgress,
} from '../../../control/progress-files.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import { plural } from '../../../report/format.ts';
import { safeJson, safeLine } from '../../../report/terminal-text.ts';
import type { Files } from '../../../world/world.ts';
import { confirmed } from '../../confirm.ts';
import type { Context, Work } from '../../context.ts';
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
  const chosen = choose(loaded.value, ids);
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
  if (!sure.ok) return sure;
  if (!sure.value) return nothing('Nothing was removed.');
  return removeAll(context, loaded.value.folder, removable, json === true);
}

/** The named ones, each once; without names all stale ones. */
function choose(progress: ProjectProgress, ids: readonly string[]): Result<readonly ListedProgress[]> {
  if (ids.length === 0) return ok(progress.listed.filter(({ file }) => file.stale));
  const chosen = new Set<ListedProgress>();
  for (const id of ids) {
    const found = findListed(progress, id);
    if (!found.ok) return found;
    chosen.add(found.value);
  }
  return ok([...chosen]);
}

/**
 * Completes a sentence that begins with the file; null = it can be removed. Removing goes down into folders, so only a
 * regular file of this very project is given to it.
 */
function removalTrouble(files: Files, folder: string, { file }: ListedProgress): string | null {
  const looked = tryPath(() => {
    const root = files.realPath(folder);
    const path = files.realPath(file.path);
    const kind = files.entryKind(file.path);
    // A file that has vanished needs no removing.
    return kind === null || (kind === 'file' && root !== null && path?.startsWith(`${root}/`) === true);
  });
  if (!looked.ok) return looked.trouble;
  return looked.value ? null : 'is not a regular file of the project';
}

function cannotRemove({ file }: ListedProgress, trouble: string): Work {
  return fail('usage', `${progressFolder}/${file.name} ${trouble}.`, 'Nothing was removed; remove it yourself.');
}

function question(chosen: readonly ListedProgress[]): string {
  const what = chosen.map(({ id, header }) => `${id} (${safeLine(header.skill ?? 'unknown', 40)})`);
  return `Remove ${plural(chosen.length, 'progress file')}: ${safeLine(what.join(', '), 800)}?`;
}

function removeAll(context: Context, folder: string, chosen: readonly ListedProgress[], json: boolean): Work {
  const { files } = context.world;
  const removed: string[] = [];
  const failed: string[] = [];
  for (const one of chosen) {
    const now = tryPath(() => files.info(one.file.path)?.mtimeMs ?? null);
    // It was written while the question stood: its session lives, and it is not what was agreed to.
    if (now.ok && now.value !== null && now.value !== one.file.mtimeMs) {
      context.stderr.line(`Kept ${one.file.name}: it has just been written.`);
      continue;
    }
    const gone = tryPath(() => {
      const trouble = removalTrouble(files, folder, one);
      if (trouble === null) files.remove(one.file.path);
      return trouble;
    });
    const trouble = gone.ok ? gone.value : gone.trouble;
    if (trouble === null) removed.push(one.file.name);
    else failed.push(`${progressFolder}/${one.file.name} ${trouble}`);
  }
  context.stderr.line(`Removed ${plural(removed.length, 'progress file')}${listOf(removed)}.`);
  if (json) context.stdout.line(safeJson({ removed }, 2));
  if (failed.length === 0) return ok(exitCode.done);
  const message = `Not everything could be removed: ${safeLine(failed.join(', '), 800)}.`;
  return fail('write-failed', message, 'Check the permissions of the folder, then try again.');
}

function listOf(names: readonly string[]): string {
  return names.length === 0 ? '' : `: ${safeLine(names.join(', '), 800)}`;
}
