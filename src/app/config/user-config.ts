/** `config.yaml` of the user: what holds for every group without being typed. Absent = nothing. */
import { join } from 'node:path';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { GroupConfig } from '../../core/group.ts';
import { configRoot } from '../../store/paths.ts';
import { briefPath, lookAt, tryPath } from '../path-argument.ts';
import type { Place } from '../place.ts';

export interface UserSettings {
  readonly config: Partial<GroupConfig>;
  readonly onEvent?: string;
  /** The folder below which new worktrees are made; absent = that of the data root. */
  readonly worktrees?: string;
}

const noSettings: UserSettings = { config: {} };

/** What the file says. Fails with `usage` and every problem of the file at its place. */
export async function readUserConfig({ world, env }: Place): Promise<Result<UserSettings>> {
  const root = configRoot(env);
  // Without a home there is no such file; what else that means others say.
  if (!root.ok) return ok(noSettings);
  const path = join(root.value, 'config.yaml');
  const text = tryPath(() => world.files.readText(path));
  if (!text.ok) return fail('usage', `${briefPath(path)} ${text.trouble}.`, 'Correct it, or take it away.');
  if (text.value === null) {
    // Of a FIFO or a device nothing was read; that must not pass for a file that says nothing.
    if (!lookAt(world.files, path).ok) return ok(noSettings);
    return fail('usage', `${briefPath(path)} is no regular file.`, 'Correct it, or take it away.');
  }
  // The YAML library is loaded only by those who have such a file.
  const { parseUserConfig } = await import('./user-config-schema.ts');
  const parsed = parseUserConfig(text.value, path);
  if (!parsed.ok) return parsed;
  const { prices, onEvent, worktrees } = parsed.value;
  return ok({ config: defined({ prices }), ...defined({ onEvent, worktrees }) });
}
