/** `cpm check-skills`: what is wrong with CPM skills, and what they lack about state added to them. */
import { basename, dirname, join, resolve } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { briefPath, lookAt, tryPath } from '../../../app/path-argument.ts';
import { checkSkill, sectionTitle, withSection } from '../../../context/cpm-skills.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import { systemFailure } from '../../../store/system-failure.ts';
import { inOrder, type Problem, problemsFailure } from '../../../store/yaml-text.ts';
import type { World } from '../../../system/world.ts';
import { readTextFile } from '../../../template/text-file.ts';
import { plural } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent cpm check-skills .claude/skills
  $ claude-code-agent cpm check-skills .claude/skills --fix`;

const skillBytesMax = 1024 ** 2;
const depthMax = 12;
const entriesMax = 20_000;
const skillFile = 'SKILL.md';
const skipped: ReadonlySet<string> = new Set(['.git', 'node_modules']);

export function define(command: Command, context: Context): void {
  command
    .description(
      'Checks every SKILL.md below a folder: name and description, at least three phases, an output path, and the ' +
        `section "${sectionTitle}" with the file of the session, its adoption and its end.`,
    )
    .argument('<dir>', 'folder with skills, at any depth')
    .option('--fix', `add what the section "${sectionTitle}" lacks and keep the skill as it was in SKILL.md.bak`)
    .option('--json', 'one JSON document: {"skills", "problems"}')
    .addHelpText('after', example)
    .action((dir, { fix, json }) => context.run(() => check(context, dir, fix === true, json === true)));
}

interface CheckedSkill {
  readonly path: string;
  readonly fixed: boolean;
}

function check(context: Context, typed: string, fix: boolean, json: boolean): Work {
  const { world, packageRoot, stdout } = context;
  if (typed === '') return fail('usage', 'The path of the folder is empty.', nextStep);
  const folder = resolve(context.cwd, typed);
  const kind = lookAt(world.files, folder);
  if (!kind.ok) return fail('usage', `The folder ${briefPath(folder)} ${kind.trouble}.`, nextStep);
  if (kind.value !== 'folder') return fail('usage', `${briefPath(folder)} is not a folder.`, nextStep);
  const section = sharedSection(world, packageRoot);
  if (!section.ok) return section;
  const search = new Search(world);
  search.look(folder, 1);
  const { found, problems } = search;
  if (found.length === 0 && problems.length === 0) {
    return fail('not-found', `There is no ${skillFile} in ${briefPath(folder)}.`, nextStep);
  }
  const skills: CheckedSkill[] = [];
  for (const path of found) {
    const one = checkOne(world, path, section.value, fix);
    if (!one.ok) return one;
    problems.push(...one.value.problems);
    skills.push({ path, fixed: one.value.fixed });
  }
  if (json) {
    stdout.line(safeJson({ skills, problems: inOrder(problems) }, 2));
    return ok(problems.length === 0 ? exitCode.done : exitCode.usage);
  }
  for (const { path, fixed } of skills)
    if (fixed) stdout.line(safeLine(`Added to ${path}; it was kept as ${path}.bak`, 1000));
  if (problems.length > 0) return problemsFailure(safeLine(briefPath(folder), 400), problems, adviceFor(fix));
  stdout.line(`${plural(skills.length, 'skill')} checked. No problems.`);
  return ok(exitCode.done);
}

const nextStep = `Give the path of a folder that holds skills, each a folder with a ${skillFile}.`;

function adviceFor(fix: boolean): string {
  return fix ? 'Correct it and run the command again.' : 'Correct it; --fix adds what is missing about state.';
}

function sharedSection(world: World, packageRoot: string): Result<string> {
  const path = join(packageRoot, 'templates', 'cpm', 'state-management.md');
  const read = readTextFile(world, path, skillBytesMax);
  if (read.ok) return ok(read.text);
  return fail('corrupt-file', `The shared section ${path} ${read.trouble}.`, 'Install this program again.');
}

interface Outcome {
  readonly fixed: boolean;
  readonly problems: readonly Problem[];
}

/** With `fix` the file is replaced as a whole, and a copy kept. Fails when it cannot be written. */
function checkOne(world: World, path: string, section: string, fix: boolean): Result<Outcome> {
  const read = readTextFile(world, path, skillBytesMax);
  if (!read.ok) return ok({ fixed: false, problems: [{ file: path, line: 1, column: 1, message: read.trouble }] });
  const mended = fix ? withSection(read.text, section) : null;
  const fixed = mended !== null && mended !== read.text;
  if (fixed) {
    try {
      // An older copy is the one without any word of ours.
      if (world.files.entryKind(`${path}.bak`) === null) {
        world.files.writeAtomic(`${path}.bak`, read.text, { durable: true, access: 'project' });
      }
      world.files.writeAtomic(path, mended, { durable: true, access: 'project' });
    } catch (error) {
      return { ok: false, failure: systemFailure(path, error) };
    }
  }
  const text = mended ?? read.text;
  return ok({ fixed, problems: checkSkill({ file: path, folder: basename(dirname(path)), text }) });
}

/** Looks for skills. Links are not followed: what they lead to may be somebody else's. */
class Search {
  readonly found: string[] = [];
  readonly problems: Problem[] = [];
  readonly #world: World;
  #entries = 0;

  constructor(world: World) {
    this.#world = world;
  }

  look(folder: string, depth: number): void {
    const { files } = this.#world;
    const names = tryPath(() => files.list(folder));
    if (!names.ok) {
      this.#report(folder, names.trouble);
      return;
    }
    for (const name of names.value) {
      this.#entries += 1;
      if (this.#entries === entriesMax) this.#report(folder, `is where the search ended, after ${entriesMax} entries`);
      if (this.#entries >= entriesMax) return;
      const path = join(folder, name);
      const kind = tryPath(() => files.entryKind(path));
      if (!kind.ok) this.#report(path, kind.trouble);
      else if (kind.value === 'folder') this.#descend(path, name, depth);
      else if (name !== skillFile) continue;
      else if (kind.value === 'file') this.found.push(path);
      else this.#report(path, kind.value === 'link' ? 'is a symbolic link; check what it leads to' : 'is not a file');
    }
  }

  #descend(path: string, name: string, depth: number): void {
    if (skipped.has(name)) return;
    if (depth >= depthMax) this.#report(path, `lies more than ${depthMax} folders deep`);
    else this.look(path, depth + 1);
  }

  #report(file: string, message: string): void {
    this.problems.push({ file, line: 1, column: 1, message });
  }
}
