/**
 * Promises: every workflow in docs/workflows.md is one, and so is every project file in docs/worktrees.md; their tables
 * name every key. Not covered: their prose.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { join } from 'node:path';
import { loadProjectFile, projectKeys } from '../../../src/template/workflow/project-file.ts';
import { workflowJsonSchema } from '../../../src/template/workflow/schema.ts';
import { validateWorkflowFile } from '../../../src/template/workflow.ts';
import { valid, world } from '../../support/template/rig.ts';
import { WorkflowFolder } from '../../support/template/workflow-rig.ts';

const root = join(import.meta.dir, '../../..');
let folder: WorkflowFolder;
let docs: string;
beforeAll(async () => {
  folder = new WorkflowFolder();
  docs = await Bun.file(join(root, 'docs/workflows.md')).text();
});
afterAll(() => folder.remove());

test('its examples are workflows', () => {
  const examples = [...docs.matchAll(/```yaml\n(.*?)```/gs)].map(([, text]) => text ?? '');
  const places = () => [{ folder: join(root, 'templates'), origin: 'shipped' as const }];
  expect(examples.length).toBeGreaterThan(3);
  for (const text of examples) {
    expect(validateWorkflowFile(world, { ...folder.input, text, places })).toEqual([]);
  }
});

test('the large example makes the sessions that are named below it', () => {
  const text = [...docs.matchAll(/```yaml\n(.*?)```/gs)].map(([, one]) => one ?? '')[1] ?? '';
  const names = /group of seven sessions: (.*)\./.exec(docs)?.[1]?.match(/[\w-]+(?=`)/g) ?? [];
  const two = text.replaceAll('../services/*', '../services/{api,web}');
  folder.write('flow/.claude-code-agent/templates/prompts/implement-feature.md', '{{feature}} {{prompt}}');
  folder.write('flow/.claude-code-agent/templates/configs/strict-typescript/CLAUDE.md', 'Strict');
  const keys = folder.draft(two, { ticket: 'x' }).sessions.map(({ key }) => key);
  expect(keys).toHaveLength(7);
  expect(new Set(keys)).toEqual(new Set(names));
});

test('every key is there', () => {
  const propertiesOf = (schema: object) => (schema as { properties?: Record<string, object> }).properties ?? {};
  const { group = {}, sessions = {}, ...others } = propertiesOf(workflowJsonSchema());
  const session = propertiesOf((sessions as { additionalProperties: object }).additionalProperties);
  const maps = [others, propertiesOf(group), session, propertiesOf(session.config ?? {})];
  const keys = maps.flatMap((map) => Object.keys(map)).filter((key) => key !== '$schema');
  expect(keys.length).toBeGreaterThan(50);
  expect(keys.filter((key) => !docs.includes(`\`${key}\``))).toEqual([]);
});

test('project files', async () => {
  const worktrees = await Bun.file(join(root, 'docs/worktrees.md')).text();
  const examples = [...worktrees.matchAll(/```yaml\n(.*?)```/gs)].map(([, text]) => text ?? '');
  expect(examples.length).toBeGreaterThan(0);
  for (const text of examples) {
    const file = folder.write('.claude-code-agent/project.yaml', text);
    expect(valid(loadProjectFile(world, file)).work.accept).toBeDefined();
  }
  expect(projectKeys.filter((key) => !worktrees.includes(`\`${key}\``))).toEqual([]);
});
