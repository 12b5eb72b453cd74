/**
 * If the attach command dies, its claude is ended, the cost is read from claude's files, and the session returns to the
 * group.
 */

import { openCostMeter } from '../../claude/attached-cost.ts';
import { type KeptMessage, keptMessages } from '../../claude/conversation.ts';
import { withHeldUsd } from '../../claude/final-usage.ts';
import { heldAfterKill } from '../../claude/spending.ts';
import { defined } from '../../core/defined.ts';
import type { Conversed, EventBody, ProcessIdentity } from '../../core/event.ts';
import { noUsage, type PriceTable, type SessionId } from '../../core/group.ts';
import type { Attachment, SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import type { GroupWriter } from '../../store/group-writer.ts';
import { type GroupPaths, sessionPaths } from '../../store/paths.ts';
import type { World } from '../../system/world.ts';
import type { Fact } from '../../worker/facts.ts';
import { reap } from '../../worker/reap.ts';
import { deadlineEvents } from '../item-events.ts';

/** Attached sessions whose command is gone and whose end is not being recorded yet. */
export function abandonedAttachments(world: World, state: GroupState): SessionId[] {
  return [...state.takenOver].filter((id) => {
    const record = state.sessions.get(id);
    return (
      record?.takenOver !== undefined && record.state.status !== 'running' && isGone(world, record.takenOver.process)
    );
  });
}

function isGone(world: World, process: ProcessIdentity): boolean {
  const { self } = world.machine;
  if (process.host !== self.host) return false;
  return process.bootId !== self.bootId || !world.processes.isAlive(process);
}

/** Ends the remaining processes and counts the cost; the returned event must be logged. */
export async function endAbandonedAttachment(
  world: World,
  paths: GroupPaths,
  { group }: GroupState,
  { definition, takenOver, claudeSessionIds, model }: SessionRecord & { readonly takenOver: Attachment },
): Promise<EventBody> {
  const { id: attachmentId } = takenOver;
  await reap(world, attachmentId);
  const conversed = abandonedCost(
    world,
    paths,
    { definition, claudeSessionIds, ...defined({ model }) },
    takenOver,
    group.config.prices ?? {},
  );
  return { type: 'session_detached', sessionId: definition.id, attachmentId, ...conversed };
}

function abandonedCost(
  world: World,
  paths: GroupPaths,
  { definition, claudeSessionIds, model }: Pick<SessionRecord, 'definition' | 'claudeSessionIds' | 'model'>,
  { openedAt, process, reservedUsd }: Attachment,
  prices: PriceTable,
): Conversed {
  if (openedAt === undefined) return { usage: noUsage, claudeSessionIds: [] };
  const { config } = sessionPaths(paths, definition.id);
  const openedMs = Date.parse(openedAt);
  const meter = openCostMeter(world, config, openedMs, prices);
  meter.look();
  const conversed = meter.conversed(openedMs, claudeSessionIds.at(-1));
  // After a machine crash the last writes may be lost.
  const isLost = process.bootId !== world.machine.self.bootId || meter.isAsking;
  if (!isLost) return conversed;
  const kept = keptMessages(world, config, claudeSessionIds, prices);
  return withAnswerHeld(conversed, kept, { ...defined({ reservedUsd, model }) }, prices);
}

/** Holds money for the response that claude was waiting for when it was killed. */
export function withAnswerHeld(
  conversed: Conversed,
  kept: readonly KeptMessage[],
  { reservedUsd, model }: Pick<Attachment, 'reservedUsd'> & Pick<SessionRecord, 'model'>,
  prices: PriceTable,
): Conversed {
  const mostExpensiveUsd = kept.reduce((most, { usd }) => Math.max(most, usd), 0);
  const seenUsd = conversed.usage.costUsd;
  const rest = { ...defined({ reservedUsd, model }), prices };
  const heldUsd = heldAfterKill({ seenUsd, mostExpensiveUsd, requests: 1, ...rest });
  return { ...conversed, usage: withHeldUsd(conversed.usage, heldUsd) };
}

/** Recovers abandoned attachments without a runner. The caller holds the group's lock. */
export async function recoverAttachments(world: World, writer: GroupWriter): Promise<void> {
  writer.record(deadlineEvents(writer.state, world.clock.now()));
  for (const id of abandonedAttachments(world, writer.state)) {
    const record = writer.state.sessions.get(id);
    if (record?.takenOver === undefined) continue;
    const { takenOver } = record;
    writer.record([await endAbandonedAttachment(world, writer.paths, writer.state, { ...record, takenOver })]);
  }
}

// Detects attach commands that have died.

export class AttachmentWatch {
  readonly #world: World;
  readonly #log: { readonly state: GroupState; readonly paths: GroupPaths };
  readonly #emit: (fact: Fact) => void;
  readonly #ending = new Set<string>();

  constructor(
    world: World,
    log: { readonly state: GroupState; readonly paths: GroupPaths },
    emit: (fact: Fact) => void,
  ) {
    this.#world = world;
    this.#log = log;
    this.#emit = emit;
  }

  look(): void {
    const { state, paths } = this.#log;
    if (state.takenOver.size === 0) return;
    for (const id of abandonedAttachments(this.#world, state)) {
      const record = state.sessions.get(id);
      const { takenOver } = record ?? {};
      if (record === undefined || takenOver === undefined || this.#ending.has(takenOver.id)) continue;
      this.#ending.add(takenOver.id);
      // A failure, on a full disk for example, is retried at the next check.
      endAbandonedAttachment(this.#world, paths, state, { ...record, takenOver }).then(
        (event) => this.#emit({ kind: 'attachment-ended', event }),
        () => this.#ending.delete(takenOver.id),
      );
    }
  }
}

/** The event to log, unless the command itself has logged it meanwhile. */
export function attachmentEndEvents({ sessions }: GroupState, event: EventBody): EventBody[] {
  if (event.type !== 'session_detached') return [];
  return sessions.get(event.sessionId)?.takenOver?.id === event.attachmentId ? [event] : [];
}
