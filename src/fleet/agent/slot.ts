/**
 * A used slot of this host: the state that an agent needs after a restart. It is written and synced before its actions,
 * so that nothing ever starts twice.
 */
import { dirname, join } from 'node:path';
import { ok, type Result } from '../../core/failure.ts';
import type { GroupId, SessionId } from '../../core/group.ts';
import { isGroupId, isSessionId } from '../../core/id.ts';
import { parseOwn } from '../../store/json.ts';
import { groupPaths, type SessionPaths, sessionPaths } from '../../store/paths.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { World } from '../../system/world.ts';
import type { FleetPaths } from '../fleet-files.ts';
import { blobOf, type FleetEngine, toGroupStream } from '../redis.ts';
import { type AttemptEnd, type AttemptNews, type Blob, type Order, packed, type ToGroup } from '../wire.ts';

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

// Sends an attempt's reports to its runner from the files here: its transcript, and the record of its slot.
// Whatever the runner does not have is sent repeatedly, so that lost messages do no harm.

/** Maximum number of unconfirmed transcript bytes; without a runner they would fill Redis. */
const underWayMax = 512 * 1024;
/** Bytes per message: a part of the unconfirmed maximum, so that both ends are busy. */
const chunkBytes = 256 * 1024;
const againMs = 1_000;

type Ran = Extract<AttemptNews, { say: 'ran' }>;

export class Outbox {
  readonly #world: World;
  readonly #engine: FleetEngine;
  readonly #slot: Slot;
  readonly #host: string;
  readonly #tell: (line: string) => void;
  readonly #ran = new Map<string, Ran>();
  /** Bytes of the transcript that the runner has, and that were sent. */
  #had = 0;
  #sent = 0;
  /** Other reports sent since `sendAgain`. */
  readonly #said = new Set<string>();
  #isSending = false;
  #isClosed = false;
  #cancelAgain: () => void = () => {};

  constructor(world: World, engine: FleetEngine, slot: Slot, host: string, tell: (line: string) => void) {
    [this.#world, this.#engine, this.#slot, this.#host, this.#tell] = [world, engine, slot, host, tell];
  }

  /** How a command ended; repeated until the slot is released. */
  ran(news: Ran): void {
    this.#ran.set(news.id, news);
    void this.send();
  }

  /** The runner has this many bytes of the transcript and all checkpoints up to that one on disk. */
  have(printed: number, checkpoint: number): void {
    this.#had = printed;
    this.#sent = Math.max(this.#sent, printed);
    const { checkpoints = [] } = this.#slot.record;
    const had = checkpoints.filter(({ n }) => n <= checkpoint);
    if (had.length > 0) {
      this.#slot.note({ checkpoints: checkpoints.slice(had.length) });
      for (const { files } of had) if (files !== undefined) this.#world.files.remove(this.#blobPath(files.id));
    }
    void this.send();
  }

  /** Keeps bytes until the runner has them. Fails with `usage` when they are too many to send. */
  keepBlob(bytes: Uint8Array): Result<Blob> {
    const { random, files } = this.#world;
    const blob = blobOf(random.uuid(), bytes);
    if (!blob.ok) return blob;
    const path = this.#blobPath(blob.value.id);
    try {
      files.writeBytes(path, bytes, { durable: true });
      return blob;
    } catch (error) {
      files.remove(path);
      return { ok: false, failure: systemFailure(path, error) };
    }
  }

  #blobPath(id: string): string {
    return join(this.#slot.folder, `blob-${id}`);
  }

  /** Sends everything again that the runner is not known to have: it may be lost. */
  sendAgain(): void {
    this.#said.clear();
    this.#sent = this.#had;
    void this.send();
  }

  async send(): Promise<void> {
    if (this.#isSending || this.#isClosed) return;
    this.#isSending = true;
    this.#cancelAgain();
    let isAway = false;
    try {
      for (let news = this.#next(); news !== null && !isAway && !this.#isClosed; news = this.#next()) {
        isAway = !(await this.#sendOne(news)).ok;
      }
    } catch (error) {
      isAway = true;
      this.#tell(`What an attempt tells could not be sent: ${String(error)}`);
    }
    this.#isSending = false;
    if (isAway && !this.#isClosed) this.#cancelAgain = this.#world.clock.after(againMs, () => void this.send());
  }

  /** The end comes last, when the runner has everything else. */
  #next(): AttemptNews | null {
    const { process, checkpoints: [checkpoint] = [], end } = this.#slot.record;
    if (process !== undefined && !this.#said.has('started')) return { say: 'started', process };
    const printed = this.#nextPrinted();
    if (printed !== null) return printed;
    for (const ran of this.#ran.values()) if (!this.#said.has(keyOf(ran))) return ran;
    if (checkpoint !== undefined) {
      const isDue = this.#had >= checkpoint.prints && !this.#said.has(keyOf(checkpoint));
      return isDue ? checkpoint : null;
    }
    return end !== undefined && this.#had >= this.#slot.printed && !this.#said.has(keyOf(end)) ? end : null;
  }

  #nextPrinted(): AttemptNews | null {
    const { offset } = this.#slot.record;
    const unsent = this.#slot.printed - this.#sent;
    const room = Math.min(chunkBytes, underWayMax - (this.#sent - this.#had), unsent);
    if (offset === undefined || room <= 0) return null;
    const data = this.#world.files.readBytes(this.#slot.paths.transcript, offset + this.#sent, room);
    return { say: 'printed', offset: this.#sent, data };
  }

  async #sendOne(news: AttemptNews): Promise<Result<unknown>> {
    const [before, { record }] = [this.#sent, this.#slot];
    const put = news.say === 'checkpoint' && news.files !== undefined ? await this.#putBlob(news.files) : ok(undefined);
    if (!put.ok) return put;
    const attempt = { host: this.#host, token: record.token, attemptId: record.order.attemptId };
    const message: ToGroup = { kind: 'attempt', ...attempt, news };
    const sent = await this.#engine.send(toGroupStream(record.groupId), [packed(message)]);
    if (!sent.ok) return sent;
    // A `sendAgain` meanwhile takes precedence.
    if (news.say !== 'printed') this.#said.add(keyOf(news));
    else if (this.#sent === before) this.#sent += news.data.length;
    return sent;
  }

  async #putBlob(blob: Blob): Promise<Result<unknown>> {
    const path = this.#blobPath(blob.id);
    const { files } = this.#world;
    // The runner has just confirmed it.
    if (files.entryKind(path) === null) return ok(undefined);
    return this.#engine.putBlob(blob.id, files.readBytes(path, 0, files.info(path)?.size ?? 0));
  }

  /** Stops sending; unconfirmed reports stay on disk. */
  close(): void {
    this.#isClosed = true;
    this.#cancelAgain();
  }
}

function keyOf(news: AttemptNews): string {
  if (news.say === 'ran') return `ran ${news.id}`;
  return news.say === 'checkpoint' ? `checkpoint ${news.n}` : news.say;
}
