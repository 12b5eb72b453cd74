/** The task of an added session: a prompt, a prompt template or both, with variables filled in. Writes nothing. */

import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { ancestorsOf } from '../../core/graph.ts';
import type { GroupDefinition, PromptReference, SessionDefinition, SessionId } from '../../core/group.ts';
import { sessionLabel, sessionNumber } from '../../core/id.ts';
import { hint } from '../../core/nearest.ts';
import type { GroupState } from '../../core/state.ts';
import { problemsFailure } from '../../store/yaml-text.ts';
import type { ConfigTemplate } from '../../template/config-template.ts';
import { type PromptTemplate, renderPrompt } from '../../template/prompt-template.ts';
import {
  type FilledText,
  fill,
  insertText,
  type LaterPlace,
  type Lookup,
  lookupSurroundings,
  parsePieces,
  type Rendered,
  render,
  surroundingNames,
} from '../../template/render.ts';
import { parseGiven, resolveVariables, type VariableSpec } from '../../template/variables.ts';
import { longestName, parseAccess } from '../../template/workflow/session-references.ts';
import { noBranchFault } from '../../template/workflow/work-settings.ts';
import type { AppContext } from '../app-context.ts';
import { chooseClaudeMd, chooseTemplates, noTemplate, placesFor, type TemplateOptions } from './named-template.ts';
import { templateReference } from './new-group.ts';

export interface TaskOptions extends TemplateOptions {
  /** Reads the prompt. Called after the templates were found. */
  readonly prompt?: (() => Promise<Result<string>>) | undefined;
  readonly var?: readonly string[] | undefined;
  readonly name?: string | undefined;
  readonly claudeMdTemplate?: string | undefined;
}

export interface SessionTask {
  readonly definition: Pick<SessionDefinition, 'prompt' | 'template' | 'variables' | 'configTemplate'>;
  /** References to other sessions, which the group resolves. Null = the prompt is kept. */
  readonly later: readonly LaterPlace[] | null;
  /** The rendered text of `--claude-md-template`. */
  readonly claudeMdText?: string;
  readonly configTemplate?: ConfigTemplate;
}

export interface TaskSurroundings {
  readonly group: GroupDefinition;
  /** The config template of the group, whose variables the session must set, too. */
  readonly groupConfig: ConfigTemplate | undefined;
  readonly projectPath: string;
  readonly untrusted: boolean;
  /** The edited session with its own config template: it provides the values that are not given. */
  readonly kept?: { readonly definition: SessionDefinition; readonly configTemplate: ConfigTemplate | undefined };
}

export async function readSessionTask(
  context: AppContext,
  surroundings: TaskSurroundings,
  given: TaskOptions,
): Promise<Result<SessionTask>> {
  const { group, groupConfig, projectPath, untrusted, kept } = surroundings;
  const pairs = parseGiven(given.var ?? []);
  if (!pairs.ok) return pairs;
  const places = placesFor(context, untrusted ? [] : [projectPath]);
  const chosen = chooseTemplates(context, places, given);
  if (!chosen.ok) return chosen;
  const config = chosen.value.config ?? kept?.configTemplate;
  const { claudeMdTemplate } = given;
  const claudeMd = claudeMdTemplate === undefined ? ok(undefined) : chooseClaudeMd(context, places, claudeMdTemplate);
  if (!claudeMd.ok) return claudeMd;
  const ofOthers = kept === undefined ? group.template : kept.definition.template;
  const isAsked = kept === undefined || given.prompt !== undefined || (given.var ?? []).length > 0;
  const inherited =
    chosen.value.prompt === undefined && ofOthers !== undefined && given.template !== noTemplate && isAsked
      ? chooseTemplates(context, places, { template: ofOthers })
      : chosen;
  if (!inherited.ok) return inherited;
  const { prompt: template, promptReference } = inherited.value;
  // The original prompt in a rendered template is unknown, so keep the whole task.
  const isKept =
    kept !== undefined &&
    given.prompt === undefined &&
    (template === undefined || (given.template === undefined && takesPrompt(template)));
  const { prompt: read = template === undefined && !isKept ? noTask : undefined } = given;
  const typed = read === undefined ? ok(undefined) : await read();
  if (!typed.ok) return typed;
  const isFilled = template !== undefined && !isKept && (typed.value === undefined || takesPrompt(template));
  const body = isFilled ? template : undefined;
  const values = valuesFor(context, {
    parts: [body, config, groupConfig, claudeMd.value],
    typed: typed.value,
    ofGroup: group.variables ?? {},
    known: kept?.definition.variables ?? {},
    given: pairs.value,
  });
  if (!values.ok) return values;
  const known = lookupSurroundings(projectPath, given.name ?? '', group);
  const rendered = isKept
    ? { text: kept.definition.prompt, later: null, problems: [] }
    : renderTask(body, typed.value, values.value, known);
  if (rendered.problems.length > 0) {
    return problemsFailure('The prompt', rendered.problems, 'Correct it, or give the variable with --var.');
  }
  const text = claudeMd.value === undefined ? null : renderPrompt(claudeMd.value, values.value, known);
  if (text !== null && text.problems.length > 0) return problemsFailure('The text for CLAUDE.md', text.problems);
  return ok({
    ...(text === null ? {} : { claudeMdText: text.text }),
    definition: {
      prompt: rendered.text,
      ...defined({
        template: isKept ? kept.definition.template : body && promptReference,
        variables: Object.keys(values.value).length === 0 ? undefined : values.value,
        configTemplate: config && templateReference(config),
      }),
    },
    later: rendered.later,
    ...defined({ configTemplate: config }),
  });
}

async function noTask(): Promise<Result<string>> {
  const next = 'Give it with --prompt TEXT, --prompt-file FILE or --prompt - (stdin).';
  return fail('usage', 'The session has no task.', next);
}

/** True if `--prompt` fills `{{prompt}}` of the template; otherwise it replaces the template. */
function takesPrompt(template: PromptTemplate): boolean {
  return template.variables.some(({ name }) => name === 'prompt');
}

type Part = { readonly name: string; readonly variables: readonly VariableSpec[] } | undefined;

interface ValuesInput {
  /** Templates that declare variables; the first declaration of a name counts. */
  readonly parts: readonly Part[];
  readonly typed: string | undefined;
  readonly ofGroup: Readonly<Record<string, string>>;
  /** The values of an edited session. */
  readonly known: Readonly<Record<string, string>>;
  readonly given: Readonly<Record<string, string>>;
}

/** Values of the group are the defaults. A value for an unknown variable is an error. */
function valuesFor({ world, cwd }: AppContext, input: ValuesInput): Result<Record<string, string>> {
  const { parts, typed, ofGroup, known, given } = input;
  const specs = new Map<string, VariableSpec>();
  for (const part of parts)
    for (const spec of part?.variables ?? []) if (!specs.has(spec.name)) specs.set(spec.name, spec);
  const inherited = Object.fromEntries(Object.entries(ofGroup).filter(([name]) => specs.has(name)));
  // The prompt is inserted later, because it may refer to other sessions.
  const prompt = defined({ prompt: typed });
  const isSettled = (name: string) => Object.hasOwn(known, name) && !Object.hasOwn({ ...prompt, ...given }, name);
  const open = [...specs.values()].filter(({ name }) => !isSettled(name));
  const resolved = resolveVariables(open, { ...inherited, ...prompt, ...given }, { world, folder: cwd });
  const places = new Set(typed === undefined ? [] : placesIn(typed));
  const inPrompt = Object.fromEntries(
    Object.entries({ ...ofGroup, ...known, ...given }).filter(([name]) => places.has(name) && !specs.has(name)),
  );
  const unused = Object.keys(given).filter((name) => !specs.has(name) && !places.has(name));
  const problems = [
    ...resolved.problems.map((problem) => `${problem}${ownerOf(problem, parts)}`),
    ...unused.map((name) => notUsed(name, [...specs.keys(), ...places])),
  ];
  if (problems.length > 0) {
    const all = capitalised(problems.join('; '));
    return fail('usage', all.endsWith('?') ? all : `${all}.`, 'Give variables with --var name=value.');
  }
  // `prompt` is stored as the prompt itself.
  const { prompt: _, ...own } = resolved.values;
  return ok({ ...known, ...(typed === undefined ? resolved.values : own), ...inPrompt });
}

/** The template that needs the variable, which the user may not have named. */
function ownerOf(problem: string, parts: readonly Part[]): string {
  const name = /^the variable "([^"]+)"/.exec(problem)?.[1];
  const owner = parts.find((part) => part?.variables.some((spec) => spec.name === name));
  return owner === undefined ? '' : ` (for the template ${owner.name})`;
}

function notUsed(name: string, known: readonly string[]): string {
  const others = known.length === 0 ? '' : ` (there are: ${known.join(', ')})`;
  return `no template uses a variable "${name}"${hint(name, known) || others}`;
}

function capitalised(text: string): string {
  return `${text[0]?.toUpperCase() ?? ''}${text.slice(1)}`;
}

function placesIn(text: string): string[] {
  return parsePieces(text).flatMap((piece) => (piece.kind === 'variable' ? [piece.name] : []));
}

function renderTask(
  body: PromptTemplate | undefined,
  typed: string | undefined,
  values: Readonly<Record<string, string>>,
  known: Lookup,
): Rendered {
  const own = typed === undefined ? undefined : fillTyped(typed, values);
  if (body === undefined) return { text: own?.text ?? '', later: own?.later ?? [], problems: [] };
  const lookup: Lookup = (name) => {
    if (name.startsWith('sessions.') || (name === 'prompt' && own !== undefined)) return { later: true };
    return Object.hasOwn(values, name) ? values[name] : known(name);
  };
  const outer = render(body.body, lookup, [...Object.keys(values), ...surroundingNames]);
  return own === undefined ? outer : { ...insertText(outer, 'prompt', own), problems: outer.problems };
}

/** In typed text, only known variables and references to sessions are replaced. */
function fillTyped(text: string, values: Readonly<Record<string, string>>): FilledText<LaterPlace> {
  return fill(text, ({ name }) => {
    if (name.startsWith('sessions.')) return { later: {} };
    return Object.hasOwn(values, name) ? values[name] : undefined;
  });
}

/** Fails with `usage` for a reference to a session that is unknown or not a dependency. */
export function referencesOf(
  state: GroupState,
  places: readonly LaterPlace[],
  dependsOn: readonly SessionId[],
): Result<PromptReference[]> {
  if (places.length === 0) return ok([]);
  const definitions = new Map([...state.sessions].map(([id, { definition }]) => [id, definition]));
  const ancestors = ancestorsOf(definitions, dependsOn);
  const names = namesOf(state);
  const references: PromptReference[] = [];
  for (const { name, at, length } of places) {
    const rest = name.slice('sessions.'.length);
    const label = longestName(rest, names) ?? '';
    const id = names.get(label);
    if (id === undefined) return unknown(name, names);
    const what = parseAccess(rest.slice(label.length), label);
    if (!what.ok) return fail('usage', `{{${name}}}: ${what.problem}.`, 'Correct the prompt.');
    if (!ancestors.has(id)) {
      const message = `{{${name}}} is in the prompt, but the session does not depend on ${label}.`;
      return fail('usage', message, `Add --depends-on ${label}.`);
    }
    const { field, path } = what.value;
    if (field === 'structured' && state.sessions.get(id)?.definition.outputSchema === undefined) {
      const message = `{{${name}}}: session ${label} has no output schema, so its result has no fields.`;
      return fail('usage', message, `Write {{sessions.${label}.result}}.`);
    }
    if (field === 'diffStat' || field === 'branch') {
      const fault = noBranchFault(label, state.sessions.get(id)?.definition.isolate);
      if (fault !== null) return fail('usage', `{{${name}}}: ${fault}.`, 'Correct the prompt.');
    }
    references.push({ at, length, sessionIds: [id], field, ...(path.length === 0 ? {} : { path }) });
  }
  return ok(references);
}

function namesOf(state: GroupState): Map<string, SessionId> {
  const names = new Map<string, SessionId>();
  for (const [id, { definition }] of state.sessions) {
    names.set(String(sessionNumber(id)), id);
    names.set(sessionLabel(id, undefined), id);
    if (definition.name !== undefined) names.set(definition.name, id);
  }
  return names;
}

function unknown(name: string, names: ReadonlyMap<string, SessionId>): Result<never> {
  const wanted = name.split('.')[1] ?? '';
  const message = `{{${name}}} is in the prompt, but the group has no session "${wanted}"`;
  return fail('usage', `${message}${hint(wanted, names.keys())}.`, 'Correct the name, or add that session first.');
}
