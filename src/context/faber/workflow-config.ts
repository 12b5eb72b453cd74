/**
 * The configuration of a FABER workflow: its phases and its critical artifacts. Every problem is reported with its
 * position; valid artifacts are usable anyway, so that a hook restores what it can.
 */
import { basename, join } from 'node:path';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { isObject } from '../../store/json.ts';
import type { JsonPath } from '../../store/json-positions.ts';
import { packageRoot } from '../../system/own-program.ts';
import { type ContextFiles, readProjectText } from '../hook-call.ts';
import type { FaberProject } from './project.ts';
import { fieldOf, listOf, nonEmptyText, phasesDefault, type ReadJson, readJson } from './state.ts';

/** Folder of the shipped workflow configurations and documents. */
export const shippedFaber = join(packageRoot, 'templates', 'faber');

export const artifactTypes = ['json', 'markdown', 'directory', 'work_plugin', 'skill', 'git_info'] as const;
type ArtifactType = (typeof artifactTypes)[number];

export interface ContextArtifact {
  readonly id: string;
  readonly type: ArtifactType;
  readonly path?: string;
  readonly pathFromState?: JsonPath;
  /** A slash command, with placeholders. */
  readonly command?: string;
  readonly description: string;
  readonly required: boolean;
  readonly condition?: Condition;
  /** `session_start`, `manual`, or `phase_transition:a->b`. */
  readonly triggers: readonly string[];
}

export interface PreStep {
  readonly phase: string;
  readonly id: string;
  /** For the session that starts the phase; a slash command or text. */
  readonly prompt: string;
}

export interface WorkflowConfig {
  /** For messages: relative to the project, or the name of the shipped file. */
  readonly file: string;
  readonly phases: readonly string[];
  readonly preSteps: readonly PreStep[];
  readonly artifacts: readonly ContextArtifact[];
  /** `file:line:column: problem`. */
  readonly problems: readonly string[];
}

const triggerPattern = /^(?:session_start|manual|phase_transition:[\w-]+->[\w-]+)$/;
export const isTrigger = (text: string): boolean => triggerPattern.test(text);

const namePattern = /^[A-Za-z0-9][\w-]{0,63}$/;
/** Ids are passed in lists on the command line. */
const artifactId = /^[A-Za-z0-9][\w.-]{0,63}$/;
const artifactsMax = 200;
const configBytesMax = 1024 ** 2;

/** Project folders for a team's own workflows; the first with the file counts. */
const ownFolders = ['.fractary/faber/workflows', '.fractary/plugins/faber/workflows', 'plugins/faber/config/workflows'];

/** `fractary-faber:default` and `default` both name the workflow `default`. */
export function workflowName(workflowId: unknown): string {
  return nonEmptyText(workflowId)?.split(':').at(-1) ?? 'default';
}

/**
 * The configuration of that name: the project's own, otherwise the shipped one. Fails with `not-found`, `usage` for an
 * invalid name, and `corrupt-file` for a file that is not a JSON object.
 */
export function loadWorkflowConfig(files: ContextFiles, project: FaberProject, name: string): Result<WorkflowConfig> {
  if (!namePattern.test(name)) {
    return fail('usage', `${JSON.stringify(name.slice(0, 100))} is not a workflow name.`, 'Use a name like default.');
  }
  const places = ownFolders.map((folder) => ({ root: project.root, path: `${folder}/${name}.json` }));
  for (const { root, path } of [...places, { root: shippedFaber, path: `workflows/${name}.json` }]) {
    const read = readProjectText(files, root, join(root, path), configBytesMax);
    if (!read.ok && read.trouble === 'does not exist') continue;
    const file = root === shippedFaber ? basename(path) : path;
    if (!read.ok) return fail('corrupt-file', `${file} ${read.trouble}.`, 'Replace or remove it.');
    if (read.truncated) return fail('corrupt-file', `${file} is larger than 1 MiB.`, 'Make it shorter.');
    return parseWorkflowConfig(read.text, file);
  }
  const next = `Create it at ${places[0]?.path}, or use the workflow default or core.`;
  return fail('not-found', `There is no FABER workflow ${name}.`, next);
}

/** Fails with `corrupt-file` when the text is not a JSON object. */
export function parseWorkflowConfig(text: string, file: string): Result<WorkflowConfig> {
  const json = readJson(text);
  const next = 'Fix the file.';
  if (!json.ok) return fail('corrupt-file', `${file}:${json.trouble}.`, next);
  if (!isObject(json.value)) return fail('corrupt-file', `${file}:1:1: is not a JSON object.`, next);
  const reader = new Reader(json, file);
  const phases = reader.phases(json.value.phases);
  const preSteps = reader.preSteps(json.value.phases);
  const artifacts = reader.artifacts(json.value);
  return ok({ file, phases, preSteps, artifacts, problems: reader.problems });
}

/** Of an object by name, or of a list of names or of objects with an id or a name. */
function phaseEntries(
  value: unknown,
): { readonly key: string | number; readonly name: unknown; readonly phase: unknown }[] {
  if (isObject(value)) return Object.entries(value).map(([name, phase]) => ({ key: name, name, phase }));
  if (!Array.isArray(value)) return [];
  return value.map((phase, key) => {
    return { key, phase, name: typeof phase === 'string' ? phase : (fieldOf(phase, 'id') ?? fieldOf(phase, 'name')) };
  });
}

class Reader {
  readonly problems: string[] = [];
  readonly #json: ReadJson & { readonly ok: true };
  readonly #file: string;
  readonly #ids = new Set<string>();

  constructor(json: ReadJson & { readonly ok: true }, file: string) {
    this.#json = json;
    this.#file = file;
  }

  #problem(path: JsonPath, message: string): void {
    this.problems.push(`${this.#file}:${this.#json.placeOf(path)}: ${message}`);
  }

  phases(value: unknown): readonly string[] {
    if (value === undefined) return phasesDefault;
    const named = phaseEntries(value).map(({ name }) => name);
    const usable = named.filter((name): name is string => typeof name === 'string' && namePattern.test(name));
    const isSound = usable.length === named.length && usable.length > 0;
    if (isSound && new Set(usable).size === usable.length) return usable;
    const wanted = 'expected an object by name, or a list of objects with an id';
    this.#problem(['phases'], `phases: ${isSound ? 'two have the same name' : wanted}`);
    return phasesDefault;
  }

  preSteps(phases: unknown): PreStep[] {
    return phaseEntries(phases).flatMap(({ key, name, phase }) => {
      const steps = fieldOf(phase, 'pre_steps');
      const path = ['phases', key, 'pre_steps'];
      if (steps === undefined || typeof name !== 'string') return [];
      if (!Array.isArray(steps)) {
        this.#problem(path, 'pre_steps: expected a list of objects with an id and a prompt');
        return [];
      }
      return steps.flatMap((step, index) => {
        const [id, prompt] = [nonEmptyText(fieldOf(step, 'id')), nonEmptyText(fieldOf(step, 'prompt'))];
        if (id !== undefined && prompt !== undefined) return [{ phase: name, id, prompt }];
        this.#problem([...path, index], 'pre_steps: expected an object with the texts id and prompt');
        return [];
      });
    });
  }

  artifacts(config: unknown): ContextArtifact[] {
    const critical = fieldOf(config, 'critical_artifacts');
    if (critical === undefined) return [];
    if (!isObject(critical)) this.#problem(['critical_artifacts'], 'critical_artifacts: expected an object');
    return ['always_load', 'conditional_load'].flatMap((list) => {
      const values = fieldOf(critical, list);
      const path = ['critical_artifacts', list];
      if (values === undefined) return [];
      if (!Array.isArray(values) || values.length > artifactsMax) {
        this.#problem(path, `${list}: expected a list of at most ${artifactsMax} artifacts`);
        return [];
      }
      return values.flatMap((value, index) => this.#artifact(value, [...path, index]) ?? []);
    });
  }

  #artifact(value: unknown, path: JsonPath): ContextArtifact | null {
    if (!isObject(value)) {
      this.#problem(path, 'expected an artifact: an object with an id');
      return null;
    }
    const before = this.problems.length;
    const field = (name: string): unknown => fieldOf(value, name);
    const id = nonEmptyText(field('id')) ?? '';
    const check = (isFine: boolean, name: string, message: string): void => {
      if (!isFine) this.#problem([...path, name], `${id === '' ? 'the artifact' : id}: ${message}`);
    };
    check(artifactId.test(id), 'id', 'the id must be letters, digits, "-", "_" or ".", 64 at most');
    if (this.#ids.has(id)) this.#problem([...path, 'id'], `the id ${id} is used twice`);
    this.#ids.add(id);
    const type = artifactTypes.find((one) => one === field('type'));
    check(type !== undefined, 'type', `type must be one of ${artifactTypes.join(', ')}`);
    const description = nonEmptyText(field('description'));
    check(description !== undefined, 'description', 'description is missing');
    const required = field('required');
    check(typeof required === 'boolean', 'required', 'required must be true or false');
    const triggers = listOf(field('reload_triggers'));
    const areTriggers = triggers.length > 0 && triggers.every((one) => typeof one === 'string' && isTrigger(one));
    const known = 'session_start, manual or phase_transition:a->b';
    check(areTriggers, 'reload_triggers', `reload_triggers must list ${known}`);
    const sources = ['path', 'path_from_state', 'command'].filter((name) => field(name) !== undefined);
    for (const name of sources) check(nonEmptyText(field(name)) !== undefined, name, `${name} must be a text`);
    const fromState = nonEmptyText(field('path_from_state'));
    const pathFromState = fromState === undefined ? undefined : parsePath(fromState);
    check(pathFromState !== null, 'path_from_state', 'path_from_state must be like artifacts.spec_path');
    const isFile = type === 'json' || type === 'markdown' || type === 'directory';
    check(!isFile || sources.length === 1, 'path', 'give one of path, path_from_state and command');
    const given = field('condition') ?? null;
    const condition = typeof given === 'string' ? parseCondition(given) : null;
    check(given === null || condition !== null, 'condition', 'condition must be a text');
    if (condition?.ok === false) {
      check(false, 'condition', `condition, character ${condition.column}: ${condition.message}`);
    }
    if (this.problems.length > before || type === undefined || description === undefined) return null;
    const source = { path: nonEmptyText(field('path')), pathFromState: pathFromState ?? undefined };
    const holds = condition?.ok === true ? condition.holds : undefined;
    const optional = defined({ ...source, command: nonEmptyText(field('command')), condition: holds });
    return { id, type, description, required: required === true, triggers: triggers as string[], ...optional };
  }
}

// Conditions of critical artifacts, such as `state.artifacts.spec_path != null`. They come from project files,
// so they are never run as code. Supported: comparisons, `&&`, `||` and `!`; operands are `null`, booleans,
// numbers, quoted texts and paths into the state.

export type Condition = (state: unknown) => boolean;

export type ParsedCondition =
  | { readonly ok: true; readonly holds: Condition }
  | { readonly ok: false; readonly column: number; readonly message: string };

const lengthMax = 1_000;
const step = String.raw`\.[A-Za-z_][\w-]*|\[\d{1,6}\]|\['[^'\\]*'\]|\["[^"\\]*"\]`;
const side = String.raw`state(?:${step})+|null|true|false|-?(?:0|[1-9]\d*)(?:\.\d+)?|'[^'\\]*'|"[^"\\]*"`;
const comparison = new RegExp(`^\\s*([!\\s]*)(${side})\\s*(?:(===?|!==?|<=|>=|<|>)\\s*(${side}))?\\s*$`);
const outside = (operator: string) => new RegExp(`${operator}(?=(?:[^'"]|'[^']*'|"[^"]*")*$)`);
const [or, and] = [outside('\\|\\|'), outside('&&')];

/** Never throws. A path without a value is null. */
export function parseCondition(text: string): ParsedCondition {
  if (text.length > lengthMax) return { ok: false, column: 1, message: `is longer than ${lengthMax} characters` };
  let column = 1;
  const alternatives: Condition[][] = [];
  for (const alternative of text.split(or)) {
    const all: Condition[] = [];
    for (const part of alternative.split(and)) {
      const holds = parseComparison(part);
      if (holds === null) {
        const message = 'expected a comparison such as state.artifacts.spec_path != null; join several by && or ||';
        return { ok: false, column: column + part.search(/\S|$/), message };
      }
      all.push(holds);
      column += part.length + 2;
    }
    alternatives.push(all);
  }
  return { ok: true, holds: (state) => alternatives.some((all) => all.every((holds) => holds(state))) };
}

function parseComparison(text: string): Condition | null {
  const [whole, negations = '', left = '', operator, right = ''] = comparison.exec(text) ?? [];
  if (whole === undefined) return null;
  const isNegated = negations.replace(/\s/g, '').length % 2 === 1;
  const [one, other] = [sideOf(left), sideOf(right)];
  return (state) => {
    const value = operator === undefined ? isTrue(one(state)) : compared(operator, one(state), other(state));
    return value !== isNegated;
  };
}

function sideOf(text: string): (state: unknown) => unknown {
  if (text.startsWith('state')) {
    const path = pathIn(text.slice('state'.length)) ?? [];
    return (state) => stateValue(state, path) ?? null;
  }
  const value: unknown = text === '' ? null : /^['"]/.test(text) ? text.slice(1, -1) : JSON.parse(text);
  return () => value;
}

function isTrue(value: unknown): boolean {
  return value !== null && value !== false && value !== 0 && value !== '';
}

/** Strings and numbers are ordered among themselves; other values are neither less nor more. */
function compared(operator: string, left: unknown, right: unknown): boolean {
  if (operator.startsWith('==')) return left === right;
  if (operator.startsWith('!=')) return left !== right;
  const isOrdered = typeof left === typeof right && (typeof left === 'number' || typeof left === 'string');
  if (!isOrdered) return false;
  const [a, b] = [left as number, right as number];
  if (a === b) return operator.endsWith('=');
  return operator.startsWith('<') ? a < b : a > b;
}

/** `artifacts.spec_path`, also written `$.artifacts['spec_path']` or with `state` in front; null for another text. */
export function parsePath(text: string): JsonPath | null {
  const rest = text.trim().replace(/^(?:\$|state(?=[.[]))\.?/, '');
  return pathIn(/^[.[]/.test(rest) ? rest : `.${rest}`);
}

function pathIn(text: string): JsonPath | null {
  if (text.length > lengthMax || !new RegExp(`^(?:${step})+$`).test(text)) return null;
  return [...text.matchAll(new RegExp(step, 'g'))].map(([part]) => {
    if (part.startsWith('.')) return part.slice(1);
    return /^\[\d/.test(part) ? Number(part.slice(1, -1)) : part.slice(2, -2);
  });
}

export function stateValue(state: unknown, path: JsonPath): unknown {
  return path.reduce<unknown>((value, part) => fieldOf(value, part), state);
}
