/**
 * Promises: every workflow in docs/workflows.md and every project file in docs/worktrees.md is valid, and the
 * reference names every key.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { join } from 'node:path';
import { loadProjectFile, projectKeys } from '../../../src/template/workflow/project-file.ts';
import { workflowJsonSchema } from '../../../src/template/workflow/schema.ts';
import { loadWorkflow } from '../../../src/template/workflow.ts';
import { templateWorld, valid } from '../../support/template/rig.ts';
import { WorkflowFolder } from '../../support/template/workflow-rig.ts';

const root = join(import.meta.dir, '../../..');
let folder: WorkflowFolder;
let docs: string;
beforeAll(async () => {
  folder = new WorkflowFolder();
  docs = await Bun.file(join(root, 'docs/workflows.md')).text();
});
afterAll(() => folder.remove());

test('the examples of docs/workflows.md are valid workflows', () => {
  const examples = [...docs.matchAll(/```yaml\n(.*?)```/gs)].map(([, text]) => text ?? '');
  const places = () => [{ folder: join(root, 'templates'), origin: 'shipped' as const }];
  expect(examples.length).toBeGreaterThan(2);
  for (const text of examples) {
    expect(loadWorkflow({ ...folder.input, text, places, given: null })).toMatchObject({ ok: true });
  }
});

test('the matrix example of docs/workflows.md makes the sessions named below it', () => {
  const examples = [...docs.matchAll(/```yaml\n(.*?)```/gs)].map(([, one]) => one ?? '');
  const text = examples.find((one) => one.includes('side: [server, client]')) ?? '';
  const names = /group of seven sessions, (.*)\./.exec(docs)?.[1]?.match(/[\w-]+(?=`)/g) ?? [];
  expect(names.length).toBeGreaterThan(1);
  const two = text.replaceAll('../services/*', '../services/{api,web}');
  const keys = folder.draft(two, {}).sessions.map(({ key }) => key);
  expect(keys).toHaveLength(7);
  expect(keys).toEqual(expect.arrayContaining(names));
});

test('the workflow reference names every key', async () => {
  const reference = await Bun.file(join(root, 'docs/reference/workflow.md')).text();
  const propertiesOf = (schema: object) => (schema as { properties?: Record<string, object> }).properties ?? {};
  const { group = {}, sessions = {}, ...others } = propertiesOf(workflowJsonSchema());
  const session = propertiesOf((sessions as { additionalProperties: object }).additionalProperties);
  const maps = [others, propertiesOf(group), session, propertiesOf(session.config ?? {})];
  const keys = maps.flatMap((map) => Object.keys(map)).filter((key) => key !== '$schema');
  expect(keys.length).toBeGreaterThan(50);
  expect(keys.filter((key) => !reference.includes(`\n| \`${key}\` |`))).toEqual([]);
});

test('the project files in docs/worktrees.md are valid', async () => {
  const worktrees = await Bun.file(join(root, 'docs/worktrees.md')).text();
  const examples = [...worktrees.matchAll(/```yaml\n(.*?)```/gs)].map(([, text]) => text ?? '');
  expect(examples.length).toBeGreaterThan(0);
  for (const text of examples) {
    const file = folder.write('.claude-code-agent/project.yaml', text);
    expect(valid(loadProjectFile(templateWorld, file)).work.accept).toBeDefined();
  }
  expect(projectKeys.filter((key) => !worktrees.includes(`\n${key}: `))).toEqual([]);
});
