/** How this program starts itself: as a hook, as a detached runner, as the scripted API. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';

/**
 * With these options our processes ignore the folder they are started in: its .env, bunfig.toml, tsconfig, packages.
 */
export const isolatedBunFlags = [
  '--no-env-file',
  '--config=/dev/null',
  '--tsconfig-override=/dev/null',
  '--no-install',
] as const;

/** The launcher's variable with the name it was started by: npm links two names to it, and a user may link more. */
export const nameVariable = 'CLAUDE_CODE_AGENT_NAME';

/** Where Bun keeps the modules of a compiled executable (scripts/build.ts). */
export const isCompiled = import.meta.dir.startsWith('/$bunfs/');

/** A published package has no sources, but one file per part of the program (scripts/bundle.ts). */
export const isBundled = !isCompiled && import.meta.path.endsWith('.js');

/** Defined only in a program made by scripts/release.ts: the name of its folder. */
declare const releaseName: string | undefined;

/** The package's root folder: above dist/claude-code-agent, src/system or dist/program. */
export const packageRoot = releasedRoot() ?? dirname(dirname(isCompiled ? process.execPath : import.meta.dir));

/**
 * A released program has no package around it, and creates one in a folder of the user's (scripts/release/program.ts).
 * One that `host add` installed is in its package like any compiled program.
 */
function releasedRoot(): string | undefined {
  const around = dirname(dirname(process.execPath));
  if (typeof releaseName !== 'string' || existsSync(join(around, 'bin', 'find-bun.sh'))) return undefined;
  return join(process.env.XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'claude-code-agent', releaseName);
}

/** The parts that can be started: the module that Bun runs and the word by which src/main.ts selects it. */
const parts = {
  main: { source: 'src/main.ts', words: [] },
  hook: { source: 'src/hook-main.ts', words: ['hook'] },
} as const satisfies Record<string, { readonly source: string; readonly words: readonly string[] }>;

export const bundledParts: readonly string[] = Object.values(parts).map(({ source }) => source);

export interface OwnCommand {
  readonly program: string;
  readonly args: readonly string[];
  /** Absolute path of a program with the same arguments, for when the program has been removed. */
  readonly instead?: string;
}

/** The command of a part of this program in its own form: compiled, or run by Bun from below `root`. */
export function ownCommand(part: keyof typeof parts, root = packageRoot): OwnCommand {
  const { source, words } = parts[part];
  if (!isCompiled) {
    const path = isBundled ? join('dist', 'program', `${basename(source, '.ts')}.js`) : source;
    return { program: process.execPath, args: [...isolatedBunFlags, join(root, path)] };
  }
  const instead = launcherIn(packageRoot);
  // A compiled program may be removed while it runs; the sources then work as well.
  return existsSync(process.execPath)
    ? { program: process.execPath, args: words, instead }
    : { program: instead, args: words };
}

/** The launcher, which starts whichever form exists, slightly more slowly. */
export function launcherIn(root: string): string {
  return join(root, 'bin', 'claude-code-agent');
}
