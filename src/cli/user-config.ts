/** `config.yaml` of the user: what holds for every group without being typed. Absent = nothing. */
import { join } from 'node:path';
import { fail, ok, type Result } from '../core/failure.ts';
import type { GroupConfig, PriceTable } from '../core/group.ts';
import { configRoot } from '../store/paths.ts';
import type { Context } from './context.ts';
import { briefPath, tryPath } from './path-argument.ts';

/** Settings that the file gives to every run. Fails with `usage` and every problem of the file at its place. */
export async function readUserConfig({ world, env }: Context): Promise<Result<Partial<GroupConfig>>> {
  const root = configRoot(env);
  // Without a home there is no such file; what else that means others say.
  if (!root.ok) return ok({});
  const path = join(root.value, 'config.yaml');
  const text = tryPath(() => world.files.readText(path));
  if (!text.ok) return fail('usage', `${briefPath(path)} ${text.trouble}.`, 'Correct it, or take it away.');
  if (text.value === null) return ok({});
  // The YAML library is loaded only by those who have such a file.
  const { parseUserConfig } = await import('./user-config-schema.ts');
  const parsed = parseUserConfig(text.value, path);
  return parsed.ok ? ok(settingsOf(parsed.value.prices)) : parsed;
}

function settingsOf(prices: PriceTable | undefined): Partial<GroupConfig> {
  return prices === undefined ? {} : { prices };
}
