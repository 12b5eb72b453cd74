/** claude's stored conversations: messages, totals, and whether one can be resumed. */
import { join } from 'node:path';
import { defined } from '../core/defined.ts';
import { addModels, type PriceTable, type Tokens, type Usage } from '../core/group.ts';
import type { Item, LeftAnswer } from '../core/item.ts';
import { LineSplitter } from '../core/line-splitter.ts';
import { isObject, parseJson } from '../store/json.ts';
import type { World } from '../system/world.ts';
import { object, text, usd } from './lenient.ts';
import { modelsOf, parseLine } from './messages.ts';
import { estimateCost, isUnknownModel } from './pricing.ts';
import { answerStateIn } from './questions.ts';
import { noTotals, type ReportedTotals } from './spending.ts';
import type { AttemptStream } from './stream.ts';

const chunkBytes = 64 * 1024;
/** A message's line begins with other fields, so the type is searched anywhere in it. */
const messageTypes = ['"type":"user"', '"type":"assistant"'];

export function conversationExists(world: World, configDir: string, claudeSessionId: string): boolean {
  return filesOf(world, configDir, claudeSessionId).some((path) => holdsMessage(world, path));
}

/**
 * Removes transcripts without a message. A claude that was killed at its start leaves one with only a title, which can
 * be neither resumed nor started again.
 */
export function removeEmptyConversation(world: World, configDir: string, claudeSessionId: string): void {
  for (const path of filesOf(world, configDir, claudeSessionId)) {
    if (!holdsMessage(world, path)) world.files.remove(path);
  }
}

/** The model's last message is missing in the transcript. False without any transcript. */
export function isCutOff(
  world: World,
  configDirs: readonly string[],
  { claudeSessionId, lastMessageId }: Pick<AttemptStream, 'claudeSessionId' | 'lastMessageId'>,
): boolean {
  if (claudeSessionId === undefined || lastMessageId === undefined) return false;
  const paths = configDirs.flatMap((folder) => filesOf(world, folder, claudeSessionId));
  return paths.length > 0 && paths.every((path) => lacks(world, path, lastMessageId));
}

export function isBlank(world: World, configDirs: readonly string[], claudeSessionId: string): boolean {
  const paths = configDirs.flatMap((folder) => filesWithin(world, folder, claudeSessionId));
  return paths.length > 0 && paths.every((path) => (world.files.info(path)?.size ?? 0) === 0);
}

/** Items whose answer is missing in the conversation, or present only as a quote. */
export function answersLeft(
  world: World,
  configDir: string,
  claudeSessionId: string,
  items: readonly Item[],
): LeftAnswer[] {
  if (items.length === 0) return [];
  const told = new Map<string, string>();
  for (const line of linesOf(world, filesWithin(world, configDir, claudeSessionId))) {
    for (const item of items) {
      const how = answerStateIn(line, item);
      if (how !== null && told.get(item.id) !== 'result') told.set(item.id, how);
    }
  }
  return items.flatMap((item): LeftAnswer[] => {
    const how = told.get(item.id);
    if (how === undefined) return [{ item: item.id, left: 'quote' }];
    return how === 'quote' && item.kind === 'permission' ? [{ item: item.id, left: 'call' }] : [];
  });
}

/** Including the files of the conversation's sub-agents. */
function filesWithin(world: World, configDir: string, claudeSessionId: string): string[] {
  return [...filesOf(world, configDir, claudeSessionId), ...agentFiles(world, configDir, claudeSessionId)];
}

function agentFiles(world: World, configDir: string, claudeSessionId: string): string[] {
  const folders = projectsOf(world, configDir).map((folder) => join(folder, claudeSessionId, 'subagents'));
  const there = folders.filter((folder) => world.files.entryKind(folder) === 'folder');
  const paths = there.flatMap((folder) => world.files.list(folder).map((name) => join(folder, name)));
  return paths.filter((path) => path.endsWith('.jsonl') && world.files.entryKind(path) === 'file');
}

/** claude names the folder below projects/ by its own rules, so all of them are searched. */
function filesOf(world: World, configDir: string, claudeSessionId: string): string[] {
  const paths = projectsOf(world, configDir).map((folder) => join(folder, `${claudeSessionId}.jsonl`));
  return paths.filter((path) => world.files.info(path)?.kind === 'file');
}

function projectsOf(world: World, configDir: string): string[] {
  const projects = join(configDir, 'projects');
  // Symlinks are not followed: their targets do not belong to claude and must not be removed.
  const isFolder = (path: string) => world.files.entryKind(path) === 'folder';
  const names = isFolder(projects) ? world.files.list(projects) : [];
  return names.map((name) => join(projects, name)).filter(isFolder);
}

function holdsMessage(world: World, path: string): boolean {
  return linesOf(world, [path]).some((line) => messageTypes.some((type) => line.includes(type)));
}

/** A line truncated by a full disk has only its beginning, which claude does not read. */
function lacks(world: World, path: string, messageId: string): boolean {
  return !linesOf(world, [path]).some((line) => line.includes(messageId) && isObject(parseJson(line)));
}

/**
 * The baseline of claude's totals for a process that resumed the newest of these conversations at `startedAtMs`. claude
 * writes its totals at every clean exit. Null without a conversation.
 */
export function totalsBefore(
  world: World,
  configDir: string,
  claudeSessionIds: readonly string[],
  startedAtMs: number,
): ReportedTotals | null {
  for (const id of claudeSessionIds.toReversed()) {
    const [path] = filesOf(world, configDir, id);
    const found = path === undefined ? null : lastTotals(world, path, startedAtMs);
    if (found !== null) return found;
  }
  return null;
}

/**
 * claude's totals at its clean exit, for an attempt started at `startedAtMs`. After a SIGTERM claude does not print
 * them but writes them to its file. Null when it was killed first.
 */
export function totalsAtEnd(
  world: World,
  configDir: string,
  claudeSessionId: string,
  startedAtMs: number,
): ReportedTotals | null {
  const ends = filesOf(world, configDir, claudeSessionId).map((path) => endOf(linesOf(world, [path]), startedAtMs));
  return ends.find((totals) => totals !== null) ?? null;
}

export function* linesOf(world: World, paths: readonly string[]): Generator<string> {
  const splitter = new LineSplitter();
  for (const path of paths) {
    yield* printedLines(world, path, 0, world.files.info(path)?.size ?? 0, splitter);
  }
  const rest = splitter.rest();
  if (rest !== null) yield rest;
}

function endOf(conversation: Iterable<string>, startedAtMs: number): ReportedTotals | null {
  let isOfAttempt = false;
  let found: ReportedTotals | null = null;
  for (const line of conversation) {
    const totals = readTotals(line);
    const timeMs = lineTimeMs(line);
    isOfAttempt ||= timeMs >= startedAtMs;
    if (totals !== null) found = isOfAttempt ? totals : null;
    else if (!Number.isNaN(timeMs)) found = null;
  }
  return found;
}

/**
 * The message from which to resume so that the last `count` messages of the model (1 or more) and everything after them
 * are dropped: claude's id of the message before. `messages`: how many messages of the model exist, at most `count`.
 */
export function messageBefore(
  world: World,
  configDir: string,
  claudeSessionId: string,
  count: number,
): { readonly resumeAt?: string; readonly messages: number } {
  const entries = new Map<string, Entry>();
  let last: Entry | undefined;
  for (const line of linesOf(world, filesOf(world, configDir, claudeSessionId))) {
    const entry = entryOf(line);
    if (entry === null) continue;
    entries.set(entry.uuid, entry);
    if (entry.type === 'user' || entry.type === 'assistant') last = entry;
  }
  const left = new Set<string>();
  for (let entry = last; entry !== undefined; entry = entries.get(entry.parent)) {
    if (entry.messageId !== undefined) left.add(entry.messageId);
    else if (entry.type === 'user' && left.size === count) return { resumeAt: entry.uuid, messages: count };
    if (left.size > count) return { resumeAt: entry.uuid, messages: count };
  }
  return { messages: left.size };
}

interface Entry {
  readonly uuid: string;
  readonly parent: string;
  readonly type: unknown;
  /** Of the model: one message has several lines. */
  readonly messageId?: string;
}

function entryOf(line: string): Entry | null {
  const { isSidechain, uuid, parentUuid, logicalParentUuid, type, message } = object(parseJson(line));
  if (isSidechain === true || typeof uuid !== 'string') return null;
  const { id, model } = object(message);
  // Skip text that claude itself wrote in the model's name.
  const messageId = type === 'assistant' && model !== '<synthetic>' ? text(id) : undefined;
  const parent = text(parentUuid ?? logicalParentUuid) ?? '';
  return { uuid, parent, type, ...defined({ messageId }) };
}

export interface KeptMessage {
  readonly id: string;
  readonly model: string;
  readonly tokens: Tokens;
  readonly usd: number;
  /** When it was written, ms since 1970; NaN when unknown. */
  readonly atMs: number;
}

/** The messages of these conversations and of their sub-agents, each in its final form. */
export function keptMessages(
  world: World,
  configDir: string,
  claudeSessionIds: Iterable<string>,
  prices: PriceTable,
): KeptMessage[] {
  const kept = new Map<string, KeptMessage>();
  for (const path of [...claudeSessionIds].flatMap((id) => filesWithin(world, configDir, id))) {
    for (const line of linesOf(world, [path])) {
      const message = keptMessage(line, prices);
      if (message !== null) kept.set(message.id, message);
    }
  }
  return [...kept.values()];
}

export function modelsIn(messages: readonly KeptMessage[]): Usage['models'] {
  return messages.reduce<Usage['models']>(
    (models, { model, usd, tokens }) => addModels(models, { [model]: { costUsd: usd, tokens } }),
    {},
  );
}

export function keptMessage(line: string, prices: PriceTable): KeptMessage | null {
  const message = line.includes('"type":"assistant"') ? parseLine(line) : undefined;
  if (message?.kind !== 'assistant' || message.usage === undefined || message.model === undefined) return null;
  const { messageId, model, usage: tokens } = message;
  return { id: messageId, model, tokens, usd: estimateCost(model, tokens, prices), atMs: lineTimeMs(line) };
}

const stateMark = '"type":"cost-state"';
/** As a field only: inside a text the quotes are escaped. */
const timeField = /"timestamp":"([^"]{20,30})"/;

/** When the line was written, ms since 1970; NaN when unknown. */
export function lineTimeMs(line: string): number {
  return Date.parse(timeField.exec(line)?.[1] ?? '');
}

export function readTotals(line: string): ReportedTotals | null {
  return line.includes(stateMark) ? readState(line) : null;
}

/** The totals of the last clean exit before that time; null when the conversation started later. */
function lastTotals(world: World, path: string, startedAtMs: number): ReportedTotals | null {
  let found: ReportedTotals | null = null;
  // claude's lines are long, and only few are parsed.
  for (const line of linesOf(world, [path])) {
    const time = lineTimeMs(line);
    if (time >= startedAtMs) break;
    if (!Number.isNaN(time)) found ??= noTotals;
    found = readTotals(line) ?? found;
  }
  return found;
}

function readState(line: string): ReportedTotals | null {
  const { type, totalCostUSD, modelUsage, hasUnknownModelCost } = object(parseJson(line));
  if (type !== 'cost-state') return null;
  const models = modelsOf(modelUsage);
  const unpriced = hasUnknownModelCost === true ? Object.keys(models).filter((name) => isUnknownModel(name)) : [];
  return { costUsd: usd(totalCostUSD), models, unpriced };
}

// Whether claude has received its task, judged by its output. Before it reads stdin, claude prints only `system` lines
// about hooks and the title; `init` and other lines come later (docs/claude-contract.md).

const systemLine = '{"type":"system","subtype":"';

/** False while there are only such lines. An unreadable line counts as output. */
export function hasItsTask(printed: string): boolean {
  return printed.split('\n').some((line) => line !== '' && !isOfStart(line));
}

function isOfStart(line: string): boolean {
  const value = parseJson(line);
  if (value !== undefined) return isObject(value) && value.type === 'system' && value.subtype !== 'init';
  // Partial; another line joined to it may be output.
  if (line.includes('{"type":"', 1)) return false;
  return systemLine.startsWith(line) || (line.startsWith(systemLine) && !line.startsWith(`${systemLine}init`));
}

/** Complete lines of a file from byte `from` to byte `to`; throws the system's error. */
export function* printedLines(
  { files }: World,
  path: string,
  from: number,
  to: number,
  splitter = new LineSplitter(),
): Generator<string> {
  for (let at = from; at < to; ) {
    const chunk = files.readBytes(path, at, Math.min(chunkBytes, to - at));
    if (chunk.length === 0) return;
    at += chunk.length;
    yield* splitter.push(chunk);
  }
}
