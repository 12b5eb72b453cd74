/** The task of one session: its own words, its template, and the places that the results of others fill later. */

import { quoted } from '../../core/id.ts';
import { promptBytesMax } from '../../core/values.ts';
import { type FilledText, insertText, parsePieces } from '../render.ts';
import type { VariableSpec } from '../variables.ts';
import type { DraftReference } from './draft.ts';
import type { Instance } from './expand.ts';
import { parseReference, select, type Target, type Wanted } from './session-references.ts';
import { fillTemplate, fillYamlText, meaningsIn, type OpenPlace, type Scope } from './text.ts';
import { type SessionContext, type SessionView, taken, templateFolder, valuesFor } from './view.ts';
import { noBranchFault } from './work-settings.ts';

/** The variable of a template into which a session's own prompt goes. */
const promptVariable = 'prompt';

export interface Task {
  readonly filled: FilledText<OpenPlace>;
  /** Name of the template that made it. */
  readonly template?: string;
  /** Values with which the template was filled in. */
  readonly values: Readonly<Record<string, string>>;
  /** The template's variables. */
  readonly specs: readonly VariableSpec[];
  /** Names that stand in the session's own prompt. */
  readonly used: ReadonlySet<string>;
}

/** Its own prompt fills the template's `{{prompt}}`, or stands instead of a template that has none. */
export function taskOf(view: SessionView, context: SessionContext): Task {
  const { spec, path, vars, scope, instance } = view;
  const { problems, shelf, group } = context;
  const hint = problems.hint.bind(problems);
  const withVars: Scope = { ...scope, variables: [vars, ...scope.variables], takesResults: true };
  const promptPath = [...path, 'prompt'];
  const own =
    spec.prompt === undefined ? undefined : fillYamlText(promptPath, spec.prompt, meaningsIn(withVars, hint), problems);
  const used = new Set(
    parsePieces(spec.prompt ?? '').flatMap((piece) => (piece.kind === 'variable' ? [piece.name] : [])),
  );
  const nothing: Task = { filled: own ?? { text: '', later: [] }, values: {}, specs: [], used };
  const name = spec.template ?? group.template;
  if (name === undefined) {
    if (own !== undefined) return checked(nothing, view, context);
    const message = `${quoted(instance.family.key)} has no task: give it "prompt" or "template"`;
    problems.atKey(['sessions'], instance.family.key, message);
    return nothing;
  }
  const templatePath = spec.template === undefined ? ['group', 'template'] : [...path, 'template'];
  const template = taken(shelf.prompt(name, templateFolder(view, context)), templatePath, problems);
  if (template === undefined) return nothing;
  const specs = template.variables;
  const takesPrompt = specs.some((one) => one.name === promptVariable);
  if (own !== undefined && !takesPrompt) return checked({ ...nothing, specs }, view, context);
  const withPrompt = own === undefined ? view : { ...view, vars: { ...vars, [promptVariable]: own.text } };
  const noun = `template ${template.name}`;
  const valuesAt = spec.template === undefined ? path : templatePath;
  const values = valuesFor(specs, noun, valuesAt, withPrompt, context);
  const inTemplate = meaningsIn({ ...scope, variables: [values], takesResults: true }, hint);
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

/** A prompt must be something that can be sent. */
function checked(task: Task, { spec, path }: SessionView, { problems }: SessionContext): Task {
  const { text } = task.filled;
  const at = [...path, spec.prompt === undefined ? 'template' : 'prompt'];
  if (text.trim() === '') problems.at(at, 'the prompt is blank');
  else if (text.includes('\0')) problems.at(at, 'the prompt holds a NUL character');
  else if (Buffer.byteLength(text) > promptBytesMax) problems.at(at, 'the prompt is longer than 1 MiB');
  return task;
}

/** The places that are filled when the session becomes ready, in their order. */
export function draftReferences(
  { later: open }: FilledText<OpenPlace>,
  { instance }: SessionView,
  context: SessionContext,
): readonly DraftReference[] {
  const hint = context.problems.hint.bind(context.problems);
  return open.flatMap((place): DraftReference[] => {
    const wanted = parseReference(place.name, context.families, hint);
    if (!wanted.ok) {
      place.report(wanted.problem);
      return [];
    }
    const selected = select(wanted.value, instance, hint);
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

/** Why the result of `instances` cannot stand in the prompt of `from`; no full stop. */
function faultOfReference(
  wanted: Wanted,
  instances: readonly Instance[],
  from: Instance,
  context: SessionContext,
): string | undefined {
  const { wiring, problems } = context;
  const { family, field, path } = wanted;
  if (instances.includes(from)) return `${quoted(family.key)} cannot use its own result`;
  if (wiring !== undefined && instances.some((one) => !wiring.isAncestor(one, from))) {
    const waits = `${quoted(from.family.key)} does not wait for ${quoted(written(wanted))}`;
    return `${waits}; add it to its dependsOn`;
  }
  if (field === 'diffStat' || field === 'branch') return faultOfWorktrees(instances, context);
  if (field !== 'structured') return undefined;
  const schema = family.spec.outputSchema;
  if (schema === undefined) {
    return `${quoted(family.key)} has no outputSchema, so it has no .structured; use .result`;
  }
  const missing = missingStep(schema, path);
  if (missing === null) return undefined;
  const hint = problems.hint(missing.step, missing.known);
  return `the outputSchema of ${quoted(family.key)} has no ${quoted(missing.step)}${hint}`;
}

function faultOfWorktrees(instances: readonly Instance[], { isolations }: SessionContext): string | undefined {
  for (const instance of instances) {
    const fault = noBranchFault(instance.key, isolations.get(instance));
    if (fault !== null) return fault;
  }
  return undefined;
}

/** As it would stand in `dependsOn`. */
function written({ family, selector }: Target): string {
  return selector === null ? family.key : `${family.key}[${selector}]`;
}

/** What makes a schema more than a list of properties. */
const openEnds = ['$ref', 'allOf', 'anyOf', 'oneOf', 'patternProperties', 'if', '$dynamicRef'];

interface MissingStep {
  readonly step: string;
  readonly known: readonly string[];
}

/** The first step of a way that a schema surely does not have; null when it may have all of them. */
export function missingStep(schema: unknown, path: readonly string[]): MissingStep | null {
  let here: unknown = schema;
  for (const step of path) {
    if (!isMap(here) || openEnds.some((key) => Object.hasOwn(here as object, key))) return null;
    if (/^\d+$/.test(step) && isMap(here.items)) {
      here = here.items;
      continue;
    }
    const { properties, additionalProperties = false } = here;
    // Without properties, or with further ones, anything may come.
    if (!isMap(properties) || additionalProperties !== false) return null;
    if (!Object.hasOwn(properties, step)) return { step, known: Object.keys(properties) };
    here = properties[step];
  }
  return null;
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
