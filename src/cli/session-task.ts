/**
 * The task of a session that is added by hand: a prompt, a prompt template, or both, with its variables filled in; and
 * the config template it names. Nothing is written here.
 */
import { fail, ok, type Result } from '../core/failure.ts';
import type { GroupDefinition, SessionDefinition } from '../core/group.ts';
import { problemsFailure } from '../store/yaml-text.ts';
import type { ConfigTemplate } from '../template/config-template.ts';
import { lookupSurroundings, surroundingNames } from '../template/known-names.ts';
import { nearest } from '../template/nearest.ts';
import type { PromptTemplate } from '../template/prompt-template.ts';
import { type LaterPlace, type Lookup, parsePieces, type Rendered, render, type Template } from '../template/render.ts';
import { parseGiven, resolveVariables, type VariableSpec } from '../template/variables.ts';
import type { Context } from './context.ts';
import { placesHere } from './named-template.ts';
import { referenceTo } from './new-group.ts';
import { type PromptOptions, readPrompt } from './prompt-source.ts';
import { chooseTemplates, type TemplateOptions } from './template-choice.ts';

export interface TaskOptions extends PromptOptions, TemplateOptions {
  /** Of `--var`. */
  readonly var?: readonly string[] | undefined;
  readonly name?: string | undefined;
}

export interface SessionTask {
  readonly definition: Pick<SessionDefinition, 'prompt' | 'template' | 'variables' | 'configTemplate'>;
  /** Places that name other sessions; the group says which. */
  readonly later: readonly LaterPlace[];
  /** To be copied into the group's folder. */
  readonly configTemplate?: ConfigTemplate;
}

export interface TaskSurroundings {
  readonly group: GroupDefinition;
  /** The group's own config template, whose variables the session has to fill as well. */
  readonly groupConfig: ConfigTemplate | undefined;
  readonly projectPath: string;
}

/** Fails with `usage` and everything that is wrong at once. */
export async function readTask(
  context: Context,
  surroundings: TaskSurroundings,
  given: TaskOptions,
): Promise<Result<SessionTask>> {
  const { group, groupConfig, projectPath } = surroundings;
  const pairs = parseGiven(given.var ?? []);
  if (!pairs.ok) return pairs;
  const places = placesHere(context, [projectPath]);
  const chosen = chooseTemplates(context, places, given);
  if (!chosen.ok) return chosen;
  const { config } = chosen.value;
  const inherited =
    chosen.value.prompt === undefined && group.template !== undefined
      ? chooseTemplates(context, places, { template: group.template })
      : chosen;
  if (!inherited.ok) return inherited;
  const { prompt: template, promptReference } = inherited.value;
  const hasPrompt = given.prompt !== undefined || given.promptFile !== undefined;
  const typed = hasPrompt || template === undefined ? await readPrompt(context, given) : ok(undefined);
  if (!typed.ok) return typed;
  const usesTemplate = template !== undefined && (typed.value === undefined || takesPrompt(template));
  const source: Source = usesTemplate
    ? { kind: 'template', template: template.body }
    : { kind: 'typed', template: { text: typed.value ?? '', file: '--prompt' } };
  const specs = specsOf(usesTemplate ? template : undefined, config, groupConfig);
  // The prompt is a value like any other: what stands in it between braces stays as it is.
  const extra = usesTemplate && typed.value !== undefined ? { prompt: typed.value } : {};
  const values = valuesFor(context, specs, source, { ...group.variables }, { ...pairs.value, ...extra });
  if (!values.ok) return values;
  const known = lookupSurroundings({ projectPath, session: given.name ?? '', group });
  const rendered = renderTask(source, values.value, known, Object.keys(pairs.value).length > 0);
  if (rendered.problems.length > 0) {
    return problemsFailure('The prompt', rendered.problems, 'Correct it, or give the variable with --var.');
  }
  return ok({
    definition: {
      prompt: rendered.text,
      ...(usesTemplate && promptReference !== undefined ? { template: promptReference } : {}),
      ...(Object.keys(values.value).length === 0 ? {} : { variables: values.value }),
      ...(config === undefined ? {} : { configTemplate: referenceTo(config) }),
    },
    later: rendered.later,
    ...(config === undefined ? {} : { configTemplate: config }),
  });
}

/** DESIGN §10: a prompt beside a template fills its `{{prompt}}`, or replaces it. */
function takesPrompt(template: PromptTemplate): boolean {
  return template.variables.some(({ name }) => name === 'prompt');
}

function specsOf(
  template: PromptTemplate | undefined,
  ...configs: readonly (ConfigTemplate | undefined)[]
): readonly VariableSpec[] {
  const specs = new Map<string, VariableSpec>();
  for (const part of [template, ...configs]) {
    for (const spec of part?.variables ?? []) if (!specs.has(spec.name)) specs.set(spec.name, spec);
  }
  return [...specs.values()];
}

interface Source {
  /** A typed prompt is text, unless variables were given for it. */
  readonly kind: 'template' | 'typed';
  readonly template: Template;
}

/** The group's values count where the session gives none. A value for nothing is a mistyped name. */
function valuesFor(
  context: Context,
  specs: readonly VariableSpec[],
  source: Source,
  ofGroup: Readonly<Record<string, string>>,
  given: Readonly<Record<string, string>>,
): Result<Record<string, string>> {
  const inherited = Object.fromEntries(
    Object.entries(ofGroup).filter(([name]) => specs.some((spec) => spec.name === name)),
  );
  const { world, cwd } = context;
  const resolved = resolveVariables(specs, { ...inherited, ...given }, { world, folder: cwd });
  const forPrompt = source.kind === 'typed' ? resolved.unused : [];
  const unused = resolved.unused.filter((name) => !forPrompt.includes(name));
  const problems = [...resolved.problems, ...unused.map((name) => notDeclared(name, specs))];
  if (problems.length > 0) {
    return fail('usage', `${capitalised(problems.join('; '))}.`, 'Give variables as --var name=value.');
  }
  return ok({ ...resolved.values, ...Object.fromEntries(forPrompt.map((name) => [name, given[name] as string])) });
}

function notDeclared(name: string, specs: readonly VariableSpec[]): string {
  const names = specs.map((spec) => spec.name);
  const near = nearest(name, names);
  const hint =
    near === undefined ? (names.length === 0 ? '' : ` (there are: ${names.join(', ')})`) : `; did you mean "${near}"?`;
  return `no template has a variable "${name}"${hint}`;
}

function capitalised(text: string): string {
  return `${text[0]?.toUpperCase() ?? ''}${text.slice(1)}`;
}

function renderTask(
  { kind, template }: Source,
  values: Readonly<Record<string, string>>,
  known: Lookup,
  hasVariables: boolean,
): Rendered {
  // What somebody types may well hold braces and backslashes that mean nothing to us.
  if (kind === 'typed' && !hasVariables)
    return { text: template.text, later: sessionPlaces(template.text), problems: [] };
  const lookup: Lookup = (name) => {
    if (name.startsWith('sessions.')) return { later: true };
    return Object.hasOwn(values, name) ? values[name] : known(name);
  };
  return render(template, lookup, [...Object.keys(values), ...surroundingNames]);
}

function sessionPlaces(text: string): LaterPlace[] {
  return parsePieces(text).flatMap((piece) =>
    piece.kind === 'variable' && piece.name.startsWith('sessions.')
      ? [{ name: piece.name, at: piece.offset, length: piece.source.length }]
      : [],
  );
}
