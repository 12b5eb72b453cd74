/** `init`: writes a first workflow from nearby repositories and a few answers, and offers to rehearse it. */

import { basename, dirname, relative, resolve } from 'node:path';
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings';
import { templateFolders } from '../../app/create/named-template.ts';
import { checkCommandFor, installerOf, nearbyProjects, orderOf } from '../../app/create/nearby-projects.ts';
import { briefPath, lookAt, tryPath } from '../../app/path-argument.ts';
import { shellWord } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { slugify } from '../../core/id.ts';
import { programName, programPath } from '../../core/program-name.ts';
import { yamlBytesMax } from '../../store/yaml-text.ts';
import { type FirstProject, renderFirstWorkflow } from '../../template/first-workflow.ts';
import { findTemplate } from '../../template/places.ts';
import { readTextFile } from '../../template/text-file.ts';
import { plural } from '../../view/format.ts';
import { safeLine } from '../../view/terminal-text.ts';
import { type CommandResult, type Context, confirmed, need, Refusal, refuse } from '../context.ts';
import { collect, parseCommand, parseMoney } from '../options/options.ts';
import { readText } from '../options/prompt-source.ts';
import { runWorkflow } from './group/run.ts';

const example = `
Example:
  $ claude-code-agent init                                   asks for projects, task, check command and cap
  $ claude-code-agent init node-24.yaml --project ./api --project ./web --prompt "Move to Node 24" --accept "npm test"
  $ claude-code-agent init --yes && claude-code-agent run workflow.yaml --rehearse
  $ claude-code-agent init --from cross-repo-change`;

const usualTask =
  'Read the code and name the three improvements that would matter most, each with its files. Change nothing.';
const usualCapUsd = 5;
const lineColumns = 1_000;

export function define(command: Command, context: Context): void {
  command
    .description(
      `Write a commented workflow for the git repositories in and below this folder.
      Asks at most five questions; each option answers one. Then offers a free
      rehearsal. Asks before it replaces a file.`,
    )
    .argument('[file]', "file to write (default: workflow.yaml, or the template's name with --from)")
    .option('-y, --yes', 'ask nothing; use nearby repositories, a read-only first task and a cap of $5')
    .option('--from <template>', 'write a copy of this workflow template')
    .option('--project <dir>', 'folder of a project; may be repeated', collect)
    .option('--prompt <text>', 'task for each project; "-" reads standard input')
    .option('--accept <command>', 'shell command that must succeed before a session is completed', parseCheck)
    .option('--max-budget-usd <usd>', 'cap for all sessions together', parseMoney)
    .option('--json', 'one JSON document: {"file", "projects"}; offers nothing')
    .addHelpText('after', example)
    .action((typed, given) =>
      context.run(async () => {
        if (typed === '' || typed === '-') {
          const message = typed === '' ? 'The path of the file is empty.' : 'A workflow must be written to a file.';
          return refuse('usage', message, 'Give the path of a YAML file.');
        }
        const file = resolve(
          context.cwd,
          typed ?? (given.from === undefined ? 'workflow.yaml' : `${basename(given.from)}.yaml`),
        );
        const free = await checkFree(context, file);
        if (!free) {
          context.stderr.line('Nothing was written.');
          return;
        }
        const made =
          given.from === undefined ? await compose(context, file, given) : copyOf(context, given.from, given);
        const { text, projects, capUsd } = made;
        const { files } = context.world;
        files.makeFolder(dirname(file), 'project');
        files.writeAtomic(file, text, { access: 'project' });
        if (given.json) {
          context.stdout.json({ file, projects });
          return;
        }
        const shown = relative(context.cwd, file) || file;
        const what = capUsd === undefined ? '' : `: ${plural(projects.length, 'project')}, at most $${capUsd}`;
        context.stdout.line(safeLine(`Wrote ${shown}${what}`, lineColumns));
        return offerRehearsal(context, file, shown, given);
      }),
    );
}

/** Checks a command as the workflow loader will, and returns it unchanged. */
function parseCheck(text: string): string {
  parseCommand(text);
  return text;
}

interface Given {
  readonly yes?: true | undefined;
  readonly from?: string | undefined;
  readonly project?: readonly string[] | undefined;
  readonly prompt?: string | undefined;
  readonly accept?: string | undefined;
  readonly maxBudgetUsd?: number | undefined;
  readonly json?: true | undefined;
}

interface Written {
  readonly text: string;
  readonly projects: readonly string[];
  readonly capUsd?: number;
}

/** False when the user keeps the existing file. --yes does not answer this question. */
async function checkFree(context: Context, file: string): Promise<boolean> {
  const { files } = context.world;
  const found = tryPath(() => files.entryKind(file));
  if (!found.ok) return refuse('usage', `${briefPath(file)} ${found.trouble}.`, 'Give the path of another file.');
  if (found.value === null) return true;
  if (found.value !== 'file')
    return refuse('usage', `${briefPath(file)} is not a file.`, 'Give the path of another one.');
  if (canAsk(context)) return confirmed(context, `${file} exists. Replace it?`, false);
  return refuse('duplicate', `${briefPath(file)} already exists.`, 'Give the path of another file, or remove it.');
}

function canAsk({ stdinIsTerminal, stdout }: Context): boolean {
  return stdinIsTerminal && stdout.isTerminal;
}

function copyOf(context: Context, name: string, { project, prompt, accept, maxBudgetUsd }: Given): Written {
  if ([project, prompt, accept, maxBudgetUsd].some((option) => option !== undefined)) {
    const message = 'With --from, the template defines projects and tasks, so --project, --prompt, --accept and';
    return refuse('usage', `${message}--max-budget-usd cannot be used.`, 'Remove them, or edit the copy.');
  }
  const found = need(findTemplate(context.world, templateFolders(context), 'workflow', name));
  const read = readTextFile(context.world, found.path, yamlBytesMax);
  return read.ok
    ? { text: read.text, projects: [] }
    : refuse('usage', `The template ${briefPath(found.path)} ${read.trouble}.`, 'Correct it, or give another one.');
}

async function compose(context: Context, file: string, given: Given): Promise<Written> {
  const isInteractive = canAsk(context) && given.yes !== true;
  if (!isInteractive && given.yes !== true && given.prompt === undefined) {
    const message = 'The task is missing, and there is no terminal to ask on.';
    return refuse('usage', message, 'Give it with --prompt TEXT, or use the defaults with --yes.');
  }
  const { prompt } = given;
  const text = prompt === undefined ? null : need(await readText(context, prompt, 'The text of --prompt'));
  const projects = await projectsFor(context, given.project, isInteractive);
  const taskOf = (typed: string) => typed || refuse('usage', 'Describe it in a sentence or two.', '');
  const askTask = () => ask(context, 'What should be done in each?', usualTask, taskOf);
  const task = text ?? (isInteractive ? await askTask() : usualTask);
  const checks = await checksFor(context, projects, given.accept, isInteractive);
  const askCap = () => ask(context, 'Budget cap in US dollars?', String(usualCapUsd), parseMoney);
  const cap = given.maxBudgetUsd ?? (isInteractive ? await askCap() : usualCapUsd);
  const names = namesOf(projects);
  const from = dirname(file);
  const order = orderOf(context.world.files, projects);
  const named = projects.map((path, index): FirstProject => {
    const dependsOn = (order.get(path) ?? []).map((other) => names[projects.indexOf(other)] as string);
    const accept = checks[index] ?? null;
    const shown = relative(from, path);
    const written = shown === '' ? '.' : shown.startsWith('.') ? shown : `./${shown}`;
    const setup = installerOf(context.world, path)?.command;
    const commands = accept === null ? {} : defined({ setup, accept });
    return { name: names[index] as string, path: written, ...commands, dependsOn };
  });
  const run = `${programName} run ${shellWord(basename(file))}`;
  const name = slugify(basename(from));
  const workflow = renderFirstWorkflow({
    ...(name === '' ? {} : { name }),
    task,
    maxBudgetUsd: cap,
    projects: named,
    commands: [`${run} --dry-run     what it would do`, `${run} --rehearse    a scripted model, no cost`, run],
  });
  return { text: workflow, projects, capUsd: cap };
}

/** Absolute paths; the current folder if no repository is found. */
async function projectsFor(
  context: Context,
  given: readonly string[] | undefined,
  isInteractive: boolean,
): Promise<readonly string[]> {
  const { world, cwd } = context;
  if (given !== undefined) return foldersOf(context, given);
  const nearby = nearbyProjects(world, cwd);
  if (nearby.length === 0) context.stderr.line('No git repository was found here; the project is this folder.');
  const usual = nearby.length === 0 ? [cwd] : nearby;
  if (!isInteractive) return usual;
  const shown = usual.map((path) => relative(cwd, path) || '.').join(', ');
  const question = 'Project folders, separated by commas?';
  const typedFolders = (text: string) => text.split(',').map((path) => path.trim());
  return ask(context, question, shown, (text) => (text === shown ? usual : foldersOf(context, typedFolders(text))));
}

function foldersOf({ world: { files }, cwd }: Context, paths: readonly string[]): readonly string[] {
  const next = 'Give the path of an existing folder to --project.';
  const folders: string[] = [];
  for (const typed of paths) {
    const path = resolve(cwd, typed);
    const found = typed === '' ? ({ ok: false, trouble: 'is empty' } as const) : lookAt(files, path);
    if (!found.ok) refuse('usage', `The folder ${briefPath(typed === '' ? '""' : path)} ${found.trouble}.`, next);
    if (found.value !== 'folder') refuse('usage', `${briefPath(path)} is not a folder.`, next);
    if (!folders.includes(path)) folders.push(path);
  }
  return folders;
}

async function checksFor(
  context: Context,
  projects: readonly string[],
  given: string | undefined,
  isInteractive: boolean,
): Promise<readonly (string | null)[]> {
  if (given !== undefined) return projects.map(() => given);
  const guessed = projects.map((project) => checkCommandFor(context.world, project));
  if (!isInteractive) return guessed;
  const known = new Set(guessed.flatMap((guess) => guess ?? []));
  const usual = known.size === 0 ? 'none' : known.size === 1 ? ([...known][0] as string) : 'as set in each project';
  const question = 'Which command must succeed to accept the work? (or: none)';
  return ask(context, question, usual, (text) => {
    if (text === usual) return guessed;
    const check = text === 'none' ? null : parseCheck(text);
    return projects.map(() => check);
  });
}

/** Session names from the folder names, made unique by numbers. */
function namesOf(projects: readonly string[]): readonly string[] {
  const taken = new Set<string>();
  return projects.map((path) => {
    const base = slugify(basename(path)).slice(0, 40) || 'project';
    let name = base;
    for (let number = 2; taken.has(name); number += 1) name = `${base}-${number}`;
    taken.add(name);
    return name;
  });
}

/** A copied template may need variables, so the next step is a dry run, which names them. */
async function offerRehearsal(
  context: Context,
  file: string,
  shown: string,
  { yes, from }: Given,
): Promise<CommandResult> {
  const run = `${programPath} run ${shellWord(shown)}`;
  if (canAsk(context) && yes !== true && from === undefined) {
    const wanted = await confirmed(context, 'Rehearse it now with a scripted model, at no cost?', false);
    if (wanted)
      return runWorkflow(context, file, [], { config: {}, output: undefined, rehearse: true, retryFailed: false });
  }
  if (from !== undefined) context.stdout.line(`Next: ${run} --dry-run`);
  else context.stdout.lines([`Next, at no cost: ${run} --rehearse`, `Then, for real: ${run}`]);
}

/** Repeats the question while `check` refuses the answer. Enter alone means `usual`. */
async function ask<T>(context: Context, question: string, usual: string, check: (answer: string) => T): Promise<T> {
  for (;;) {
    // `prompt` bypasses our buffers, so write what is buffered first.
    await context.stdout.flush();
    await context.stderr.flush();
    const typed = prompt(question, usual);
    if (typed === null) return refuse('usage', 'The input ended, so nothing was written.', 'Answer each question.');
    try {
      return check(typed.trim());
    } catch (error) {
      if (!(error instanceof InvalidArgumentError || error instanceof Refusal)) throw error;
      context.stderr.line(error.message);
    }
  }
}
