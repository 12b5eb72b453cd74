/** Finds the claude program to run. */
import { basename, delimiter, dirname, isAbsolute, join } from 'node:path';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { World } from '../../system/world.ts';
import { cleanLine } from '../text.ts';
import { isOfPayer } from './settings.ts';

export interface FindClaudeOptions {
  readonly packageRoot: string;
  /** Prefer the package's own claude to the one on PATH, because the scripted model of rehearsals and tests fits it. */
  readonly preferPinned?: boolean;
}

export const forRehearsal = { preferPinned: true } as const;

export interface ClaudeProgram {
  readonly program: string;
  readonly origin: 'CLAUDE_CODE_AGENT_CLAUDE' | 'PATH' | 'home folder' | 'package';
}

/** Fails with `claude-missing`. */
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
  const atHome = isAbsolute(caller.HOME ?? '') ? join(caller.HOME ?? '', '.local/bin/claude') : undefined;
  const pinned = pinnedPaths(world, options.packageRoot).find(isFile);
  const candidates: (ClaudeProgram | undefined)[] = [
    onPath === undefined ? undefined : { program: onPath, origin: 'PATH' },
    // The path of claude's own installer: cron and ssh commands have a shorter PATH.
    atHome !== undefined && isFile(atHome) ? { program: atHome, origin: 'home folder' } : undefined,
    pinned === undefined ? undefined : { program: pinned, origin: 'package' },
  ];
  if (options.preferPinned === true) candidates.reverse();
  const found = candidates.find((candidate) => candidate !== undefined);
  if (found !== undefined) return ok(found);
  const next =
    'Install it with: npm install -g @anthropic-ai/claude-code. Or set CLAUDE_CODE_AGENT_CLAUDE to its path. ' +
    'A rehearsal (--rehearse) needs no account.';
  return fail(
    'claude-missing',
    'claude was not found on PATH or in ~/.local/bin, and the optional package is not installed.',
    next,
  );
}

/** PATH may have unreadable folders, which are skipped. */
function isReachableFile(world: World, path: string): boolean {
  try {
    return world.files.info(path)?.kind === 'file';
  } catch {
    return false;
  }
}

/** Without empty and relative entries, which would run a program of the current folder. */
function pathEntries(path: string | undefined): string[] {
  const folders = (path ?? '').split(delimiter).filter((folder) => isAbsolute(folder));
  return folders.map((folder) => join(folder, 'claude'));
}

/** npm installs a dependency below or beside the package; the name of the musl build sorts last. */
function pinnedPaths(world: World, packageRoot: string): string[] {
  const beside = dirname(packageRoot);
  const scopes = [join(packageRoot, 'node_modules'), beside, join(beside, 'node_modules')];
  return scopes.flatMap((scope) => {
    const folder = join(scope, '@anthropic-ai');
    const names = world.files.list(folder).filter((name) => name.startsWith('claude-code-'));
    return names.map((name) => join(folder, name, 'claude'));
  });
}

export interface ProgramFile {
  readonly path: string;
  readonly size: number;
  readonly mtimeMs: number;
  readonly device: number;
  readonly inode: number;
}

/** A smaller file is a script or shim that starts another program, which may change independently. */
const wholeProgramBytes = 1 << 20;
/** Usually 0.1 s, but much longer on a busy machine. */
const versionTimeoutMs = 20_000;

/** The oldest claude with every option and variable we use; `CLAUDE_CODE_IGNORE_PERSISTED_TRUST` came last. */
export const oldestClaude = '2.1.308';

export function programFile(world: World, program: string): ProgramFile | null {
  try {
    const path = world.files.realPath(program);
    const info = path === null ? null : world.files.info(path);
    if (path === null || info?.kind !== 'file') return null;
    const { size, mtimeMs, device, inode } = info;
    return { path, size, mtimeMs, device, inode };
  } catch {
    // An unreadable folder counts as empty.
    return null;
  }
}

export function isSameFile(a: ProgramFile, b: ProgramFile): boolean {
  return (
    a.path === b.path && a.size === b.size && a.mtimeMs === b.mtimeMs && a.device === b.device && a.inode === b.inode
  );
}

export function isWholeProgram({ size }: ProgramFile): boolean {
  return size >= wholeProgramBytes;
}

/**
 * Advice about a claude wrapper script that sets who pays: it would override the chosen login. Null for a binary, and
 * for a script that sets nothing of the kind.
 */
export function wrapperAdvice(world: World, file: ProgramFile): string | null {
  if (isWholeProgram(file)) return null;
  const text = new TextDecoder().decode(world.files.readBytes(file.path, 0, file.size));
  if (!text.startsWith('#!')) return null;
  const named = [...text.matchAll(/\b([A-Z][A-Z0-9_]+)=/g)].map(([, name = '']) => name);
  const payers = [...new Set(named.filter(isOfPayer))];
  if (payers.length === 0) return null;
  const started = [...text.matchAll(/\/[^\s"'`;$]+/g)].map(([path]) => path);
  const program = started.find(
    (path) => path !== file.path && basename(path) === 'claude' && isReachableFile(world, path),
  );
  const exported = `${file.path} is a script that sets ${payers.join(', ')}. Export the same in your shell`;
  return `${exported}, and set CLAUDE_CODE_AGENT_CLAUDE to the program that it starts${program ? `: ${program}` : '.'}`;
}

/** Refuses a claude that is older than the oldest supported one. Fails with `claude-unproven`. */
export function checkSupported(version: string): Result<void> {
  if (compareVersions(version, oldestClaude) >= 0) return ok(undefined);
  const message = `claude ${version} is too old; this program needs ${oldestClaude} or newer.`;
  return fail('claude-unproven', message, 'Update it with: npm install -g @anthropic-ai/claude-code@latest');
}

/** Negative when `a` is older than `b`; `2.1.9-beta` counts as 2.1.9. */
export function compareVersions(a: string, b: string): number {
  const [left = [], right = []] = [a, b].map((version) => version.split('.').map((part) => Number.parseInt(part, 10)));
  const index = left.findIndex((part, at) => part !== right[at]);
  return index === -1 ? 0 : (left[index] ?? 0) - (right[index] ?? 0);
}

/** The version, such as `2.1.331`. A version manager may choose it by `cwd`. Fails with `claude-missing`. */
export async function versionOf(
  world: World,
  program: string,
  caller: Readonly<Record<string, string | undefined>>,
  cwd = '/',
): Promise<Result<string>> {
  const env = { PATH: caller.PATH ?? '', HOME: caller.HOME ?? '', DISABLE_AUTOUPDATER: '1' };
  const run = { program, args: ['--version'], cwd, env, timeoutMs: versionTimeoutMs };
  const ran = await world.processes.run(run);
  if (!ran.ok) {
    const isMissing = ran.failure.reason === 'not-found';
    return isMissing ? { ok: false, failure: { ...ran.failure, reason: 'claude-missing' } } : ran;
  }
  const { stdout, stderr } = ran.value;
  const [, version] = /^(\d+\.\d+\.\d+\S*) \([^)]*Claude/.exec(stdout) ?? [];
  if (version !== undefined) return ok(version);
  const said = cleanLine(stdout.trim() === '' ? stderr : stdout, 200);
  const message = `${program} --version did not print a Claude Code version${said === '' ? '' : `: ${said}`}.`;
  return fail('claude-missing', message, 'Install Claude Code again, or set CLAUDE_CODE_AGENT_CLAUDE to its path.');
}
