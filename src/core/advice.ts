/**
 * Next steps for the reader as data: a sentence and the commands to type. Front ends print it with `adviceText`, so
 * that a command is complete and can be pasted.
 */
import { programPath } from './program-name.ts';

/** The words of one command line, without the program's name. */
export type CommandLine = readonly string[];

export interface Advice {
  /** Full sentences; before commands, their purpose without a final full stop. */
  readonly sentence: string;
  readonly commands: readonly CommandLine[];
  /** Type the commands in order; otherwise each is an alternative. */
  readonly inOrder?: true;
}

/** `sentence` is complete unless commands follow, which end it; the reader types one of them. */
export function advise(sentence: string, ...commands: readonly CommandLine[]): Advice {
  return { sentence, commands };
}

/** All of these commands in order, as one line to paste. */
export function adviseInOrder(sentence: string, ...commands: readonly CommandLine[]): Advice {
  return { sentence, commands, inOrder: true };
}

export function see(...words: CommandLine): Advice {
  return advise('See', words);
}

/** A command line for a shell. Text directly after it would become part of it. */
export function commandText(words: CommandLine): string {
  return [programPath, ...words.map(shellWord)].join(' ');
}

/** The whole advice in one line. `markUp` formats the sentence and each command where the output has markup. */
export function adviceText({ sentence, commands, inOrder }: Advice, markUp: MarkUp = plain): string {
  const said = markUp.sentence(sentence);
  if (commands.length === 0) return said;
  const typed = inOrder
    ? markUp.command(commands.map(commandText).join(' && '))
    : commands.map((words) => markUp.command(commandText(words))).join(' · ');
  return said === '' ? typed : `${said}: ${typed}`;
}

export interface MarkUp {
  sentence(text: string): string;
  command(text: string): string;
}

const plain: MarkUp = { sentence: (text) => text, command: (text) => text };

/** Any text as one shell word. */
export function shellWord(text: string): string {
  return /^[\w./@%+=:,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
