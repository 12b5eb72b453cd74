/** `template add`, `update` and `remove`: packs of templates from git repositories. */
import type { Command } from '@commander-js/extra-typings';
import { type AddedPack, addPack, packsOf, type UpdatedPack, updatePacks } from '../../../app/template/packs.ts';
import { advise, commandText } from '../../../core/advice.ts';
import { describeFailure, publicFailure } from '../../../core/failure.ts';
import { findPack, type InstalledPack, type PackNote, removePack, withPacks } from '../../../template/pack.ts';
import { plural } from '../../../view/format.ts';
import { safeLine } from '../../../view/terminal-text.ts';
import { type CommandResult, type Context, confirmed, need, refuse, refuseWith } from '../../context.ts';

const addExample = `
Example:
  $ claude-code-agent template add https://git.example.org/team/templates.git
  $ claude-code-agent template add git@git.example.org:team/templates.git@v2 --name team
  $ claude-code-agent template add ../team-templates`;

export function definePackAdd(command: Command, context: Context): void {
  command
    .description(
      'Fetch a pack of templates from a git repository, at one commit. A pack has prompts/, configs/ or ' +
        'workflows/ at its top level, in templates/ or in .claude-code-agent/templates/. Templates control ' +
        'what sessions do: review a pack before you use it.',
    )
    .argument('<source>', 'URL or local path of a git repository; URL@REF also works')
    .option('--ref <ref>', 'branch, tag or full commit id')
    .option('--name <name>', 'name of the pack (default: the last word of the source)')
    .option('--json', 'one JSON document: the contents of pack.json')
    .addHelpText('after', addExample)
    .action((source, given) =>
      context.run(async () => {
        const added = need(await addPack(context, source, given));
        const { note, powers, strays, hadPassword } = added;
        if (given.json === true) context.stdout.json(note);
        else context.stdout.lines(describe(added));
        printPowers(context, powers);
        if (strays.length > 0) {
          const files = strays.map(({ file }) => file).join(', ');
          context.stderr.line(safeLine(`These files cannot be found as templates: ${files}.`, 1000));
        }
        if (hadPassword) {
          context.stderr.line(
            'The password in the URL was not stored. Configure it in git before you update the pack.',
          );
        }
      }),
    );
}

function describe({ note, templates }: AddedPack): string[] {
  const { name, source, ref = 'commit', commit } = note;
  const count = plural(templates.length, 'template');
  const head = `Added pack ${name} with ${count} from ${source} (${ref} ${commit.slice(0, 10)}):`;
  return [safeLine(head, 400), ...templates.map((template) => `  ${safeLine(template, 200)}`)];
}

export function printPowers({ stderr }: Context, powers: readonly string[]): void {
  if (powers.length === 0) return;
  stderr.line('These files can start programs in your sessions. Review them before you use the pack:');
  for (const power of powers) stderr.line(`  ${safeLine(power, 400)}`);
}

const updateExample = `
Example:
  $ claude-code-agent template update
  $ claude-code-agent template update team --ref v3`;

export function definePackUpdate(command: Command, context: Context): void {
  command
    .description('Fetch a template pack again, or all packs. Local changes are lost.')
    .argument('[name]', 'name of the pack (default: all)')
    .option('--ref <ref>', 'use this branch, tag or full commit id from now on')
    .option('--json', 'one JSON document: an array with one object per pack')
    .addHelpText('after', updateExample)
    .action((name, { ref, json }) =>
      context.run(async () => {
        if (name === undefined && ref !== undefined) {
          const next = advise('Name the pack', ['template', 'update', 'NAME', '--ref', 'REF']);
          return refuse('usage', '--ref needs the name of a pack.', next);
        }
        const outcomes = need(await updatePacks(context, name, ref));
        if (json === true) context.stdout.json(outcomes.map(plain));
        else show(context, outcomes);
        for (const outcome of outcomes) if (outcome.status === 'updated') printPowers(context, outcome.powers);
        return verdict(outcomes);
      }),
    );
}

function show(context: Context, outcomes: readonly UpdatedPack[]): void {
  if (outcomes.length === 0) {
    context.stderr.line(`There are no template packs. Add one with: ${commandText(['template', 'add', 'SOURCE'])}`);
  }
  for (const outcome of outcomes) {
    const { name, status } = outcome;
    // `verdict` prints failures on stderr.
    if (status === 'unchanged') context.stdout.line(`${name}: up to date (${commitOf(outcome.note)})`);
    if (status === 'updated') {
      context.stdout.line(`${name}: updated, ${commitOf(outcome.from)} -> ${commitOf(outcome.note)}`);
    }
  }
}

function commitOf({ ref, commit }: PackNote): string {
  return `${ref === undefined ? '' : `${ref} `}${commit.slice(0, 10)}`;
}

function plain(outcome: UpdatedPack): object {
  if (outcome.status === 'failed') return { ...outcome, problem: publicFailure(outcome.problem) };
  if (outcome.status !== 'updated') return outcome;
  const { name, status, from, note, templates } = outcome;
  return { name, status, from: { ref: from.ref, commit: from.commit }, note, templates };
}

function verdict(outcomes: readonly UpdatedPack[]): CommandResult {
  const failed = outcomes.flatMap((outcome) => (outcome.status === 'failed' ? [outcome] : []));
  const [first] = failed;
  if (first === undefined) return;
  const { reason, message } = first.problem;
  const stays = { ...first.problem, message: `Pack ${first.name} was not updated: ${message}` };
  if (failed.length === 1) return refuseWith(stays);
  const all = failed.map(({ name, problem }) => `${name}: ${describeFailure(problem)}`);
  return refuse(reason, `${plural(failed.length, 'pack')} were not updated: ${all.join(' ')}`, '');
}

const removeExample = `
Example:
  $ claude-code-agent template remove team
  $ claude-code-agent template remove team --force`;

export function definePackRemove(command: Command, context: Context): void {
  command
    .description(
      'Remove a template pack. Groups keep the templates they were created with. Asks for confirmation ' +
        'unless --force is given.',
    )
    .argument('<name>', 'name of the pack')
    .option('-y, --yes', 'answer every question with yes')
    .option('--force', 'do not ask')
    .option('--json', 'one JSON document: {"pack"}')
    .addHelpText('after', removeExample)
    .action((name, { yes, force, json }) =>
      context.run(async () => {
        const packs = need(packsOf(context));
        const pack = need(await withPacks(context.world, packs, () => findPack(context.world, packs, name)));
        const sure = await confirmed(context, question(pack), yes === true || force === true);
        if (!sure) {
          context.stderr.line('Nothing was removed.');
          return;
        }
        // Look again: another command may have removed the pack during the question.
        const gone = await withPacks(context.world, packs, () => {
          const found = findPack(context.world, packs, name);
          if (found.ok) removePack(context.world, packs, name);
          return found;
        });
        need(gone);
        context.stderr.line(`Removed pack ${name}.`);
        if (json) context.stdout.json({ pack: name });
      }),
    );
}

function question({ name, folder, note }: InstalledPack): string {
  if (note === null) return `Remove the folder ${folder}? Its source is unknown.`;
  return `Remove pack ${name} from ${note.source}?`;
}
