/** cli/commands/: one file for each command. This one: `run` takes a workflow from its file to its end in one step. */
import { type Command, Option } from '@commander-js/extra-typings';
import { createNewGroup, draftState, type NewGroup, unfrozen } from '../../control/create/new-group.ts';
import { readUserConfig } from '../../control/user-config.ts';
import { ok } from '../../core/failure.ts';
import { groupPaths } from '../../store/paths.ts';
import { gateForNewGroup } from '../claude-gate.ts';
import type { Context, Work } from '../context.ts';
import { exitCode } from '../exit-code.ts';
import { configOf } from '../options/group-options.ts';
import { collect } from '../options/option-values.ts';
import { type RunWish, runWish, withRunOptions } from '../options/run-options.ts';
import { chooseOutput } from '../reporters.ts';
import { checkLimitable } from '../run-check.ts';
import { concludeRun, previewWish, rehearsalFor, runHere } from '../run-command.ts';
import { readWorkflow } from '../workflow-group.ts';

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
      return context.run(() => runWorkflow(context, reference, pairs, runWish(rest, false)));
    });
}

export async function runWorkflow(
  context: Context,
  reference: string,
  pairs: readonly string[],
  wish: RunWish,
): Promise<Work> {
  const root = context.root();
  if (!root.ok) return root;
  const group = await readWorkflow(context, reference, pairs);
  if (!group.ok) return group;
  if (wish.dryRun) return dryRun(context, root.value, group.value, wish);
  // Looked at first: a group that cannot be run as asked is not to be left behind.
  const output = chooseOutput(context, wish.output);
  if (!output.ok) return output;
  const rehearsal = await rehearsalFor(context, wish.rehearse);
  if (!rehearsal.ok) return rehearsal;
  const ofUser = await readUserConfig(context);
  if (!ofUser.ok) return ofUser;
  const isReal = rehearsal.value === undefined;
  const claude = isReal
    ? await gateForNewGroup(context, root.value, wish, group.value)
    : checkLimitable(context, group.value.sessions);
  if (!claude.ok) return claude;
  if (claude.value === 'interrupted') return ok(exitCode.interrupted);
  const created = createNewGroup(context, root.value, group.value);
  if (!created.ok) return created;
  const { id } = created.value.group;
  context.stderr.line(`Created group ${id}`);
  const taken = { root: root.value, groupId: id, paths: groupPaths(root.value, id) };
  if (wish.detach) return (await import('../detach.ts')).runDetached(context, taken, wish);
  const result = await runHere(context, taken, wish, claude.value);
  return result.ok ? concludeRun(context, taken, result.value) : result;
}

async function dryRun(context: Context, root: string, group: NewGroup, wish: RunWish): Promise<Work> {
  const { definition } = group;
  const config = { ...definition.config, ...configOf(wish.config) };
  const state = draftState(context, { ...group, definition: { ...definition, config } });
  if (!state.ok) return state;
  const { showPreview } = await import('../preview.ts');
  return showPreview(context, root, state.value, unfrozen(group), previewWish(wish));
}
