/** This program as an earlier commit had it, installed in a folder of its own as npm installs a package globally. */
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { packageRoot } from '../support/cli.ts';
import type { LoadedProgram } from '../support/in-process.ts';

/** The first version whose users were promised that what they have survives an upgrade. */
export const firstKept = '1aa443d';

/** Whether this clone holds the commit: a shallow one has only the newest. */
export function isReachable(commit: string): boolean {
  return Bun.spawnSync(['git', 'cat-file', '-e', `${commit}^{commit}`], { cwd: packageRoot, stderr: 'ignore' }).success;
}

/** Ends the name of a test that needs the commit. */
export const needs = (commit: string) => `(in a clone that holds ${commit})`;

function run(command: string, cwd: string): void {
  const ran = Bun.spawnSync(['/bin/sh', '-c', command], { cwd, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' });
  if (!ran.success || ran.stderr.length > 0) throw new Error(`${command}: ${ran.stderr.toString()}`);
}

/** Puts the files of the package into a folder, as that commit has them, or the working folder. Nothing is compiled. */
export function extract(version: string | 'here', folder: string): void {
  mkdirSync(folder, { recursive: true });
  const wanted = 'bin .claude-plugin src templates examples scripts package.json';
  const source = version === 'here' ? `tar c ${wanted}` : `git archive ${version} ${wanted}`;
  run(`${source} | tar x -C '${folder}'`, packageRoot);
  symlinkSync(join(packageRoot, 'node_modules'), join(folder, 'node_modules'));
}

/** Loads the program of such a folder into this process. */
export async function load(folder: string): Promise<LoadedProgram> {
  const [{ createContext }, { runToEnd }] = await Promise.all([
    import(join(folder, 'src', 'cli', 'context.ts')),
    import(join(folder, 'src', 'cli', 'program.ts')),
  ]);
  return { createContext, runToEnd, packageRoot: folder };
}

/** A folder in which packages are installed: `bin/claude-code-agent` leads to the one that is there at the moment. */
export class Prefix {
  readonly program: string;
  /** The package's root folder. */
  readonly packageRoot: string;
  #there: string | null = null;

  constructor(folder: string) {
    this.program = join(folder, 'bin', 'claude-code-agent');
    this.packageRoot = join(folder, 'lib', 'node_modules', 'claude-code-agent');
    for (const path of [this.program, this.packageRoot]) mkdirSync(dirname(path), { recursive: true });
    symlinkSync(join(this.packageRoot, 'bin', 'claude-code-agent'), this.program);
  }

  /** Makes the package as it is in that commit, or in the working folder. */
  build(version: string | 'here'): void {
    const made = this.#made(version);
    extract(version, made);
    run('sh scripts/build.sh', made);
    if (!existsSync(join(made, 'dist', 'claude-code-agent'))) throw new Error(`${version} was not compiled`);
  }

  /** Puts a package that was built there instead of the one that was there, which goes back to where it was built. */
  put(version: string | 'here'): void {
    if (this.#there !== null) renameSync(this.packageRoot, this.#made(this.#there));
    renameSync(this.#made(version), this.packageRoot);
    this.#there = version;
  }

  /** Removes one that is not there any more, as an installer does: whoever still runs it goes on without its files. */
  discard(version: string | 'here'): void {
    rmSync(this.#made(version), { recursive: true });
  }

  #made(version: string): string {
    return join(this.packageRoot, '..', '..', version);
  }
}
