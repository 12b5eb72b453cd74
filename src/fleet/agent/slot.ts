/**
 * A used slot of this host: the state that an agent needs after a restart. It is written and synced before its actions,
 * so that nothing ever starts twice.
 */
import { dirname, join } from 'node:path';
import type { GroupId, SessionId } from '../../core/group.ts';
import { isGroupId, isSessionId } from '../../core/id.ts';
import { parseOwn } from '../../store/json.ts';
import { groupPaths, type SessionPaths, sessionPaths } from '../../store/paths.ts';
import type { World } from '../../system/world.ts';
import type { FleetPaths } from '../fleet-files.ts';
import type { AttemptEnd, AttemptNews, Order } from '../wire.ts';

export interface SlotRecord {
  readonly token: string;
  readonly groupId: string;
  readonly sessionId: string;
  readonly order: Order;
  readonly offset?: number;
  readonly printedAtEnd?: number;
  readonly startedAt?: string;
  readonly process?: Extract<AttemptNews, { say: 'started' }>['process'];
  /** Ids of messages written to claude. */
  readonly written?: readonly string[];
  /** Those not confirmed by the runner. */
  readonly checkpoints?: readonly Extract<AttemptNews, { say: 'checkpoint' }>[];
  /** Their total number. */
  readonly lastCheckpoint?: number;
  /** The attempt is over, or could not start. */
  readonly end?: AttemptEnd;
}

export class Slot {
  readonly folder: string;
  readonly name: string;
  readonly paths: SessionPaths;
  readonly #world: World;
  readonly #fleet: FleetPaths;
  #record: SlotRecord;
  /** Uptime at the last confirmed renewal; -1 = the lease has expired. */
  renewedAt: number;

  private constructor(world: World, fleet: FleetPaths, name: string, record: SlotRecord, renewedAt: number) {
    this.#world = world;
    this.#fleet = fleet;
    this.name = name;
    this.folder = join(fleet.slots, name);
    this.#record = record;
    this.renewedAt = renewedAt;
    this.paths = sessionPaths(groupPaths(fleet.work, record.groupId as GroupId), record.sessionId as SessionId);
  }

  /** Nothing of it is written yet. Null if its names are invalid for folders. */
  static of(world: World, fleet: FleetPaths, value: SlotRecord): Slot | null {
    const isRight = isGroupId(value.groupId) && isSessionId(value.sessionId);
    return isRight ? new Slot(world, fleet, world.random.uuid(), value, 0) : null;
  }

  keep(): void {
    this.#world.files.makeFolder(this.folder);
    this.#world.files.syncFolder(this.#fleet.slots);
    this.#write();
  }

  /** Slots of an earlier agent; `renewedAt` from the lease file. */
  static recall(world: World, fleet: FleetPaths, renewedAt: (token: string) => number): Slot[] {
    return world.files.list(fleet.slots).flatMap((name) => {
      const text = world.files.readText(join(fleet.slots, name, 'slot.json'));
      const found = parseOwn<SlotRecord>(text);
      // Its creation was not finished: nothing was started.
      if (found === null) {
        world.files.remove(join(fleet.slots, name));
        return [];
      }
      return [new Slot(world, fleet, name, found, renewedAt(found.token))];
    });
  }

  get record(): SlotRecord {
    return this.#record;
  }

  get order() {
    return this.#record.order;
  }

  get isLost(): boolean {
    return this.renewedAt < 0;
  }

  /** Bytes that the attempt has printed. */
  get printed(): number {
    const { offset, printedAtEnd } = this.#record;
    if (offset === undefined) return 0;
    // The next attempt of the session prints to the same file.
    if (printedAtEnd !== undefined) return printedAtEnd;
    return Math.max(0, (this.#world.files.info(this.paths.transcript)?.size ?? 0) - offset);
  }

  note(change: Partial<SlotRecord>): void {
    this.#record = { ...this.#record, ...change };
    try {
      this.#write();
    } catch (error) {
      // The next agent detects its end by itself, so a full disk must not delay the report.
      if (change.end === undefined) throw error;
    }
  }

  /** An attempt with that id was ordered here before, under any token. */
  knows(attemptId: string): boolean {
    return this.#attempts.includes(attemptId);
  }

  /** Call before anything of the attempt starts. */
  noteAttempt(attemptId: string): void {
    const known = this.#attempts;
    if (known.includes(attemptId)) return;
    this.#makeFolder();
    const text = JSON.stringify({ attempts: [...known, attemptId] });
    this.#world.files.writeAtomic(this.#attemptsPath, `${text}\n`, { durable: true });
  }

  /** claude's output there is synced at once, so its folders must be, too. */
  #makeFolder(): void {
    const { files } = this.#world;
    const { folder } = this.paths;
    if (!files.makeFolder(folder)) return;
    for (let at = dirname(folder); at.startsWith(this.#fleet.work); at = dirname(at)) files.syncFolder(at);
  }

  get #attemptsPath(): string {
    return join(this.paths.folder, 'order.json');
  }

  get #attempts(): readonly string[] {
    const { files } = this.#world;
    const text = files.entryKind(this.#attemptsPath) === 'file' ? files.readText(this.#attemptsPath) : null;
    return parseOwn<{ readonly attempts?: readonly string[] }>(text)?.attempts ?? [];
  }

  #write(): void {
    const text = `${JSON.stringify(this.#record)}\n`;
    this.#world.files.writeAtomic(join(this.folder, 'slot.json'), text, { durable: true });
  }

  remove(): void {
    this.#world.files.remove(this.folder);
    // A slot restored by a power cut would never be released.
    this.#world.files.syncFolder(this.#fleet.slots);
  }
}
