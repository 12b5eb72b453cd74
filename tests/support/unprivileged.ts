/**
 * A user to whom file permissions apply, for tests of what the system refuses: the tests' own user, or uid 65534 by
 * setpriv(1) when root runs them. Tests that need one are skipped, and counted, only where neither is possible.
 */
import { chmodSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkoutRoot } from './cli.ts';

const nobody = 65_534;

export interface Unprivileged {
  readonly isPossible: boolean;
  /** Whether that is another user than the tests' own, who needs files of their own. */
  readonly isOther: boolean;
  /** Command prefix that runs a program as that user. */
  readonly prefix: readonly string[];
}

export const unprivileged: Unprivileged = findOut();

function findOut(): Unprivileged {
  const isOther = process.getuid?.() === 0;
  const prefix = isOther ? ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups'] : [];
  return { isPossible: (!isOther || Bun.which('setpriv') !== null) && isRefused(prefix), isOther, prefix };
}

/**
 * Whether commands with `prefix` can enter temporary folders, the package and Bun, but not a closed file: some
 * containers forbid the change of user, some file systems have no permissions, and some users have the capabilities of
 * root.
 */
function isRefused(prefix: readonly string[]): boolean {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'cca unprivileged ')));
  chmodSync(folder, 0o755);
  const closed = join(folder, 'closed');
  writeFileSync(closed, 'x', { mode: 0o000 });
  const script = '"$1" --version && "$2" --version && test -x "$3" && ! cat "$3/closed" && echo refused';
  const words = [join(checkoutRoot, 'bin', 'claude-code-agent'), process.execPath, folder];
  const tried = Bun.spawnSync([...prefix, 'sh', '-c', script, 'sh', ...words], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? '' },
    stderr: 'ignore',
  });
  rmSync(folder, { recursive: true, force: true });
  return tried.stdout.toString().endsWith('refused\n');
}

/** Makes that user the owner of these files and folders and of all below them. */
export function giveToUnprivileged(...paths: readonly string[]): void {
  if (!unprivileged.isOther) return;
  const { success } = Bun.spawnSync(['chown', '-R', '-h', `${nobody}:${nobody}`, ...paths]);
  if (!success) throw new Error(`chown to nobody failed: ${paths.join(', ')}`);
}
