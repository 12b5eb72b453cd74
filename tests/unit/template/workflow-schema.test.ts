/**
 * Promises: the JSON Schema that editors use is made from the form that is checked, and is up to date. Regenerate it
 * with UPDATE_GOLDEN=1. Not covered: what an editor makes of it.
 */
import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { readYaml } from '../../../src/store/yaml-text.ts';
import { workflowJsonSchema } from '../../../src/template/workflow/schema.ts';
import { exampleWorkflow } from '../../support/template/workflow-rig.ts';

const path = join(import.meta.dir, '../../../templates/workflow.schema.json');

test('the shipped schema is the one that the program has', async () => {
  const text = `${JSON.stringify(workflowJsonSchema(), null, 2)}\n`;
  if (process.env.UPDATE_GOLDEN === '1') await Bun.write(path, text);
  expect(await Bun.file(path).text()).toBe(text);
});

interface Schema {
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly propertyNames?: Schema;
  readonly items?: Schema;
  readonly description?: string;
}

/** As much of JSON Schema as the file uses; the first fault, or null. */
function faultOf(schema: Schema, value: unknown, path: string): string | null {
  if (schema.anyOf !== undefined) {
    return schema.anyOf.some((one) => faultOf(one, value, path) === null) ? null : `${path}: fits nothing`;
  }
  const kind = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  const kinds = Number.isInteger(value) ? [kind, 'integer'] : [kind];
  if (schema.type !== undefined && ![schema.type].flat().some((one) => kinds.includes(one)))
    return `${path}: is ${kind}`;
  if ('const' in schema && value !== schema.const) return `${path}: is not ${schema.const}`;
  if (schema.enum !== undefined && !schema.enum.includes(value)) return `${path}: is none of them`;
  if (schema.pattern !== undefined && !new RegExp(schema.pattern, 'u').test(String(value))) return `${path}: pattern`;
  if (Array.isArray(value)) {
    return (
      value.map((one, index) => faultOf(schema.items ?? {}, one, `${path}[${index}]`)).find((fault) => fault) ?? null
    );
  }
  if (kind !== 'object') return null;
  const missing = schema.required?.find((key) => !Object.hasOwn(value as object, key));
  if (missing !== undefined) return `${path}: lacks ${missing}`;
  for (const [key, child] of Object.entries(value as object)) {
    const inner = schema.properties?.[key] ?? schema.additionalProperties ?? {};
    if (inner === false) return `${path}: has ${key}`;
    const fault =
      faultOf(schema.propertyNames ?? {}, key, key) ??
      (inner === true ? null : faultOf(inner, child, `${path}.${key}`));
    if (fault !== null) return fault;
  }
  return null;
}

function check(text: string): string | null {
  const yaml = readYaml({ text, file: 'x' });
  return yaml.ok ? faultOf(workflowJsonSchema() as Schema, yaml.value.value, '') : 'no YAML';
}

test('the example fits it, and what is wrong does not', () => {
  expect(check(exampleWorkflow)).toBeNull();
  const wrong: readonly (readonly [string, string, string])[] = [
    ['version: 1', 'version: 2', '.version: is not 1'],
    ['timeout: 30m', 'timeout: soon', '.sessions.change.timeout: pattern'],
    ['retries: 1', 'retry: 1', '.sessions.change: has retry'],
    ['  report:', '  "1":', '1: pattern'],
    ['permissionMode: acceptEdits', 'permissionMode: yolo', '.sessions.change.permissionMode: is none of them'],
    ['retries: 1', 'retries: 1.5', '.sessions.change.retries: is number'],
    ['dependsOn: "change[*]"', 'dependsOn: {}', '.sessions.report.dependsOn: fits nothing'],
  ];
  for (const [before, after, fault] of wrong) expect(check(exampleWorkflow.replace(before, after))).toBe(fault);
});

test('every key says what it is for', () => {
  const silent: string[] = [];
  const walk = (schema: Schema, at: string): void => {
    for (const [key, child] of Object.entries(schema.properties ?? {})) {
      if (child.description === undefined) silent.push(`${at}.${key}`);
      walk(child, `${at}.${key}`);
    }
    if (typeof schema.additionalProperties === 'object') walk(schema.additionalProperties, `${at}.*`);
  };
  walk(workflowJsonSchema() as Schema, '');
  expect(silent).toEqual([]);
});
