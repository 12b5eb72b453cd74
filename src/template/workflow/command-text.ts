/**
 * Shell commands that people write for a session: `accept` and `setup`. A command is taken as it stands. Values of
 * variables are never put into it, because the shell would run what stands in them.
 */
import { commandProblem } from '../../core/values.ts';
import { parsePieces } from '../render.ts';

/** `problem` is without a full stop. */
export type ShellCommand =
  | { readonly ok: true; readonly command: string }
  | { readonly ok: false; readonly problem: string };

const refuse = (problem: string): ShellCommand => ({ ok: false, problem });

/** The command as the shell is going to get it: `\{{name}}` is `{{name}}`, for programs that have such places too. */
export function shellCommand(text: string): ShellCommand {
  const pieces = parsePieces(text);
  const variable = pieces.find((piece) => piece.kind === 'variable');
  if (variable !== undefined) {
    const why = 'the shell would run what stands in the value';
    return refuse(`{{${variable.name}}} cannot stand in a shell command: ${why}; \\{{${variable.name}}} is plain text`);
  }
  return checkedCommand(pieces.map((piece) => (piece.kind === 'text' ? piece.text : piece.source)).join(''));
}

/** A whole command that came from outside, such as the value of a variable: nothing in it has a meaning to us. */
export function checkedCommand(command: string): ShellCommand {
  const problem = commandProblem(command);
  return problem === null ? { ok: true, command: command.trim() } : refuse(`the command ${problem}`);
}

/** The name of the variable that is the whole text, as in `accept: "{{check}}"`. */
export function wholeVariable(text: string): string | undefined {
  const [piece, ...others] = parsePieces(text.trim());
  return piece?.kind === 'variable' && others.length === 0 ? piece.name : undefined;
}
