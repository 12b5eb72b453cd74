/** One session of an expanded workflow, with its project, prompt, templates and settings filled in. */
import { defined } from '../../core/defined.ts';
import {
  configSettings,
  type IsolationMode,
  plainSettings,
  sharedSettings,
  workSettings,
} from '../../core/definitions.ts';
import type { GroupConfig, PromptReference, SessionConfig, SessionDefinition, WorkflowRef } from '../../core/group.ts';
import { quoted } from '../../core/id.ts';
import { hint } from '../../core/nearest.ts';
import { hasControl, keyOf, promptProblem, storedSettings } from '../../core/setting-values.ts';
import { isObject } from '../../store/json.ts';
import type { Validated, YamlPath } from '../../store/yaml-text.ts';
import { configTemplateLayer, resolveConfig } from '../config-layers.ts';
import { type ConfigTemplate, renderConfigTemplate } from '../config-template.ts';
import { type FilledText, insertText, lookupSurroundings, parsePieces } from '../render.ts';
import { settingsIn } from '../setting-schema.ts';
import { resolveVariables, type VariableSpec } from '../variables.ts';
import { type Families, type Instance, type MatrixContext, matrixTexts, realFolder, resolvePath } from './matrix.ts';
import type { Problems } from './problems.ts';
import { collapsedLine, fillTemplate, fillYamlText, meaningsIn, type OpenPlace, type Scope } from './problems.ts';
import { commandsOf, type ProjectCommand, type ProjectFile } from './project-file.ts';
import type { GroupSpec, SessionSpec } from './schema.ts';
import { parseReference, type ReferenceTarget, select, type Wanted, type Wiring } from './session-references.ts';
import { type CachedTemplate, noRepository, type TemplateCache } from './template-cache.ts';
import {
  checkedCommand,
  type GivenWork,
  noBranchFault,
  type ResolvedWork,
  resolveWork,
  type SessionRepository,
  shellCommand,
  wholeVariable,
  workFaults,
} from './work-settings.ts';

/** A reference in a draft's prompt to other sessions of the workflow; like PromptReference, by key. */
export interface DraftReference extends Omit<PromptReference, 'sessionIds'> {
  readonly keys: readonly string[];
}

export interface SessionDraft {
  readonly key: string;
  /** `variables`: the values of its templates, including defaults. */
  readonly definition: Omit<
    SessionDefinition,
    'id' | 'dependsOn' | 'createdAt' | 'promptReferences' | 'configTemplate'
  >;
  readonly dependsOn: readonly string[];
  readonly references: readonly DraftReference[];
  readonly configTemplate?: ConfigTemplate;
}

export interface WorkflowDraft {
  readonly slug: string;
  readonly name: string;
  readonly description: string;
  readonly config: Partial<GroupConfig>;
  readonly template?: string;
  readonly configTemplate?: ConfigTemplate;
  readonly variables: Readonly<Record<string, string>>;
  /** Every session after its dependencies; among equals in the order of the file. */
  readonly sessions: readonly SessionDraft[];
  readonly workflow: WorkflowRef;
  /** Commands of the projects' own files that sessions will run. */
  readonly projectCommands: readonly ProjectCommand[];
}

export interface SessionContext extends MatrixContext {
  readonly shelf: TemplateCache;
  readonly group: GroupSpec;
  readonly about: { readonly name: string; readonly slug: string };
  readonly groupConfigTemplate: ConfigTemplate | undefined;
  readonly variables: readonly VariableSpec[];
  readonly values: Readonly<Record<string, string>>;
  readonly families: Families;
  /** Absent when the dependencies are invalid; then references to results are not checked. */
  readonly wiring: Wiring | undefined;
  /** Sessions of the file whose config was checked already. */
  readonly checkedConfigs: Set<string>;
  readonly projectAt: (folder: string) => ProjectFolder;
  /** Commands of the projects' own files that sessions will run, by file and key. */
  readonly projectCommands: Map<string, ProjectCommand>;
  /** Of the sessions drafted so far; dependencies are always among them. */
  readonly isolations: Map<Instance, IsolationMode | undefined>;
}

export interface ProjectFolder {
  readonly repository: SessionRepository;
  readonly file: Validated<ProjectFile | null>;
}

interface SessionView {
  readonly instance: Instance;
  readonly spec: SessionSpec;
  readonly path: YamlPath;
  readonly projectPath: string;
  readonly scope: Scope;
  readonly vars: Readonly<Record<string, string>>;
}

/** Whether files of the project's repository have an effect. */
function isUntrusted({ spec }: Pick<SessionView, 'spec'>, { group }: Pick<SessionContext, 'group'>): boolean {
  const { untrusted = false } = { ...settingsIn(sharedSettings, group), ...settingsIn(plainSettings, spec) };
  return untrusted;
}

/** The folder at which the search for the session's templates starts, upwards. */
function templateFolder(view: SessionView, context: SessionContext): string {
  return isUntrusted(view, context) ? noRepository : view.projectPath;
}

export function templateOrProblem<T>(template: CachedTemplate<T>, path: YamlPath, problems: Problems): T | undefined {
  if (template.ok) return template.value;
  if ('problems' in template) problems.add(...template.problems);
  else problems.at(path, template.trouble);
  return undefined;
}

/** The values of a template's variables: the session's own, then the workflow's, then the template's defaults. */
function valuesFor(
  specs: readonly VariableSpec[],
  noun: string,
  at: YamlPath,
  { spec, vars }: SessionView,
  { world, baseFolder, looksUp, values, variables, problems }: SessionContext,
): Readonly<Record<string, string>> {
  const fromFile = new Set(variables.filter(({ type }) => type === 'file').map(({ name }) => name));
  const eased = specs.map((one): VariableSpec => {
    const own = spec.vars !== undefined && Object.hasOwn(spec.vars, one.name);
    // A workflow value that was read from a file is no path any more.
    const isRead = one.type === 'file' && !own && fromFile.has(one.name);
    const isFilled = own ? String(spec.vars?.[one.name]) !== vars[one.name] : Object.hasOwn(values, one.name);
    const isGuess = !looksUp && isFilled;
    // A placeholder may be blank where the later value is not.
    return isRead || isGuess ? { ...one, type: 'string', required: one.required && !isGuess } : one;
  });
  const resolved = resolveVariables(eased, { ...values, ...vars }, { world, folder: baseFolder });
  for (const problem of resolved.problems) problems.at(at, `${noun}: ${problem}`);
  // A missing value is reported already; its references need not be.
  return { ...Object.fromEntries(specs.map(({ name }) => [name, ''])), ...resolved.values };
}

function workOf(view: SessionView, context: SessionContext): ResolvedWork {
  const { spec, path, projectPath } = view;
  const { group, problems } = context;
  const { repository, ...found } = context.projectAt(projectPath);
  const file = isUntrusted(view, context) ? ({ ok: true, value: null } as const) : found.file;
  if (!file.ok) problems.add(...file.problems);
  const ofProject = file.ok ? file.value : null;
  const own = givenWork(spec, path, view, context);
  const ofGroup = givenWork(group, ['group'], view, context);
  const given = [own, ofGroup, ...(ofProject === null ? [] : [ofProject.work])];
  const settings = resolveWork(given, repository);
  context.isolations.set(view.instance, settings.isolate);
  for (const one of commandsOf(ofProject, [own, ofGroup], settings)) {
    context.projectCommands.set(`${one.key} ${one.file}`, one);
  }
  if (repository === undefined) return settings;
  for (const { key, problem } of workFaults(own, settings, repository)) {
    const name = keyOf(key, workSettings[key]);
    problems.at([...path, name], `${name} ${problem}`);
  }
  if (settings.isolate === 'worktree' && repository === null) {
    const who = own.isolate !== undefined ? '' : ofGroup.isolate !== undefined ? 'group: ' : `${ofProject?.path}: `;
    const what = `${who}isolate: worktree needs a git repository, and ${projectPath} is not in one`;
    problems.at(own.isolate === undefined ? path : [...path, 'isolate'], what);
  }
  return settings;
}

function givenWork(spec: object, path: YamlPath, view: SessionView, context: SessionContext): GivenWork {
  const given: GivenWork = settingsIn(workSettings, spec);
  return {
    ...given,
    accept: commandOf(given.accept, [...path, 'accept'], view, context),
    setup: commandOf(given.setup, [...path, 'setup'], view, context),
  };
}

/** A variable may be the whole command; a blank one means none, so that a workflow can leave it open. */
function commandOf(
  given: string | false | undefined,
  path: YamlPath,
  { scope: { matrix } }: SessionView,
  { problems, values }: SessionContext,
): string | false | undefined {
  if (typeof given !== 'string') return given;
  const name = wholeVariable(given);
  const found = name === undefined ? shellCommand(given) : undefined;
  if (found?.ok) return found.command;
  let problem = found?.problem;
  if (name !== undefined) {
    // The name of a folder is not a command.
    const own = [...(matrix ?? [])].filter(([key]) => key !== 'project' && key !== 'name');
    const scope: Scope = { variables: [values], ...(matrix === undefined ? {} : { matrix: new Map(own) }) };
    const meaning = meaningsIn(scope)(name);
    if ('text' in meaning) {
      if (meaning.text.trim() === '') return undefined;
      const checked = checkedCommand(meaning.text);
      if (checked.ok) return checked.command;
      problem = `{{${name}}}: ${checked.problem}`;
    } else problem = 'problem' in meaning ? meaning.problem : undefined;
  }
  if (problem !== undefined) problems.at(path, `${path.at(-1)}: ${problem}`);
  return undefined;
}

/** The variable of a template that receives a session's own prompt. */
const promptVariable = 'prompt';

interface Task {
  readonly filled: FilledText<OpenPlace>;
  readonly template?: string;
  readonly values: Readonly<Record<string, string>>;
  readonly specs: readonly VariableSpec[];
  readonly used: ReadonlySet<string>;
}

/** Its own prompt fills the template's `{{prompt}}`, or replaces a template without it. */
function taskOf(view: SessionView, context: SessionContext): Task {
  const { spec, path, vars, scope, instance } = view;
  const { problems, shelf, group } = context;
  const withVars: Scope = { ...scope, variables: [vars, ...scope.variables], takesResults: true };
  const promptPath = [...path, 'prompt'];
  const own =
    spec.prompt === undefined ? undefined : fillYamlText(promptPath, spec.prompt, meaningsIn(withVars), problems);
  const used = new Set(
    parsePieces(spec.prompt ?? '').flatMap((piece) => (piece.kind === 'variable' ? [piece.name] : [])),
  );
  const nothing: Task = { filled: own ?? { text: '', later: [] }, values: {}, specs: [], used };
  const name = spec.template ?? group.template;
  if (name === undefined) {
    if (own !== undefined) return checked(nothing, view, context);
    const message = `${quoted(instance.family.key)} has no task: add "prompt" or "template"`;
    problems.atKey(['sessions'], instance.family.key, message);
    return nothing;
  }
  const templatePath = spec.template === undefined ? ['group', 'template'] : [...path, 'template'];
  const template = templateOrProblem(shelf.prompt(name, templateFolder(view, context)), templatePath, problems);
  if (template === undefined) return nothing;
  const specs = template.variables;
  const takesPrompt = specs.some((one) => one.name === promptVariable);
  if (own !== undefined && !takesPrompt) return checked({ ...nothing, specs }, view, context);
  const withPrompt = own === undefined ? view : { ...view, vars: { ...vars, [promptVariable]: own.text } };
  const noun = `template ${template.name}`;
  const valuesAt = spec.template === undefined ? path : templatePath;
  const values = valuesFor(specs, noun, valuesAt, withPrompt, context);
  const inTemplate = meaningsIn({ ...scope, variables: [values], takesResults: true });
  const outer = fillTemplate(
    template.body,
    (one) => (own !== undefined && one === promptVariable ? { later: true } : inTemplate(one)),
    problems,
    ` (in ${path.join('.')})`,
  );
  const filled = own === undefined ? outer : insertText(outer, promptVariable, own);
  const { [promptVariable]: _prompt, ...others } = values;
  return checked(
    { filled, template: shelf.reference(name), values: own === undefined ? values : others, specs, used },
    view,
    context,
  );
}

function checked(task: Task, { spec, path }: SessionView, { problems }: SessionContext): Task {
  const { text } = task.filled;
  const at = [...path, spec.prompt === undefined ? 'template' : 'prompt'];
  const problem = promptProblem(text);
  if (problem !== null) problems.at(at, `the prompt ${problem}`);
  return task;
}

/** The references that are filled when the session becomes ready, in order. */
function draftReferences(
  { later: open }: FilledText<OpenPlace>,
  { instance }: SessionView,
  context: SessionContext,
): readonly DraftReference[] {
  return open.flatMap((place): DraftReference[] => {
    const wanted = parseReference(place.name, context.families);
    if (!wanted.ok) {
      place.report(wanted.problem);
      return [];
    }
    const selected = select(wanted.value, instance);
    if (!selected.ok) {
      place.report(selected.problem);
      return [];
    }
    const { instances, isMany } = selected.value;
    const fault = faultOfReference(wanted.value, instances, instance, context);
    if (fault !== undefined) place.report(fault);
    const { field, path } = wanted.value;
    return [
      {
        at: place.at,
        length: place.length,
        keys: instances.map(({ key }) => key),
        ...(isMany ? { every: true as const } : {}),
        field,
        ...(path.length > 0 ? { path } : {}),
      },
    ];
  });
}

/** Why the result of `instances` cannot be used in the prompt of `from`; no full stop. */
function faultOfReference(
  wanted: Wanted,
  instances: readonly Instance[],
  from: Instance,
  context: SessionContext,
): string | undefined {
  const { wiring } = context;
  const { family, field, path } = wanted;
  if (instances.includes(from)) return `${quoted(family.key)} cannot use its own result`;
  if (wiring !== undefined && instances.some((one) => !wiring.isAncestor(one, from))) {
    const waits = `${quoted(from.family.key)} does not depend on ${quoted(written(wanted))}`;
    return `${waits}; add it to its dependsOn`;
  }
  if (field === 'diffStat' || field === 'branch') {
    const faults = instances.map((one) => noBranchFault(one.key, context.isolations.get(one)));
    return faults.find((fault) => fault !== null) ?? undefined;
  }
  if (field !== 'structured') return undefined;
  const schema = family.spec.outputSchema;
  if (schema === undefined) {
    return `${quoted(family.key)} has no outputSchema, so it has no .structured; use .result`;
  }
  const missing = missingStep(schema, path);
  if (missing === null) return undefined;
  const near = hint(missing.step, missing.known);
  return `the outputSchema of ${quoted(family.key)} has no ${quoted(missing.step)}${near}`;
}

function written({ family, selector }: ReferenceTarget): string {
  return selector === null ? family.key : `${family.key}[${selector}]`;
}

/** Keywords that make a schema more than a list of properties. */
const openEnds = ['$ref', 'allOf', 'anyOf', 'oneOf', 'patternProperties', 'if', '$dynamicRef'];

/** The first step of a path that a schema certainly lacks; null when it may have all of them. */
export function missingStep(schema: unknown, path: readonly string[]) {
  let here: unknown = schema;
  for (const step of path) {
    if (!isObject(here) || openEnds.some((key) => Object.hasOwn(here as object, key))) return null;
    if (/^\d+$/.test(step) && isObject(here.items)) {
      here = here.items;
      continue;
    }
    const { properties, additionalProperties = false } = here;
    // Without properties, or with additional ones, anything is possible.
    if (!isObject(properties) || additionalProperties !== false) return null;
    if (!Object.hasOwn(properties, step)) return { step, known: Object.keys(properties) };
    here = properties[step];
  }
  return null;
}

export function draftSession(instance: Instance, context: SessionContext): SessionDraft {
  const { problems, about } = context;
  const { family } = instance;
  const { spec } = family;
  const path = ['sessions', family.key];
  const matrix = spec.matrix === undefined ? {} : { matrix: matrixTexts(instance) };
  const early: Scope = { variables: [context.values], ...matrix };
  const projectPath = projectOf(instance, early, context);
  const surroundings = lookupSurroundings(projectPath, instance.key, about);
  const scope: Scope = { ...early, surroundings };
  const meanings = meaningsIn(scope);
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
  // Values that none of its templates uses are stored with the group, once.
  const asked = new Set([task.specs, ...configs.map((one) => one.variables)].flat().map(({ name }) => name));
  const isKept = ([name]: readonly [string, string]) => asked.has(name) || Object.hasOwn(vars, name);
  const variables = Object.fromEntries(Object.entries(values).filter(isKept));
  const config = configOf(spec, claudeMd.text);
  // A missing value alone could make the files faulty.
  if (problems.size === before) checkConfig(view, context, configs, config, variables);
  checkVars(view, context, [task.specs, claudeMd.specs, ...configs.map((one) => one.variables)], task.used);
  const work = workOf(view, context);
  const definition = {
    ...storedSettings(plainSettings, settingsIn(plainSettings, spec), settingsIn(sharedSettings, context.group)),
    name: instance.key,
    description: descriptionOf(view, context),
    projectPath,
    prompt: task.filled.text,
    ...defined({ template: task.template, matrix: spec.matrix === undefined ? undefined : family.key }),
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
  const meanings = meaningsIn(scope);
  const text = collapsedLine(fillYamlText(at, spec.description, meanings, problems).text);
  if (hasControl(text)) problems.at(at, 'it contains control characters');
  return text;
}

/** The real path of the project; for a missing one, a text to show. */
function projectOf(instance: Instance, scope: Scope, context: SessionContext): string {
  const { problems, looksUp, world, baseFolder } = context;
  const { family, values } = instance;
  const { spec } = family;
  if (spec.project === undefined) {
    const index = family.dimensions.findIndex(({ key }) => key === 'project');
    const value = values[index];
    if (value !== undefined) return value.text;
    const message = `${quoted(family.key)} has no project: add "project", or a matrix with "projects"`;
    problems.atKey(['sessions'], family.key, message);
    return baseFolder;
  }
  const path = ['sessions', family.key, 'project'];
  const meanings = meaningsIn(scope);
  const before = problems.size;
  const { text } = fillYamlText(path, spec.project, meanings, problems);
  if (problems.size > before) return baseFolder;
  const resolved = resolvePath(context, text);
  const real = resolved.ok && looksUp ? realFolder(world, resolved.value) : resolved;
  if (real.ok) return real.value;
  problems.at(path, `the project ${resolved.ok ? resolved.value : quoted(text)} ${real.trouble}`);
  return baseFolder;
}

function ownConfigTemplate(view: SessionView, context: SessionContext): ConfigTemplate | undefined {
  const { configTemplate } = view.spec;
  if (configTemplate === undefined) return undefined;
  const found = context.shelf.config(configTemplate, templateFolder(view, context));
  return templateOrProblem(found, [...view.path, 'configTemplate'], context.problems);
}

function claudeMdOf(
  view: SessionView,
  context: SessionContext,
): { readonly text?: string; readonly specs: readonly VariableSpec[] } {
  const given = settingsIn(configSettings, view.spec.config ?? {}).claudeMdTemplate;
  if (given === undefined) return { specs: [] };
  const { problems, shelf } = context;
  const path = [...view.path, 'config', 'claudeMdTemplate'];
  const template = templateOrProblem(shelf.claudeMd(given, templateFolder(view, context)), path, problems);
  if (template === undefined) return { specs: [] };
  const values = valuesFor(template.variables, `template ${template.name}`, path, view, context);
  const scope: Scope = { ...view.scope, variables: [values, ...view.scope.variables] };
  const meanings = meaningsIn(scope);
  const { text } = fillTemplate(template.body, meanings, problems, ` (in ${path.join('.')})`);
  return { text, specs: template.variables };
}

function configOf(spec: SessionSpec, claudeMdText: string | undefined): SessionConfig | undefined {
  if (spec.config === undefined) return undefined;
  return { ...settingsIn(configSettings, spec.config), ...defined({ claudeMdText }) };
}

/** Renders the config once for each session of the file: a problem of one of its instances is a problem of all. */
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

function checkVars(
  { spec, path }: SessionView,
  { problems, values }: SessionContext,
  specs: readonly (readonly VariableSpec[])[],
  used: ReadonlySet<string>,
): void {
  const known = new Set(specs.flat().map(({ name }) => name));
  for (const name of Object.keys(spec.vars ?? {})) {
    if (known.has(name) || used.has(name) || Object.hasOwn(values, name)) continue;
    const near = hint(name, [...known, ...used]);
    problems.atKey([...path, 'vars'], name, `nothing in this session uses the variable ${quoted(name)}${near}`);
  }
}
