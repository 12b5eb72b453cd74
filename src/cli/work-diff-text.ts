/** How differences are printed. */

import { programsSentence } from '../app/delivery/merge-items.ts';
import type { WorkDiff } from '../app/delivery/work-diff.ts';
import { diffLines, spelledLine } from '../view/diff-text.ts';
import { safeJson } from '../view/terminal-text.ts';
import type { Context } from './context.ts';

/** What one program may print is cut there, see system/processes/program.ts. */
const cutBytes = 64 << 20;

/** The text of a difference, line by line; says so when it is not all of it. */
export function printText({ stdout, stderr }: Context, text: string): void {
  stdout.line(diffLines(text, stdout.style).join('\n'));
  if (Buffer.byteLength(text) >= cutBytes) {
    stderr.line('The difference is larger than 64 MiB; the rest is left out. See it with git diff.');
  }
}

export function printJson({ stdout }: Context, value: unknown): void {
  stdout.line(safeJson(value, 2));
}

/** To stderr: files from which a later run starts programs. */
export function warnOfPrograms({ stderr }: Context, { programs = [] }: Pick<WorkDiff, 'programs'>): void {
  const sentence = programsSentence(programs);
  if (sentence !== null) stderr.line(spelledLine(sentence));
}

/** `3 files changed, +10 -2`. */
export function statWords({ stat: { files, insertions, deletions } }: Pick<WorkDiff, 'stat'>): string {
  const changed = files === 1 ? '1 file changed' : `${files} files changed`;
  return files === 0 ? 'nothing changed' : `${changed}, +${insertions} -${deletions}`;
}
