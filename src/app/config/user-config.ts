/** `config.yaml` of the user: what holds for every group without being typed. Absent = nothing. */
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
  /** What all groups may spend in a day, US dollars. */
  readonly dayUsd?: number;
  /** The folder below which new worktrees are made; absent = that of the data root. */
  readonly worktrees?: string;
}

const noSettings: UserSettings = { config: {} };

/** What the file says. Fails with `usage` and every problem of the file at its place. */
export async function readUserConfig({ world, env }: AppContext): Promise<Result<UserSettings>> {
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
  const { prices, onEvent, worktrees, budget } = parsed.value;
  return ok({ config: defined({ prices }), ...defined({ onEvent, worktrees, dayUsd: budget?.day }) });
}

/** The user's cap of a day and what counts towards it now; undefined = there is no cap, or it cannot be read. */
export async function dayBudget(context: AppContext, root: string, own?: GroupId): Promise<DayBudget | undefined> {
  const user = await readUserConfig(context);
  if (!user.ok || user.value.dayUsd === undefined) return undefined;
  const { DaySpending } = await import('../../store/day-spending.ts');
  return { capUsd: user.value.dayUsd, ...new DaySpending(context.world, root).read(own) };
}
