/** `template validate`: everything that is wrong with a template, or with a folder of templates, at once. */
import { basename, dirname, extname, resolve } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { readBackCheck } from '../../../claude/launch/settings.ts';
import { kindOfPath, type NamedTemplate, placesFor } from '../../../control/create/named-template.ts';
import { briefPath } from '../../../control/path-argument.ts';
import { ok } from '../../../core/failure.ts';
import { plural } from '../../../report/format.ts';
import { safeJson, safeLine } from '../../../report/terminal-text.ts';
import { inOrder, type Problem, problemsFailure, yamlBytesMax } from '../../../store/yaml-text.ts';
import { exampleValue, loadConfigTemplate, renderConfigTemplate } from '../../../template/config-template.ts';
import type { TemplatePlace } from '../../../template/places.ts';
import { isProgramName, loadPromptTemplate } from '../../../template/prompt-template.ts';
import { isTemplateFolder, lookThrough } from '../../../template/template-folder.ts';
import { readTextFile, textOf } from '../../../template/text-file.ts';
import { isProjectFile, loadProjectFile } from '../../../template/workflow/project-file.ts';
import { validateWorkflowFile } from '../../../template/workflow.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { readWorkflowText, standardInput } from '../../options/standard-input.ts';

const example = `
Example:
  $ claude-code-agent template validate prompts/code-review.md
  $ claude-code-agent template validate .claude-code-agent/templates
  $ claude-code-agent template validate .claude-code-agent/project.yaml`;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Checks a prompt (.md), a config (a folder), a workflow (.yaml), or a folder with prompts/, configs/ and ' +
        'workflows/, or a .claude-code-agent/project.yaml. Every problem is told with its file, line and column.',
    )
    .argument('<path>', 'file or folder; "-" is a workflow on standard input')
    .option('--json', 'one JSON document: {"templates", "problems"}')
    .addHelpText('after', example)
    .action((path, { json }) => context.run(() => validate(context, path, json === true)));
}

type Checkable = Pick<NamedTemplate, 'kind' | 'path'>;

async function validate(context: Context, typed: string, json: boolean): Promise<Work> {
  if (typed === standardInput) return validatePiped(context, json);
  const path = resolve(context.cwd, typed);
  if (isProjectFile(path)) return validateProjectFile(context, path, json);
  const kind = kindOfPath(context, path);
  if (!kind.ok) return kind;
  const within =
    kind.value === 'config' && isTemplateFolder(context.world, path) ? lookThrough(context.world, path) : null;
  const templates: readonly Checkable[] = within?.templates ?? [{ kind: kind.value, path }];
  const problems = [...(within?.problems ?? []), ...templates.flatMap((template) => problemsOf(context, template))];
  const fine =
    within === null
      ? `The ${kind.value} template is fine.`
      : `${plural(templates.length, 'template')} checked. No problems.`;
  return conclude(context, { source: briefPath(path), templates, problems, fine }, json);
}

async function validatePiped(context: Context, json: boolean): Promise<Work> {
  const text = await readWorkflowText(context, yamlBytesMax);
  if (!text.ok) return text;
  const source = 'standard input';
  const problems = textProblems(context, { file: source, name: 'workflow', baseFolder: context.cwd }, text.value);
  const templates = [{ kind: 'workflow', path: standardInput }] as const;
  return conclude(context, { source, templates, problems, fine: 'The workflow template is fine.' }, json);
}

/** No template, but written by the same people in the same folder. */
function validateProjectFile(context: Context, path: string, json: boolean): Work {
  const loaded = loadProjectFile(context.world, path);
  const problems = loaded.ok ? [] : loaded.problems;
  const templates = [{ kind: 'project', path }] as const;
  return conclude(context, { source: briefPath(path), templates, problems, fine: 'The project file is fine.' }, json);
}

interface Checked {
  /** What was looked at, for the beginning of a sentence. */
  readonly source: string;
  readonly templates: readonly { readonly kind: Checkable['kind'] | 'project'; readonly path: string }[];
  readonly problems: readonly Problem[];
  /** What is said when there are none. */
  readonly fine: string;
}

function conclude({ stdout }: Context, { source, templates, problems, fine }: Checked, json: boolean): Work {
  if (json) {
    const checked = templates.map(({ kind, path }) => ({ kind, path }));
    stdout.line(safeJson({ templates: checked, problems: inOrder(problems) }, 2));
    return ok(problems.length === 0 ? exitCode.done : exitCode.usage);
  }
  if (problems.length > 0) return problemsFailure(safeLine(source, 400), problems);
  stdout.line(fine);
  return ok(exitCode.done);
}

function problemsOf(context: Context, { kind, path }: Checkable): readonly Problem[] {
  switch (kind) {
    case 'prompt': {
      const prompt = loadPromptTemplate(context.world, path);
      return prompt.ok ? [] : prompt.problems;
    }
    case 'config':
      return configProblems(context, path);
    case 'workflow':
      return workflowProblems(context, path);
  }
}

/** Also what claude itself would ignore the settings for. */
function configProblems({ world }: Context, folder: string): readonly Problem[] {
  const loaded = loadConfigTemplate(world, folder);
  if (!loaded.ok) return loaded.problems;
  const values = Object.fromEntries(loaded.value.variables.map((spec) => [spec.name, exampleValue(spec)]));
  const { files, problems } = renderConfigTemplate(loaded.value, values, (name) =>
    isProgramName(name) ? 'example' : undefined,
  );
  const settings = files.find(({ path }) => path === 'settings.json');
  if (problems.length > 0 || settings === undefined) return problems;
  const checked = readBackCheck('the file', textOf(settings.bytes));
  if (checked.ok) return [];
  const file = resolve(folder, settings.path);
  return [{ file, line: 1, column: 1, message: checked.failure.message.replace(/\.$/, '') }];
}

/** Templates that lie beside the workflow count first: the folder may be on its way to where it is looked for. */
function workflowProblems(context: Context, path: string): readonly Problem[] {
  const read = readTextFile(context.world, path, yamlBytesMax);
  if (!read.ok) return [{ file: path, line: 1, column: 1, message: read.trouble }];
  const folder = dirname(path);
  const beside = basename(folder) === 'workflows' ? [{ folder: dirname(folder), origin }] : [];
  return textProblems(
    context,
    { file: path, name: basename(path, extname(path)), baseFolder: folder },
    read.text,
    beside,
  );
}

interface WorkflowPlace {
  readonly file: string;
  readonly name: string;
  readonly baseFolder: string;
}

function textProblems(
  context: Context,
  place: WorkflowPlace,
  text: string,
  beside: readonly TemplatePlace[] = [],
): readonly Problem[] {
  const places = (projects: readonly string[]) => [...beside, ...placesFor(context, projects)];
  return validateWorkflowFile(context.world, { ...place, text, home: context.env.HOME, places });
}

const origin = 'environment' as const;
