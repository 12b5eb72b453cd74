/**
 * Promises: the JSON Schema for editors is generated from the checked form and is up to date. Regenerate it with
 * UPDATE_GOLDEN=1.
 */
import { expect, test } from 'bun:test';
import { join } from 'node:path';
import Ajv from 'ajv';
import { parse } from 'yaml';
import { workflowJsonSchema } from '../../../src/template/workflow/schema.ts';
import { exampleWorkflow } from '../../support/template/workflow-rig.ts';

const path = join(import.meta.dir, '../../../templates/workflow.schema.json');

test('the shipped workflow schema equals the generated one', async () => {
  const text = `${JSON.stringify(workflowJsonSchema(), null, 2)}\n`;
  if (process.env.UPDATE_GOLDEN === '1') await Bun.write(path, text);
  expect(await Bun.file(path).text()).toBe(text);
});

function check(text: string): string | null {
  const { $schema: _, ...schema } = workflowJsonSchema();
  const isValid = new Ajv({ strict: false }).compile(schema);
  return isValid(parse(text)) ? null : (isValid.errors?.[0]?.instancePath ?? '');
}

test('the example workflow fits the schema, and wrong workflows do not', () => {
  expect(check(exampleWorkflow)).toBeNull();
  const wrong: readonly (readonly [string, string, string])[] = [
    ['version: 1', 'version: 2', '/version'],
    ['timeout: 30m', 'timeout: soon', '/sessions/change/timeout'],
    ['retries: 1', 'retry: 1', '/sessions/change'],
    ['  report:', '  "1":', '/sessions'],
    ['permissionMode: acceptEdits', 'permissionMode: yolo', '/sessions/change/permissionMode'],
    ['retries: 1', 'retries: 1.5', '/sessions/change/retries'],
    ['dependsOn: "change[*]"', 'dependsOn: {}', '/sessions/report/dependsOn'],
  ];
  for (const [before, after, fault] of wrong) expect(check(exampleWorkflow.replace(before, after))).toBe(fault);
});
