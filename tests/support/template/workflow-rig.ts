/** Workflows over a few project folders and templates on the real disk. */
import type { Validated } from '../../../src/store/yaml-text.ts';
import type { WorkflowDraft } from '../../../src/template/workflow/session.ts';
import { loadWorkflow } from '../../../src/template/workflow.ts';
import { TemplateFixture, templateWorld, valid } from './rig.ts';

/** The example of docs/workflows.md and of the format's description. */
export const exampleWorkflow = `# yaml-language-server: $schema=workflow.schema.json
version: 1
name: cross-repo-change
title: Change {{ticket}} everywhere
description: One change in every service
vars:
  ticket: { required: true }
  area: api
group:
  model: sonnet
  maxBudgetUsd: 20
  onBudgetExceeded: pause
  warningThreshold: 0.8
  concurrent: 4
  commandsAtOnce: 2
  errorThreshold: 2
  pauseOnError: true
  respectDependencies: true
  onLimit: wait
  warmCache: false
  template: wrap
  configTemplate: house
  shareCheckouts: true
  isolate: none
  accept: npm test
  acceptRetries: 2
  acceptTimeout: 5m
  setup: npm ci
  setupTimeout: 15m
  commit: false
sessions:
  analyze:
    matrix: { projects: "../services/*" }
    prompt: "Find uses of {{area}} in {{matrix.name}}"
    outputSchema: { type: object, properties: { uses: { type: array } }, required: [uses] }
  change:
    matrix: { projects: "../services/*", flavour: [a, b] }
    template: implement
    vars: { feature: "{{ticket}}" }
    dependsOn: "analyze[matrix.project]"
    configTemplate: strict
    config:
      generateSettings: true
      generateCommands: true
      generateMcpConfig: false
      generateClaudeMd: true
      settingsOverride: { model: opus }
      inheritFromGroup: true
    model: opus
    permissionMode: acceptEdits
    allowedTools: ["Edit", "Bash(git log:*)"]
    maxBudgetUsd: 1
    retries: 1
    timeout: 30m
    stallTimeout: 10m
    isolate: worktree
    accept: "{{area}}"
    acceptRetries: 0
    acceptTimeout: 30s
    setup: make deps
    setupTimeout: 1h
    commit: true
    expectChanges: true
  report:
    project: ..
    dependsOn: "change[*]"
    prompt: |
      Summarise:
      {{sessions.change[*].result}}
`;

export class WorkflowFolder extends TemplateFixture {
  /** Git repositories by project folder. */
  readonly repositories = new Map<string, string>();

  constructor() {
    super();
    for (const name of ['api', 'core', 'web', '.hidden']) {
      this.write(`services/${name}/README.md`, name);
      this.repositories.set(this.at('services', name), this.at('services/.git'));
    }
    this.write('flow/.keep', '');
    this.write(
      'templates/prompts/wrap.md',
      '---\nvariables:\n  - name: prompt\n    required: true\n---\nDo: {{prompt}}',
    );
    this.write(
      'templates/prompts/implement.md',
      '---\nvariables:\n  - {name: feature, required: true}\n  - {name: style, default: plain}\n---\n' +
        'Build {{feature}} ({{style}}) in {{project.name}}.\nKnown: ' +
        '{{sessions.analyze[matrix.project].structured.uses[0]}}\n',
    );
    this.write('templates/configs/house/CLAUDE.md', 'House of {{group.slug}}: {{area}}.\n');
    this.write('templates/configs/strict/CLAUDE.md', 'Strict in {{project.name}}.\n');
  }

  get input() {
    const { path } = this;
    return {
      world: templateWorld,
      file: 'flow.yaml',
      name: 'flow',
      baseFolder: this.at('flow'),
      home: this.at('home'),
      repositoryOf: (folder: string) => this.repositories.get(folder) ?? null,
      places: (projects: readonly string[]) => [
        ...projects.map((project) => ({
          folder: `${project}/.claude-code-agent/templates`,
          origin: 'project' as const,
        })),
        { folder: `${path}/templates`, origin: 'user' as const },
      ],
    };
  }

  load(text: string, given: Readonly<Record<string, string>> | null = {}): Validated<WorkflowDraft> {
    return loadWorkflow({ ...this.input, text, given });
  }

  /** The draft of a workflow that must be right. */
  draft(text: string, given: Readonly<Record<string, string>> = {}): WorkflowDraft {
    return valid(this.load(text, given));
  }

  /** The drafts of sessions only. */
  sessions(text: string): WorkflowDraft['sessions'] {
    return this.draft(`version: 1\nsessions:\n${text}`).sessions;
  }

  /** Every problem of sessions as `line:column message`; their first line is the third. */
  faults(text: string, given: Readonly<Record<string, string>> = {}): string[] {
    return this.allFaults(`version: 1\nsessions:\n${text}`, given);
  }

  allFaults(text: string, given: Readonly<Record<string, string>> | null = {}): string[] {
    const loaded = this.load(text, given);
    return loaded.ok ? [] : loaded.problems.map(({ line, column, message }) => `${line}:${column} ${message}`);
  }

  validate(text: string): string[] {
    return this.allFaults(text, null);
  }
}
