/** `cpm list`, `show`, `clean` and `check-skills`. */

import { basename, dirname, join } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import {
  chooseProgress,
  findListed,
  isSummary,
  type ListedProgress,
  loadProgress,
  plainProgress,
  removalProblem,
  removeProgress,
} from '../../../app/cpm/progress-files.ts';
import { briefPath, folderNamed } from '../../../app/path-argument.ts';
import { progressFolder } from '../../../context/cpm/state.ts';
import { checkSkill, sectionTitle, withProcedures } from '../../../context/cpm-skills.ts';
import { commandText } from '../../../core/advice.ts';
import { inOrder, type Problem, problemsFailure } from '../../../store/yaml-text.ts';
import type { Files } from '../../../system/world.ts';
import { readTextFile } from '../../../template/text-file.ts';
import { formatDuration, formatTable, plural, type TableCell } from '../../../view/format.ts';
import { safeLine, safeText } from '../../../view/terminal-text.ts';
import { type CommandResult, type Context, confirmed, exitCode, need, refuse } from '../../context.ts';

interface Given {
  readonly project?: string | undefined;
  readonly yes?: true | undefined;
  readonly force?: true | undefined;
  readonly json?: true | undefined;
}

const listExample = `
Example:
  $ claude-code-agent cpm list
  $ claude-code-agent cpm list --project ./api --json | jq -r '.[] | select(.stale) | .file'`;

export function defineCpmList(command: Command, context: Context): void {
  command
    .description(
      "List the progress files in docs/plans of a project, newest first, with CPM's compaction summaries. " +
        'Files older than 48 hours are marked stale: their sessions were probably abandoned.',
    )
    .option('--project <dir>', 'folder of the project (default: this folder)')
    .option('--json', 'one JSON document: an array of progress files')
    .addHelpText('after', listExample)
    .action((given) => context.run(() => list(context, given)));
}

function list(context: Context, { project, json }: Given): void {
  const { stdout, stderr } = context;
  const { folder, listed, oddNames } = need(loadProgress(context, project));
  if (oddNames > 0)
    stderr.line(`Ignored ${plural(oddNames, 'file')} in docs/plans whose names contain no valid session id.`);
  if (json) stdout.json(listed.map(plainProgress));
  else if (listed.length === 0) stderr.line(`There are no progress files in ${safeLine(folder, 400)}.`);
  else {
    const titles = ['SESSION', 'AGE', '', 'SKILL', 'PHASE', 'WORKS ON'];
    const columns = titles.map((title) => ({ title }));
    stdout.lines(formatTable(columns, listed.map(cells), stdout.style));
    const isStale = listed.some(({ file }) => file.stale);
    if (isStale) stderr.line(`Remove the stale ones with: ${commandText(['cpm', 'clean'])}`);
  }
}

function cells({ id, file, header, trouble }: ListedProgress): TableCell[] {
  return [
    id,
    formatDuration(file.ageMs),
    file.stale ? { text: 'stale', tone: 'warn' } : '',
    trouble === null ? safeLine(header.skill ?? 'unknown', 40) : { text: safeLine(trouble, 80), tone: 'bad' },
    safeLine(header.phase ?? '', 60),
    safeLine(header.artifact ?? '', 60),
  ];
}

const showExample = `
Example:
  $ claude-code-agent cpm show
  $ claude-code-agent cpm show 4b1c --project ./api`;

export function defineShow(command: Command, context: Context): void {
  command
    .description('Print a progress file without escape codes (default: the newest).')
    .argument('[id]', 'session id or unique prefix of one; legacy for the file without an id')
    .option('--project <dir>', 'folder of the project (default: this folder)')
    .option('--json', 'one JSON document that contains the text')
    .addHelpText('after', showExample)
    .action((id, given) => context.run(() => show(context, id, given)));
}

function show(context: Context, id: string | undefined, { project, json }: Given): void {
  const progress = need(loadProgress(context, project));
  const [newest] = progress.listed
    .filter((one) => !isSummary(one))
    .toSorted((one, other) => one.file.ageMs - other.file.ageMs);
  if (newest === undefined) {
    const message = `There are no progress files in ${briefPath(progress.folder)}.`;
    refuse('not-found', message, 'Name the folder of a project with --project.');
  }
  const found = id === undefined ? newest : need(findListed(progress, id));
  const { file, text, truncated, trouble } = found;
  if (trouble !== null) {
    refuse('corrupt-file', `${briefPath(file.path)} ${trouble}.`, 'Check that path.');
  }
  if (json) context.stdout.json({ ...plainProgress(found), text, truncated });
  else context.stdout.line(safeText(text).trimEnd());
  if (truncated) context.stderr.line(`There is more in ${briefPath(file.path)}.`);
}

const cleanExample = `
Example:
  $ claude-code-agent cpm clean
  $ claude-code-agent cpm clean 4b1c --project ./api --force`;

export function defineClean(command: Command, context: Context): void {
  command
    .description(
      'Remove progress files older than 48 hours, with their compaction summaries. Newer files are removed ' +
        'only when named. Asks for confirmation unless --force is given.',
    )
    .argument('[id...]', 'session ids or unique prefixes; legacy for the file without an id')
    .option('--project <dir>', 'folder of the project (default: this folder)')
    .option('-y, --yes', 'answer every question with yes')
    .option('--force', 'do not ask')
    .option('--json', 'one JSON document: {"removed": names of files}')
    .addHelpText('after', cleanExample)
    .action((ids, given) => context.run(() => clean(context, ids, given)));
}

async function clean(context: Context, ids: readonly string[], { project, yes, force, json }: Given): Promise<void> {
  const { stdout, stderr } = context;
  const progress = need(loadProgress(context, project));
  const { folder } = progress;
  const removable = need(chooseProgress(progress, ids)).filter((one) => {
    const trouble = removalProblem(context.world.files, folder, one);
    if (trouble === null) return true;
    const { name } = one.file;
    if (ids.length > 0) {
      refuse('usage', `${progressFolder}/${name} ${trouble}.`, 'Nothing was removed. Remove it yourself.');
    }
    stderr.line(`Left alone: ${name} ${trouble}.`);
    return false;
  });
  const isSure =
    removable.length > 0 && (await confirmed(context, question(removable), yes === true || force === true));
  if (!isSure) {
    stderr.line(removable.length === 0 ? 'There are no stale progress files to remove.' : 'Nothing was removed.');
    if (json) stdout.json({ removed: [] });
    return;
  }
  const { removed, failed } = removeProgress(context, removable);
  const names = removed.length === 0 ? '' : `: ${safeLine(removed.join(', '), 800)}`;
  stderr.line(`Removed ${plural(removed.length, 'progress file')}${names}.`);
  if (json) stdout.json({ removed });
  if (failed.length === 0) return;
  const message = `Some files could not be removed: ${safeLine(failed.join(', '), 800)}.`;
  refuse('write-failed', message, 'Check the permissions of the folder, then try again.');
}

function question(chosen: readonly ListedProgress[]): string {
  const what = chosen.map(({ id, header }) => `${id} (${safeLine(header.skill ?? 'unknown', 40)})`);
  return `Remove ${plural(chosen.length, 'progress file')}: ${safeLine(what.join(', '), 800)}?`;
}

const skillsExample = `
Example:
  $ claude-code-agent cpm check-skills .claude/skills
  $ claude-code-agent cpm check-skills .claude/skills --fix`;

const skillBytesMax = 1024 ** 2;
const skillFile = 'SKILL.md';
const skipped: ReadonlySet<string> = new Set(['.git', 'node_modules']);

export function defineCheckSkills(command: Command, context: Context): void {
  command
    .description(
      `Check every SKILL.md below a folder: name, description, and the section "${sectionTitle}" with the ` +
        "session's file, its adoption and its end. Also reads the shared procedures that the section names.",
    )
    .argument('<dir>', 'folder with skills, at any depth')
    .option('--fix', `add missing parts of the section "${sectionTitle}"; keeps the original in SKILL.md.bak`)
    .option('--json', 'one JSON document: {"skills", "problems"}')
    .addHelpText('after', skillsExample)
    .action((dir, { fix, json }) => context.run(() => checkSkills(context, dir, fix === true, json === true)));
}

function checkSkills(context: Context, typed: string, fix: boolean, json: boolean): CommandResult {
  const { world, packageRoot, stdout } = context;
  const next = `Give the path of a folder that holds skills, each a folder with a ${skillFile}.`;
  const folder = need(folderNamed(context, typed, 'folder', next));
  const shared = join(packageRoot, 'templates', 'cpm', 'state-management.md');
  const section = readTextFile(world, shared, skillBytesMax);
  if (!section.ok) {
    refuse('corrupt-file', `The shared section ${shared} ${section.trouble}.`, 'Reinstall claude-code-agent.');
  }
  const found = findSkills(world.files, folder);
  if (found.length === 0) refuse('not-found', `There is no ${skillFile} in ${briefPath(folder)}.`, next);
  const checked = found.map((path) => checkOne(context, path, fix ? section.text : null));
  const problems = checked.flatMap((one) => one.problems);
  if (json) {
    const skills = checked.map(({ path, fixed }) => ({ path, fixed }));
    stdout.json({ skills, problems: inOrder(problems) });
    return problems.length === 0 ? exitCode.done : exitCode.usage;
  }
  for (const { path, fixed } of checked) {
    if (fixed) stdout.line(safeLine(`Updated ${path}; the original is ${path}.bak`, 1000));
  }
  if (problems.length > 0) {
    const advice = fix ? 'Correct it and run the command again.' : 'Correct it. Use --fix to add the missing section.';
    return problemsFailure(safeLine(briefPath(folder), 400), problems, advice);
  }
  stdout.line(`${plural(checked.length, 'skill')} checked. No problems.`);
}

/** Symlinked folders are not followed, because they can form a loop. */
function findSkills(files: Files, folder: string): string[] {
  return files.list(folder).flatMap((name) => {
    const path = join(folder, name);
    if (files.entryKind(path) === 'folder') return skipped.has(name) ? [] : findSkills(files, path);
    return name === skillFile ? [path] : [];
  });
}

interface Checked {
  readonly path: string;
  readonly fixed: boolean;
  readonly problems: readonly Problem[];
}

/** With `section`, adds it to the file and keeps a copy. A symlink is only read. */
function checkOne({ world }: Context, path: string, section: string | null): Checked {
  const { files } = world;
  const read = readTextFile(world, path, skillBytesMax);
  if (!read.ok) return { path, fixed: false, problems: [{ file: path, line: 1, column: 1, message: read.trouble }] };
  const procedures = proceduresFor(world, path);
  const source = { text: read.text, procedures };
  const corrected = section !== null && files.entryKind(path) === 'file' ? withProcedures(source, section) : null;
  const text = corrected ?? read.text;
  const fixed = text !== read.text;
  if (fixed) {
    // Keep an older copy: it is the original.
    if (files.entryKind(`${path}.bak`) === null) {
      files.writeAtomic(`${path}.bak`, read.text, { durable: true, access: 'project' });
    }
    files.writeAtomic(path, text, { durable: true, access: 'project' });
  }
  return { path, fixed, problems: checkSkill({ file: path, folder: basename(dirname(path)), text, procedures }) };
}

/** The procedures that the skills of a plugin share, in the folder `shared` beside `skills`. */
function proceduresFor(world: Context['world'], skill: string): string {
  const folder = join(dirname(dirname(dirname(skill))), 'shared');
  const names = world.files.list(folder).filter((name) => name.endsWith('.md'));
  const texts = names.map((name) => readTextFile(world, join(folder, name), skillBytesMax));
  return texts.map((read) => (read.ok ? read.text : '')).join('\n');
}
