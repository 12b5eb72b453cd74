/**
 * What claude itself has kept of a conversation: whether `--resume` can work, and what its totals go on with then.
 */
import { join } from 'node:path';
import type { World } from '../world/world.ts';
import { isObject, usd } from './lenient.ts';
import { modelsOf } from './messages.ts';
import { type Claim, noClaim } from './spending.ts';

/** True when the transcript is in the config dir. After a hard kill the file may be missing or empty. */
export function conversationExists(world: World, configDir: string, claudeSessionId: string): boolean {
  return conversationFile(world, configDir, claudeSessionId) !== null;
}

/**
 * The file of the conversation, null when there is none or an empty one. The folder below projects/ is named after the
 * project's path by rules of claude's own, so all of them are looked into.
 */
function conversationFile(world: World, configDir: string, claudeSessionId: string): string | null {
  const projects = join(configDir, 'projects');
  const paths = world.files.list(projects).map((folder) => join(projects, folder, `${claudeSessionId}.jsonl`));
  const isKept = (path: string): boolean => {
    const info = world.files.info(path);
    return info?.kind === 'file' && info.size > 0;
  };
  return paths.find(isKept) ?? null;
}

/**
 * What claude's totals began with in a process that was started at `startedAtMs` (ms since 1970) to go on with one of
 * these conversations: the newest that had begun by then. claude writes them down whenever it ends cleanly, since
 * 2.1.278; before that, and in a new conversation, they begin with nothing. Null when no conversation is left to tell.
 */
export function totalsBefore(
  world: World,
  configDir: string,
  claudeSessionIds: readonly string[],
  startedAtMs: number,
): Claim | null {
  for (const id of claudeSessionIds.toReversed()) {
    const path = conversationFile(world, configDir, id);
    const found = path === null ? null : lastTotals(world, path, startedAtMs);
    if (found !== null) return found;
  }
  return null;
}

const stateMark = '"type":"cost-state"';
/** Only as a field: inside of a text the quotes are escaped. */
const timeField = /"timestamp":"([^"]{20,30})"/;

/** The totals of the last clean end before that time; null when the conversation began later. */
function lastTotals({ files }: World, path: string, startedAtMs: number): Claim | null {
  let found: Claim | null = null;
  // Lines of claude's are long, and few of them are looked at as a whole.
  for (const line of (files.readText(path) ?? '').split('\n')) {
    const time = Date.parse(timeField.exec(line)?.[1] ?? '');
    if (time >= startedAtMs) break;
    if (!Number.isNaN(time)) found ??= noClaim;
    if (line.includes(stateMark)) found = readState(line) ?? found;
  }
  return found;
}

function readState(line: string): Claim | null {
  try {
    const value: unknown = JSON.parse(line);
    if (!isObject(value) || value.type !== 'cost-state') return null;
    return { costUsd: usd(value.totalCostUSD), models: modelsOf(value.modelUsage) };
  } catch {
    return null;
  }
}
