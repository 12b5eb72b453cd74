/** This program as an earlier commit had it, installed in a folder of its own as npm installs a package globally. */
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { packageRoot } from '../support/cli.ts';

/** The first version whose users were promised that what they have survives an upgrade. */
export const firstKept = '1aa443d';

/** Whether this clone holds the commit: a shallow one has only the newest. */
export function isReachable(commit: string): boolean {
  return Bun.spawnSync(['git', 'cat-file', '-e', `${commit}^{commit}`], { cwd: packageRoot, stderr: 'ignore' }).success;
}

function run(command: string, cwd: string): void {
  const ran = Bun.spawnSync(['/bin/sh', '-c', command], { cwd, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' });
  if (!ran.success || ran.stderr.length > 0) throw new Error(`${command}: ${ran.stderr.toString()}`);
}

/** A folder in which packages are installed: `bin/claude-code-agent` leads to the one that is there at the moment. */
export class Prefix {
  readonly program: string;
  /** The package's root folder. */
  readonly packageRoot: string;

  constructor(folder: string) {
    this.program = join(folder, 'bin', 'claude-code-agent');
    this.packageRoot = join(folder, 'lib', 'node_modules', 'claude-code-agent');
    mkdirSync(dirname(this.program), { recursive: true });
    symlinkSync(join(this.packageRoot, 'bin', 'claude-code-agent'), this.program);
  }

  /** Puts the package there as it is in that commit, or in the working folder, instead of what was there. */
  install(commit: string | 'here'): void {
    const next = `${this.packageRoot}-next`;
    mkdirSync(next, { recursive: true });
    const wanted = 'bin .claude-plugin src templates examples scripts package.json';
    const source = commit === 'here' ? `tar c ${wanted}` : `git archive ${commit} ${wanted}`;
    run(`${source} | tar x -C '${next}'`, packageRoot);
    symlinkSync(join(packageRoot, 'node_modules'), join(next, 'node_modules'));
    this.remove();
    renameSync(next, this.packageRoot);
    // npm runs this after the files are in their place, so for a moment nothing is compiled.
    run('sh scripts/build.sh', this.packageRoot);
    if (!existsSync(join(this.packageRoot, 'dist', 'claude-code-agent'))) throw new Error(`${commit} was not compiled`);
  }

  /** As `npm uninstall` and, for a moment, every `npm install` do it: whoever runs goes on without its files. */
  remove(): void {
    rmSync(this.packageRoot, { recursive: true, force: true });
  }
}
