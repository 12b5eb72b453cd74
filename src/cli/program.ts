/** cli/: the command line. This file builds the command tree, with its short forms, and runs one command line. */

import {
  Argument,
  Command,
  CommanderError,
  type CommandUnknownOpts,
  type OptionValues,
} from '@commander-js/extra-typings';
import { isGroupNamed, loadReferredGroup, loadReferredSession, sessionOf } from '../app/resolve.ts';
import { advise, commandText, see } from '../core/advice.ts';
import { defined } from '../core/defined.ts';
import { sessionLabel } from '../core/id.ts';
import { planOf } from '../core/plan/plan.ts';
import { programName } from '../core/program-name.ts';
import { safeLine } from '../view/terminal-text.ts';
import { listTitles, titleOf } from '../view/wording.ts';
import { attempt, type Context, type ExitCode, exitCode, finishOutput, need, refuse, sayException } from './context.ts';
import { type CommandEntry, commandEntries, defineEntry, latest } from './entries.ts';
import { chooseOutput } from './options/options.ts';

const entries: readonly CommandEntry[] = [
  ...commandEntries,
  ['complete', 'answer the completion script', async () => (await completion()).completeFor(wholeProgram), true],
];

const completion = () => import('./commands/completion.ts');

/** Help uses the program name that the user typed; our example texts contain the long name. */
function asTyped(help: string): string {
  return help.replaceAll(/(?<![\w./-])claude-code-agent(?= )/g, programName);
}

/** The tree for this command line; with `all`, every command in full. */
export async function buildProgram(context: Context, argv: readonly string[], version: string, all = false) {
  const program = newProgram(context, version);
  const parents = new Map<string, Command>();
  for (const [name, { summary, note = '', example }] of Object.entries(families)) {
    const family = program.command(name).description(`${summary[0]?.toUpperCase()}${summary.slice(1)}.`);
    parents.set(name, family.summary(summary).addHelpText('after', `${note}\nExample:\n${example}`));
  }
  const given = new Set(argv);
  // Compare the first word only: `group run` must not match the command `run`.
  const first = argv.find((word) => !word.startsWith('-'));
  const isNamed = (path: readonly string[]) =>
    path.length === 1 ? path[0] === first : path.every((word) => given.has(word));
  for (const entry of entries) {
    const [words, summary, , hidden = false] = entry;
    const path = words.split(' ');
    // If the command line does not name a family, only the summary of the family is shown.
    if (!all && path.length > 1 && !given.has(path[0] as string)) continue;
    const name = path.at(-1) as string;
    const parent = path.length === 1 ? program : (parents.get(path[0] as string) as Command);
    const command = parent.command(name, { hidden }).summary(summary);
    if (all || isNamed(path)) await defineEntry(entry, command as Command, context);
  }
  const rest = argv.slice(argv.indexOf(first ?? '') + 1);
  const run = (line: readonly string[]) => runProgram(context, line, version);
  program.commandsGroup('Short forms:');
  for (const form of shortForms) {
    const command = program.command(form.word).summary(form.summary);
    if (all || form.word === first) await defineShortForm(command, context, form, rest, run);
  }
  return program;
}

function newProgram(context: Context, version: string) {
  return new Command(programName)
    .description('Run groups of Claude Code sessions over several projects as a dependency graph.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand('help [command...]', 'show help of a command')
    .addHelpText('after', example)
    .configureHelp({ commandDescription: (command) => unwrapped(command.description()) })
    .exitOverride()
    .hook('preAction', (_, command) => takePipedScript(context, command))
    .configureOutput({
      writeOut: (text) => context.stdout.write(asTyped(text)),
      writeErr: (text) => context.stderr.write(asTyped(text)),
      // explainUsage prints the error instead.
      outputError: () => {},
    });
}

/** Joins the lines of a sentence, so that help wraps them at the width of the terminal. */
function unwrapped(description: string): string {
  return description.replace(/\n {4,}|(?<![.:])\n(?=\S)/g, ' ');
}

/** Replaces `--rehearse -` by a file with the script. A short form leaves this to its long form. */
async function takePipedScript(context: Context, command: CommandUnknownOpts): Promise<void> {
  const isShort = shortForms.some(({ word }) => word === command.name()) && command.parent?.parent === null;
  if (isShort || command.getOptionValue('rehearse') !== '-') return;
  const { readPipedYaml } = await import('./options/prompt-source.ts');
  const text = await readPipedYaml(context, 'The rehearsal script');
  const { keepScript } = await import('../app/rehearsal-process.ts');
  const kept = text.ok ? keepScript(context, text.value) : text;
  if (kept.ok) command.setOptionValue('rehearse', kept.value);
  else {
    await context.run(() => kept);
    throw new CommanderError(context.code, 'commander.help', '');
  }
}

const wholeProgram = (context: Context) => buildProgram(context, [], '', true);

/** Runs one command line, reports a failure, and resolves with the exit code when all output is written. */
export async function runToEnd(context: Context, argv: readonly string[], version: string): Promise<ExitCode> {
  try {
    // A short form resolves its argument while the tree is built, which can fail.
    await context.run(async () => {
      await runProgram(context, argv, version);
      return context.code;
    });
  } catch (error) {
    sayException(context, error);
    context.code = exitCode.failed;
  }
  await finishOutput(context);
  return context.code;
}

/** Keeps the exit code in the context. Exceptions of commands pass through. */
async function runProgram(context: Context, argv: readonly string[], version: string): Promise<void> {
  if (argv.length === 0 && hasScreen(context)) {
    const { runHome } = await import('./home/home.ts');
    return context.run(() => runHome(context));
  }
  const line = longLine(argv);
  const program = await buildProgram(context, line, version);
  const words = argv[0] === 'help' && !isCommand(program, line) ? line.slice(0, -1) : line;
  try {
    await program.parseAsync([...words], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === 'commander.helpDisplayed' || error.code === 'commander.version') return;
    context.code = exitCode.usage;
    // A command family without a command: Commander has printed the help on stderr.
    if (error.code !== 'commander.help') context.stderr.line(explainUsage(error, program, line));
  }
}

function hasScreen(context: Context): boolean {
  const output = chooseOutput(context, undefined);
  return output.ok && output.value === 'tui';
}

/** Rewrites `help a b` to `a b --help`, and `version` to `--version`. */
function longLine(argv: readonly string[]): readonly string[] {
  const [first, ...rest] = argv;
  if (first === 'help') return [...rest.filter((word) => word !== '--'), '--help'];
  return first === 'version' && rest.length === 0 ? ['--version'] : argv;
}

/** For `help a typo`: an unknown command gets a suggestion instead of the help of its family. */
function isCommand(program: { readonly commands: readonly Named[] }, words: readonly string[]): boolean {
  const [word = ''] = words;
  if (program.commands.length === 0 || word.startsWith('-')) return true;
  const next = program.commands.find((command) => command.name() === word);
  return next !== undefined && isCommand(next, words.slice(1));
}

interface Family {
  readonly summary: string;
  readonly note?: string;
  readonly example: string;
}

const families: Readonly<Record<string, Family>> = {
  group: {
    summary: 'create, run, watch and clean up session groups',
    example: `  $ ${programName} group create auth-refactor --max-budget-usd 10
  $ ${programName} group run auth-refactor`,
  },
  session: {
    summary: 'add, read and remove the sessions of a group',
    example: `  $ ${programName} session add auth-refactor --project ./api --prompt "Add a login endpoint" --name api
  $ ${programName} session add auth-refactor --project ./web --prompt "Add a login page" --depends-on api
  $ ${programName} session logs auth-refactor/api`,
  },
  template: {
    summary: 'find, check, render and share templates',
    example: `  $ ${programName} template list
  $ ${programName} template render code-review --var file_path=src/main.ts
  $ ${programName} template init .claude-code-agent/templates`,
  },
  fleet: {
    summary: 'run the sessions of groups on several hosts',
    example: `  $ ${programName} fleet init --redis redis://127.0.0.1:6379
  $ ${programName} host add gpu1 --ssh me@gpu1 --slots 8 --label gpu --login team-a`,
  },
  host: {
    summary: 'add, list and remove the hosts of a fleet',
    example: `  $ ${programName} host add gpu1 --ssh me@gpu1 --slots 8 --label gpu --login team-a
  $ ${programName} host list
  $ ${programName} host forget gpu1`,
  },
  faber: {
    summary: 'manage FABER runs',
    example: `  $ ${programName} faber start --work-id 258
  $ ${programName} faber phase frame
  $ ${programName} faber status`,
  },
  cpm: {
    summary: 'show and clean up the progress files of a project',
    example: `  $ ${programName} cpm list --project ./api
  $ ${programName} cpm clean --project ./api`,
  },
  hook: {
    summary: 'install or remove the context hooks in your own settings',
    note: `
Hooks run this command. It reads claude's JSON from standard input and always exits with 0:
  ${programName} hook <task|cpm|faber|handover|all> <session-start|pre-compact|session-end>
                         [--source <source>]
`,
    example: `  $ ${programName} hook install --project ./api
  $ ${programName} hook status --project ./api`,
  },
  handover: {
    summary: 'manage projects that later sessions continue',
    example: `  $ ${programName} handover init 02-projects/28-parser
  $ ${programName} handover list`,
  },
};

const example = `
Example:
  $ ${programName} group create auth-refactor --max-budget-usd 10
  $ ${programName} session add auth-refactor --project ./api --prompt "Add a login endpoint" --name api
  $ ${programName} session add auth-refactor --project ./web --prompt "Add a login page" --depends-on api
  $ ${programName} group run auth-refactor`;

/** A long quoted value, up to the last possible closing quote. */
const longValue = /'(.{80}).*'(?= is invalid|$)/s;

/** One sentence about a usage error, with the command that prints the help. */
function explainUsage(error: CommanderError, program: { commands: readonly Named[] }, argv: readonly string[]): string {
  // Commander quotes the value; shorten it, so that the reason stays visible.
  const brief = error.message.replace(longValue, (_, head: string) => `'${head}…'`);
  const text = safeLine(brief.replace(/^error: /, '').replace(/^command-argument value/, 'the value'), 600);
  const suggestion = /\s*\((Did you mean [^)]*\?)\)$/.exec(text);
  const problem = suggestion === null ? text : text.slice(0, suggestion.index);
  const sentence = `${problem[0]?.toUpperCase() ?? ''}${problem.slice(1)}${/[.?!]$/.test(problem) ? '' : '.'}`;
  const found = commandAt(program, argv);
  const meant = meantBy(error, found) ?? suggestion?.[1];
  const hint = meant === undefined ? '' : ` ${meant}`;
  return `${programName}: ${sentence}${hint} See: ${[programName, ...found.path].join(' ')} --help`;
}

interface Named {
  name(): string;
  readonly commands: readonly Named[];
  readonly options?: readonly { readonly long?: string | undefined }[];
}

type Found = { readonly path: readonly string[]; readonly command: Pick<Named, 'commands' | 'options'> };

/** The deepest command that the words name. */
function commandAt(program: Found['command'], argv: readonly string[]): Found {
  const path: string[] = [];
  let command = program;
  for (const word of argv) {
    const next = command.commands.find((one) => one.name() === word);
    if (next === undefined) break;
    path.push(word);
    command = next;
  }
  return { path, command };
}

/** Suggests what Commander's spelling check misses: an abbreviated option, or a command of another family. */
function meantBy({ code, message }: CommanderError, { path, command }: Found): string | undefined {
  const word = /'([^']+)'/.exec(message)?.[1] ?? '';
  if (code === 'commander.unknownOption' && /^--[a-z-]{3,}/.test(word)) {
    const name = word.replace(/=.*$/s, '');
    const longer = (command.options ?? []).flatMap(({ long = '' }) => (long.startsWith(`${name}-`) ? [long] : []));
    return longer.length === 0 ? undefined : `Did you mean ${orList(longer)}?`;
  }
  if (code !== 'commander.unknownCommand' || path.length > 0) return undefined;
  const meant = entries.flatMap(([words]) => (words.endsWith(` ${word}`) ? [commandText(words.split(' '))] : []));
  return meant.length === 0 ? undefined : `Did you mean ${orList(meant)}?`;
}

function orList(words: readonly string[]): string {
  const shown = words.slice(0, meantMax);
  return shown.length === 1 ? `${shown[0]}` : `${shown.slice(0, -1).join(', ')} or ${shown.at(-1)}`;
}

const meantMax = 4;

interface ShortForm {
  readonly word: string;
  readonly summary: string;
  readonly group: readonly string[];
  readonly session?: readonly string[];
}

type FormParts = readonly [word: string, summary: string, group: readonly string[], session?: readonly string[]];

function shortForm(...[word, summary, group, session]: FormParts): ShortForm {
  return { word, summary, group, ...defined({ session }) };
}

const shortForms: readonly ShortForm[] = [
  shortForm('ls', 'list groups', ['group', 'list']),
  shortForm('ps', 'list active groups', ['group', 'list', '--status', 'active']),
  shortForm('show', 'show a group or a session', ['group', 'show'], ['session', 'show']),
  shortForm('status', 'the same as show', ['group', 'show'], ['session', 'show']),
  shortForm('watch', 'follow a group, or the log of a session', ['group', 'watch'], ['session', 'logs', '--follow']),
  shortForm('logs', 'read the transcript of a session, or those of a group', [], ['session', 'logs']),
  shortForm('pause', 'pause a group or a session', ['group', 'pause'], ['session', 'pause']),
  shortForm('resume', 'resume a group or a session', ['group', 'resume'], ['session', 'resume']),
  shortForm('diff', 'show what a group or a session changed', ['group', 'diff'], ['session', 'diff']),
  shortForm('why', 'explain why a group or a session is not running', ['group', 'why'], []),
  shortForm(
    'retry',
    'retry a failed session, or those of a group',
    ['group', 'run', '--retry-failed'],
    ['session', 'retry'],
  ),
  ...['plan', 'graph', 'budget', 'report', 'merge', 'pr'].map((word) => {
    const [, summary = ''] = commandEntries.find(([path]) => path === `group ${word}`) ?? [];
    return shortForm(word, summary, ['group', word]);
  }),
];

async function defineShortForm(
  command: Command<[], OptionValues>,
  context: Context,
  form: ShortForm,
  rest: readonly string[],
  run: (argv: readonly string[]) => Promise<void>,
): Promise<void> {
  const forms = [form.group, form.session ?? []].filter((words) => words.length > 0);
  const long = await Promise.all(forms.map((words) => longForm(words, context)));
  const names = forms.map((words) => commandText(words)).join('\n  ');
  command.description(`${form.summary[0]?.toUpperCase()}${form.summary.slice(1)}. Short for:\n  ${names}`);
  const given = new Set(forms.flat());
  for (const option of long.flatMap(({ options }) => options)) {
    const isKnown = command.options.some(({ long: name }) => name === option.long);
    if (!isKnown && !given.has(option.long ?? '')) command.addOption(option);
  }
  if (form.session === undefined) {
    for (const argument of long.flatMap(({ registeredArguments }) => registeredArguments))
      command.addArgument(argument);
    command.action(() => run([...form.group, ...rest]));
    return;
  }
  const what = 'a group, or <group>/<number-or-name>, or the id of a session';
  const argument = new Argument('<group-or-session>', what);
  if (!acting.has(form.word)) argument.argOptional().default(latest, 'the group created last');
  command.addArgument(argument);
  if (form.word === 'why') command.argument('[session]', 'of the group: id, unique prefix, number or name');
  command.action(async () => {
    const [reference = latest] = command.args;
    const typed = { reference, rest: command.args.length === 0 ? [reference, ...rest] : rest, options: command.opts() };
    const lines = await attempt(() => linesFor(context, form, typed));
    if (!lines.ok) return context.run(() => lines);
    for (const { title, argv } of lines.value) {
      if (title !== undefined) context.stdout.line(context.stdout.style('strong', title));
      await run(argv);
    }
  });
}

/** Short forms that change a group without a confirmation, so they need an argument. */
const acting: ReadonlySet<string> = new Set(['pause', 'resume']);

async function longForm(words: readonly string[], context: Context): Promise<Command> {
  const path = words.slice(0, 2).join(' ');
  const scratch = new Command();
  await defineEntry(entries.find(([name]) => name === path) as CommandEntry, scratch, context);
  return scratch;
}

interface Typed {
  readonly reference: string;
  readonly rest: readonly string[];
  readonly options: OptionValues;
}

interface Line {
  /** Title above the output if there are several lines. */
  readonly title?: string;
  readonly argv: readonly string[];
}

function linesFor(context: Context, form: ShortForm, typed: Typed): readonly Line[] {
  const { reference, rest } = typed;
  const isGroup = need(isGroupNamed(context, reference));
  if (form.word === 'logs' && isGroup) return logsOf(context, typed);
  if (form.word === 'retry' && isGroup) checkFailed(context, reference);
  if (form.word === 'why' && !isGroup) {
    const session = need(loadReferredSession(context, reference));
    const { groupId, sessionId } = session;
    return [{ argv: ['group', 'why', groupId, sessionId, ...without(rest, reference)] }];
  }
  return [{ argv: [...((isGroup ? form.group : form.session) ?? []), ...rest] }];
}

/** `retry` of a group must not start sessions that have not failed. */
function checkFailed(context: Context, reference: string): void {
  const { state, groupId } = need(loadReferredGroup(context, reference));
  const hasFailed = [...state.sessions.values()].some((record) => record.state.status === 'failed');
  if (!hasFailed) refuse('usage', `No session of ${groupId} has failed.`, see('group', 'show', groupId));
}

/** The logs of all sessions in graph order. Outputs without titles, such as --json, need one session. */
function logsOf(context: Context, { reference, rest, options }: Typed): readonly Line[] {
  const group = need(loadReferredGroup(context, reference));
  const { state, groupId } = group;
  const { order } = planOf(state).graph;
  const [first, second] = order;
  if (first === undefined) {
    const next = advise('Add some with', ['session', 'add', groupId, '--project', 'DIR', '--prompt', 'TEXT']);
    return refuse('not-found', `The group ${groupId} has no sessions.`, next);
  }
  const argvFor = (id: string) => ['session', 'logs', `${groupId}/${id}`, ...without(rest, reference)];
  if (second === undefined) return [{ argv: argvFor(first) }];
  if (options.json || options.raw || options.follow) {
    const session = sessionOf(group, first);
    const example = session.ok ? sessionLabel(first, session.value.record.definition.name) : first;
    const message = `--json, --raw and --follow need one session; ${groupId} has ${listTitles(state, order)}.`;
    return refuse('ambiguous', message, advise('Give one of them, such as', ['logs', `${groupId}/${example}`]));
  }
  return order.map((id) => ({ title: titleOf(state, id), argv: argvFor(id) }));
}

function without(words: readonly string[], word: string): readonly string[] {
  const index = words.indexOf(word);
  return words.filter((_, position) => position !== index);
}
