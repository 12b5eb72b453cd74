/** Checks a template, a folder of templates or a project file. */
import { basename, dirname, extname, join, resolve } from 'node:path';
import { readBackCheck } from '../../claude/launch/settings.ts';
import { ok, type Result } from '../../core/failure.ts';
import { type Problem, wholeFile, yamlBytesMax } from '../../store/yaml-text.ts';
import { loadConfigTemplate, renderConfigTemplate } from '../../template/config-template.ts';
import {
  type FoundTemplate,
  kindFolders,
  type TemplatePlace,
  templateKinds,
  templatesIn,
} from '../../template/places.ts';
import { isProgramName, loadPromptTemplate } from '../../template/prompt-template.ts';
import { decodeText, readTextFile } from '../../template/text-file.ts';
import { exampleValue } from '../../template/variables.ts';
import { isProjectFile, loadProjectFile } from '../../template/workflow/project-file.ts';
import { loadWorkflow } from '../../template/workflow.ts';
import type { AppContext } from '../app-context.ts';
import { kindOfPath, type NamedTemplate, placesFor } from '../create/named-template.ts';
import { lookAt, tryPath } from '../path-argument.ts';

type Checkable = Pick<NamedTemplate, 'kind' | 'path'>;

export interface TemplateCheckResult {
  readonly isFolder: boolean;
  readonly templates: readonly { readonly kind: Checkable['kind'] | 'project'; readonly path: string }[];
  readonly problems: readonly Problem[];
}

/** All problems of the templates at an absolute path. Fails with `usage` if it cannot be a template. */
export function checkTemplates(context: AppContext, path: string): Result<TemplateCheckResult> {
  if (isProjectFile(path)) {
    // A project file is not a template, but is checked by the same command.
    const loaded = loadProjectFile(context.world, path);
    return ok({ isFolder: false, templates: [{ kind: 'project', path }], problems: loaded.ok ? [] : loaded.problems });
  }
  const kind = kindOfPath(context, path);
  if (!kind.ok) return kind;
  if (kind.value === 'config' && isTemplateFolder(context, path)) {
    const { templates, strays, problems } = checkFolder(context, path);
    return ok({ isFolder: true, templates, problems: [...strays, ...problems] });
  }
  const template = { kind: kind.value, path };
  return ok({ isFolder: false, templates: [template], problems: problemsOf(context, template) });
}

/** `strays`: files in it that no template name leads to. */
export function checkFolder(context: AppContext, folder: string) {
  const found = templateKinds.map((kind) => ({
    kind,
    templates: templatesIn(context.world, { folder, origin: 'environment' }, kind),
  }));
  const templates = found.flatMap((one) => one.templates);
  const strays = found.flatMap((one) => straysIn(context, join(folder, kindFolders[one.kind]), one));
  return { templates, strays, problems: templates.flatMap((template) => problemsOf(context, template)) };
}

function isTemplateFolder({ world }: AppContext, folder: string): boolean {
  return templateKinds.some((kind) => {
    const found = lookAt(world.files, join(folder, kindFolders[kind]));
    return found.ok && found.value === 'folder';
  });
}

const namingRules = {
  prompt: 'prompts are named NAME.md',
  config: 'configs are folders',
  workflow: 'workflows are named NAME.yaml',
};
const otherFiles = /^(?:\..*|README(?:\.\w+)?|Thumbs\.db|desktop\.ini)$/i;

function straysIn(
  { world }: AppContext,
  folder: string,
  { kind, templates }: { readonly kind: Checkable['kind']; readonly templates: readonly FoundTemplate[] },
): Problem[] {
  const twice = templates
    .filter(({ name }, index) => templates.findIndex((other) => other.name === name) < index)
    .map(({ path }) => wholeFile(path, 'is ignored: another file here has the same name'));
  const listed = tryPath(() => world.files.list(folder));
  if (!listed.ok) return [...twice, wholeFile(folder, listed.trouble)];
  const rule = `${namingRules[kind]}, with letters, digits, "-", "_" or "." in the name, 64 at most`;
  const unnamed = listed.value
    .filter((name) => !otherFiles.test(name) && templates.every(({ path }) => path !== join(folder, name)))
    .map((name) => wholeFile(join(folder, name), `cannot be used: ${rule}`));
  return [...twice, ...unnamed];
}

function problemsOf(context: AppContext, { kind, path }: Checkable): readonly Problem[] {
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

/** Includes problems for which claude would ignore the settings. */
function configProblems({ world }: AppContext, folder: string): readonly Problem[] {
  const loaded = loadConfigTemplate(world, folder);
  if (!loaded.ok) return loaded.problems;
  const values = Object.fromEntries(loaded.value.variables.map((spec) => [spec.name, exampleValue(spec)]));
  const { files, problems } = renderConfigTemplate(loaded.value, values, (name) =>
    isProgramName(name) ? 'example' : undefined,
  );
  const settings = files.find(({ path }) => path === 'settings.json');
  if (problems.length > 0 || settings === undefined) return problems;
  const checked = readBackCheck('the file', decodeText(settings.bytes));
  if (checked.ok) return [];
  return [wholeFile(resolve(folder, settings.path), checked.failure.message.replace(/\.$/, ''))];
}

/** Templates beside the workflow take precedence, because the folder may not be installed yet. */
function workflowProblems(context: AppContext, path: string): readonly Problem[] {
  const read = readTextFile(context.world, path, yamlBytesMax);
  if (!read.ok) return [wholeFile(path, read.trouble)];
  const folder = dirname(path);
  const origin = 'environment' as const;
  const beside = basename(folder) === 'workflows' ? [{ folder: dirname(folder), origin }] : [];
  const file = { file: path, name: basename(path, extname(path)), baseFolder: folder };
  return workflowTextProblems(context, file, read.text, beside);
}

export interface WorkflowSource {
  /** The name of the source in problems. */
  readonly file: string;
  readonly name: string;
  /** Where relative paths start. */
  readonly baseFolder: string;
}

/** Problems of a workflow that may come from standard input. */
export function workflowTextProblems(
  context: AppContext,
  file: WorkflowSource,
  text: string,
  beside: readonly TemplatePlace[] = [],
): readonly Problem[] {
  const places = (projects: readonly string[]) => [...beside, ...placesFor(context, projects)];
  const { world, env } = context;
  const loaded = loadWorkflow({ world, ...file, text, home: env.HOME, places, given: null });
  return loaded.ok ? [] : loaded.problems;
}
