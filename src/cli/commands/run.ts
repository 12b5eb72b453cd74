/** cli/commands/: one file for each command. This one: `run` takes a workflow from its file to its end in one step. */
import { type Command, Option } from '@commander-js/extra-typings';
import { readUserConfig } from '../../app/config/user-config.ts';
import { createNewGroup, draftState, type NewGroup, unfrozen } from '../../app/create/new-group.ts';
import { referenceTo } from '../../app/groups.ts';
import { checkNewRehearsed, gateForNewGroup } from '../../app/run/claude-gate.ts';
import { rehearsalFor } from '../../app/run/run-here.ts';
import { ok } from '../../core/failure.ts';
import type { Context, Work } from '../context.ts';
import { exitCode } from '../exit-code.ts';
import { collect } from '../options/option-values.ts';
import { chooseOutput, type RunCommandOptions, runCommandOptions, withRunOptions } from '../options/run-options.ts';
import { readNamedWorkflow } from '../options/workflow-argument.ts';
import { concludeRun, planOptions, runInTerminal } from '../run-command.ts';

const description = `Creates the group that a workflow describes and runs it.
Relative paths in the file are meant from the file's folder; in a workflow template, or one that is piped in, from the
current folder.`;

const example = `
Example:
  $ claude-code-agent run change.yaml --var ticket=ABC-12
  $ claude-code-agent run change.yaml --var ticket=ABC-12 --dry-run       what it would do and may cost
  $ claude-code-agent run feature-implementation --var feature="Dark mode" --rehearse`;

export function define(command: Command, context: Context): void {
  withRunOptions(
    command
      .description(description)
      .argument('<workflow>', 'path of a YAML file, "-" for standard input, or a template name'),
  )
    .option('--var <name=value>', 'value for a variable of the workflow; may be repeated', collect)
    // Whoever passes the same options to every run may: in a new group nothing has failed.
    .addOption(new Option('--retry-failed').hideHelp())
    .addHelpText('after', example)
    .action((reference, given) => {
      const { var: pairs = [], retryFailed: _nothing, ...rest } = given;
      return context.run(() => runWorkflow(context, reference, pairs, runCommandOptions(rest, false)));
    });
}

export async function runWorkflow(
  context: Context,
  reference: string,
  pairs: readonly string[],
  options: RunCommandOptions,
): Promise<Work> {
  const root = context.root();
  if (!root.ok) return root;
  const group = await readNamedWorkflow(context, reference, pairs);
  if (!group.ok) return group;
  if (options.dryRun) return dryRun(context, root.value, group.value, options);
  // Looked at first: a group that cannot be run as asked is not to be left behind.
  const output = chooseOutput(context, options.output);
  if (!output.ok) return output;
  const rehearsal = await rehearsalFor(context, options.rehearse);
  if (!rehearsal.ok) return rehearsal;
  const ofUser = await readUserConfig(context);
  if (!ofUser.ok) return ofUser;
  const isReal = rehearsal.value === undefined;
  const claude = isReal
    ? await gateForNewGroup(context, root.value, options, group.value)
    : await checkNewRehearsed(context, group.value);
  if (!claude.ok) return claude;
  if (claude.value === 'interrupted') return ok(exitCode.interrupted);
  const created = createNewGroup(context, root.value, group.value);
  if (!created.ok) return created;
  const { id } = created.value.group;
  context.stderr.line(`Created group ${id}`);
  const taken = referenceTo(root.value, id);
  if (options.detach) return (await import('../run-command.ts')).runDetached(context, taken, options);
  const result = await runInTerminal(context, taken, options, claude.value);
  return result.ok ? concludeRun(context, taken, result.value) : result;
}

async function dryRun(context: Context, root: string, group: NewGroup, options: RunCommandOptions): Promise<Work> {
  const { definition } = group;
  const config = { ...definition.config, ...options.config };
  const state = draftState(context, { ...group, definition: { ...definition, config } });
  if (!state.ok) return state;
  const { showPreview } = await import('../run-command.ts');
  return showPreview(context, root, state.value, unfrozen(group), planOptions(options));
}
