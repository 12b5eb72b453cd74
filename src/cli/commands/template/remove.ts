/** `template remove`: takes an installed pack away. */
import type { Command } from '@commander-js/extra-typings';
import { packsOf } from '../../../app/template/packs.ts';
import { ok } from '../../../core/failure.ts';
import { findPack, type InstalledPack, removePack, withPacks } from '../../../template/pack.ts';
import { safeJson } from '../../../view/terminal-text.ts';
import { confirmed } from '../../confirm.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent template remove team
  $ claude-code-agent template remove team --force`;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Removes a template pack. Groups keep the templates they were made with. Asks first, unless --force is given.',
    )
    .argument('<name>', 'name of the pack')
    .option('-y, --yes', 'answer every question with yes')
    .option('--force', 'do not ask')
    .option('--json', 'one JSON document: {"pack"}')
    .addHelpText('after', example)
    .action((name, given) => context.run(() => remove(context, name, given)));
}

interface Given {
  readonly yes?: true | undefined;
  readonly force?: true | undefined;
  readonly json?: true | undefined;
}

async function remove(context: Context, name: string, { yes, force, json }: Given): Promise<Work> {
  const packs = packsOf(context);
  if (!packs.ok) return packs;
  const asked = await withPacks(context.world, packs.value, () => {
    const found = findPack(context.world, packs.value, name);
    return found.ok ? ok(question(found.value)) : found;
  });
  if (!asked.ok) return asked;
  const sure = await confirmed(context, asked.value, yes === true || force === true);
  if (!sure.ok) return sure;
  if (!sure.value) {
    context.stderr.line('Nothing was removed.');
    return ok(exitCode.done);
  }
  // It is looked for again: another command may have been faster while the question stood.
  const removed = await withPacks(context.world, packs.value, () => {
    const found = findPack(context.world, packs.value, name);
    if (found.ok) removePack(context.world, packs.value, name);
    return found;
  });
  if (!removed.ok) return removed;
  context.stderr.line(`Removed pack ${name}.`);
  if (json) context.stdout.line(safeJson({ pack: name }, 2));
  return ok(exitCode.done);
}

function question({ name, folder, note }: InstalledPack): string {
  if (note === null) return `Remove the folder ${folder}, whose source is not known?`;
  return `Remove pack ${name} from ${note.source}?`;
}
