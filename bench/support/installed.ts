/** The program as an installation runs it. */
import { join } from 'node:path';
import { ownCommand, packageRoot } from '../../src/world/own-program.ts';

const finder = join(packageRoot, 'bin', 'find-compiled.sh');

/** The words before system and event: of the compiled program, or of the sources where that is older than they are. */
export function hookCommand(): { readonly words: readonly string[]; readonly isCompiled: boolean } {
  const question = '. "$1"; find_compiled "$2" && printf %s "$compiled"';
  const { stdout } = Bun.spawnSync(['sh', '-c', question, 'sh', finder, packageRoot]);
  const compiled = stdout.toString();
  if (compiled !== '') return { words: [compiled, 'hook'], isCompiled: true };
  return { words: sourceHook, isCompiled: false };
}

const { program, args } = ownCommand('hook');
/** As Bun runs the sources. */
export const sourceHook: readonly string[] = [program, ...args];
