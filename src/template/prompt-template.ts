/** Prompt templates: Markdown with a YAML front matter, which is only parsed as data. */
import { basename } from 'node:path';
import type { z } from 'zod';
import { hint } from '../core/nearest.ts';
import { schema } from '../store/schema.ts';
import { checkYaml, type Problem, readYaml, type Validated, wholeFile } from '../store/yaml-text.ts';
import type { World } from '../system/world.ts';
import { type Lookup, parsePieces, problemIn, type Rendered, render, type Template } from './render.ts';
import { readTextFile } from './text-file.ts';
import { type VariableSpec, variableList } from './variables.ts';

export interface PromptTemplate {
  readonly name: string;
  readonly description: string;
  readonly path: string;
  readonly variables: readonly VariableSpec[];
  readonly body: Template;
}

const templateBytesMax = 1024 * 1024;

const frontMatter = schema((z) =>
  z.strictObject({
    name: z.string().min(1).max(64).optional(),
    description: z.string().max(2_000).optional(),
    variables: variableList().optional(),
  }),
);
type FrontMatter = z.output<ReturnType<typeof frontMatter>>;

/** Names of this kind are built in and need no declaration. */
const knownRoot = /^(?:sessions|matrix|project|session|group)[.[]/;

/** True for names such as `sessions.api.result`, which no template declares. */
export function isProgramName(name: string): boolean {
  return knownRoot.test(name);
}

/** Reads and checks the template; every problem at once. Never throws because of its content. */
export function loadPromptTemplate(world: World, path: string): Validated<PromptTemplate> {
  const read = readTextFile(world, path, templateBytesMax);
  if (!read.ok) return { ok: false, problems: [wholeFile(path, read.trouble)] };
  return parsePromptTemplate(read.text, path);
}

export function parsePromptTemplate(text: string, path: string): Validated<PromptTemplate> {
  const parts = splitFrontMatter(text, path);
  if (!parts.ok) return parts;
  const { front, body } = parts.value;
  const head: Validated<FrontMatter> = front === null ? { ok: true, value: {} } : readFrontMatter(front, path);
  if (!head.ok) return head;
  const declared = head.value.variables ?? [];
  const variables = front === null ? implicitVariables([body]) : declared;
  const problems = undeclared(body, variables);
  if (body.text === '') problems.push(problemIn(body, 0, 'the template has no text'));
  if (problems.length > 0) return { ok: false, problems };
  const name = head.value.name ?? basename(path).replace(/\.md$/, '');
  return { ok: true, value: { name, description: head.value.description ?? '', path, variables, body } };
}

function readFrontMatter(text: string, file: string): Validated<FrontMatter> {
  const yaml = readYaml({ text, file, linesBefore: 1 });
  if (!yaml.ok) return yaml;
  // An empty front matter is valid.
  if ((yaml.value.value ?? null) === null) return { ok: true, value: {} };
  return checkYaml(yaml.value, frontMatter(), 'the front matter');
}

interface Parts {
  /** The front matter's text; null without one. */
  readonly front: string | null;
  readonly body: Template;
}

const fenced = /^---[ \t]*\r?\n((?:[^\n]*\n)*?)---[ \t]*(?:\r?\n|$)/;

function splitFrontMatter(text: string, file: string): Validated<Parts> {
  const refuse = (message: string): Validated<Parts> => ({ ok: false, problems: [wholeFile(file, message)] });
  const first = text.split('\n', 1)[0]?.trimEnd() ?? '';
  // More dashes are a horizontal rule.
  if (!first.startsWith('---') || /^-{4,}$/.test(first))
    return { ok: true, value: { front: null, body: bodyOf(text, 0, file) } };
  if (first !== '---')
    return refuse(
      `the front matter begins with ${JSON.stringify(first.slice(0, 40))}; it must start with a plain "---"`,
    );
  const match = fenced.exec(text);
  if (match === null) return refuse('the front matter is not closed: add a line with only "---"');
  return { ok: true, value: { front: match[1] ?? '', body: bodyOf(text, match[0].length, file) } };
}

/** The text after the front matter, without surrounding blank lines. */
function bodyOf(whole: string, start: number, file: string): Template {
  const blank = /^(?:[ \t]*\r?\n)*/.exec(whole.slice(start))?.[0].length ?? 0;
  const line = whole.slice(0, start + blank).split('\n').length;
  return { text: whole.slice(start + blank).trimEnd(), file, startsAt: { line, column: 1 } };
}

/** Without a list of variables every used name is required. */
export function implicitVariables(templates: readonly Template[]): VariableSpec[] {
  const names = new Set(templates.flatMap(placesOf).map(({ name }) => name));
  return [...names]
    .filter((name) => /^[\w-]+$/.test(name))
    .map((name) => ({ name, required: true, mayBeBlank: true as const, type: 'string' as const }));
}

export function undeclared(template: Template, variables: readonly VariableSpec[]): Problem[] {
  const names = variables.map(({ name }) => name);
  return placesOf(template)
    .filter(({ name }) => !names.includes(name))
    .map(({ name, offset }) => problemIn(template, offset, undeclaredMessage(name, names)));
}

function undeclaredMessage(name: string, names: readonly string[]): string {
  const next = hint(name, names) || `; declare it under "variables", or write \\{{${name}}} for literal text`;
  return `there is no variable "${name}"${next}`;
}

function placesOf(template: Template): { readonly name: string; readonly offset: number }[] {
  return parsePieces(template.text).flatMap((piece) =>
    piece.kind === 'variable' && !isProgramName(piece.name) ? [piece] : [],
  );
}

/** Fills in the template; `extra` provides built-in names, such as `sessions.api.result`. */
export function renderPrompt(
  template: PromptTemplate,
  values: Readonly<Record<string, string>>,
  extra: Lookup,
): Rendered {
  const lookup: Lookup = (name) => (Object.hasOwn(values, name) ? values[name] : extra(name));
  const known = new Set([...template.variables.map(({ name }) => name), ...Object.keys(values)]);
  return render(template.body, lookup, [...known]);
}
