/** The cost of an attached user's turns, from claude's conversation files. claude's own totals take precedence. */

import { basename, dirname, join, relative, sep } from 'node:path';
import type { Conversed } from '../core/event.ts';
import { addModels, type PriceTable, type Usage } from '../core/group.ts';
import { LineSplitter } from '../core/line-splitter.ts';
import { parseJson } from '../store/json.ts';
import type { World } from '../system/world.ts';
import { type KeptMessage, keptMessage, lineTimeMs, modelsIn, readTotals } from './conversation.ts';
import { object, objects, text } from './lenient.ts';
import { isUnknownModel } from './pricing.ts';
import { addReportedTotal, emptySpending, noTotals, type ReportedTotals, tokensOf } from './spending.ts';

const chunkBytes = 1024 * 1024;
/** claude's lines are long, and only few are parsed. */
const userType = '"type":"user"';
/** US dollars; less than the last shown digit. */
const sameUsd = 1e-6;

interface Read {
  offset: number;
  readonly splitter: LineSplitter;
  /** Its conversation, and whether it is the main one, not a sub-agent's. */
  readonly id: string;
  readonly isMain: boolean;
  /** The model has not answered its last message. */
  isAsking: boolean;
}

interface Conversation {
  /** The last totals before the user attached, and after; null = none. */
  base: ReportedTotals;
  claim: ReportedTotals | null;
  /** Time of its last line, ms since 1970; 0 = before the user attached. */
  atMs: number;
  /** It has messages from before the user attached. */
  isOld: boolean;
}

export interface CostMeter {
  /**
   * Call before claude opens. Everything written afterwards counts, regardless of timestamps, because the clock may
   * change.
   */
  begin(): void;
  look(): void;
  readonly costUsd: number;
  /** A request is unanswered, and claude has written no total since. */
  readonly isAsking: boolean;
  /** The cost of the attachment. `untilMs`: when the user detached. `before`: the conversation that was attached. */
  conversed(untilMs: number, before: string | undefined): Conversed;
}

/** Counts what was written since `startedAtMs` (ms since 1970) in all conversations of this config dir. */
export function openCostMeter(world: World, configDir: string, startedAtMs: number, prices: PriceTable): CostMeter {
  return new ConversationMeter(world, configDir, startedAtMs, prices);
}

class ConversationMeter implements CostMeter {
  readonly #world: World;
  readonly #configDir: string;
  readonly #startedAtMs: number;
  readonly #prices: PriceTable;
  readonly #files = new Map<string, Read>();
  readonly #conversations = new Map<string, Conversation>();
  /** By id, because a message that is copied into another conversation counts once. */
  readonly #messages = new Map<string, KeptMessage & { readonly in: string }>();
  readonly #old = new Set<string>();
  #said = 0;
  /** Whether the current lines are new; undefined = decided by their timestamps. */
  #isSince: boolean | undefined;

  constructor(world: World, configDir: string, startedAtMs: number, prices: PriceTable) {
    this.#world = world;
    this.#configDir = configDir;
    this.#startedAtMs = startedAtMs;
    this.#prices = prices;
  }

  begin(): void {
    this.#isSince = false;
    this.look();
    this.#isSince = true;
  }

  look(): void {
    const projects = join(this.#configDir, 'projects');
    for (const path of this.#below(projects)) this.#readOn(path, conversationOf(relative(projects, path)));
  }

  get costUsd(): number {
    return this.#sums().reduce((sum, { costUsd }) => sum + costUsd, 0);
  }

  get isAsking(): boolean {
    const [now, conversation] = this.#begun().at(-1) ?? [];
    // Totals are in the main file, and include sub-agents.
    const isUntold = ({ isMain }: Read) => isMain || conversation?.claim === null;
    return this.#files.values().some((file) => file.isAsking && file.id === now && isUntold(file));
  }

  conversed(untilMs: number, before: string | undefined): Conversed {
    const sums = this.#sums();
    const models = sums.map((sum) => sum.models).reduce(addModels, {});
    const usage: Usage = {
      costUsd: this.costUsd,
      tokens: tokensOf(models),
      durationMs: Math.max(0, untilMs - this.#startedAtMs),
      turns: this.#said,
      models,
      ...(sums.some(({ estimated }) => estimated) ? { estimated: true } : {}),
    };
    const begun = this.#begun();
    const claudeSessionIds = begun.map(([id]) => id);
    const [last, now] = begun.at(-1) ?? [];
    const spoken = this.#said > 0 || this.#messages.size > 0;
    return {
      usage,
      claudeSessionIds,
      ...(spoken ? { spoken } : {}),
      ...(last !== undefined && last !== before && now?.isOld === false ? { cleared: true } : {}),
    };
  }

  /** The conversations with new messages, the newest last. */
  #begun(): [id: string, conversation: Conversation][] {
    const begun = [...this.#conversations].filter(([, { atMs }]) => atMs > 0);
    return begun.sort(([, a], [, b]) => a.atMs - b.atMs);
  }

  /** Symlinks are not followed. */
  *#below(folder: string): Generator<string> {
    const { files } = this.#world;
    if (files.entryKind(folder) !== 'folder') return;
    for (const name of files.list(folder)) {
      const path = join(folder, name);
      if (name.endsWith('.jsonl')) {
        if (files.entryKind(path) === 'file') yield path;
      } else yield* this.#below(path);
    }
  }

  #readOn(path: string, id: string): void {
    const isMain = basename(path) === `${id}.jsonl`;
    const file = this.#files.get(path) ?? { offset: 0, splitter: new LineSplitter(), id, isMain, isAsking: false };
    this.#files.set(path, file);
    for (;;) {
      const chunk = this.#world.files.readBytes(path, file.offset, chunkBytes);
      if (chunk.length === 0) return;
      file.offset += chunk.length;
      for (const line of file.splitter.push(chunk)) this.#take(line, file);
    }
  }

  #take(line: string, file: Read): void {
    const { id, isMain } = file;
    const known = this.#conversations.get(id) ?? { base: noTotals, claim: null, atMs: 0, isOld: false };
    this.#conversations.set(id, known);
    const totals = readTotals(line);
    if (totals !== null) {
      file.isAsking = false;
      if (known.atMs > 0) known.claim = totals;
      else known.base = totals;
      return;
    }
    const atMs = lineTimeMs(line);
    const isNew = !Number.isNaN(atMs) && (this.#isSince ?? atMs >= this.#startedAtMs);
    if (isNew) {
      known.atMs = Math.max(known.atMs, atMs);
      file.isAsking = asksNow(line) ?? file.isAsking;
    }
    const message = keptMessage(line, this.#prices);
    if (message !== null) {
      if (!isNew) this.#old.add(message.id);
      if (!isNew || this.#old.has(message.id)) {
        known.isOld = true;
        this.#messages.delete(message.id);
      } else if (message.usd > 0) {
        const origin = originOf(line);
        const saidIn = origin === null ? id : (this.#messages.get(message.id)?.in ?? origin);
        this.#messages.set(message.id, { ...message, in: saidIn });
      }
    } else if (isNew && isMain && isTyped(line)) this.#said += 1;
  }

  #sums(): readonly (Pick<Usage, 'costUsd' | 'models'> & { readonly estimated: boolean })[] {
    return [...this.#conversations].map(([id, { base, claim }]) => {
      const seen = modelsIn([...this.#messages.values()].filter((message) => message.in === id));
      const seenUsd = Object.values(seen).reduce((sum, { costUsd }) => sum + costUsd, 0);
      if (claim !== null) {
        const { costUsd, models } = addReportedTotal(emptySpending(base), claim, this.#prices);
        const estimated = (claim.unpriced ?? []).some((model) => isUnknownModel(model, this.#prices));
        if (costUsd >= seenUsd - sameUsd) return { costUsd, models, estimated };
      }
      return { costUsd: seenUsd, models: seen, estimated: seenUsd > 0 };
    });
  }
}

/** The id in `FOLDER/ID.jsonl`, and for its sub-agents in `FOLDER/ID/...`. */
function conversationOf(path: string): string {
  const [, name = ''] = path.split(sep);
  return dirname(path).includes(sep) ? name : basename(name, '.jsonl');
}

const forkMark = '"forkedFrom":{';

/** The conversation that a line was copied from by a branch; null for an original line. */
function originOf(line: string): string | null {
  if (!line.includes(forkMark)) return null;
  return text(object(object(parseJson(line)).forkedFrom).sessionId) ?? null;
}

/** Whether a request is open after this line; null when the line does not change that. */
function asksNow(line: string): boolean | null {
  if (line.includes('"type":"assistant"')) return false;
  if (!line.includes(userType)) return null;
  if (line.includes(interrupted) || line.includes(summaryMark)) return false;
  return line.includes('"type":"tool_result"') || isTyped(line) ? true : null;
}

/** What claude writes in the user's name after an interrupt. */
const interrupted = '"[Request interrupted by user';
const summaryMark = '"isCompactSummary":true';

/** Typed by the user, unlike tool results and command output. */
function isTyped(line: string): boolean {
  if (!line.includes(userType)) return false;
  const { type, isMeta, isSidechain, message } = object(parseJson(line));
  if (type !== 'user' || isMeta === true || isSidechain === true) return false;
  const { content } = object(message);
  if (typeof content === 'string') return !/^\s*<(command|local-command|bash)-/.test(content);
  return objects(content).some((part) => part.type === 'text');
}
