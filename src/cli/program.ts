/**
 * cli/: what a user types, and what it does. This file: the command tree. Every command is listed here with its one-
 * line summary; the file that defines its options and does its work is loaded only when the command line names it, so
 * that short commands start fast.
 */

import { Command, CommanderError } from '@commander-js/extra-typings';
import { programName } from '../core/program-name.ts';
import { type Context, finishOutput, sayException } from './context.ts';
import { type ExitCode, exitCode } from './exit-code.ts';
import { example, families } from './families.ts';
import { chooseOutput } from './reporters.ts';
import { defineShortForm, shortForms } from './short-forms.ts';
import { explainUsage, type Named } from './usage-error.ts';

export interface CommandModule {
  /** Gives the command its arguments, options, help and action. */
  define(command: Command, context: Context): void;
}

interface Entry {
  /** The words that call the command. */
  readonly path: string;
  readonly summary: string;
  readonly hidden?: true;
  readonly load: () => Promise<CommandModule>;
}

const entries: readonly Entry[] = [
  {
    path: 'group create',
    summary: 'create a session group and print its id',
    load: () => import('./commands/group/create.ts'),
  },
  {
    path: 'group edit',
    summary: 'change a group, or add what a workflow has more',
    load: () => import('./commands/group/edit.ts'),
  },
  { path: 'group list', summary: 'list session groups, newest first', load: () => import('./commands/group/list.ts') },
  {
    path: 'group show',
    summary: 'show a group, its sessions and what to do next',
    load: () => import('./commands/group/show.ts'),
  },
  {
    path: 'group graph',
    summary: 'print the dependency graph',
    load: () => import('./commands/group/graph.ts'),
  },
  {
    path: 'group plan',
    summary: 'show what a run would do and may cost',
    load: () => import('./commands/group/plan.ts'),
  },
  { path: 'group run', summary: 'run a group, or go on with it', load: () => import('./commands/group/run.ts') },
  {
    path: 'group resume',
    summary: 'go on with a group and try its failed sessions again',
    load: () => import('./commands/group/resume.ts'),
  },
  {
    path: 'group watch',
    summary: 'follow a group that runs in another process',
    load: () => import('./commands/group/watch.ts'),
  },
  {
    path: 'group pause',
    summary: 'pause a group: now, after its running sessions, or for a short break',
    load: () => import('./commands/group/pause.ts'),
  },
  {
    path: 'group budget',
    summary: 'show what is spent, reserved and left, or raise the cap',
    load: () => import('./commands/group/budget.ts'),
  },
  {
    path: 'group why',
    summary: 'say of each session why it is not running',
    load: () => import('./commands/group/why.ts'),
  },
  {
    path: 'group report',
    summary: 'tell what became of a group, as HTML, Markdown or JSON',
    load: () => import('./commands/group/report.ts'),
  },
  {
    path: 'group diff',
    summary: 'show what the sessions changed in their worktrees',
    load: () => import('./commands/group/diff.ts'),
  },
  {
    path: 'group merge',
    summary: 'merge the work of all sessions, in every repository or in none',
    load: () => import('./commands/group/merge.ts'),
  },
  {
    path: 'group pr',
    summary: 'push the work of all sessions and create pull requests',
    load: () => import('./commands/group/pr.ts'),
  },
  {
    path: 'group copy',
    summary: 'the same group again, from its beginning or from a session on',
    load: () => import('./commands/group/copy.ts'),
  },
  { path: 'group archive', summary: 'put a finished group away', load: () => import('./commands/group/archive.ts') },
  {
    path: 'group prune',
    summary: 'delete groups by age, status and size',
    load: () => import('./commands/group/prune.ts'),
  },
  {
    path: 'group delete',
    summary: 'delete a group with its transcripts',
    load: () => import('./commands/group/delete.ts'),
  },
  {
    path: 'session add',
    summary: 'add a session to a group and print its id',
    load: () => import('./commands/session/add.ts'),
  },
  { path: 'session list', summary: 'list the sessions of a group', load: () => import('./commands/session/list.ts') },
  { path: 'session show', summary: 'show one session', load: () => import('./commands/session/show.ts') },
  {
    path: 'session diff',
    summary: 'show what a session changed in its worktree',
    load: () => import('./commands/session/diff.ts'),
  },
  {
    path: 'session edit',
    summary: 'change a session that is not running',
    load: () => import('./commands/session/edit.ts'),
  },
  {
    path: 'session allow',
    summary: 'allow a session what was denied, and try it again',
    load: () => import('./commands/session/allow.ts'),
  },
  {
    path: 'session remove',
    summary: 'remove a session that is not running',
    load: () => import('./commands/session/remove.ts'),
  },
  {
    path: 'session logs',
    summary: 'read the transcript of a session',
    load: () => import('./commands/session/logs.ts'),
  },
  { path: 'session pause', summary: 'pause one session', load: () => import('./commands/session/pause.ts') },
  {
    path: 'session resume',
    summary: 'go on with a paused session',
    load: () => import('./commands/session/resume.ts'),
  },
  { path: 'session retry', summary: 'try a failed session again', load: () => import('./commands/session/retry.ts') },
  { path: 'session attach', summary: 'speak with a session', load: () => import('./commands/session/attach.ts') },
  { path: 'session say', summary: 'tell a session something', load: () => import('./commands/session/say.ts') },
  {
    path: 'template list',
    summary: 'list templates, where they come from and what they hide',
    load: () => import('./commands/template/list.ts'),
  },
  {
    path: 'template show',
    summary: 'show a template, its variables and its files',
    load: () => import('./commands/template/show.ts'),
  },
  {
    path: 'template validate',
    summary: 'check a template, or a folder of templates',
    load: () => import('./commands/template/validate.ts'),
  },
  {
    path: 'template render',
    summary: 'fill in a template and print it',
    load: () => import('./commands/template/render.ts'),
  },
  {
    path: 'template init',
    summary: 'make a folder with an example of each kind of template',
    load: () => import('./commands/template/init.ts'),
  },
  {
    path: 'template add',
    summary: 'copy a pack of templates from a git repository or a folder',
    load: () => import('./commands/template/add.ts'),
  },
  {
    path: 'template update',
    summary: 'fetch installed packs again',
    load: () => import('./commands/template/update.ts'),
  },
  { path: 'template remove', summary: 'remove an installed pack', load: () => import('./commands/template/remove.ts') },
  {
    path: 'cpm list',
    summary: 'list the progress files of a project',
    load: () => import('./commands/context/cpm-list.ts'),
  },
  { path: 'cpm show', summary: 'print a progress file', load: () => import('./commands/context/cpm-show.ts') },
  {
    path: 'cpm clean',
    summary: 'remove progress files of sessions that were given up',
    load: () => import('./commands/context/cpm-clean.ts'),
  },
  {
    path: 'cpm check-skills',
    summary: 'check CPM skills, and put the shared section into them',
    load: () => import('./commands/context/cpm-check-skills.ts'),
  },
  {
    path: 'hook install',
    summary: 'put our hooks into the settings of a project or of a config dir',
    load: () => import('./commands/context/hook-install.ts'),
  },
  {
    path: 'hook uninstall',
    summary: 'take our hooks out again',
    load: () => import('./commands/context/hook-uninstall.ts'),
  },
  {
    path: 'hook status',
    summary: 'show which hooks are there and whether they can run',
    load: () => import('./commands/context/hook-status.ts'),
  },
  {
    path: 'handover init',
    summary: 'make a project that sessions find again',
    load: () => import('./commands/context/handover-init.ts'),
  },
  {
    path: 'handover list',
    summary: 'list the projects of a folder',
    load: () => import('./commands/context/handover-list.ts'),
  },
  {
    path: 'handover find',
    summary: 'find the project of a session',
    load: () => import('./commands/context/handover-find.ts'),
  },
  {
    path: 'faber start',
    summary: 'begin a FABER run for a work item',
    load: () => import('./commands/context/faber-start.ts'),
  },
  {
    path: 'faber resume',
    summary: 'make a run the active one again',
    load: () => import('./commands/context/faber-resume.ts'),
  },
  {
    path: 'faber status',
    summary: 'show the active run, its phases and sessions',
    load: () => import('./commands/context/faber-status.ts'),
  },
  { path: 'faber phase', summary: 'record a finished phase', load: () => import('./commands/context/faber-phase.ts') },
  {
    path: 'faber prime-context',
    summary: 'print the critical artifacts of the active run',
    load: () => import('./commands/context/faber-prime-context.ts'),
  },
  {
    path: 'faber session-end',
    summary: 'record the end of a session',
    load: () => import('./commands/context/faber-session-end.ts'),
  },
  {
    path: 'faber worktrees',
    summary: 'list the work trees of runs, or remove those that are over',
    load: () => import('./commands/context/faber-worktrees.ts'),
  },
  {
    path: 'try',
    summary: 'see a group at work: a rehearsal in the dashboard, at no cost',
    load: () => import('./commands/try.ts'),
  },
  {
    path: 'init',
    summary: 'write a first workflow over the projects nearby',
    load: () => import('./commands/init.ts'),
  },
  {
    path: 'run',
    summary: 'create the group of a workflow and run it',
    load: () => import('./commands/run.ts'),
  },
  { path: 'rm', summary: 'delete groups', load: () => import('./commands/rm.ts') },
  { path: 'stop', summary: 'pause every group on this machine', load: () => import('./commands/stop.ts') },
  {
    path: 'config',
    summary: 'show every setting and where it comes from, or change one',
    load: () => import('./commands/config.ts'),
  },
  {
    path: 'doctor',
    summary: 'check this machine, each trouble with its cure',
    load: () => import('./commands/doctor.ts'),
  },
  { path: 'completion', summary: 'print a shell completion script', load: () => import('./commands/completion.ts') },
  {
    path: 'complete',
    summary: 'answer the completion script',
    hidden: true,
    load: async () => (await import('./commands/complete.ts')).completeFor(wholeProgram),
  },
  {
    path: 'rehearsal-serve',
    summary: 'serve the scripted Messages API',
    hidden: true,
    load: () => import('./commands/rehearsal-serve.ts'),
  },
  { path: 'rehearsal-claude', summary: 'play claude', hidden: true, load: () => import('./commands/stand-in.ts') },
];

/** Help calls the program as it was called; the examples of the commands, texts of ours, do so by its long name. */
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
  const words = new Set(argv);
  // `group run` holds the word `run` as well; only the first word names a command without a family.
  const first = argv.find((word) => !word.startsWith('-'));
  const isNamed = (path: readonly string[]) =>
    path.length === 1 ? path[0] === first : path.every((word) => words.has(word));
  for (const entry of entries) {
    const path = entry.path.split(' ');
    // Of a family that nobody names only the summary is shown.
    if (!all && path.length > 1 && !words.has(path[0] as string)) continue;
    const name = path.at(-1) as string;
    const parent = path.length === 1 ? program : (parents.get(path[0] as string) as Command);
    const command = parent.command(name, { hidden: entry.hidden === true }).summary(entry.summary);
    if (all || isNamed(path)) (await entry.load()).define(command as Command, context);
  }
  const rest = argv.slice(argv.indexOf(first ?? '') + 1);
  const tree = {
    define: async (path: readonly string[], command: Command) => (await moduleOf(path)).define(command, context),
    run: (line: readonly string[]) => runProgram(context, line, version),
  };
  program.commandsGroup('Short forms:');
  for (const form of shortForms) {
    const command = program.command(form.word).summary(form.summary);
    if (all || form.word === first) await defineShortForm(command, context, form, rest, tree);
  }
  return program;
}

function newProgram(context: Context, version: string) {
  return new Command(programName)
    .description('Runs groups of Claude Code sessions over several projects as a dependency graph.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand('help [command...]', 'show help of a command')
    .addHelpText('after', example)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.stdout.write(asTyped(text)),
      writeErr: (text) => context.stderr.write(asTyped(text)),
      // Said once, as one sentence, by explainUsage.
      outputError: () => {},
    });
}

function moduleOf(path: readonly string[]): Promise<CommandModule> {
  const entry = entries.find((one) => one.path === path.join(' '));
  if (entry === undefined) throw new Error(`Internal error: there is no command ${path.join(' ')}`);
  return entry.load();
}

const wholeProgram = (context: Context) => buildProgram(context, [], '', true);

/** Runs one command line, says what went wrong, and resolves with the exit code when all output was handed over. */
export async function runToEnd(context: Context, argv: readonly string[], version: string): Promise<ExitCode> {
  try {
    await runProgram(context, argv, version);
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
    const { runHome } = await import('./home/run-home.ts');
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
    // A family without a command: the help was shown, on stderr.
    if (error.code !== 'commander.help') context.stderr.line(explainUsage(error, program, line));
  }
}

/** Where `group run` would show the dashboard. */
function hasScreen(context: Context): boolean {
  const output = chooseOutput(context, undefined);
  return output.ok && output.value === 'tui';
}

/** `help a b` is `a b --help`, and `version` is `--version`: the options say what is meant for every command alike. */
function longLine(argv: readonly string[]): readonly string[] {
  const [first, ...rest] = argv;
  if (first === 'help') return [...rest.filter((word) => word !== '--'), '--help'];
  return first === 'version' && rest.length === 0 ? ['--version'] : argv;
}

/** Otherwise the help of the family would answer for a command that is not there, where a suggestion helps more. */
function isCommand(program: { readonly commands: readonly Named[] }, words: readonly string[]): boolean {
  const [word = ''] = words;
  if (program.commands.length === 0 || word.startsWith('-')) return true;
  const next = program.commands.find((command) => command.name() === word);
  return next !== undefined && isCommand(next, words.slice(1));
}
