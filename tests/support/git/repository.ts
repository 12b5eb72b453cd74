/** Git repositories on disk for tests, made with the real git in an environment of its own. */
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The configuration of the user who makes the repository; nothing of the machine's. */
const env = {
  PATH: process.env.PATH ?? '',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_SYSTEM: '/dev/null',
  GIT_AUTHOR_NAME: 'Team',
  GIT_AUTHOR_EMAIL: 'team@example.org',
  GIT_COMMITTER_NAME: 'Team',
  GIT_COMMITTER_EMAIL: 'team@example.org',
  LC_ALL: 'C',
};

export function git(folder: string, ...args: string[]): string {
  const ran = Bun.spawnSync(['git', ...args], { cwd: folder, env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' });
  if (ran.exitCode !== 0) throw new Error(`git ${args.join(' ')}: ${ran.stderr.toString()}`);
  return ran.stdout.toString().trim();
}

/** Texts by path; null removes the file, `{ link }` makes a symlink. */
export type FileTree = Readonly<Record<string, string | Uint8Array | null | { readonly link: string }>>;

export function writeTree(folder: string, tree: FileTree): void {
  for (const [path, content] of Object.entries(tree)) {
    const full = join(folder, path);
    rmSync(full, { recursive: true, force: true });
    if (content === null) continue;
    mkdirSync(dirname(full), { recursive: true });
    if (typeof content === 'object' && 'link' in content) symlinkSync(content.link, full);
    else writeFileSync(full, content);
  }
}

export class Repository {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
    mkdirSync(folder, { recursive: true });
    git(folder, '-c', 'init.defaultBranch=main', 'init', '--quiet');
  }

  /** The new commit's id. */
  commit(tree: FileTree): string {
    writeTree(this.folder, tree);
    git(this.folder, 'add', '--all');
    git(this.folder, 'commit', '--quiet', '--allow-empty', '-m', 'Templates');
    return git(this.folder, 'rev-parse', 'HEAD');
  }

  /** A bare copy, as servers have it. */
  bare(folder: string): string {
    git(this.folder, 'clone', '--quiet', '--bare', this.folder, folder);
    return folder;
  }
}
