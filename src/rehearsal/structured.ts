/**
 * Sessions with an output schema: claude offers the model a tool for the answer, and without a call of it the session
 * fails. A script that says nothing of it gets one with an answer made from the schema.
 */
import { type Step, toolCalls } from './script.ts';

/** claude's name for the tool. */
export const structuredTool = 'StructuredOutput';
/** A schema may refer to itself. */
const depthMax = 12;

/** The steps with the answer handed in at their end, when the request asks for one and no step does so. */
export function withStructuredAnswer(steps: readonly Step[], tools: readonly unknown[] = []): readonly Step[] {
  const tool = tools.map(asObject).find(({ name }) => name === structuredTool);
  if (tool === undefined || steps.some((step) => toolCalls(step).some((call) => call.tool === structuredTool)))
    return steps;
  const last = steps.at(-1);
  const answer = { tool: structuredTool, input: asObject(sampleOf(tool.input_schema)) };
  const isPlain = last?.text !== undefined && toolCalls(last).length === 0;
  return isPlain ? [...steps.slice(0, -1), { ...last, ...answer }] : [...steps, answer];
}

type JsonObject = Readonly<Record<string, unknown>>;

function asObject(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

/** A value that fits the schema as far as its common words go. */
export function sampleOf(schema: unknown, depth = 0): unknown {
  const form = asObject(schema);
  if (depth > depthMax) return null;
  if ('const' in form) return form.const;
  if (Array.isArray(form.enum)) return form.enum[0];
  if ('default' in form) return form.default;
  for (const word of ['anyOf', 'oneOf', 'allOf']) {
    const options = form[word];
    if (Array.isArray(options) && options.length > 0) return sampleOf(options[0], depth + 1);
  }
  const type = Array.isArray(form.type) ? form.type[0] : form.type;
  switch (type ?? (form.properties === undefined ? 'string' : 'object')) {
    case 'object': {
      const properties = asObject(form.properties);
      const required = Array.isArray(form.required) ? form.required.map(String) : [];
      const keys = new Set([...Object.keys(properties), ...required]);
      return Object.fromEntries([...keys].map((key) => [key, sampleOf(properties[key], depth + 1)]));
    }
    case 'array': {
      const count = Math.max(1, typeof form.minItems === 'number' ? Math.min(form.minItems, 20) : 1);
      return Array.from({ length: count }, () => sampleOf(form.items, depth + 1));
    }
    case 'integer':
    case 'number':
      return typeof form.minimum === 'number' ? form.minimum : 1;
    case 'boolean':
      return true;
    case 'null':
      return null;
    default:
      return sampleText(form);
  }
}

function sampleText({ minLength, maxLength }: JsonObject): string {
  const text = 'made up by the rehearsal'.padEnd(typeof minLength === 'number' ? Math.min(minLength, 1_000) : 0, '.');
  return typeof maxLength === 'number' ? text.slice(0, maxLength) : text;
}
