/**
 * Looks at a project's own claude settings for what our settings cannot undo.
 */
import { join } from 'node:path';
import { fail, ok, type Result } from '../core/failure.ts';
import type { World } from '../world/world.ts';
import type { Environment } from './environment.ts';
import { isObject, type JsonObject, object } from './lenient.ts';
import { unprotectedVariables } from './settings.ts';

/**
 * Refuses a project whose settings would lead a worker with this environment to another payer or reader. What cannot
 * be read as JSON claude ignores as well. Fails with `spawn-failed`, naming the file and the variable.
 */
export function checkProjectSettings(world: World, projectPath: string, env: Environment): Result<void> {
  const forbidden = unprotectedVariables(env);
  for (const name of ['settings.json', 'settings.local.json']) {
    const path = join(projectPath, '.claude', name);
    const stated = object(readSettings(world, path).env);
    const found = forbidden.find((variable) => stated[variable] !== undefined && stated[variable] !== env[variable]);
    if (found !== undefined) {
      const message = `${path} sets ${found}, which would change who pays for the session or who reads its requests.`;
      return fail('spawn-failed', message, 'Remove it there; to use it, set it in your own environment instead.');
    }
  }
  return ok(undefined);
}

function readSettings(world: World, path: string): JsonObject {
  if (world.files.info(path)?.kind !== 'file') return {};
  try {
    const value: unknown = JSON.parse(world.files.readText(path) ?? '');
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
