/** `run`: creates the group of a workflow and runs it. */
import { type Command, Option } from '@commander-js/extra-typings';
import { readUserConfig } from '../../app/config/user-config.ts';
import { createNewGroup, draftState, type NewGroup, unfrozen } from '../../app/create/new-group.ts';
import { type GroupMeta, groupReference, listGroups, resolveGroup } from '../../app/resolve.ts';
import { checkNewRehearsed, gateForNewGroup } from '../../app/run/claude-gate.ts';
import { rehearsalFor } from '../../app/run/run-here.ts';
import { advise } from '../../core/advice.ts';
import { fail } from '../../core/failure.ts';
import { activeGroupStatuses } from '../../core/status.ts';
import { type CommandResult, type Context, exitCode, need } from '../context.ts';
import {
  chooseOutput,
  collect,
  type RunCommandOptions,
  runCommandOptions,
  withRunOptions,
} from '../options/options.ts';
import { readNamedWorkflow } from '../options/prompt-source.ts';
import { concludeRun, planOptions, runInTerminal } from './group/run.ts';

const description = `Create the group that a workflow describes and run it. Relative paths are
resolved from the workflow's folder, or from the current folder for templates
and standard input.`;

const example = `
Example:
  $ claude-code-agent run change.yaml --var ticket=ABC-12
  $ claude-code-agent run change.yaml --var ticket=ABC-12 --dry-run       show what it would do and may cost
  $ claude-code-agent run nightly.yaml --if-idle --output text            from cron
  $ claude-code-agent run feature-implementation --var feature="Dark mode" --rehearse`;

export function define(command: Command, context: Context): void {
  withRunOptions(
    command
      .description(description)
      .argument('<workflow>', 'path of a YAML file, "-" for standard input, or a template name'),
  )
    .option('--var <name=value>', 'value of a workflow variable; may be repeated', collect)
    .option('--if-idle', 'do nothing if an earlier group of this workflow is created, running or paused; for cron')
    // Accepted so that scripts can pass the same options to every run. A new group has no failed sessions.
    .addOption(new Option('--retry-failed').hideHelp())
    .addHelpText('after', example)
    .action((reference, given) => {
      const { var: pairs = [], retryFailed: _nothing, ifIdle, ...rest } = given;
      const options = { ...runCommandOptions(rest, false), ifIdle };
      return context.run(() => runWorkflow(context, reference, pairs, options));
    });
}

export async function runWorkflow(
  context: Context,
  reference: string,
  pairs: readonly string[],
  options: RunCommandOptions & { readonly ifIdle?: true | undefined },
): Promise<CommandResult> {
  const root = need(context.root());
  const named = await readNamedWorkflow(context, reference, pairs);
  if (!named.ok && named.failure.reason === 'not-found' && resolveGroup(context, reference).ok) {
    const next = advise('Run it with', ['group', 'run', reference]);
    return fail('usage', `${JSON.stringify(reference)} is a group; this command takes a workflow.`, next);
  }
  const group = need(named);
  const earlier = options.ifIdle ? activeGroup(context, root, group) : undefined;
  if (earlier !== undefined) {
    context.stderr.line(`Nothing was started: ${earlier.id}, of the same workflow, is ${earlier.status}.`);
    return;
  }
  if (options.dryRun) return dryRun(context, root, group, options);
  // Check before the group is created, so that a refused run leaves no group behind.
  need(chooseOutput(context, options.output));
  const rehearsal = need(await rehearsalFor(context, options.rehearse));
  need(await readUserConfig(context));
  const isReal = rehearsal === undefined;
  const claude = need(
    isReal ? await gateForNewGroup(context, root, options, group) : await checkNewRehearsed(context, group),
  );
  if (claude === 'interrupted') return exitCode.interrupted;
  const created = need(createNewGroup(context, root, group));
  const { id } = created.group;
  context.stderr.line(`Created group ${id}`);
  const taken = groupReference(root, id);
  if (options.detach) return (await import('./group/run.ts')).runDetached(context, taken, options);
  const result = await runInTerminal(context, taken, options, claude);
  return result.ok ? concludeRun(context, taken, result.value) : result;
}

/** The newest active group of the same workflow, without rehearsals. */
function activeGroup({ world }: Context, root: string, { definition: { workflow } }: NewGroup): GroupMeta | undefined {
  const metas = listGroups(world, root).flatMap((listing) => ('meta' in listing ? [listing.meta] : []));
  return metas.findLast(
    (meta) => meta.workflow?.origin === workflow?.origin && !meta.rehearsal && activeGroupStatuses.has(meta.status),
  );
}

async function dryRun(
  context: Context,
  root: string,
  group: NewGroup,
  options: RunCommandOptions,
): Promise<CommandResult> {
  const { definition } = group;
  const config = { ...definition.config, ...options.config };
  const state = need(draftState(context, { ...group, definition: { ...definition, config } }));
  const { showPreview } = await import('./group/run.ts');
  return showPreview(context, root, state, unfrozen(group), planOptions(options));
}
