/**
 * Files that this program, its hooks or the skills they serve keep in a project. They tell of one session's run and
 * are no part of its work, so they are never committed for it.
 */

interface OurFile {
  /** Of the path from the top of the worktree, with `/`. */
  readonly pattern: RegExp;
  /** The same as git's pathspecs with `glob`. */
  readonly globs: readonly string[];
  /** It tells of a run alone: taken out of what the session committed itself, too. */
  readonly isState: boolean;
}

/** A project may be any folder of the repository. While a file changes, its lock and its successor stand beside it. */
const ours: readonly OurFile[] = [
  {
    pattern: /(?:^|\/)\.{1,2}cpm-progress[^/]*$/,
    globs: ['**/.cpm-progress*', '**/..cpm-progress*'],
    isState: true,
  },
  { pattern: /(?:^|\/)\.fractary\/runs\/./, globs: ['**/.fractary/runs/**'], isState: true },
  {
    pattern: /(?:^|\/)\.fractary\/faber\/\.?(?:\.active-run-id|worktrees\.json)[^/]*$/,
    globs: ['', '.'].flatMap((dot) => [
      `**/.fractary/faber/${dot}.active-run-id*`,
      `**/.fractary/faber/${dot}worktrees.json*`,
    ]),
    isState: true,
  },
  {
    pattern: /(?:^|\/)(?:resume-context\.md|\.resume-context\.md\.[^/]*)$/,
    globs: ['**/resume-context.md', '**/.resume-context.md.*'],
    isState: false,
  },
];

/** Whether the path, from the top of the worktree, is one of ours. */
export function isOurFile(path: string): boolean {
  return ours.some(({ pattern }) => pattern.test(path));
}

/** Whether it is one of ours that nobody commits on purpose. */
export function isRunState(path: string): boolean {
  return ours.some(({ pattern, isState }) => isState && pattern.test(path));
}

/** Whether it belongs to the checkout it lies in, where this program and hooks write to it while people work there. */
export function isCheckoutState(path: string): boolean {
  return /(?:^|\/)resume-context\.md$/.test(path);
}

/** Pathspecs that leave out exactly those for which isOurFile is true. */
export const exceptOurs: readonly string[] = ours.flatMap(({ globs }) =>
  globs.map((glob) => `:(top,exclude,glob)${glob}`),
);
