/** `template init`: a folder of templates to begin with. */

import { dirname, join, resolve } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { briefPath, tryPath } from '../../../control/path-argument.ts';
import { commandText } from '../../../core/advice.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import { safeJson, safeLine } from '../../../report/terminal-text.ts';
import { systemFailure } from '../../../store/system-failure.ts';
import { starterFiles } from '../../../template/starter.ts';
import type { World } from '../../../world/world.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent template init .claude-code-agent/templates      for everybody who works on this project
  $ claude-code-agent template init ~/.config/claude-code-agent/templates`;

export function define(command: Command, context: Context): void {
  command
    .description('Makes a folder with prompts/, configs/ and workflows/ and an example in each.')
    .argument('<dir>', 'a folder that does not exist yet, or is empty')
    .option('--json', 'one JSON document: {"folder", "files"}')
    .addHelpText('after', example)
    .action((dir, { json }) => context.run(() => init(context, dir, json === true)));
}

function init(context: Context, typed: string, json: boolean): Work {
  const next = 'Give the path of a folder that does not exist yet, or is empty.';
  if (typed === '') return fail('usage', 'The path of the folder is empty.', next);
  const folder = resolve(context.cwd, typed);
  const free = checkFree(context.world, folder, next);
  if (!free.ok) return free;
  const made = make(context.world, folder);
  if (!made.ok) return made;
  const { stdout } = context;
  if (json) {
    stdout.line(safeJson({ folder, files: starterFiles.map(({ path }) => path) }, 2));
    return ok(exitCode.done);
  }
  stdout.line(safeLine(`Made in ${folder}:`, 1000));
  for (const { path } of starterFiles) stdout.line(`  ${path}`);
  stdout.line(`Check them after every change with: ${commandText(['template', 'validate', 'DIR'])}`);
  return ok(exitCode.done);
}

function checkFree({ files }: World, folder: string, next: string): Result<void> {
  const brief = briefPath(folder);
  const kind = tryPath(() => files.info(folder)?.kind ?? null);
  if (!kind.ok) return fail('usage', `The folder ${brief} ${kind.trouble}.`, next);
  if (kind.value === null) {
    // A link that leads nowhere would send the files to a place that nobody named.
    const entry = tryPath(() => files.entryKind(folder));
    return entry.ok && entry.value === null
      ? ok(undefined)
      : fail('usage', `${brief} is a link that leads nowhere.`, next);
  }
  if (kind.value !== 'folder') return fail('usage', `${brief} is not a folder.`, next);
  const names = tryPath(() => files.list(folder));
  if (!names.ok) return fail('usage', `The folder ${brief} ${names.trouble}.`, next);
  return names.value.length === 0 ? ok(undefined) : fail('usage', `The folder ${brief} is not empty.`, next);
}

/** All files or none: what was made before a failure is taken away again, and nothing that others put there. */
function make({ files }: World, folder: string): Result<void> {
  const made: string[] = [];
  const folders = [...new Set([folder, ...starterFiles.flatMap(({ path }) => foldersOf(folder, path))])];
  const missing = folders.filter((path) => files.info(path) === null);
  try {
    for (const { path, text } of starterFiles) {
      const target = join(folder, path);
      files.makeFolder(dirname(target));
      files.writeBytes(target, new TextEncoder().encode(text));
      made.push(target);
    }
    return ok(undefined);
  } catch (error) {
    for (const path of made) tryPath(() => files.remove(path));
    const deepestFirst = missing.toSorted((a, b) => b.length - a.length);
    for (const path of deepestFirst) tryPath(() => files.list(path).length === 0 && files.remove(path));
    return { ok: false, failure: systemFailure(folder, error) };
  }
}

/** The folders below `folder` that a path leads through. */
function foldersOf(folder: string, path: string): string[] {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, index) => join(folder, ...parts.slice(0, index + 1)));
}
