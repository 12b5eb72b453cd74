/** Reads config.yaml, which has settings for all groups of the user. */
import { join } from 'node:path';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { GroupConfig, GroupId } from '../../core/group.ts';
import type { DayBudget } from '../../core/plan/decision.ts';
import { configRoot } from '../../store/paths.ts';
import type { AppContext } from '../app-context.ts';
import { briefPath, lookAt, tryPath } from '../path-argument.ts';

export interface UserSettings {
  readonly config: Partial<GroupConfig>;
  readonly onEvent?: string;
  /** Cap of all groups per day, US dollars. */
  readonly dayUsd?: number;
  /** Folder for new worktrees; absent = in the data folder. */
  readonly worktrees?: string;
}

const noSettings: UserSettings = { config: {} };

/** Fails with `usage` and all problems of the file. */
export async function readUserConfig({ world, env }: AppContext): Promise<Result<UserSettings>> {
  const root = configRoot(env);
  // Without a home there is no such file. Other code reports the missing home.
  if (!root.ok) return ok(noSettings);
  const path = join(root.value, 'config.yaml');
  const text = tryPath(() => world.files.readText(path));
  if (!text.ok) return fail('usage', `${briefPath(path)} ${text.trouble}.`, 'Correct it, or remove it.');
  if (text.value === null) {
    // A FIFO or device must not count as an empty file.
    if (!lookAt(world.files, path).ok) return ok(noSettings);
    return fail('usage', `${briefPath(path)} is not a regular file.`, 'Correct it, or remove it.');
  }
  // The YAML library is loaded only if the file exists.
  const { parseUserConfig } = await import('./user-config-schema.ts');
  const parsed = parseUserConfig(text.value, path);
  if (!parsed.ok) return parsed;
  const { prices, onEvent, worktrees, budget } = parsed.value;
  return ok({ config: defined({ prices }), ...defined({ onEvent, worktrees, dayUsd: budget?.day }) });
}

/** The daily cap and what counts towards it; undefined = no cap, or an unreadable config. */
export async function dayBudget(context: AppContext, root: string, own?: GroupId): Promise<DayBudget | undefined> {
  const user = await readUserConfig(context);
  if (!user.ok || user.value.dayUsd === undefined) return undefined;
  const { daySpending } = await import('../../store/day-spending.ts');
  return { capUsd: user.value.dayUsd, ...daySpending(context.world, root)(own) };
}
