/** `group copy`: the same group again; its id alone on stdout. */
import type { Command } from '@commander-js/extra-typings';
import { copyGroup } from '../../../app/create/copy-group.ts';
import { loadReferredGroup } from '../../../app/resolve.ts';
import { fail, ok } from '../../../core/failure.ts';
import { safeJson } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { parseText } from '../../options/option-values.ts';

const example = `
Example:
  $ claude-code-agent group run $(claude-code-agent group copy auth-refactor --real)
  $ claude-code-agent group copy auth-refactor --from web      web and what depends on it anew`;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Makes the same group again and prints its id: sessions, settings and templates as they are now. With --from ' +
        'that session, and all that depend on it, are done anew; what else is completed keeps its result and its ' +
        'branch, at no cost. A branch that a copy names stays, whatever becomes of the group that made it.',
    )
    .argument('<group>', 'id, unique prefix or slug')
    .option('--real', 'to be run for real')
    .option('--rehearse [script]', 'to be rehearsed; neither of both: as the group is')
    .option('--from <session>', 'id, number or name of the session that is done anew')
    .option('--name <text>', 'name for people (default: the same)', parseText)
    .option('--json', 'one JSON document: the group')
    .addHelpText('after', example)
    .action((reference, given) => context.run(() => copy(context, reference, given)));
}

interface Given {
  readonly real?: true | undefined;
  readonly rehearse?: string | true | undefined;
  readonly from?: string | undefined;
  readonly name?: string | undefined;
  readonly json?: true | undefined;
}

async function copy(context: Context, reference: string, { real, rehearse, from, name, json }: Given): Promise<Work> {
  if (real && rehearse !== undefined)
    return fail('usage', 'Both --real and --rehearse were given.', 'Give one of them.');
  const group = loadReferredGroup(context, reference);
  if (!group.ok) return group;
  const copied = await copyGroup(context, group.value, { from, name, rehearse: real ? false : rehearse });
  if (!copied.ok) return copied;
  context.stdout.line(json ? safeJson({ group: copied.value }, 2) : copied.value);
  return ok(exitCode.done);
}
