/** `group create`, `edit` and `copy`. `create` and `copy` print the id alone on stdout. */
import { type Command, Option } from '@commander-js/extra-typings';
import { copyGroup } from '../../../app/create/copy-group.ts';
import { type EditedGroup, editGroup, type GroupEditOptions } from '../../../app/create/edit-group.ts';
import { type GroupTemplates, groupTemplates } from '../../../app/create/named-template.ts';
import { createNewGroup, type NewGroup } from '../../../app/create/new-group.ts';
import { whileWaiting } from '../../../app/request.ts';
import { loadReferredGroup } from '../../../app/resolve.ts';
import { see } from '../../../core/advice.ts';
import { defined } from '../../../core/defined.ts';
import { groupSettings } from '../../../core/definitions.ts';
import { defaultGroupConfig, type GroupConfig, type GroupId, type SessionDefinition } from '../../../core/group.ts';
import { checkSlug } from '../../../core/id.ts';
import { parseGiven, resolveVariables } from '../../../template/variables.ts';
import { plural } from '../../../view/format.ts';
import { safeJson } from '../../../view/terminal-text.ts';
import { sessionTitle, settingWords } from '../../../view/wording.ts';
import { type CommandResult, type Context, need, refuse } from '../../context.ts';
import { addGroupSettings, collect, type GroupOptions, givenSettings, parseText } from '../../options/options.ts';
import { readNamedWorkflow, readPipedYaml, standardInput } from '../../options/prompt-source.ts';

const createExample = `
Example:
  $ claude-code-agent group create auth-refactor --name "Auth refactor" --max-budget-usd 10
  20260104-143022-auth-refactor
  $ claude-code-agent group create upgrade --from cross-repo-change.yaml --var ticket=ABC-12`;

export function defineCreate(command: Command, context: Context): void {
  const described = command
    .description('Create a session group and print its id. Add sessions with: session add.')
    .argument('<slug>', 'short name in lower-case letters, digits and hyphens');
  addGroupSettings(described, false);
  described
    .option('--from <workflow>', 'workflow file, "-" for standard input, or name of a workflow template')
    .option('--var <name=value>', 'value of a workflow or template variable; may be repeated', collect)
    .option('--json', 'one JSON document: {"group", "sessions"}')
    .addHelpText('after', createExample)
    .action((slug, given) => {
      const { from, var: vars = [], json: _, ...options } = given;
      const { name, description, template, configTemplate }: GroupOptions = options;
      const config: Partial<GroupConfig> = givenSettings(groupSettings, options);
      const wanted = { slug, name, description, config, from, vars, template, configTemplate };
      return context.run(() => create(context, wanted, given.json === true));
    });
}

interface Wanted extends GroupOptions {
  readonly slug: string;
  readonly config: Partial<GroupConfig>;
  readonly from: string | undefined;
  readonly vars: readonly string[];
}

async function create(context: Context, wanted: Wanted, json: boolean): Promise<CommandResult> {
  const root = need(context.root());
  const slug = need(checkSlug(wanted.slug));
  const templates = need(groupTemplates(context, wanted));
  const group = wanted.from === undefined ? emptyGroup(wanted) : await fromWorkflow(context, wanted, templates);
  const { definition } = group;
  const replaced = definition.configTemplate;
  if (replaced !== undefined && templates.definition.configTemplate !== undefined) {
    context.stderr.line(`--config-template replaces the workflow's config template ${replaced.name}.`);
  }
  const created = need(
    createNewGroup(context, root, {
      ...group,
      definition: {
        ...definition,
        slug,
        ...defined({ name: wanted.name, description: wanted.description }),
        config: { ...definition.config, ...wanted.config },
        ...templates.definition,
      },
      configTemplates: [...group.configTemplates, ...templates.configTemplates],
    }),
  );
  const { group: made, sessions } = created;
  if (json) context.stdout.json({ group: made.id, sessions: [...sessions.keys()] });
  else context.stdout.line(made.id);
}

/** `--var` may also set variables of the config template. */
async function fromWorkflow(
  context: Context,
  { from = '', vars }: Wanted,
  { configTemplates }: GroupTemplates,
): Promise<NewGroup> {
  const specs = configTemplates.flatMap(({ variables }) => variables);
  const names = specs.map(({ name }) => name);
  const group = need(await readNamedWorkflow(context, from, vars, names));
  if (specs.length === 0) return group;
  const given = need(parseGiven(vars));
  const { definition } = group;
  const known = { ...definition.variables, ...given };
  const { world, cwd } = context;
  const { values, problems } = resolveVariables(specs, known, { world, folder: cwd });
  if (problems.length > 0) {
    return refuse('usage', `The config template: ${problems.join('; ')}.`, 'Give variables with --var name=value.');
  }
  return { ...group, definition: { ...definition, variables: { ...definition.variables, ...values } } };
}

function emptyGroup({ slug, vars }: Wanted): NewGroup {
  const variables = need(parseGiven(vars));
  const isEmpty = Object.keys(variables).length === 0;
  return {
    definition: {
      slug,
      name: slug,
      description: '',
      config: defaultGroupConfig,
      ...(isEmpty ? {} : { variables: variables }),
    },
    sessions: [],
    configTemplates: [],
  };
}

const editExample = `
Example:
  $ claude-code-agent group edit auth-refactor --concurrent 5 --max-budget-usd 20
  $ claude-code-agent group edit auth-refactor --file change.yaml     apply additions and changes in the file`;

export function defineGroupEdit(command: Command, context: Context): void {
  const described = command
    .description(
      'Change a group, even while it runs. Options that are not given keep their values. With --file, new ' +
        'sessions are added and sessions whose definition changed are updated. Completed sessions, and those ' +
        'not in the file, stay as they are.',
    )
    .argument('<group>', 'id, unique prefix or slug');
  addGroupSettings(described, true);
  described
    .option('--file <workflow>', 'workflow file, "-" for standard input, or name of a workflow template')
    .option('--var <name=value>', 'value of a workflow or template variable; may be repeated', collect)
    .option('--json', 'one JSON document: the group and the changes')
    .addHelpText('after', editExample)
    .action((reference, given) => context.run(() => edit(context, reference, given)));
}

interface EditOptions extends GroupOptions {
  readonly file?: string | undefined;
  readonly var?: readonly string[] | undefined;
  readonly json?: true | undefined;
}

async function edit(context: Context, reference: string, given: EditOptions): Promise<CommandResult> {
  const group = need(loadReferredGroup(context, reference));
  const { json, ...options } = given;
  if (Object.values(options).every((value) => value === undefined)) {
    return refuse('usage', 'No change was given.', see('group', 'edit', '--help'));
  }
  const { name, description, template, configTemplate, file, var: vars = [] } = given;
  const config: GroupEditOptions['config'] = givenSettings(groupSettings, options);
  const workflow = file === standardInput ? { text: need(await readPipedYaml(context)) } : file;
  const edit: GroupEditOptions = { config, name, description, template, configTemplate, workflow, vars };
  const edited = need(await whileWaiting(context, group, editGroup(context, group, edit)));
  if (json) context.stdout.json(forScripts(group.groupId, edited));
  else context.stdout.lines(linesOf(group.groupId, edited));
}

const titleOf = ({ id, name }: SessionDefinition) => sessionTitle(id, name);

function linesOf(groupId: GroupId, { changed, added, edited, kept }: EditedGroup): string[] {
  const isSame = changed.length === 0 && added.length === 0 && edited.length === 0;
  return [
    ...(isSame ? [`${groupId} already has these settings.`] : []),
    ...(changed.length === 0 ? [] : [`Changed ${groupId}: ${settingWords(changed)}.`]),
    ...(added.length === 0
      ? []
      : [`Added ${plural(added.length, 'session')}: ${added.map(({ name }) => name).join(', ')}.`]),
    ...edited.map(({ session, changed }) => `Changed ${titleOf(session)}: ${settingWords(changed)}.`),
    ...kept.map((session) => `${titleOf(session)} is completed and was not changed.`),
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

const copyExample = `
Example:
  $ claude-code-agent group run $(claude-code-agent group copy auth-refactor --real)
  $ claude-code-agent group copy auth-refactor --from web      redo web and its dependents`;

export function defineCopy(command: Command, context: Context): void {
  command
    .description(
      'Copy a group and print the new id. Sessions, settings and templates are copied as they are now. With ' +
        '--from, that session and its dependents run again; other completed sessions keep their results and ' +
        'branches at no cost. Branches that a copy uses are kept when the original group is deleted.',
    )
    .argument('<group>', 'id, unique prefix or slug')
    .addOption(new Option('--real', 'run the copy for real').conflicts('rehearse'))
    .option('--rehearse [script]', 'rehearse the copy (default: like the original)')
    .option('--from <session>', 'id, number or name of the first session to run again')
    .option('--name <text>', 'name for people (default: the same)', parseText)
    .option('--json', 'one JSON document: the group')
    .addHelpText('after', copyExample)
    .action((reference, { real, rehearse, from, name, json }) =>
      context.run(async () => {
        const group = need(loadReferredGroup(context, reference));
        const copied = need(await copyGroup(context, group, { from, name, rehearse: real ? false : rehearse }));
        context.stdout.line(json ? safeJson({ group: copied }, 2) : copied);
      }),
    );
}
