/**
 * Sends an attempt's reports to its runner from the files here: its transcript, and the record of its slot. Whatever
 * the runner does not have is sent repeatedly, so that lost messages do no harm.
 */
import { join } from 'node:path';
import { ok, type Result } from '../../core/failure.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { World } from '../../system/world.ts';
import type { FleetEngine } from '../redis.ts';
import { blobOf, toGroupStream } from '../redis.ts';
import { type AttemptNews, type Blob, packed, type ToGroup } from '../wire.ts';
import type { Slot } from './slot.ts';

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
