/** `group edit`: other settings for a group, and the sessions that a workflow adds or changes; while it runs, too. */
import { type Command, Option } from '@commander-js/extra-typings';
import { type EditedGroup, editGroup, type GroupEditOptions } from '../../../app/create/edit-group.ts';
import { whileWaiting } from '../../../app/request.ts';
import { loadReferredGroup } from '../../../app/resolve.ts';
import { see } from '../../../core/advice.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import type { GroupConfig, GroupId, SessionDefinition } from '../../../core/group.ts';
import { plural } from '../../../view/format.ts';
import { safeJson } from '../../../view/terminal-text.ts';
import { sessionTitle, settingWords } from '../../../view/wording.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { type ConfigOptions, configOf, withGroupOptions } from '../../options/group-options.ts';
import { collect } from '../../options/option-values.ts';
import { readPipedYaml, standardInput } from '../../options/prompt-source.ts';

const example = `
Example:
  $ claude-code-agent group edit auth-refactor --concurrent 5 --max-budget-usd 20
  $ claude-code-agent group edit auth-refactor --file change.yaml     what the file adds or changes`;

/** Options that take a setting away. */
const without: Readonly<Record<string, readonly [keyof GroupConfig, string]>> = {
  model: ['model', "claude's own default for sessions that name no model"],
  'max-budget-usd': ['maxBudgetUsd', 'no cap'],
  'commands-at-once': ['commandsAtOnce', 'as many as there are cores'],
  'on-limit': ['onLimit', 'the default'],
  'min-free-memory': ['minFreeMemoryBytes', 'the default'],
  'share-checkouts': ['shareCheckouts', 'one session at a time in a checkout'],
  'accept-claude': ['acceptClaude', 'no version of claude that failed a check'],
  where: ['where', 'on any machine, once there is a fleet'],
};

export function define(command: Command, context: Context): void {
  const described = command
    .description(
      'Changes a group, while it runs, too; only what is given becomes another. With --file sessions of the workflow ' +
        'that the group does not have are added, and those of the same name that are another one there are changed. ' +
        'Completed sessions stay as they are, and so do those that the file does not name.',
    )
    .argument('<group>', 'id, unique prefix or slug');
  const options = withGroupOptions(described);
  for (const [name, [, what]] of Object.entries(without)) options.addOption(new Option(`--no-${name}`, what));
  options
    .option('--file <workflow>', 'path of a workflow file, name of a workflow template, or "-" for standard input')
    .option('--var <name=value>', 'value for a variable of the workflow or of templates; may be repeated', collect)
    .option('--json', 'one JSON document: the group, and what has changed')
    .addHelpText('after', example)
    .action((reference, given) => context.run(() => edit(context, reference, given)));
}

interface Given {
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  readonly template?: string | undefined;
  readonly configTemplate?: string | undefined;
  readonly file?: string | undefined;
  readonly var?: readonly string[] | undefined;
  readonly json?: true | undefined;
}

async function edit(context: Context, reference: string, given: Given & object): Promise<Work> {
  const group = loadReferredGroup(context, reference);
  if (!group.ok) return group;
  const { json, ...options } = given;
  if (Object.values(options).every((value) => value === undefined)) {
    return fail('usage', 'Nothing was given that is to change.', see('group', 'edit', '--help'));
  }
  const { name, description, template, configTemplate, file, var: vars = [] } = given;
  const config = configChanges(given);
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

/** `--no-model` gives false for `model`. */
function configChanges(given: object): GroupEditOptions['config'] {
  const keys = new Map(
    Object.entries(without).map(([option, [name]]) => [
      option.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      name,
    ]),
  );
  const entries = Object.entries(given);
  const removed = entries.flatMap(([key, value]) => (value === false ? (keys.get(key) ?? []) : []));
  const kept = Object.fromEntries(entries.filter(([key, value]) => value !== false || !keys.has(key)));
  return { ...configOf(kept as ConfigOptions), ...Object.fromEntries(removed.map((name) => [name, null])) };
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
