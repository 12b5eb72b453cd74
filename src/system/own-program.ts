/** How this program starts itself: as a hook, as a runner of its own, as the scripted API. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';

/** With these our own processes ignore the folder they are started in: its .env, bunfig.toml, tsconfig, packages. */
export const isolatedBunFlags = [
  '--no-env-file',
  '--config=/dev/null',
  '--tsconfig-override=/dev/null',
  '--no-install',
] as const;

/** In it the launcher says by which name it was started: npm links two names to it, and a person may link more. */
export const nameVariable = 'CLAUDE_CODE_AGENT_NAME';

/** Where Bun keeps the modules of an executable that was compiled from them (scripts/build.ts). */
export const isCompiled = import.meta.dir.startsWith('/$bunfs/');

/** A published package has no sources, but each part of the program in one file (scripts/bundle.ts). */
export const isBundled = !isCompiled && import.meta.path.endsWith('.js');

/** Only in a program that scripts/release.ts has made: the name of its folder. */
declare const releaseName: string | undefined;

/** The package's root folder: above dist/claude-code-agent, src/system or dist/program. */
export const packageRoot = releasedRoot() ?? dirname(dirname(isCompiled ? process.execPath : import.meta.dir));

/**
 * A released program has no package around it, and makes one in a folder of the user's (scripts/release/program.ts).
 * One that `host add` put on a machine lies in its package like any compiled program.
 */
function releasedRoot(): string | undefined {
  const around = dirname(dirname(process.execPath));
  if (typeof releaseName !== 'string' || existsSync(join(around, 'bin', 'find-bun.sh'))) return undefined;
  return join(process.env.XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'claude-code-agent', releaseName);
}

/** What can be started: by name, the module that Bun runs and the word by which src/main.ts knows it. */
const parts = {
  main: { source: 'src/main.ts', words: [] },
  hook: { source: 'src/hook-main.ts', words: ['hook'] },
} as const satisfies Record<string, { readonly source: string; readonly words: readonly string[] }>;

export const bundledParts: readonly string[] = Object.values(parts).map(({ source }) => source);

export interface OwnCommand {
  readonly program: string;
  readonly args: readonly string[];
  /** Absolute path of what takes the same arguments when the program is gone by the time it is needed. */
  readonly instead?: string;
}

/** A part of this program in the form in which it runs itself: compiled, or as Bun runs what lies below `root`. */
export function ownCommand(part: keyof typeof parts, root = packageRoot): OwnCommand {
  const { source, words } = parts[part];
  if (!isCompiled) {
    const path = isBundled ? join('dist', 'program', `${basename(source, '.ts')}.js`) : source;
    return { program: process.execPath, args: [...isolatedBunFlags, join(root, path)] };
  }
  const instead = launcherIn(packageRoot);
  // What was compiled may be removed while it runs, and an installation without it is as good.
  return existsSync(process.execPath)
    ? { program: process.execPath, args: words, instead }
    : { program: instead, args: words };
}

/** Starts whichever form there is, a little later than that itself would start. */
export function launcherIn(root: string): string {
  return join(root, 'bin', 'claude-code-agent');
}
