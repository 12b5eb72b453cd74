/** `completion`: the script that teaches a shell to complete our command lines. */

import { script } from '@bomb.sh/tab';
import { Argument, type Command } from '@commander-js/extra-typings';
import { ok } from '../../core/failure.ts';
import { programName } from '../../core/program-name.ts';
import type { Context } from '../context.ts';
import { exitCode } from '../exit-code.ts';

const example = `
Example:
  $ source <(claude-code-agent completion bash)        for this shell; add the line to ~/.bashrc to keep it
  $ source <(claude-code-agent completion zsh)         likewise in ~/.zshrc
  $ claude-code-agent completion fish | source         likewise in ~/.config/fish/config.fish`;

/**
 * What the script asks of the package bash-completion, for shells without it: the words of the command line, those with
 * = or : in them in one piece. A second sourcing would only complain that its constants are set already.
 */
const bashBefore = (name: string) =>
  String.raw`declare -F __${name.replace(/[-:]/g, '_')}_complete >/dev/null && return 0 2>/dev/null
declare -F _get_comp_words_by_ref >/dev/null || _get_comp_words_by_ref() {
    local rest="\${COMP_LINE:0:COMP_POINT}" index word before
    words=()
    for ((index = 0; index <= COMP_CWORD; index++)); do
        word=\${COMP_WORDS[index]}
        [[ $rest == *"$word"* ]] || word=\${rest##* }
        before=\${rest%%"$word"*}
        [[ -n $word ]] || before=$rest
        if ((index > 0)) && [[ -z $before && ( $word == [=:]* || \${COMP_WORDS[index - 1]} == *[=:] ) ]]; then
            words[\${#words[@]} - 1]+=$word
        else
            words+=("$word")
        fi
        rest=\${rest#*"$word"}
    done
    cword=$((\${#words[@]} - 1))
    cur=\${words[cword]}
    prev=\${words[cword > 0 ? cword - 1 : 0]}
}`.replaceAll('\\$', '$');

const shells = ['bash', 'zsh', 'fish'] as const;

export function define(command: Command, context: Context): void {
  command
    .description('Prints a script that completes commands, options, groups and sessions in your shell.')
    .addArgument(new Argument('<shell>', 'your shell').choices(shells))
    .addHelpText('after', example)
    .action((shell) =>
      context.run(() => {
        if (shell === 'bash') context.stdout.line(bashBefore(programName));
        // The library prints the script itself.
        script(shell, programName, programName);
        return ok(exitCode.done);
      }),
    );
}
