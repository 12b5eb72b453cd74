/**
 * template/workflow/: from the text of a workflow to its sessions. This file: one session of an expanded workflow, with
 * its project, task, templates and settings all filled in.
 */

import { defined } from '../../core/defined.ts';
import { configSettings, plainSettings, type Setting, type Settings } from '../../core/definitions.ts';
import type { SessionConfig, SessionDefinition } from '../../core/group.ts';
import { quoted } from '../../core/id.ts';
import { storedSettings } from '../../core/setting-values.ts';
import { hasControl } from '../../core/values.ts';
import { configTemplateLayer, resolveConfig } from '../config-layers.ts';
import { type ConfigTemplate, renderConfigTemplate } from '../config-template.ts';
import { lookupSurroundings } from '../render.ts';
import { settingsIn } from '../setting-schema.ts';
import type { VariableSpec } from '../variables.ts';
import type { SessionDraft } from './draft.ts';
import { type Instance, matrixTexts } from './expand.ts';
import { realFolder, resolvePath } from './matrix.ts';
import { draftReferences, taskOf } from './prompt.ts';
import type { SessionSpec } from './schema.ts';
import { fillTemplate, fillYamlText, meaningsIn, oneLine, type Scope } from './text.ts';
import { type SessionContext, type SessionView, taken, templateFolder, valuesFor } from './view.ts';
import { workOf } from './work.ts';

/** The draft; what is wrong goes to `problems`, and then the draft is of no use. */
export function draftSession(instance: Instance, context: SessionContext): SessionDraft {
  const { problems, about } = context;
  const { family } = instance;
  const { spec } = family;
  const path = ['sessions', family.key];
  const hint = problems.hint.bind(problems);
  const matrix = spec.matrix === undefined ? {} : { matrix: matrixTexts(instance) };
  const early: Scope = { variables: [context.values], ...matrix };
  const projectPath = projectOf(instance, early, context);
  const surroundings = lookupSurroundings({ projectPath, session: instance.key, group: about });
  const scope: Scope = { ...early, surroundings };
  const meanings = meaningsIn(scope, hint);
  const vars = Object.fromEntries(
    Object.entries(spec.vars ?? {}).map(([name, value]) => {
      return [name, fillYamlText([...path, 'vars', name], String(value), meanings, problems).text];
    }),
  );
  const view: SessionView = { instance, spec, path, projectPath, scope, vars };
  const configTemplate = ownConfigTemplate(view, context);
  const inherited =
    settingsIn(configSettings, spec.config ?? {}).inheritFromGroup === false ? undefined : context.groupConfigTemplate;
  const configs = [inherited, configTemplate].filter((one) => one !== undefined);
  const task = taskOf(view, context);
  const claudeMd = claudeMdOf(view, context);
  const values: Record<string, string> = { ...task.values, ...context.values, ...vars };
  const before = problems.size;
  for (const one of configs) {
    const at = one === configTemplate ? [...path, 'configTemplate'] : ['group', 'configTemplate'];
    Object.assign(values, valuesFor(one.variables, `config template ${one.name}`, at, view, context));
  }
  // Values that none of its templates asks for stand with the group, once.
  const asked = new Set([task.specs, ...configs.map((one) => one.variables)].flat().map(({ name }) => name));
  const isKept = ([name]: readonly [string, string]) => asked.has(name) || Object.hasOwn(vars, name);
  const variables = Object.fromEntries(Object.entries(values).filter(isKept));
  const config = configOf(spec, claudeMd.text);
  // Where a value is missing the files could be faulty for that alone.
  if (problems.size === before) checkConfig(view, context, configs, config, variables);
  checkVars(view, context, [task.specs, claudeMd.specs, ...configs.map((one) => one.variables)], task.used);
  const work = workOf(view, context);
  const definition = {
    ...settingsOf(spec, context.group),
    name: instance.key,
    description: descriptionOf(view, context),
    projectPath,
    prompt: task.filled.text,
    ...defined({ template: task.template }),
    ...(Object.keys(variables).length === 0 ? {} : { variables }),
    ...defined({ config }),
    ...work,
  };
  const dependsOn = [...(context.wiring?.dependsOn.get(instance) ?? [])].map(({ key }) => key);
  const references = draftReferences(task.filled, view, context);
  return { key: instance.key, definition, dependsOn, references, ...(configTemplate ? { configTemplate } : {}) };
}

function descriptionOf({ spec, path, scope }: SessionView, { problems }: SessionContext): string {
  if (spec.description === undefined) return '';
  const at = [...path, 'description'];
  const meanings = meaningsIn(scope, problems.hint.bind(problems));
  const text = oneLine(fillYamlText(at, spec.description, meanings, problems).text);
  if (hasControl(text)) problems.at(at, 'it holds control characters');
  return text;
}

/** The real path of the project; of one that cannot be found, something that can be shown. */
function projectOf(instance: Instance, scope: Scope, context: SessionContext): string {
  const { problems, looksUp, world, baseFolder } = context;
  const { family, values } = instance;
  const { spec } = family;
  if (spec.project === undefined) {
    const index = family.dimensions.findIndex(({ key }) => key === 'project');
    const value = values[index];
    if (value !== undefined) return value.text;
    const message = `${quoted(family.key)} has no project: give it "project", or a matrix with "projects"`;
    problems.atKey(['sessions'], family.key, message);
    return baseFolder;
  }
  const path = ['sessions', family.key, 'project'];
  const meanings = meaningsIn(scope, problems.hint.bind(problems));
  const before = problems.size;
  const { text } = fillYamlText(path, spec.project, meanings, problems);
  if (problems.size > before) return baseFolder;
  const resolved = resolvePath(context, text);
  const real = resolved.ok && looksUp ? realFolder(world, resolved.path) : resolved;
  if (real.ok) return real.path;
  problems.at(path, `the project ${resolved.ok ? resolved.path : quoted(text)} ${real.trouble}`);
  return baseFolder;
}

function ownConfigTemplate(view: SessionView, context: SessionContext): ConfigTemplate | undefined {
  const { configTemplate } = view.spec;
  if (configTemplate === undefined) return undefined;
  const found = context.shelf.config(configTemplate, templateFolder(view, context));
  return taken(found, [...view.path, 'configTemplate'], context.problems);
}

interface ClaudeMd {
  readonly text?: string;
  readonly specs: readonly VariableSpec[];
}

function claudeMdOf(view: SessionView, context: SessionContext): ClaudeMd {
  const given = settingsIn(configSettings, view.spec.config ?? {}).claudeMdTemplate;
  if (given === undefined) return { specs: [] };
  const { problems, shelf } = context;
  const path = [...view.path, 'config', 'claudeMdTemplate'];
  const template = taken(shelf.claudeMd(given, templateFolder(view, context)), path, problems);
  if (template === undefined) return { specs: [] };
  const values = valuesFor(template.variables, `template ${template.name}`, path, view, context);
  const scope: Scope = { ...view.scope, variables: [values, ...view.scope.variables] };
  const meanings = meaningsIn(scope, problems.hint.bind(problems));
  const { text } = fillTemplate(template.body, meanings, problems, ` (in ${path.join('.')})`);
  return { text, specs: template.variables };
}

function configOf(spec: SessionSpec, claudeMdText: string | undefined): SessionConfig | undefined {
  if (spec.config === undefined) return undefined;
  return { ...settingsIn(configSettings, spec.config), ...defined({ claudeMdText }) };
}

/** Renders the config once for each session of the file: what is wrong with one of its sessions is wrong with all. */
function checkConfig(
  view: SessionView,
  context: SessionContext,
  configs: readonly ConfigTemplate[],
  config: SessionConfig | undefined,
  variables: Readonly<Record<string, string>>,
): void {
  const { problems, checkedConfigs } = context;
  const { key } = view.instance.family;
  if (checkedConfigs.has(key)) return;
  checkedConfigs.add(key);
  const before = problems.size;
  const layers = configs.map((template) => {
    const rendered = renderConfigTemplate(template, variables, view.scope.surroundings ?? (() => undefined));
    problems.add(...rendered.problems);
    return { layer: configTemplateLayer(template.name), files: rendered.files };
  });
  if (problems.size > before) return;
  const resolved = resolveConfig(layers, config ?? {});
  if (!resolved.ok) problems.at([...view.path, 'config'], resolved.failure.message.replace(/\.$/, ''));
}

/** A variable that nothing uses is mistyped. */
function checkVars(
  { spec, path }: SessionView,
  { problems, values }: SessionContext,
  specs: readonly (readonly VariableSpec[])[],
  used: ReadonlySet<string>,
): void {
  const known = new Set(specs.flat().map(({ name }) => name));
  for (const name of Object.keys(spec.vars ?? {})) {
    if (known.has(name) || used.has(name) || Object.hasOwn(values, name)) continue;
    const near = problems.hint(name, [...known, ...used]);
    problems.atKey([...path, 'vars'], name, `nothing in this session uses the variable ${quoted(name)}${near}`);
  }
}

/** What the session gives counts before what the group gives. */
function settingsOf(spec: object, group: object): Partial<SessionDefinition> {
  const given = { ...settingsIn(sharedSettings, group), ...settingsIn(plainSettings, spec) };
  return storedSettings(plainSettings, given);
}

const sharedSettings: Settings = Object.fromEntries(
  Object.entries<Setting>(plainSettings).filter(([, setting]) => setting.group === true),
);
