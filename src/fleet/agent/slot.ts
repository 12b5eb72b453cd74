/**
 * A slot of this host in use: what must be known of it when the agent comes again. It is written before
 * what it says is done, and synced, so that nothing is ever started twice.
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
  /** Ids of what was written to claude. */
  readonly written?: readonly string[];
  /** Those that the runner is not known to have. */
  readonly checkpoints?: readonly Extract<AttemptNews, { say: 'checkpoint' }>[];
  /** How many there were. */
  readonly lastCheckpoint?: number;
  /** The attempt is over, or could not begin. */
  readonly end?: AttemptEnd;
}

export class Slot {
  readonly folder: string;
  readonly name: string;
  readonly paths: SessionPaths;
  readonly #world: World;
  readonly #fleet: FleetPaths;
  #record: SlotRecord;
  /** Uptime at which the last renewal was sent that was answered; -1 = the lease is over. */
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

  /** Nothing of it is written yet. Null where folders cannot bear its names. */
  static of(world: World, fleet: FleetPaths, value: SlotRecord): Slot | null {
    const isRight = isGroupId(value.groupId) && isSessionId(value.sessionId);
    return isRight ? new Slot(world, fleet, world.random.uuid(), value, 0) : null;
  }

  keep(): void {
    this.#world.files.makeFolder(this.folder);
    this.#world.files.syncFolder(this.#fleet.slots);
    this.#write();
  }

  /** Those that an earlier agent had; `renewedAt` as the lease file tells. */
  static recall(world: World, fleet: FleetPaths, renewedAt: (token: string) => number): Slot[] {
    return world.files.list(fleet.slots).flatMap((name) => {
      const text = world.files.readText(join(fleet.slots, name, 'slot.json'));
      const found = parseOwn<SlotRecord>(text);
      // Its taking was not finished: nothing was begun.
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
      // The next agent finds out by itself that it has ended, and a full disk is no reason to keep that back.
      if (change.end === undefined) throw error;
    }
  }

  /** One of that id was ordered here before, under whatever token. */
  knows(attemptId: string): boolean {
    return this.#attempts.includes(attemptId);
  }

  /** To be called before anything of the attempt begins. */
  noteAttempt(attemptId: string): void {
    const known = this.#attempts;
    if (known.includes(attemptId)) return;
    this.#makeFolder();
    const text = JSON.stringify({ attempts: [...known, attemptId] });
    this.#world.files.writeAtomic(this.#attemptsPath, `${text}\n`, { durable: true });
  }

  /** What claude prints there is on the disk at once, so the names that lead there have to be, too. */
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
    // A slot that a power cut brought back would never be released.
    this.#world.files.syncFolder(this.#fleet.slots);
  }
}
