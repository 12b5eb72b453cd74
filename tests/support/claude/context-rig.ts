/**
 * For tests of the context systems through the runner and with the real claude: a group that compacts above 67,000
 * tokens, a scripted model that records its requests, and state on disk for each system.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ContextName } from '../../../src/core/definitions.ts';
import type { Step } from '../../../src/rehearsal/script.ts';
import { type CapturedRequest, type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { pinnedClaude } from '../cli.ts';
import { type GroupFixture, makeGroup } from '../group-fixture.ts';

export const systems = ['cpm', 'handover', 'faber'] as const;

export interface ContextSetting {
  readonly systems: readonly ContextName[];
  /** The same for all, or each session's own; claude's id of a session is known before it starts. */
  readonly steps: readonly Step[] | ((name: string, claudeId: string) => readonly Step[]);
  readonly names?: readonly string[];
  /** Folder below `projects` for a session; default: all work in `shared`. */
  readonly projectOf?: (name: string) => string;
}

export const said = (request: CapturedRequest | undefined): string => JSON.stringify(request?.body.messages);
export const bash = (command: string, more: Partial<Step> = {}): Step => ({
  tool: 'Bash',
  input: { command },
  ...more,
});
/** Filled above the threshold in its second step, so that it is compacted before the third. */
export const compacted: readonly Step[] = [
  bash('echo one'),
  bash('echo two', { usage: { input: 70_000 } }),
  { text: 'done' },
];

export class ContextGround {
  readonly group: GroupFixture;
  readonly api: ScriptedApi;
  readonly env: Readonly<Record<string, string>>;
  /** Folder of a session below `projects`. */
  readonly projectOf: (name: string) => string;

  constructor({ systems, steps, names = ['a'], projectOf = () => 'shared' }: ContextSetting) {
    const config = { settingsOverride: { autoCompactWindow: 100_000 } };
    const fields = { allowedTools: ['Bash'], context: systems, model: 'claude-sonnet-4-5', config };
    const group = makeGroup(names.map((name) => ({ name, project: projectOf(name), fields })));
    const nameOf = (id: string) => names.find((name) => group.claudeId(name) === id);
    const stepsOf = typeof steps === 'function' ? steps : () => steps;
    const sessions = Object.fromEntries(
      names.map((name) => [name, { steps: [...stepsOf(name, group.claudeId(name))] }]),
    );
    this.group = group;
    this.projectOf = projectOf;
    this.api = startScriptedApi({ script: { version: 1, sessions }, nameOf });
    this.env = {
      ANTHROPIC_BASE_URL: this.api.url,
      ANTHROPIC_API_KEY: 'test-key',
      CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
    };
  }

  write(path: string, text: string, project = 'shared'): void {
    writeIn(this.group.project(project), path, text);
  }

  place(system: ContextName, name: string, mark: string, project = 'shared'): void {
    placeState(this.group, system, { name, project }, mark);
  }

  /** The model's requests for the steps of a session, in order. */
  asked(name: string): string[] {
    return this.api.requests.filter((request) => request.name === name && request.kind === 'step').map(said);
  }

  async close(): Promise<void> {
    await this.api.stop();
    this.group.remove();
  }
}

function writeIn(folder: string, path: string, text: string): void {
  const whole = join(folder, path);
  mkdirSync(dirname(whole), { recursive: true });
  writeFileSync(whole, text);
}

/** State of a system on disk during the session; `mark` is what must return. */
export function placeState(
  group: GroupFixture,
  system: ContextName,
  { name, project }: { readonly name: string; readonly project: string },
  mark: string,
): void {
  const id = group.claudeId(name);
  const write = (path: string, text: string) => writeIn(group.project(project), path, text);
  if (system === 'cpm') {
    write(`docs/plans/.cpm-progress-${id}.md`, `# CPM Session State\n\n**Skill**: do\n**Phase**: 2\n\n${mark}\n`);
  } else if (system === 'handover') {
    const front = `resume_schema_version: "2.0"\nsession_ids: ["${id}"]\nnext_action: "${mark}"`;
    write(`02-projects/28-${name}/01-planning/resume-context.md`, `---\n${front}\n---\n`);
  } else {
    write('.fractary/faber/.active-run-id', 'run-1');
    write('notes/architecture.md', mark);
    write('.fractary/runs/run-1/state.json', JSON.stringify(faberState(mark)));
  }
}

function faberState(mark: string) {
  const now = new Date().toISOString();
  return {
    run_id: 'run-1',
    work_id: '7',
    workflow_id: 'default',
    status: 'in_progress',
    current_phase: 'build',
    phases: [{ name: 'frame', status: 'completed' }],
    artifacts: { spec_path: 'notes/architecture.md' },
    sessions: { history: [] },
    context_metadata: { note: mark },
    created_at: now,
    updated_at: now,
  };
}
