/** The program as an installation runs it: compiled, or from its sources where what was compiled is older. */
import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isolatedBunFlags, packageRoot } from '../../src/system/own-program.ts';
import { dist, ownPrefix } from './places.ts';

const countedMain = join(import.meta.dir, 'counted-main.ts');

let counted: readonly string[] | null = null;

/** The program that counts what it writes, in the same form; what is compiled for it goes with the whole run. */
export function countedProgram(): readonly string[] {
  counted ??= findCompiled() === null ? [process.execPath, ...isolatedBunFlags, countedMain] : [compileCounted()];
  return counted;
}

function findCompiled(): string | null {
  const finder = join(packageRoot, 'bin', 'find-compiled.sh');
  const question = '. "$1"; find_compiled "$2" && printf %s "$compiled"';
  const { stdout } = Bun.spawnSync(['sh', '-c', question, 'sh', finder, packageRoot]);
  return stdout.toString() || null;
}

/** Beside the program itself, whose templates it finds there. */
function compileCounted(): string {
  const own = ownPrefix(process.env.BENCH_RUN ?? process.pid);
  const folder = mkdtempSync(join(dist, own));
  const [made, path] = [join(folder, 'program'), join(dist, `${own}counted`)];
  try {
    const builder = join(packageRoot, 'scripts', 'build.ts');
    const { exitCode, stderr } = Bun.spawnSync([process.execPath, ...isolatedBunFlags, builder, made, countedMain]);
    if (exitCode !== 0) throw new Error(`The program that counts was not compiled: ${stderr}`);
    renameSync(made, path);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return path;
}
