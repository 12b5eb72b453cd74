/** The file that `init` writes: a workflow over some projects, with comments that explain how to adapt it. */
import { Document, isMap, isScalar } from 'yaml';
import { commandText } from '../core/advice.ts';
import { defined } from '../core/defined.ts';

export interface FirstProject {
  /** Unique among them, valid as a session name. */
  readonly name: string;
  readonly path: string;
  readonly accept?: string;
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
  const document = new Document({
    version: 1,
    ...defined({ name }),
    vars: { task: { default: task } },
    group: { maxBudgetUsd, concurrent: 3 },
    sessions: Object.fromEntries(
      projects.map((project) => [
        project.name,
        {
          project: plain(project.path),
          prompt: '{{task}}',
          ...defined({ accept: project.accept }),
          ...(project.dependsOn?.length ? { dependsOn: project.dependsOn } : {}),
        },
      ]),
    ),
  });
  document.commentBefore = lines(['A workflow: one session for each project, all with the same task.', ...commands]);
  comment(document, ['vars'], ['The task. To change it for one run: --var task="..."']);
  comment(document, ['group'], ['A hard cap in US dollars over all sessions, and how many may run at once.']);
  comment(document, ['sessions'], about);
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

function comment(document: Document, [key = '']: readonly string[], texts: readonly string[]): void {
  const { contents } = document;
  if (!isMap(contents)) return;
  const pair = contents.items.find((item) => isScalar(item.key) && item.key.value === key);
  if (pair === undefined || !isScalar(pair.key)) return;
  pair.key.commentBefore = lines(texts);
  pair.key.spaceBefore = true;
}
