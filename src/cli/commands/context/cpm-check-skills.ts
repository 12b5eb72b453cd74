/** `cpm check-skills`: finds problems in CPM skills, and adds the missing section about state with --fix. */
import { basename, dirname, join } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { briefPath, folderNamed } from '../../../app/path-argument.ts';
import { checkSkill, sectionTitle, withProcedures } from '../../../context/cpm-skills.ts';
import { inOrder, type Problem, problemsFailure } from '../../../store/yaml-text.ts';
import type { Files } from '../../../system/world.ts';
import { readTextFile } from '../../../template/text-file.ts';
import { plural } from '../../../view/format.ts';
import { safeLine } from '../../../view/terminal-text.ts';
import { type CommandResult, type Context, exitCode, need, refuse } from '../../context.ts';

const example = `
Example:
  $ claude-code-agent cpm check-skills .claude/skills
  $ claude-code-agent cpm check-skills .claude/skills --fix`;

const skillBytesMax = 1024 ** 2;
const skillFile = 'SKILL.md';
const skipped: ReadonlySet<string> = new Set(['.git', 'node_modules']);

export function define(command: Command, context: Context): void {
  command
    .description(
      `Check every SKILL.md below a folder: name, description, and the section "${sectionTitle}" with the ` +
        "session's file, its adoption and its end. Also reads the shared procedures that the section names.",
    )
    .argument('<dir>', 'folder with skills, at any depth')
    .option('--fix', `add missing parts of the section "${sectionTitle}"; keeps the original in SKILL.md.bak`)
    .option('--json', 'one JSON document: {"skills", "problems"}')
    .addHelpText('after', example)
    .action((dir, { fix, json }) => context.run(() => check(context, dir, fix === true, json === true)));
}

function check(context: Context, typed: string, fix: boolean, json: boolean): CommandResult {
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
