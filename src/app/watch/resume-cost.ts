/**
 * What going on with a conversation costs before anything is done: once the server no longer keeps it in the prompt
 * cache, all of it is written there anew. Told from our own figures before the money is spent, and by claude itself,
 * where it can, when the conversation goes on.
 */

import { conversationExists } from '../../claude/conversation.ts';
import { estimateCost } from '../../claude/pricing.ts';
import { contextTokens, isKeptForAnHour } from '../../claude/transcript-entries.ts';
import type { ResumeNote } from '../../context/hook-input.ts';
import { noTokens } from '../../core/group.ts';
import { keptMs } from '../../core/plan/warm-cache.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { foreignText } from '../../core/text.ts';
import { isObject, parseJson } from '../../store/json.ts';
import { type GroupPaths, type SessionPaths, sessionPaths } from '../../store/paths.ts';
import type { World } from '../../system/world.ts';
import { formatCount, formatMoney, plural } from '../../view/format.ts';

const hourMs = 3_600_000;
/** As much of a transcript or a log as is looked at, from its end. */
const tailBytes = 256 * 1024;

export interface ResumeCost {
  /** Of the conversation. */
  readonly tokens: number;
  /** US dollars for writing them. */
  readonly usd: number;
}

/**
 * Null for a session that does not go on with a conversation, whose prompt cache is surely still there, or of which
 * nothing is known. A rehearsal costs nothing.
 */
export function resumeCost(
  world: World,
  groupPaths: GroupPaths,
  state: GroupState,
  record: SessionRecord,
): ResumeCost | null {
  const { status } = record.state;
  const { model, endedAt, claudeSessionIds, definition } = record;
  const claudeSessionId = claudeSessionIds.at(-1);
  if (status === 'running' || status === 'completed' || state.run?.rehearsal === true) return null;
  if (model === undefined || endedAt === undefined || claudeSessionId === undefined) return null;
  if (world.clock.now() - Date.parse(endedAt) < keptMs) return null;
  const paths = sessionPaths(groupPaths, definition.id);
  if (!conversationExists(world, paths.config, claudeSessionId)) return null;
  const lines = tailOf(world, paths.transcript);
  const tokens = contextTokens(lines);
  if (tokens === undefined) return null;
  const isHourly = isKeptForAnHour(lines);
  if (isHourly && world.clock.now() - Date.parse(endedAt) < hourMs) return null;
  const written = { ...noTokens, cacheCreation: tokens, ...(isHourly ? { hourly: tokens } : {}) };
  const usd = estimateCost(model, written, state.group.config.prices);
  return { tokens, usd };
}

/** `about $0.42 for writing 68K tokens into the prompt cache anew, should it no longer hold them`. */
export function resumeCostText({ tokens, usd }: ResumeCost): string {
  const what = `writing ${formatCount(tokens)} tokens into the prompt cache anew`;
  return `about ${formatMoney(usd)} for ${what}, should it no longer hold them`;
}

/** The same for all sessions that are to go on, in one sentence; null when that costs nothing worth a word. */
export function resumeCostSentence(world: World, paths: GroupPaths, state: GroupState): string | null {
  const costs = [...state.sessions.values()].flatMap((record) => resumeCost(world, paths, state, record) ?? []);
  const sum = costs.reduce((a, b) => ({ tokens: a.tokens + b.tokens, usd: a.usd + b.usd }), { tokens: 0, usd: 0 });
  if (sum.usd < leastUsd) return null;
  return `Going on with ${plural(costs.length, 'conversation')} costs ${resumeCostText(sum)}.`;
}

/** Nobody decides by less. */
const leastUsd = 0.01;

/** What claude itself said of it when the running attempt began; null when it did not, or there is none. */
export function resumeNoteText(
  world: World,
  groupPaths: GroupPaths,
  { definition, state }: SessionRecord,
): string | null {
  if (state.status !== 'running') return null;
  const note = lastNote(world, sessionPaths(groupPaths, definition.id), Date.parse(state.attempt.startedAt));
  if (note === null) return null;
  const { contextTokens: tokens, cacheWriteUsd: usd, isCacheExpired } = note;
  if (isCacheExpired === false) return `with ${formatCount(tokens)} tokens, which the prompt cache still held`;
  return `with ${formatCount(tokens)} tokens, written into the prompt cache anew for ${formatMoney(usd)}`;
}

function lastNote(world: World, { hooksLog }: SessionPaths, sinceMs: number): ResumeNote | null {
  for (const line of tailOf(world, hooksLog).toReversed()) {
    const value = parseJson(line);
    if (!isObject(value) || !isObject(value.resumed) || Date.parse(foreignText(value.at)) < sinceMs) continue;
    const { contextTokens: tokens, cacheWriteUsd, isCacheExpired } = value.resumed;
    if (typeof tokens !== 'number' || typeof cacheWriteUsd !== 'number') continue;
    return { contextTokens: tokens, cacheWriteUsd, isCacheExpired: isCacheExpired === true };
  }
  return null;
}

/** Whole lines; of a longer file those at its end. */
function tailOf({ files }: World, path: string): string[] {
  const size = files.info(path)?.size ?? 0;
  const from = Math.max(0, size - tailBytes);
  const lines = new TextDecoder().decode(files.readBytes(path, from, tailBytes)).split('\n');
  return from === 0 ? lines : lines.slice(1);
}
