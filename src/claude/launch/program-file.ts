/**
 * The file behind the name of a claude program: which one it is, whether it is still the same, and what version it says
 * it is.
 */
import { fail, ok, type Result } from '../../core/failure.ts';
import type { World } from '../../system/world.ts';
import { oneLine } from '../text.ts';

export interface ProgramFile {
  /** Absolute, without links. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  /** ms since 1970. */
  readonly mtimeMs: number;
  readonly device: number;
  readonly inode: number;
}

/** What is smaller only starts another program, which may change without it: a script, a shim of a version manager. */
const wholeProgramBytes = 1 << 20;
/** It needs a tenth of a second; a machine under load may need many times that. */
const versionTimeoutMs = 20_000;

/** The oldest claude that has every option and variable we use; `CLAUDE_CODE_IGNORE_PERSISTED_TRUST` came last. */
export const oldestClaude = '2.1.308';

/** Null when nothing, or no file, is there. */
export function programFile(world: World, program: string): ProgramFile | null {
  try {
    const path = world.files.realPath(program);
    const info = path === null ? null : world.files.info(path);
    if (path === null || info?.kind !== 'file') return null;
    const { size, mtimeMs, device, inode } = info;
    return { path, size, mtimeMs, device, inode };
  } catch {
    // A folder into which we may not look holds nothing for us.
    return null;
  }
}

export function isSameFile(a: ProgramFile, b: ProgramFile): boolean {
  return (
    a.path === b.path && a.size === b.size && a.mtimeMs === b.mtimeMs && a.device === b.device && a.inode === b.inode
  );
}

/** Whether the file is the whole program, so that the same file is the same version. */
export function isWholeProgram({ size }: ProgramFile): boolean {
  return size >= wholeProgramBytes;
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

/**
 * Such as `2.1.331`, as the program says it in the folder `cwd`: what a version manager puts there may choose by that.
 * Fails with `claude-missing` when it says nothing of the kind.
 */
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
  const said = oneLine(stdout.trim() === '' ? stderr : stdout, 200);
  const message = `${program} --version does not say which Claude Code it is${said === '' ? '' : `: ${said}`}.`;
  return fail('claude-missing', message, 'Install Claude Code again, or set CLAUDE_CODE_AGENT_CLAUDE to its path.');
}
