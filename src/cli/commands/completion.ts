/** `completion`: the script that teaches a shell to complete our command lines. */
import { script } from '@bomb.sh/tab';
import { Argument, type Command } from '@commander-js/extra-typings';
import { ok } from '../../core/failure.ts';
import { type Context, programName } from '../context.ts';
import { exitCode } from '../exit-code.ts';

const example = `
Example:
  $ source <(claude-code-agent completion bash)        for this shell; add the line to ~/.bashrc to keep it
  $ source <(claude-code-agent completion zsh)         likewise in ~/.zshrc
  $ claude-code-agent completion fish | source         likewise in ~/.config/fish/config.fish`;

const shells = ['bash', 'zsh', 'fish'] as const;

export function define(command: Command, context: Context): void {
  command
    .description('Prints a script that completes commands, options, groups and sessions in your shell.')
    .addArgument(new Argument('<shell>', 'your shell').choices(shells))
    .addHelpText('after', example)
    .action((shell) =>
      context.run(() => {
        // The library prints the script itself.
        script(shell, programName, programName);
        return ok(exitCode.done);
      }),
    );
}
