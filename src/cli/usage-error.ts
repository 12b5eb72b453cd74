/** What commander says of a mistyped command line, in our words. */
import type { CommanderError } from '@commander-js/extra-typings';
import { programName } from '../core/program-name.ts';
import { safeLine } from '../view/terminal-text.ts';

/** A long quoted value, up to the last quote that can end it. */
const longValue = /'(.{80}).*'(?= is invalid|$)/s;

/** One sentence, with the place where more is said. */
export function explainUsage(
  error: CommanderError,
  program: { commands: readonly Named[] },
  argv: readonly string[],
): string {
  // Commander repeats the value; a long one would crowd out what is wrong with it.
  const brief = error.message.replace(longValue, (_, head: string) => `'${head}…'`);
  const text = safeLine(brief.replace(/^error: /, '').replace(/^command-argument value/, 'the value'), 600);
  const suggestion = /\s*\((Did you mean [^)]*\?)\)$/.exec(text);
  const said = suggestion === null ? text : text.slice(0, suggestion.index);
  const sentence = `${said[0]?.toUpperCase() ?? ''}${said.slice(1)}${/[.?!]$/.test(said) ? '' : '.'}`;
  const hint = suggestion === null ? '' : ` ${suggestion[1]}`;
  return `${programName}: ${sentence}${hint} See: ${commandPath(program, argv)} --help`;
}

export interface Named {
  name(): string;
  readonly commands: readonly Named[];
}

function commandPath(program: { commands: readonly Named[] }, argv: readonly string[]): string {
  let path = programName;
  let commands = program.commands;
  for (const word of argv) {
    const next = commands.find((command) => command.name() === word);
    if (next === undefined) break;
    path += ` ${word}`;
    commands = next.commands;
  }
  return path;
}
