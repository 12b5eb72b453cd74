/**
 * Which claude program is run.
 */
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { World } from '../../system/world.ts';

export interface FindClaudeOptions {
  /** Root folder of this package; its native claude lies below node_modules there or beside it. */
  readonly packageRoot: string;
  /** Take the package's own program before the one on PATH: rehearsals and tests, whose model is made for it. */
  readonly preferPinned?: boolean;
  /** Where there is none, take the program that plays its part: rehearsals only. */
  readonly standIn?: boolean;
}

/** For what `findClaude` is to find for a rehearsal. */
export const forRehearsal = { preferPinned: true, standIn: true } as const;

export interface ClaudeProgram {
  /** Absolute path. */
  readonly program: string;
  readonly origin: 'CLAUDE_CODE_AGENT_CLAUDE' | 'PATH' | 'package' | 'stand-in';
}

/** Finds the program; whether it can be executed shows when it is started. Fails with `claude-missing`. */
export function findClaude(
  world: World,
  caller: Readonly<Record<string, string | undefined>>,
  options: FindClaudeOptions,
): Result<ClaudeProgram> {
  const isFile = (path: string) => isReachableFile(world, path);
  const chosen = caller.CLAUDE_CODE_AGENT_CLAUDE ?? '';
  if (chosen !== '') {
    // A worker starts in another folder, so the path must not stay relative.
    const program = isAbsolute(chosen) ? chosen : world.files.realPath(chosen);
    if (program !== null && isFile(program)) return ok({ program, origin: 'CLAUDE_CODE_AGENT_CLAUDE' });
    const message = `CLAUDE_CODE_AGENT_CLAUDE names ${chosen}, which is not a file.`;
    return fail('claude-missing', message, 'Set it to the path of the claude program, or unset it.');
  }
  const onPath = pathEntries(caller.PATH).find(isFile);
  const pinned = pinnedPaths(world, options.packageRoot).find(isFile);
  const candidates: (ClaudeProgram | undefined)[] = [
    onPath === undefined ? undefined : { program: onPath, origin: 'PATH' },
    pinned === undefined ? undefined : { program: pinned, origin: 'package' },
  ];
  if (options.preferPinned === true) candidates.reverse();
  const found = candidates.find((candidate) => candidate !== undefined);
  if (found !== undefined) return ok(found);
  if (options.standIn === true) {
    return ok({ program: join(options.packageRoot, 'bin', 'rehearsal-claude'), origin: 'stand-in' });
  }
  const next =
    'Install Claude Code (https://claude.com/claude-code), or set CLAUDE_CODE_AGENT_CLAUDE to its path. ' +
    'A rehearsal (--rehearse) needs none.';
  return fail('claude-missing', 'There is no claude on PATH, and this package’s own is not installed.', next);
}

/** PATH may name folders into which we cannot look; they hold nothing for us. */
function isReachableFile(world: World, path: string): boolean {
  try {
    return world.files.info(path)?.kind === 'file';
  } catch {
    return false;
  }
}

/** Empty and relative entries are left out: they would run what the current folder calls claude. */
function pathEntries(path: string | undefined): string[] {
  const folders = (path ?? '').split(delimiter).filter((folder) => isAbsolute(folder));
  return folders.map((folder) => join(folder, 'claude'));
}

/**
 * npm puts a dependency below the package, or beside it when the package is a dependency itself, and installs the
 * native program of this machine only. Names sort so that the build for musl comes last.
 */
function pinnedPaths(world: World, packageRoot: string): string[] {
  const beside = dirname(packageRoot);
  const scopes = [join(packageRoot, 'node_modules'), beside, join(beside, 'node_modules')];
  return scopes.flatMap((scope) => {
    const folder = join(scope, '@anthropic-ai');
    const names = world.files.list(folder).filter((name) => name.startsWith('claude-code-'));
    return names.map((name) => join(folder, name, 'claude'));
  });
}
