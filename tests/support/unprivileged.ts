/**
 * Somebody to whom file permissions apply, for tests of what the system refuses: whoever runs the tests, or nobody
 * when root does, by setpriv(1). Tests that need it are skipped, and so counted, only where neither can be had.
 */
import { chmodSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageRoot } from './cli.ts';

const nobody = 65_534;

export interface Unprivileged {
  readonly isPossible: boolean;
  /** That this is not who runs the tests, so that she may have nothing but what was given to her. */
  readonly isOther: boolean;
  /** What stands before a command that she runs. */
  readonly prefix: readonly string[];
}

export const unprivileged: Unprivileged = findOut();

function findOut(): Unprivileged {
  const isOther = process.getuid?.() === 0;
  const prefix = isOther ? ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups'] : [];
  return { isPossible: (!isOther || Bun.which('setpriv') !== null) && isRefused(prefix), isOther, prefix };
}

/**
 * Whether who runs commands by `prefix` is let into temporary folders, the package and Bun, but not into a closed
 * file: some containers forbid the change of user, some file systems know no permissions, and some users have the
 * capabilities of root.
 */
function isRefused(prefix: readonly string[]): boolean {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'cca unprivileged ')));
  chmodSync(folder, 0o755);
  const closed = join(folder, 'closed');
  writeFileSync(closed, 'x', { mode: 0o000 });
  const script = '"$1" --version && "$2" --version && test -x "$3" && ! cat "$3/closed" && echo refused';
  const words = [join(packageRoot, 'bin', 'claude-code-agent'), process.execPath, folder];
  const tried = Bun.spawnSync([...prefix, 'sh', '-c', script, 'sh', ...words], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? '' },
    stderr: 'ignore',
  });
  rmSync(folder, { recursive: true, force: true });
  return tried.stdout.toString().endsWith('refused\n');
}

/** Makes her the owner of these files and folders and of all below them. */
export function giveToUnprivileged(...paths: readonly string[]): void {
  if (!unprivileged.isOther) return;
  const { success } = Bun.spawnSync(['chown', '-R', '-h', `${nobody}:${nobody}`, ...paths]);
  if (!success) throw new Error(`chown to nobody failed: ${paths.join(', ')}`);
}
