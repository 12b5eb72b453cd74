/**
 * Promises: each shipped template loads without problems, has a description, works with only its required variables,
 * and uses one name for one thing. The workflows load over projects.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { readBackCheck } from '../../../src/claude/launch/settings.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import {
  type ConfigTemplate,
  loadConfigTemplate,
  renderConfigTemplate,
} from '../../../src/template/config-template.ts';
import { findTemplate, listTemplates, templatePlaces } from '../../../src/template/places.ts';
import { loadPromptTemplate, type PromptTemplate, renderPrompt } from '../../../src/template/prompt-template.ts';
import { resolveVariables, type VariableSpec } from '../../../src/template/variables.ts';
import type { WorkflowDraft } from '../../../src/template/workflow/session.ts';
import { loadWorkflow } from '../../../src/template/workflow.ts';

const world = createRealWorld();
const packageRoot = resolve(import.meta.dir, '../../..');
const shipped = join(packageRoot, 'templates');
const places = (projects: readonly string[]) => templatePlaces({ env: {}, packageRoot, projects });

const prompts = ['code-review', 'document', 'implement-feature', 'update-dependency', 'write-tests'];
const configs = ['cpm', 'documentation', 'faber', 'handover', 'read-only-review', 'strict-typescript'];
const workflows = ['cross-repo-change', 'faber', 'feature-implementation', 'review-then-fix'];

let root: string;
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'cca template ')));
  for (const name of ['api', 'web', 'worker']) mkdirSync(join(root, 'services', name), { recursive: true });
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

function loadPrompt(name: string): PromptTemplate {
  const loaded = loadPromptTemplate(world, join(shipped, 'prompts', `${name}.md`));
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.value;
}

function loadConfig(name: string): ConfigTemplate {
  const loaded = loadConfigTemplate(world, join(shipped, 'configs', name));
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.value;
}

/** Values of a user who gives only what is required. */
function least(variables: readonly VariableSpec[]): Record<string, string> {
  const given = variables.filter(({ required }) => required).map((spec) => [spec.name, `(${spec.name})`]);
  const { values, problems } = resolveVariables(variables, Object.fromEntries(given), { world, folder: root });
  expect(problems).toEqual([]);
  return values;
}

test('shipped templates are those of the documentation, and are found under all their names', () => {
  const listed = listTemplates(world, places([])).map(({ template }) => `${template.kind} ${template.name}`);
  expect(listed).toEqual([
    ...prompts.map((name) => `prompt ${name}`),
    ...configs.map((name) => `config ${name}`),
    ...workflows.map((name) => `workflow ${name}`),
  ]);
  expect(findTemplate(world, places([]), 'config', 'typescript-strict')).toMatchObject({
    value: { name: 'strict-typescript' },
  });
  const docs = readFileSync(join(packageRoot, 'docs', 'templates.md'), 'utf8');
  for (const name of [...prompts, ...configs, ...workflows]) expect(docs).toContain(`\`${name}\``);
});

test('the templates of the specification are shipped under its names', () => {
  const named = [
    ...(['code-review', 'implement-feature'] as const).map((name) => ['prompt', name] as const),
    ...(['strict-typescript', 'typescript-strict', 'documentation'] as const).map((name) => ['config', name] as const),
    ['workflow', 'feature-implementation'] as const,
  ];
  for (const [kind, name] of named)
    expect([name, findTemplate(world, places([]), kind, name).ok]).toEqual([name, true]);
});

test('code-review has the variables of the specification', () => {
  const [path, areas, ...others] = loadPrompt('code-review').variables;
  expect(others).toEqual([]);
  expect(path).toMatchObject({ name: 'file_path', required: true });
  expect(areas).toMatchObject({ name: 'focus_areas', default: 'security, performance, readability' });
});

describe.each(prompts)('prompt %s', (name) => {
  test('a shipped prompt needs only its required variables and uses all of them', () => {
    const prompt = loadPrompt(name);
    expect(prompt.name).toBe(name);
    expect(prompt.description.length).toBeGreaterThan(10);
    expect(prompt.variables.filter(({ required }) => required)).toHaveLength(1);
    const rendered = renderPrompt(prompt, least(prompt.variables), () => undefined);
    expect(rendered).toMatchObject({ problems: [], later: [] });
    expect(rendered.text).not.toContain('{{');
    for (const { name: variable, default: fallback, required } of prompt.variables) {
      expect(rendered.text).toContain(required ? `(${variable})` : (fallback ?? ''));
      const marked = { ...least(prompt.variables), [variable]: '<MARK>' };
      expect(renderPrompt(prompt, marked, () => undefined).text).toContain('<MARK>');
    }
  });

  test('a shipped prompt states its boundaries and the contents of the final answer', () => {
    const { text } = loadPrompt(name).body;
    expect(text).toContain('## Boundaries');
    expect(text).toContain('## Final answer');
    expect(text).toMatch(/## How to (?:check|work)/);
  });
});

describe.each(configs)('config %s', (name) => {
  test('a shipped config needs no variables, and claude accepts its settings', () => {
    const config = loadConfig(name);
    expect(config.description.length).toBeGreaterThan(10);
    const { files, problems } = renderConfigTemplate(config, least(config.variables), () => undefined);
    expect(problems).toEqual([]);
    const texts = new Map(files.map(({ path, bytes }) => [path, Buffer.from(bytes).toString('utf8')]));
    expect(texts.has('CLAUDE.md')).toBe(true);
    const settings = texts.get('settings.json') ?? '';
    expect(readBackCheck('settings.json', settings)).toMatchObject({ ok: true });
    expect(JSON.parse(settings).permissions.deny).toContain('Read(**/.env)');
    for (const text of texts.values()) expect(text).not.toContain('{{');
    for (const [path, text] of texts) if (/^(?:commands|skills|agents)\//.test(path)) expect(text).toMatch(/^---\n/);
  });
});

test('read-only-review denies every tool that writes', () => {
  const file = loadConfig('read-only-review').files.find(({ path }) => path === 'settings.json');
  const { permissions } = JSON.parse(Buffer.from(file?.bytes ?? []).toString('utf8'));
  expect(permissions.deny).toEqual(
    expect.arrayContaining(['Edit', 'Write', 'NotebookEdit', 'Bash(rm:*)', 'Bash(git commit:*)']),
  );
  expect(permissions.allow.filter((rule: string) => permissions.deny.includes(rule))).toEqual([]);
});

const repositoryOf = (folder: string) => `${folder}/.git`;

const given: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'cross-repo-change': { change: 'Use the shared logger', projects: 'services/*' },
  'feature-implementation': { feature: 'Reset a password by mail', project: 'services/api' },
  'review-then-fix': { file_path: 'src/auth', project: 'services/api' },
  faber: { work_id: '258', work: 'Reset a password by mail', project: 'services/api' },
};

function load(name: string, more: Readonly<Record<string, string>> = {}): WorkflowDraft {
  const file = join(shipped, 'workflows', `${name}.yaml`);
  const text = readFileSync(file, 'utf8');
  const common = { world, file, text, name, baseFolder: root, home: undefined, places };
  expect(loadWorkflow({ ...common, given: null })).toMatchObject({ ok: true });
  const loaded = loadWorkflow({ ...common, given: { ...given[name], ...more }, repositoryOf });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.value;
}

describe.each(workflows)('workflow %s', (name) => {
  test('a shipped workflow loads over projects, has a cap, and its later sessions refer to earlier ones', () => {
    const draft = load(name);
    expect(draft.slug).toBe(name);
    expect(draft.config.maxBudgetUsd).toBeGreaterThan(0);
    expect(draft.description.length).toBeGreaterThan(10);
    for (const { definition, dependsOn, references } of draft.sessions) {
      expect(definition.description).not.toBe('');
      expect(references.length > 0).toBe(dependsOn.length > 0);
      const blank = references.reduceRight(
        (text, { at, length }) => text.slice(0, at) + text.slice(at + length),
        definition.prompt,
      );
      expect(blank).not.toContain('{{');
    }
  });
});

test.each([
  ['cross-repo-change', 'change-web'],
  ['feature-implementation', 'implement'],
  ['review-then-fix', 'fix'],
])('%s: an acceptance command may check the work of %s, and never that of read-only sessions', (name, key) => {
  const { sessions } = load(name, { accept_command: 'npm test' });
  expect(sessions.find((session) => session.key === key)?.definition.accept).toBe('npm test');
  for (const { definition, configTemplate } of sessions) {
    if (configTemplate?.name === 'read-only-review') expect(definition.accept).toBeUndefined();
  }
  expect(load(name).sessions.filter(({ definition }) => definition.accept !== undefined)).toEqual([]);
});

test('cross-repo-change makes three sessions for each project, each after its own', () => {
  const { sessions } = load('cross-repo-change');
  expect(sessions.map(({ key, dependsOn }) => [key, ...dependsOn].join(' < ')).sort()).toEqual([
    'change-api < survey-api',
    'change-web < survey-web',
    'change-worker < survey-worker',
    'review-api < change-api',
    'review-web < change-web',
    'review-worker < change-worker',
    'survey-api',
    'survey-web',
    'survey-worker',
  ]);
  const review = sessions.find(({ key }) => key === 'review-web');
  expect(review?.definition).toMatchObject({
    projectPath: join(root, 'services', 'web'),
    outputSchema: { type: 'object' },
  });
  expect(review?.references.flatMap(({ keys }) => keys)).toEqual([
    'survey-web',
    ...['change-web', 'change-web', 'change-web'],
  ]);
  expect(review?.references.map(({ field }) => field)).toEqual(['result', 'branch', 'diffStat', 'result']);
});
