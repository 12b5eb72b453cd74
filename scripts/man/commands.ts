/** The commands with their options and examples, and the facts beside them, for the man page and docs/reference. */
import { resolve } from 'node:path';
import manifest from '../../package.json' with { type: 'json' };
import { createContext } from '../../src/cli/context.ts';
import { buildProgram } from '../../src/cli/program.ts';
import type { PageCommand, PageSection } from './roff.ts';

const root = resolve(import.meta.dir, '../..');

/** Nothing is printed, and no command is run. */
const context = createContext(root, {
  env: {},
  stdout: { on: () => {}, write: () => {} },
  stderr: { on: () => {}, write: () => {} },
  stdinIsTerminal: () => false,
  cwd: () => root,
});

/** What is looked at of a command. */
type Node = Pick<
  Awaited<ReturnType<typeof buildProgram>>['commands'][number],
  'name' | 'description' | 'commands' | 'createHelp' | 'helpInformation' | 'outputHelp' | 'configureOutput' | 'usage'
>;

export const sections: readonly PageSection[] = [
  {
    title: 'GROUPS AND SESSIONS',
    parts: [
      'GROUP is an id, a unique prefix of it, or a slug, which means the newest group with that slug. ' +
        '@ and latest are the newest group, @1 is the one before it.',
      'SESSION is an id, a unique prefix of it, GROUP/NUMBER or GROUP/NAME.',
      'Commands that delete data refuse a slug that several groups share.',
    ],
  },
  {
    title: 'EXIT STATUS',
    parts: [
      ['0', 'done; for group run and group resume: every session completed'],
      ['1', 'the group ended failed, or the command failed'],
      ['2', 'usage or bad input: nothing was started'],
      ['3', 'the group is paused: continue with group resume'],
      ['4', 'busy: another live runner holds the group'],
      ['130', 'interrupted twice by the user'],
    ],
  },
  {
    title: 'ENVIRONMENT',
    parts: [
      ['CLAUDE_CODE_AGENT_HOME', 'the data folder; default: ~/.local/claude-code-agent'],
      ['XDG_CONFIG_HOME', 'config.yaml and templates are in claude-code-agent/ below it; default: ~/.config'],
      ['CLAUDE_CODE_AGENT_CLAUDE', 'the claude program; default: claude on PATH, then the one of this package'],
      ['CLAUDE_CODE_AGENT_TEMPLATES', 'more template folders, separated by colons'],
      ['NO_COLOR', 'no colors'],
      ['CLAUDE_CODE_AGENT_DEBUG', '1 prints the stack trace of a bug'],
    ],
  },
  {
    title: 'ENVIRONMENT OF SESSIONS',
    parts: [
      'Sessions, setup commands and acceptance commands get these variables.',
      ['CCA_GROUP', 'id of the group'],
      ['CCA_SESSION', 'name or number of the session'],
      ['CCA_PROJECT_DIR', 'the project in your checkout; not on hosts of a fleet'],
      ['CCA_WORKSPACE', 'the worktree, or else the project'],
      ['CCA_DEP_NAME_DIR', 'the workspace of the dependency NAME; not on hosts of a fleet'],
      ['CCA_PORT_BASE', 'first of ten ports between 20000 and 29999 that are reserved for the session'],
      ['COMPOSE_PROJECT_NAME', 'in a worktree, a name of its own for docker compose, unless you set one'],
    ],
  },
  {
    title: 'FILES',
    parts: [
      ['~/.local/claude-code-agent/session-groups/', 'one folder per group, with its log events.jsonl'],
      ['~/.config/claude-code-agent/config.yaml', 'settings for all groups; see: config'],
      ['.claude-code-agent/project.yaml', 'in a project: its setup and accept commands'],
    ],
  },
];

/** What the help of a command says behind its options. */
function notesOf(command: Node): string {
  let whole = '';
  command.configureOutput({
    writeOut: (text) => {
      whole += text;
    },
  });
  command.outputHelp();
  return whole.slice(command.helpInformation().length).trim();
}

function pagesOf(node: Node, path: readonly string[]): PageCommand[] {
  const help = node.createHelp();
  const below = help.visibleCommands(node as never).filter((command) => command.name() !== 'help') as unknown as Node[];
  const inside = below.flatMap((command) => pagesOf(command, [...path, command.name()]));
  // The program itself is what the page begins with.
  if (path.length === 0) return inside;
  const options = help.visibleOptions(node as never).filter(({ long }) => long !== '--help');
  return [
    {
      path: path.join(' '),
      usage:
        below.length > 0
          ? 'COMMAND'
          : node
              .usage()
              .replace(/\[options\] ?/, '')
              .trim(),
      description: node.description(),
      arguments: help.visibleArguments(node as never).map((argument) => ({
        flags: help.argumentTerm(argument),
        description: help.argumentDescription(argument),
      })),
      options: options.map((option) => ({
        flags: help.optionTerm(option),
        description: help.optionDescription(option),
      })),
      notes: notesOf(node),
    },
    ...inside,
  ];
}

export async function readCommands(): Promise<{ readonly summary: string; readonly commands: PageCommand[] }> {
  const program = await buildProgram(context, [], manifest.version, true);
  return { summary: program.description(), commands: pagesOf(program as unknown as Node, []) };
}
