/**
 * What the reader can do next, as data: a sentence and the commands to type. Front ends show it with `adviceText`, so
 * that a command is whole and can be pasted wherever it stands.
 */
import { programPath } from './program-name.ts';

/** The words of one command line, without the name of the program. */
export type CommandLine = readonly string[];

export interface Advice {
  /** Full sentences, or where commands follow, what they are for: no dot at its end then. */
  readonly sentence: string;
  readonly commands: readonly CommandLine[];
  /** They are typed one after the other; else each is for itself. */
  readonly inOrder?: true;
}

/** `sentence` is a full one unless commands follow, which then belong to its end; one of them is to be typed. */
export function advise(sentence: string, ...commands: readonly CommandLine[]): Advice {
  return { sentence, commands };
}

/** All of these commands, one after the other, as one line to paste. */
export function adviseInOrder(sentence: string, ...commands: readonly CommandLine[]): Advice {
  return { sentence, commands, inOrder: true };
}

export function see(...words: CommandLine): Advice {
  return advise('See', words);
}

/** A command line as a shell takes it. Nothing may follow it at once: it would be taken for a part of it. */
export function commandText(words: CommandLine): string {
  return [programPath, ...words.map(shellWord)].join(' ');
}

/** All of it in one line. `markUp`: what is done to the sentence and to each command where a face has markup. */
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

/** Any text as one word of a shell's command line. */
export function shellWord(text: string): string {
  return /^[\w./@%+=:,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
