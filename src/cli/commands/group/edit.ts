/** `group edit`: other settings for a group, and the sessions that a workflow adds or changes; while it runs, too. */
import type { Command } from '@commander-js/extra-typings';
import { type EditedGroup, editGroup, type GroupEditOptions } from '../../../app/create/edit-group.ts';
import { whileWaiting } from '../../../app/request.ts';
import { loadReferredGroup } from '../../../app/resolve.ts';
import { see } from '../../../core/advice.ts';
import { groupSettings } from '../../../core/definitions.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import type { GroupId, SessionDefinition } from '../../../core/group.ts';
import { plural } from '../../../view/format.ts';
import { safeJson } from '../../../view/terminal-text.ts';
import { sessionTitle, settingWords } from '../../../view/wording.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { collect } from '../../options/option-values.ts';
import { readPipedYaml, standardInput } from '../../options/prompt-source.ts';
import { addGroupSettings, type GroupOptions, givenSettings } from '../../options/setting-options.ts';

const example = `
Example:
  $ claude-code-agent group edit auth-refactor --concurrent 5 --max-budget-usd 20
  $ claude-code-agent group edit auth-refactor --file change.yaml     what the file adds or changes`;

export function define(command: Command, context: Context): void {
  const described = command
    .description(
      'Changes a group, while it runs, too; only what is given becomes another. With --file sessions of the workflow ' +
        'that the group does not have are added, and those of the same name that are another one there are changed. ' +
        'Completed sessions stay as they are, and so do those that the file does not name.',
    )
    .argument('<group>', 'id, unique prefix or slug');
  addGroupSettings(described, true);
  described
    .option('--file <workflow>', 'path of a workflow file, name of a workflow template, or "-" for standard input')
    .option('--var <name=value>', 'value for a variable of the workflow or of templates; may be repeated', collect)
    .option('--json', 'one JSON document: the group, and what has changed')
    .addHelpText('after', example)
    .action((reference, given) => context.run(() => edit(context, reference, given)));
}

interface Given extends GroupOptions {
  readonly file?: string | undefined;
  readonly var?: readonly string[] | undefined;
  readonly json?: true | undefined;
}

async function edit(context: Context, reference: string, given: Given): Promise<Work> {
  const group = loadReferredGroup(context, reference);
  if (!group.ok) return group;
  const { json, ...options } = given;
  if (Object.values(options).every((value) => value === undefined)) {
    return fail('usage', 'Nothing was given that is to change.', see('group', 'edit', '--help'));
  }
  const { name, description, template, configTemplate, file, var: vars = [] } = given;
  const config: GroupEditOptions['config'] = givenSettings(groupSettings, options);
  const workflow = file === standardInput ? await readPiped(context) : ok(file);
  if (!workflow.ok) return workflow;
  const edit: GroupEditOptions = {
    config,
    name,
    description,
    template,
    configTemplate,
    workflow: workflow.value,
    vars,
  };
  const edited = await whileWaiting(context, group.value, editGroup(context, group.value, edit));
  if (!edited.ok) return edited;
  if (json) context.stdout.line(safeJson(forScripts(group.value.groupId, edited.value), 2));
  else for (const line of linesOf(group.value.groupId, edited.value)) context.stdout.line(line);
  return ok(exitCode.done);
}

async function readPiped(context: Context): Promise<Result<{ readonly text: string }>> {
  const text = await readPipedYaml(context);
  return text.ok ? ok({ text: text.value }) : text;
}

const titleOf = ({ id, name }: SessionDefinition) => sessionTitle(id, name);

function linesOf(groupId: GroupId, { changed, added, edited, kept }: EditedGroup): string[] {
  const isSame = changed.length === 0 && added.length === 0 && edited.length === 0;
  return [
    ...(isSame ? [`${groupId} is like that already.`] : []),
    ...(changed.length === 0 ? [] : [`Changed ${groupId}: ${settingWords(changed)}.`]),
    ...(added.length === 0
      ? []
      : [`Added ${plural(added.length, 'session')}: ${added.map(({ name }) => name).join(', ')}.`]),
    ...edited.map(({ session, changed }) => `Changed ${titleOf(session)}: ${settingWords(changed)}.`),
    ...kept.map((session) => `${titleOf(session)} is completed, and stays as it is.`),
  ];
}

function forScripts(group: GroupId, { changed, added, edited, kept }: EditedGroup): object {
  return {
    group,
    changed,
    added: added.map(({ name }) => name),
    edited: edited.map(({ session, changed }) => ({ session: session.id, changed })),
    kept: kept.map(({ id }) => id),
  };
}
