/** `completion` prints a shell script; `complete` (hidden) prints the completions for that script. */
import { type Complete, RootCommand, script } from '@bomb.sh/tab';
import { Argument, type Command } from '@commander-js/extra-typings';
import { addedHosts } from '../../app/fleet/init.ts';
import { type GroupListing, type GroupMeta, listGroups, resolveGroup } from '../../app/resolve.ts';
import { sessionLabel, slugOf } from '../../core/id.ts';
import { programName } from '../../core/program-name.ts';
import { safeLine } from '../../view/terminal-text.ts';
import type { Context } from '../context.ts';

const example = `
Example:
  $ source <(claude-code-agent completion bash)        this shell only; to keep it, add the line to ~/.bashrc
  $ source <(claude-code-agent completion zsh)         to keep it, add the line to ~/.zshrc
  $ claude-code-agent completion fish | source         to keep it, add it to ~/.config/fish/config.fish`;

/** For bash without bash-completion: the words of the line, without splitting at = and :. */
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

export function defineCompletion(command: Command, context: Context): void {
  command
    .description('Print a script that completes commands, options, groups and sessions in your shell.')
    .addArgument(new Argument('<shell>', 'your shell').choices(shells))
    .addHelpText('after', example)
    .action((shell) =>
      context.run(() => {
        if (shell === 'bash') context.stdout.line(bashBefore(programName));
        script(shell, programName, programName);
      }),
    );
}

/** A longer list does not help. */
const candidatesMax = 200;

/** The members of a Commander command that completion uses. */
export type ProgramNode = Pick<
  Command,
  'name' | 'summary' | 'commands' | 'options' | 'registeredArguments' | 'createHelp'
>;

export function completeFor(buildAll: (context: Context) => Promise<ProgramNode>) {
  return (command: Command, context: Context): void => {
    command
      .description('Print completions of a command line.')
      .argument('[words...]', 'the command line so far, without the program')
      .action((words) =>
        context.run(async () => {
          const root = new RootCommand();
          addCommands(context, root, await buildAll(context), '', words);
          root.parse(words);
        }),
      );
  };
}

function addCommands(context: Context, root: RootCommand, node: ProgramNode, path: string, words: string[]): void {
  for (const command of node.createHelp().visibleCommands(node as never) as unknown as ProgramNode[]) {
    if (command.name() === 'help') continue;
    const commandPath = path === '' ? command.name() : `${path} ${command.name()}`;
    const target = root.command(commandPath, command.summary());
    for (const option of command.options) {
      const name = option.long?.slice(2);
      if (name === undefined || option.hidden) continue;
      const takesValue = option.required || option.optional;
      if (!takesValue) target.option(name, option.description);
      else if (name === 'depends-on') target.option(name, option.description, offerSiblings(context, words));
      else target.option(name, option.description, offerChoices(option.argChoices));
    }
    for (const argument of command.registeredArguments) {
      const name = argument.name();
      if (name === 'group') target.argument(name, (complete) => offerGroups(context, complete), argument.variadic);
      else if (name === 'group-or-session') {
        target.argument(name, (complete) => {
          offerGroups(context, complete);
          offerSessions(context, complete);
        });
      } else if (name === 'session' && (commandPath.startsWith('group ') || commandPath === 'why')) {
        target.argument(name, offerSiblings(context, words));
      } else if (commandPath.startsWith('host ')) target.argument(name, (complete) => offerHosts(context, complete));
      else if (name === 'session') target.argument(name, (complete) => offerSessions(context, complete));
      else target.argument(name, offerChoices(argument.argChoices));
    }
    addCommands(context, root, command, commandPath, words);
  }
}

function offerChoices(choices: readonly string[] = []): (complete: Complete) => void {
  return (complete) => {
    for (const choice of choices) complete(choice, '');
  };
}

function readableGroups(context: Context): GroupMeta[] {
  const root = context.root();
  const listings: GroupListing[] = root.ok ? listGroups(context.world, root.value) : [];
  return listings.flatMap((listing) => ('meta' in listing ? [listing.meta] : []));
}

/** A slug means its newest group; older groups of that slug are offered by id. */
function groupReferences(context: Context): { readonly reference: string; readonly meta: GroupMeta }[] {
  const taken = new Set<string>();
  return readableGroups(context)
    .slice(0, candidatesMax)
    .map((meta) => {
      const slug = slugOf(meta.id);
      const reference = taken.has(slug) ? meta.id : slug;
      taken.add(slug);
      return { reference, meta };
    });
}

function offerGroups(context: Context, complete: Complete): void {
  for (const { reference, meta } of groupReferences(context)) {
    complete(reference, `${meta.status}, ${safeLine(meta.name, 40)}`);
  }
}

/** Hosts that were added from here; a request to Redis takes too long for completion. */
function offerHosts(context: Context, complete: Complete): void {
  const root = context.root();
  for (const [name, ssh] of root.ok ? addedHosts(context, root.value) : []) complete(name, safeLine(ssh, 40));
}

function offerSessions(context: Context, complete: Complete): void {
  const offers = groupReferences(context).flatMap(({ reference, meta }) =>
    meta.sessions.map((session) => [`${reference}/${sessionLabel(session.id, session.name)}`, session.status] as const),
  );
  for (const [reference, status] of offers.slice(0, candidatesMax)) complete(reference, status);
}

/** Sessions of the group that the command line names, as in `session add <group> ... --depends-on`. */
function offerSiblings(context: Context, words: readonly string[]): (complete: Complete) => void {
  return (complete) => {
    // In a short form the group follows one word instead of two.
    const group = resolveGroup(context, words[words[0] === 'why' ? 1 : 2] ?? '');
    if (!group.ok) return;
    const meta = readableGroups(context).find((one) => one.id === group.value.groupId);
    for (const session of meta?.sessions ?? []) complete(sessionLabel(session.id, session.name), session.status);
  };
}
