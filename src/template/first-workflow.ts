/** The file that `init` writes: a workflow over some projects, with comments that explain how to adapt it. */
import { Document, Scalar } from 'yaml';
import { commandText } from '../core/advice.ts';
import { defined } from '../core/defined.ts';

export interface FirstProject {
  /** Unique among them, valid as a session name. */
  readonly name: string;
  readonly path: string;
  readonly accept?: string;
  readonly setup?: string;
  /** Names of the projects whose work it uses. */
  readonly dependsOn?: readonly string[];
}

export interface FirstWorkflow {
  /** Slug of the groups; absent = the name of the file. */
  readonly name?: string;
  readonly task: string;
  readonly maxBudgetUsd: number;
  readonly projects: readonly FirstProject[];
  readonly commands: readonly string[];
}

export function renderFirstWorkflow({ name, task, maxBudgetUsd, projects, commands }: FirstWorkflow): string {
  const sessions = projects.map((project) => {
    const { path, accept, setup, dependsOn } = project;
    const used = dependsOn?.length ? dependsOn : undefined;
    return [project.name, { project: plain(path), prompt: '{{task}}', ...defined({ setup, accept, dependsOn: used }) }];
  });
  const cap = ['A hard cap in US dollars over all sessions, and how many may run at once.'];
  const document = new Document(
    new Map<unknown, unknown>([
      ['version', 1],
      ...Object.entries(defined({ name })),
      [commented('vars', ['The task. To change it for one run: --var task="..."']), { task: { default: task } }],
      [commented('group', cap), { maxBudgetUsd, concurrent: 3 }],
      [commented('sessions', about), Object.fromEntries(sessions)],
    ]),
  );
  document.commentBefore = lines(['A workflow: one session for each project, all with the same task.', ...commands]);
  return document.toString({ lineWidth: 100 });
}

const about = [
  `Each session has a name, a project and a prompt. \`${commandText(['template', 'validate', 'FILE'])}\``,
  'reports mistakes. Some of the other keys:',
  '  dependsOn: NAME                  starts after that session, on top of its work',
  '  prompt: "... {{sessions.NAME.result}}"   final answer of that session',
  '  accept: npm test                 must succeed before the session counts as done',
  '  isolate: worktree                works in a git worktree on a branch of its own',
  '  setup: npm ci                    run once in a new worktree',
  '  allowedTools: "Bash(npm test:*)" allowed besides read-only commands',
];

/** A path may contain references, so two braces in a folder's name are escaped. */
function plain(path: string): string {
  return path.replaceAll('{{', '\\{{');
}

function lines(texts: readonly string[]): string {
  return texts.map((text) => ` ${text}`).join('\n');
}

function commented(key: string, texts: readonly string[]): Scalar {
  return Object.assign(new Scalar(key), { commentBefore: lines(texts), spaceBefore: true });
}
