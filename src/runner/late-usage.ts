/** What an attempt has cost in all, by what its machine told when it was there again. */
import { isBlank, type KeptMessage, keptMessages, totalsInParts } from '../claude/conversation.ts';
import { finalUsage } from '../claude/final-usage.ts';
import { parseLine } from '../claude/messages.ts';
import { printedMessages } from '../claude/printed-lines.ts';
import { emptyStream, foldMessage, foldTotalAtEnd } from '../claude/stream.ts';
import { defined } from '../core/defined.ts';
import type { PriceTable, Usage } from '../core/group.ts';
import { LineSplitter } from '../core/line-splitter.ts';
import { type Attempt, conversationId, type SessionRecord } from '../core/session-state.ts';
import { lateConversations, type SessionPaths } from '../store/paths.ts';
import type { World } from '../system/world.ts';
import { earlierThan } from '../worker/attempt/worker-options.ts';

export interface LateInput {
  readonly record: SessionRecord;
  readonly attempt: Attempt;
  readonly paths: SessionPaths;
  /** File with all that it printed. */
  readonly path: string;
  readonly prices: PriceTable;
}

const chunkBytes = 1024 * 1024;

export function lateUsage(world: World, { record, attempt, paths, path, prices }: LateInput): Usage {
  const earlier = earlierThan(attempt, world, paths, record);
  // What is booked by now is not what was booked then.
  const stream = emptyStream(prices, earlier && { findBase: earlier.findBase });
  const splitter = new LineSplitter();
  const take = (line: string): void => {
    foldMessage(stream, parseLine(line));
  };
  for (let at = 0; ; ) {
    const chunk = world.files.readBytes(path, at, chunkBytes);
    if (chunk.length === 0) break;
    at += chunk.length;
    for (const line of splitter.push(chunk)) take(line);
  }
  const rest = splitter.rest();
  if (rest !== null) take(rest);
  const startedAtMs = Date.parse(attempt.startedAt);
  const late = lateConversations(paths, attempt.id);
  const own = stream.claudeSessionId ?? conversationId(record);
  const isTold = stream.sawInit && !stream.isAtWork;
  const atEnd = isTold ? null : totalsInParts(world, late, own, startedAtMs);
  if (atEnd !== null) foldTotalAtEnd(stream, atEnd);
  // Some of its conversation came before the machine was lost, the rest with what came late. What its session has said
  // since lies where the former does, and only the names of messages, not their times, tell them apart.
  const folders = stream.sawInit ? [paths.config, late] : [late];
  const kept = (ids: readonly string[]): KeptMessage[] => {
    const all = folders.flatMap((folder) => {
      const messages = keptMessages(world, folder, new Set([own, ...ids]), prices);
      return folder === late ? messages : messages.map((message) => ({ ...message, atMs: Number.NaN }));
    });
    // The clock of the other machine may differ, so times do not separate the messages of earlier attempts.
    const before = printedMessages(world, paths.transcript, attempt.offset);
    const messages = new Map(all.map((message) => [message.id, message]));
    return [...messages.values()].filter(({ id }) => !before.has(id));
  };
  const { identified: hasBegun, reservedUsd } = attempt;
  const durationMs = record.lost?.find((one) => one.attempt.id === attempt.id)?.usage.durationMs ?? 0;
  return finalUsage(
    {
      ...{ stream, hasBegun, startedAtMs, kept },
      isBlank: () => isBlank(world, folders, own),
      ...defined({ reservedUsd }),
    },
    durationMs,
  );
}
