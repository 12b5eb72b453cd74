/** `group create`: a new group, empty or from a workflow; its id alone on stdout. */
import type { Command } from '@commander-js/extra-typings';
import { createNewGroup, type NewGroup } from '../../../app/create/new-group.ts';
import { type GroupTemplates, groupTemplates } from '../../../app/create/template-choice.ts';
import { defined } from '../../../core/defined.ts';
import { groupSettings } from '../../../core/definitions.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import { defaultGroupConfig, type GroupConfig } from '../../../core/group.ts';
import { checkSlug } from '../../../core/id.ts';
import { parseGiven, resolveVariables } from '../../../template/variables.ts';
import { safeJson } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { collect } from '../../options/option-values.ts';
import { addGroupSettings, type GroupOptions, givenSettings } from '../../options/setting-options.ts';

const example = `
Example:
  $ claude-code-agent group create auth-refactor --name "Auth refactor" --max-budget-usd 10
  20260104-143022-auth-refactor
  $ claude-code-agent group create upgrade --from cross-repo-change.yaml --var ticket=ABC-12`;

export function define(command: Command, context: Context): void {
  const described = command
    .description('Creates a session group and prints its id. Add sessions with: session add.')
    .argument('<slug>', 'short name in lower-case letters, digits and hyphens');
  addGroupSettings(described, false);
  described
    .option('--from <workflow>', 'path of a workflow file, "-" for standard input, or name of a workflow template')
    .option('--var <name=value>', 'value for a variable of the workflow or of templates; may be repeated', collect)
    .option('--json', 'one JSON document: {"group", "sessions"}')
    .addHelpText('after', example)
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

async function create(context: Context, wanted: Wanted, json: boolean): Promise<Work> {
  const root = context.root();
  if (!root.ok) return root;
  const slug = checkSlug(wanted.slug);
  if (!slug.ok) return slug;
  const templates = groupTemplates(context, wanted);
  if (!templates.ok) return templates;
  const group = wanted.from === undefined ? emptyGroup(wanted) : await fromWorkflow(context, wanted, templates.value);
  if (!group.ok) return group;
  const { definition } = group.value;
  const replaced = definition.configTemplate;
  if (replaced !== undefined && templates.value.definition.configTemplate !== undefined) {
    context.stderr.line(`The config template ${replaced.name} of the workflow is replaced by --config-template.`);
  }
  const created = createNewGroup(context, root.value, {
    ...group.value,
    definition: {
      ...definition,
      slug: slug.value,
      ...defined({ name: wanted.name, description: wanted.description }),
      config: { ...definition.config, ...wanted.config },
      ...templates.value.definition,
    },
    configTemplates: [...group.value.configTemplates, ...templates.value.configTemplates],
  });
  if (!created.ok) return created;
  const { group: made, sessions } = created.value;
  context.stdout.line(json ? safeJson({ group: made.id, sessions: [...sessions.keys()] }, 2) : made.id);
  return ok(exitCode.done);
}

/** What the templates of the command line ask for may be given as well. The loader comes only when it is needed. */
async function fromWorkflow(
  context: Context,
  { from = '', vars }: Wanted,
  { configTemplates }: GroupTemplates,
): Promise<Result<NewGroup>> {
  const specs = configTemplates.flatMap(({ variables }) => variables);
  const { readNamedWorkflow } = await import('../../options/workflow-argument.ts');
  const group = await readNamedWorkflow(
    context,
    from,
    vars,
    specs.map(({ name }) => name),
  );
  if (!group.ok || specs.length === 0) return group;
  const given = parseGiven(vars);
  if (!given.ok) return given;
  const { definition } = group.value;
  const known = { ...definition.variables, ...given.value };
  const { world, cwd } = context;
  const { values, problems } = resolveVariables(specs, known, { world, folder: cwd });
  if (problems.length > 0) {
    return fail('usage', `The config template: ${problems.join('; ')}.`, 'Give variables as --var name=value.');
  }
  return ok({ ...group.value, definition: { ...definition, variables: { ...definition.variables, ...values } } });
}

function emptyGroup({ slug, vars }: Wanted): Result<NewGroup> {
  const variables = parseGiven(vars);
  if (!variables.ok) return variables;
  const isEmpty = Object.keys(variables.value).length === 0;
  return ok({
    definition: {
      slug,
      name: slug,
      description: '',
      config: defaultGroupConfig,
      ...(isEmpty ? {} : { variables: variables.value }),
    },
    sessions: [],
    configTemplates: [],
  });
}
