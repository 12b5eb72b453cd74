/** `template add`: fetches a pack of templates from a git repository. */
import type { Command } from '@commander-js/extra-typings';
import { type AddedPack, addPack } from '../../../app/template/packs.ts';
import { ok } from '../../../core/failure.ts';
import { plural } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent template add https://git.example.org/team/templates.git
  $ claude-code-agent template add git@git.example.org:team/templates.git@v2 --name team
  $ claude-code-agent template add ../team-templates`;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Fetches a pack of templates from a git repository, at one commit. A pack has prompts/, configs/ or ' +
        'workflows/ at its top, in templates/ or in .claude-code-agent/templates/. Templates steer what sessions do: ' +
        'read a pack of somebody else before you use it.',
    )
    .argument('<source>', 'URL of a git repository, or path of one on this machine; URL@REF as well')
    .option('--ref <ref>', 'branch, tag or full commit id')
    .option('--name <name>', 'name of the pack (default: the last word of the source)')
    .option('--json', 'one JSON document: the contents of pack.json')
    .addHelpText('after', example)
    .action((source, given) => context.run(() => add(context, source, given)));
}

interface Given {
  readonly ref?: string | undefined;
  readonly name?: string | undefined;
  readonly json?: true | undefined;
}

async function add(context: Context, source: string, given: Given): Promise<Work> {
  const added = await addPack(context, source, given);
  if (!added.ok) return added;
  const { note, powers, strays, hadPassword } = added.value;
  if (given.json === true) context.stdout.line(safeJson(note, 2));
  else for (const line of describe(added.value)) context.stdout.line(line);
  printPowers(context, powers);
  if (strays.length > 0) {
    const files = strays.map(({ file }) => file).join(', ');
    context.stderr.line(safeLine(`These files cannot be found as templates: ${files}.`, 1000));
  }
  if (hadPassword) {
    context.stderr.line('The password in the URL was not stored; let git know it before you update the pack.');
  }
  return ok(exitCode.done);
}

function describe({ note, templates }: AddedPack): string[] {
  const { name, source, ref = 'commit', commit } = note;
  const count = plural(templates.length, 'template');
  const head = `Added pack ${name} with ${count} from ${source} (${ref} ${commit.slice(0, 10)}):`;
  return [safeLine(head, 400), ...templates.map((template) => `  ${safeLine(template, 200)}`)];
}

/** Names what a pack can start. */
export function printPowers({ stderr }: Context, powers: readonly string[]): void {
  if (powers.length === 0) return;
  stderr.line('These files can start programs in your sessions; read them before you use the pack:');
  for (const power of powers) stderr.line(`  ${safeLine(power, 400)}`);
}
