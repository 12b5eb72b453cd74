/**
 * template/: prompts, configs and workflows: found, checked and filled in. This file: workflows, YAML files that each
 * describe a group and its sessions. Loading one gives drafts that lack only ids and the time, or all problems of the
 * file.
 */

import { resolve } from 'node:path';
import { defined } from '../core/defined.ts';
import { groupSettings, sharedSettings } from '../core/definitions.ts';
import type { GroupConfig } from '../core/group.ts';
import { quoted, slugify } from '../core/id.ts';
import { hint } from '../core/nearest.ts';
import { hasControl, storedSettings } from '../core/setting-values.ts';
import { readYaml, type Validated } from '../store/yaml-text.ts';
import type { World } from '../system/world.ts';
import type { TemplatePlace } from './places.ts';
import { settingsIn } from './setting-schema.ts';
import { exampleValue, type GivenVariables, resolveVariables, type VariableSpec } from './variables.ts';
import { expandSessions } from './workflow/matrix.ts';
import { collapsedLine, fillYamlText, meaningsIn, Problems } from './workflow/problems.ts';
import { type ProjectCommand, projectFileFor } from './workflow/project-file.ts';
import { checkForm, type GroupSpec, type WorkflowFile } from './workflow/schema.ts';
import { draftSession, type ProjectFolder, templateOrProblem, type WorkflowDraft } from './workflow/session.ts';
import { wire } from './workflow/session-references.ts';
import { memoize, noRepository, TemplateCache } from './workflow/template-cache.ts';
import { shellCommand } from './workflow/work-settings.ts';

export interface WorkflowInput {
  readonly world: World;
  readonly file: string;
  readonly text: string;
  /** The file's name without its extension: the group's slug when the file names none. */
  readonly name: string;
  /** Base folder of relative paths in the file. */
  readonly baseFolder: string;
  /** Further names that may be given, because other parts use them. */
  readonly alsoKnown?: readonly string[];
  /** Base folder of relative paths in `given`; default: `baseFolder`. */
  readonly givenFolder?: string;
  /** The value of `~/`; without it such a path is a problem. */
  readonly home: string | undefined;
  /** Null checks without values and projects: variables and patterns stay as written. */
  readonly given: GivenVariables | null;
  /** The template folders of a session; `projects` are folders, nearest first. */
  readonly places: (projects: readonly string[]) => readonly TemplatePlace[];
  /** The git repository of a folder, as in SessionDefinition; null for none. */
  readonly repositoryOf?: (folder: string) => string | null;
}

export function loadWorkflow(input: WorkflowInput): Validated<WorkflowDraft> {
  const { file } = input;
  // A byte order mark would only shift the columns of the first line.
  const text = input.text.replace(/^\ufeff/, '');
  const yaml = readYaml({ text, file });
  if (!yaml.ok) return yaml;
  const problems = new Problems(yaml.value, text, file);
  const form = checkForm(yaml.value, problems);
  const draft = form === undefined ? undefined : draftOf(form, input, problems);
  return draft === undefined || problems.size > 0 ? { ok: false, problems: problems.all } : { ok: true, value: draft };
}

function draftOf(form: WorkflowFile, input: WorkflowInput, problems: Problems): WorkflowDraft {
  const { world, baseFolder, home, repositoryOf } = input;
  const specs = form.vars ?? [];
  const { values, looksUp } = valuesOf(specs, input, problems);
  const about = headerOf(form, input.name, values, problems);
  const group = form.group ?? {};
  const shelf = new TemplateCache(input);
  const groupFolder = settingsIn(sharedSettings, group).untrusted === true ? noRepository : null;
  const groupConfigTemplate =
    group.configTemplate === undefined
      ? undefined
      : templateOrProblem(shelf.config(group.configTemplate, groupFolder), ['group', 'configTemplate'], problems);
  const meanings = meaningsIn({ variables: [values] });
  const matrix = { world, baseFolder, home, looksUp, problems };
  const families = expandSessions(form.sessions, meanings, matrix);
  const wiring = wire(families, problems);
  const once = memoize();
  const lookAt = (folder: string): ProjectFolder =>
    looksUp && repositoryOf !== undefined
      ? { repository: repositoryOf(folder), file: projectFileFor(world, folder) }
      : { repository: undefined, file: { ok: true, value: null } };
  const context = {
    ...{ ...matrix, shelf, group, about, groupConfigTemplate, variables: specs, values, families, wiring },
    ...{ checkedConfigs: new Set<string>(), isolations: new Map(), projectCommands: new Map<string, ProjectCommand>() },
    projectAt: (folder: string) => once(folder, () => lookAt(folder)),
  };
  const order = wiring?.order ?? [...families.values()].flatMap(({ instances }) => instances);
  const sessions = order.map((instance) => draftSession(instance, context));
  // No session of the file uses it, but later ones will.
  if (group.template !== undefined && Object.values(form.sessions).every(({ template }) => template !== undefined)) {
    templateOrProblem(shelf.prompt(group.template, groupFolder), ['group', 'template'], problems);
  }
  return {
    ...about,
    config: configOf(group, problems),
    ...(group.template === undefined ? {} : { template: shelf.reference(group.template) }),
    ...defined({ configTemplate: groupConfigTemplate }),
    variables: values,
    sessions,
    workflow: { name: form.name ?? input.name, origin: input.file, digest: digestOf(input.text) },
    projectCommands: [...context.projectCommands.values()],
  };
}

/**
 * The values of the workflow's variables; one without a value stays as written, so that other problems are reported as
 * well.
 */
function valuesOf(
  specs: readonly VariableSpec[],
  { world, baseFolder, givenFolder, alsoKnown = [], given }: WorkflowInput,
  problems: Problems,
): { readonly values: Readonly<Record<string, string>>; readonly looksUp: boolean } {
  const context = { world, folder: baseFolder, ...defined({ givenFolder }) };
  const standIns = Object.fromEntries(specs.map((spec) => [spec.name, standInFor(spec, baseFolder)]));
  if (given === null) {
    const known = specs.filter((spec) => !spec.required && spec.type !== 'file');
    return { values: { ...standIns, ...resolveVariables(known, {}, context).values }, looksUp: false };
  }
  const resolved = resolveVariables(specs, given, context);
  for (const problem of resolved.problems) {
    const name = specs.find((spec) => problem.startsWith(`the variable "${spec.name}"`))?.name;
    const cure = problem.endsWith(' has no value') ? `; set it with --var ${name}=VALUE` : '';
    problems.at(name === undefined ? ['vars'] : ['vars', name], `${problem}${cure}`);
  }
  const names = specs.map(({ name }) => name);
  for (const name of resolved.unused.filter((one) => !alsoKnown.includes(one))) {
    const known = names.length === 0 ? '; the workflow has no variables' : `; it has ${names.join(', ')}`;
    problems.at(['vars'], `there is no variable ${quoted(name)} to set${hint(name, names) || known}`);
  }
  return { values: { ...standIns, ...resolved.values }, looksUp: resolved.problems.length === 0 };
}

function standInFor({ default: _default, ...spec }: VariableSpec, folder: string): string {
  const example = exampleValue(spec);
  return spec.type === 'path' ? resolve(folder, example) : example;
}

function headerOf(
  form: WorkflowFile,
  fileName: string,
  values: Readonly<Record<string, string>>,
  problems: Problems,
): Pick<WorkflowDraft, 'slug' | 'name' | 'description'> {
  const slug = form.name ?? slugify(fileName);
  if (slug === '') problems.at([], 'name is missing, and no slug can be derived from the file name');
  const meanings = meaningsIn({ variables: [values] });
  const line = (key: 'title' | 'description', text: string) => {
    const filled = collapsedLine(fillYamlText([key], text, meanings, problems).text);
    if (hasControl(filled)) problems.at([key], 'it contains control characters');
    return filled;
  };
  const name = form.title === undefined ? slug : line('title', form.title);
  if (name === '' && form.title !== undefined) problems.at(['title'], 'the title is blank');
  return { slug, name, description: form.description === undefined ? '' : line('description', form.description) };
}

function configOf(group: GroupSpec, problems: Problems): Partial<GroupConfig> {
  const config: Partial<GroupConfig> = storedSettings(groupSettings, settingsIn(groupSettings, group));
  if (config.onEvent === undefined) return config;
  // The shell would run a variable's value, so the command has none.
  const found = shellCommand(config.onEvent);
  if (!found.ok) problems.at(['group', 'onEvent'], `onEvent: ${found.problem}`);
  return found.ok ? { ...config, onEvent: found.command } : config;
}

function digestOf(text: string): string {
  return new Bun.CryptoHasher('sha256').update(text).digest('hex');
}
