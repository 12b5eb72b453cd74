/**
 * What claude asks a person who opens it in a config dir for the first time: a theme, whether the folder is trusted,
 * and whether a key is to be used. A worker is asked none of it, and works with the same folder and key.
 */
import { join } from 'node:path';
import type { World } from '../../system/world.ts';
import { isObject, type JsonObject, list, object } from '../lenient.ts';
import type { Environment } from './variables.ts';

/** By so many characters at its end claude knows a key. */
const keyEnd = 20;

/** Answers those questions in claude's own file; what else stands there stays. `folder` is where claude is opened. */
export function answerFirstRun(world: World, configDir: string, folder: string, env: Environment): void {
  const path = join(configDir, '.claude.json');
  const known = read(world, path);
  const projects = object(known.projects);
  const key = env.ANTHROPIC_API_KEY;
  const answered = object(known.customApiKeyResponses);
  const next: JsonObject = {
    ...known,
    hasCompletedOnboarding: true,
    bypassPermissionsModeAccepted: true,
    projects: { ...projects, [folder]: { ...object(projects[folder]), hasTrustDialogAccepted: true } },
    ...(key === undefined || key === '' ? {} : { customApiKeyResponses: withKey(answered, key.slice(-keyEnd)) }),
  };
  // It may have been put there by the session, as a link.
  world.files.writeAtomic(path, `${JSON.stringify(next, null, 2)}\n`);
}

function withKey(answered: JsonObject, end: string): JsonObject {
  const others = (name: string): unknown[] => list(answered[name]).filter((one) => one !== end);
  return { ...answered, approved: [...others('approved'), end], rejected: others('rejected') };
}

function read({ files }: World, path: string): JsonObject {
  try {
    const value: unknown = files.entryKind(path) === 'file' ? JSON.parse(files.readText(path) ?? '') : {};
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
