/**
 * Promises: a valid workflow becomes exactly the sessions it describes. Each text is filled in once, and references
 * to later results stay in the prompt. How a group is made of the drafts is not tested here.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { withShared } from '../../../src/core/setting-values.ts';
import { fillLater } from '../../../src/template/render.ts';
import { exampleWorkflow, WorkflowFolder } from '../../support/template/workflow-rig.ts';

let folder: WorkflowFolder;
beforeAll(() => {
  folder = new WorkflowFolder();
});
afterAll(() => folder.remove());

describe('example workflow', () => {
  test('the example workflow gives its group', () => {
    const { slug, name, description, config, template, configTemplate, variables, workflow } = folder.draft(
      exampleWorkflow,
      { ticket: 'ABC-12' },
    );
    expect({ slug, name, description, template, variables }).toEqual({
      slug: 'cross-repo-change',
      name: 'Change ABC-12 everywhere',
      description: 'One change in every service',
      template: 'wrap',
      variables: { ticket: 'ABC-12', area: 'api' },
    });
    expect(config).toEqual({
      model: 'sonnet',
      maxBudgetUsd: 20,
      onBudgetExceeded: 'pause',
      warningThreshold: 0.8,
      maxConcurrentSessions: 4,
      commandsAtOnce: 2,
      errorThreshold: 2,
      pauseOnError: true,
      respectDependencies: true,
      onLimit: 'wait',
      warmCache: false,
      shareCheckouts: true,
    });
    expect(configTemplate?.name).toBe('house');
    const digest = new Bun.CryptoHasher('sha256').update(exampleWorkflow).digest('hex');
    expect(workflow).toEqual({ name: 'cross-repo-change', origin: 'flow.yaml', digest });
  });

  test('the example workflow gives its sessions in dependency order', () => {
    const { sessions } = folder.draft(exampleWorkflow, { ticket: 'ABC-12' });
    const changes = ['api', 'core', 'web'].flatMap((name) => [`change-${name}-a`, `change-${name}-b`]);
    expect(sessions.map(({ key }) => key)).toEqual([
      'analyze-api',
      'analyze-core',
      'analyze-web',
      ...changes,
      'report',
    ]);
    expect(sessions.at(-1)?.dependsOn).toEqual(changes);
    expect(sessions[4]?.dependsOn).toEqual(['analyze-api']);
    expect(sessions.map(({ configTemplate }) => configTemplate?.name ?? '-').join(' ')).toBe(
      '- - - strict strict strict strict strict strict -',
    );
  });

  test('one session of the example workflow has all expected fields', () => {
    const change = folder.draft(exampleWorkflow, { ticket: 'ABC-12' }).sessions[4];
    const place = '{{sessions.analyze[matrix.project].structured.uses[0]}}';
    const prompt = `Build ABC-12 (plain) in api.\nKnown: ${place}`;
    expect(change?.definition).toEqual({
      name: 'change-api-b',
      description: '',
      projectPath: folder.at('services/api'),
      prompt,
      template: 'implement',
      variables: { area: 'api', feature: 'ABC-12', style: 'plain' },
      config: {
        generateSettings: true,
        generateCommands: true,
        generateMcpConfig: false,
        generateClaudeMd: true,
        settingsOverride: { model: 'opus' },
        inheritFromGroup: true,
      },
      model: 'opus',
      permissionMode: 'acceptEdits',
      allowedTools: ['Edit', 'Bash(git log:*)'],
      maxBudgetUsd: 1,
      retries: 1,
      timeoutMs: 1_800_000,
      stallTimeoutMs: 600_000,
      repository: folder.at('services/.git'),
      isolate: 'worktree',
      matrix: 'change',
      accept: 'api',
      acceptRetries: 0,
      acceptTimeoutMs: 30_000,
      setup: 'make deps',
      setupTimeoutMs: 3_600_000,
      expectChanges: true,
    });
    expect(change?.references).toEqual([
      {
        at: prompt.indexOf(place),
        length: place.length,
        keys: ['analyze-api'],
        field: 'structured',
        path: ['uses', '0'],
      },
    ]);
  });

  test('a session’s settings for trust, memory and processes take precedence over the group’s', () => {
    const text = `version: 1
group: { untrusted: true, memory: 500, maxProcesses: 200 }
sessions:
  a: { project: .., prompt: hi }
  b: { project: .., prompt: hi, untrusted: false, memory: 2000, maxProcesses: 64 }
`;
    const { config, sessions } = folder.draft(text);
    const bounds = sessions.map(({ definition }) => {
      const { untrusted, memoryBytes, maxProcesses } = withShared(
        { ...definition, id: '', dependsOn: [], createdAt: '' },
        config,
      );
      return [untrusted, memoryBytes, maxProcesses];
    });
    expect(bounds).toEqual([
      [true, 500_000_000, 200],
      [false, 2_000_000_000, 64],
    ]);
  });

  test('a workflow can be validated without values and projects', () => {
    expect(folder.validate(exampleWorkflow.replaceAll('../services/*', '../nowhere/*'))).toEqual([]);
  });
});

describe('the smallest workflow is valid', () => {});

describe('prompt beside template', () => {
  const prompts = (text: string) => folder.sessions(text).map(({ definition }) => definition);

  test('a prompt beside a template fills the template’s {{prompt}}', () => {
    expect(prompts('  a: { project: .., template: wrap, prompt: "say {{session.name}}" }')[0]).toMatchObject({
      prompt: 'Do: say a',
      template: 'wrap',
    });
  });

  test('a prompt beside a template without {{prompt}} replaces the template', () => {
    const [replaced] = prompts('  a: { project: .., template: implement, prompt: hi }');
    expect(replaced?.prompt).toBe('hi');
    expect(replaced?.template).toBeUndefined();
  });

  test('a session’s prompt is combined with the group’s template', () => {
    const draft = folder.draft('version: 1\ngroup: { template: wrap }\nsessions: { a: { project: .., prompt: hi } }');
    expect(draft.sessions[0]?.definition).toMatchObject({ prompt: 'Do: hi', template: 'wrap' });
  });

  test('references in both the prompt and its template keep their places', () => {
    folder.write(
      'templates/prompts/both.md',
      'A {{sessions.one.result}} {{prompt}} B {{sessions.one.result}} {{prompt}} C',
    );
    const text =
      '  one: { project: .., prompt: hi }\n' +
      '  two: { project: .., template: both, dependsOn: one, prompt: "<{{sessions.one.result}}>" }';
    const { definition, references } = folder.sessions(text)[1] ?? { definition: { prompt: '' }, references: [] };
    const places = references.map(({ at, length }) => ({ name: '', at, length }));
    expect(fillLater(definition.prompt, places, ['1', '2', '3', '4'])).toBe('A 1 <2> B 3 <4> C');
  });
});

describe('variables', () => {
  test('variables of the session take precedence over the workflow’s, and those over the template’s', () => {
    const text =
      'version: 1\nvars: { feature: flow, style: bold }\nsessions:\n  a: { project: .., template: ' +
      'plain, vars: { style: thin } }';
    folder.write(
      'templates/prompts/plain.md',
      '---\nvariables:\n  - {name: feature, default: x}\n  - {name: style}\n  - {name: kind, default: ' +
        'k}\n---\n{{feature}} {{style}} {{kind}}',
    );
    expect(folder.draft(text).sessions[0]?.definition).toMatchObject({
      prompt: 'flow thin k',
      variables: { feature: 'flow', style: 'thin', kind: 'k' },
    });
  });

  test('filled-in text is never scanned again', () => {
    const value = '{{area}} $& {{sessions.a.result}} \\{{x}}';
    const text =
      'version: 1\nvars: { area: api, x: "" }\nsessions:\n  a: { project: .., prompt: "<{{x}}>" }\n  ' +
      'b: { project: .., template: wrap, prompt: "[{{x}}]" }';
    const { sessions } = folder.draft(text, { x: value });
    expect(sessions.map(({ definition }) => definition.prompt)).toEqual([`<${value}>`, `Do: [${value}]`]);
    expect(sessions.flatMap(({ references }) => references)).toEqual([]);
  });
});

describe('CLAUDE.md', () => {
  test('a workflow’s CLAUDE.md can be a path or a prompt template, and is filled in', () => {
    folder.write('flow/notes.md', 'Notes of {{session.name}} for {{matrix.x}}: {{area}}.\n');
    folder.write('templates/prompts/rules.md', 'Rules of {{project.name}}');
    const text =
      'version: 1\nvars: { area: api }\nsessions:\n' +
      '  a: { project: .., prompt: hi, matrix: { x: [one] }, config: { claudeMdTemplate: ./notes.md } }\n' +
      '  b: { project: ../services/api, prompt: hi, config: { claudeMdTemplate: rules } }';
    expect(folder.draft(text).sessions.map(({ definition }) => definition.config)).toEqual([
      { claudeMdTemplate: './notes.md', claudeMdText: 'Notes of a-one for one: api.' },
      { claudeMdTemplate: 'rules', claudeMdText: 'Rules of api' },
    ]);
  });
});

describe('template lookup', () => {
  test('a template path is relative to the workflow, and is stored as a portable path', () => {
    folder.write('flow/mine/task.md', 'Mine: {{prompt}}');
    folder.write('flow/mine/config/CLAUDE.md', 'Mine');
    const text =
      'version: 1\ngroup: { template: ./mine/task.md, configTemplate: mine/config }\n' +
      'sessions: { a: { project: .., prompt: hi, configTemplate: ./mine/config/ } }';
    const draft = folder.draft(text);
    const path = folder.at('flow/mine/task.md');
    expect(draft.sessions[0]?.definition).toMatchObject({ prompt: 'Mine: hi', template: path });
    expect([draft.template, draft.configTemplate?.name, draft.sessions[0]?.configTemplate?.name]).toEqual([
      path,
      'config',
      'config',
    ]);
    expect(folder.allFaults(text.replace('task.md', 'tsk.md'))).toEqual([
      `2:20 ${folder.at('flow/mine/tsk.md')} does not exist`,
    ]);
  });

  test('project templates come before those beside the workflow, and neither replaces a user’s', () => {
    folder.write('services/api/.claude-code-agent/templates/prompts/where.md', 'project');
    folder.write('flow/.claude-code-agent/templates/prompts/where.md', 'workflow');
    const text = '  a: { template: where, matrix: { projects: [../services/api, ../services/web] } }';
    expect(folder.sessions(text).map(({ definition }) => definition.prompt)).toEqual(['project', 'workflow']);
    folder.write('templates/prompts/where.md', 'user');
    expect(() => folder.sessions(text)).toThrow('The project has a prompt template "where"');
  });
});
