/**
 * What an attempt tells its runner: numbered, kept on the disk until the runner has it, and sent as often as it takes.
 * What claude printed is not kept twice: its transcript holds it.
 */
import { join } from 'node:path';
import type { Result } from '../../core/failure.ts';
import type { AppendFile, World } from '../../system/world.ts';
import type { FleetEngine } from '../engine.ts';
import { toGroupStream } from '../engine.ts';
import { blobOf, fitsBlob } from '../redis.ts';
import { type AttemptNews, type Blob, packed, type ToGroup } from '../wire.ts';

/** So many bytes of a transcript may be on their way; as long as no runner takes them they fill Redis. */
export const unacknowledgedMax = 512 * 1024;
/**
 * Of one message: so that the room holds a whole number of them, or every few would be a small one. Both ends wait for
 * their disk with each, so a quarter of it would halve how fast a transcript gets there.
 */
export const chunkBytes = 256 * 1024;
const messagesAtOnce = 16;
const againMs = 1_000;

interface Printed {
  readonly offset: number;
  readonly length: number;
}

/** A line of the journal: news with their number, a piece of the transcript, or what the other end has. */
type Line =
  | { readonly n: number; readonly news: AttemptNews }
  | { readonly n: number; readonly printed: Printed }
  | { readonly through: number };

type Kept = Exclude<Line, { through: number }> & {
  /** In the stream, as far as is known. */
  entry?: string | undefined;
};

export interface OutboxOptions {
  readonly folder: string;
  readonly host: string;
  readonly token: string;
  readonly groupId: string;
  readonly attemptId: string;
  readonly transcript: string;
  readonly offset: () => number;
  readonly onRoom: () => void;
  readonly tell: (line: string) => void;
}

export class Outbox {
  readonly #world: World;
  readonly #engine: FleetEngine;
  readonly #options: OutboxOptions;
  readonly #journal: AppendFile;
  #kept: Kept[] = [];
  #lastN = 0;
  /** Bytes of the transcript that were handed over, from the begin of the attempt. */
  #printed = 0;
  readonly #said = new Set<AttemptNews['say']>();
  #isSending = false;
  #isClosed = false;
  #cancelAgain: () => void = () => {};

  constructor(world: World, engine: FleetEngine, options: OutboxOptions) {
    this.#world = world;
    this.#engine = engine;
    this.#options = options;
    this.#recall();
    this.#journal = world.files.openAppend(this.#journalPath);
  }

  get #journalPath(): string {
    return join(this.#options.folder, 'news.jsonl');
  }

  #recall(): void {
    const text = this.#world.files.readText(this.#journalPath) ?? '';
    const whole = text.slice(0, text.lastIndexOf('\n') + 1);
    // Half a line was never sent.
    if (whole.length < text.length) this.#world.files.truncate(this.#journalPath, Buffer.byteLength(whole));
    for (const line of whole.split('\n')) if (line !== '') this.#take(JSON.parse(line) as Line);
  }

  #take(line: Line): void {
    if ('through' in line) {
      this.#kept = this.#kept.filter((kept) => !isDone(kept, line.through));
      return;
    }
    this.#lastN = line.n;
    this.#kept.push(line);
    if ('printed' in line) this.#printed = line.printed.offset + line.printed.length;
    else this.#said.add(line.news.say);
  }

  get printed(): number {
    return this.#printed;
  }

  get acknowledged(): number {
    return this.#kept[0] === undefined ? this.#lastN : this.#kept[0].n - 1;
  }

  hasSaid(say: AttemptNews['say']): boolean {
    return this.#said.has(say);
  }

  get room(): number {
    const underWay = this.#kept.reduce((sum, kept) => sum + ('printed' in kept ? kept.printed.length : 0), 0);
    return Math.max(0, unacknowledgedMax - underWay);
  }

  /** Blobs in it lie below `blobPath` until they were taken in. */
  add(news: AttemptNews): void {
    this.#keep({ n: this.#lastN + 1, news });
  }

  sync(): void {
    this.#journal.sync();
  }

  addPrinted(length: number): void {
    this.#keep({ n: this.#lastN + 1, printed: { offset: this.#printed, length } });
  }

  #keep(line: Line): void {
    if (this.#isClosed) return;
    this.#journal.append(`${JSON.stringify(line)}\n`);
    this.#take(line);
    void this.#send();
  }

  acknowledge(through: number): void {
    const done = this.#kept.filter((kept) => isDone(kept, through));
    if (this.#isClosed || done.length === 0) return;
    const blobs = done.flatMap(blobsOf);
    const line = { through } as const;
    this.#journal.append(`${JSON.stringify(line)}\n`);
    // After a power cut news whose blob is gone would be told for ever, and could not be taken in.
    if (blobs.length > 0) this.sync();
    for (const { id } of blobs) this.#dropBlob(id);
    this.#take(line);
    this.#options.onRoom();
    void this.#send();
  }

  /** Keeps bytes until they were taken in. Fails with `usage` when they are too many to be sent. */
  keepBlob(bytes: Uint8Array): Result<Blob> {
    const { random, files } = this.#world;
    const blob = blobOf(random.uuid(), bytes);
    if (blob.ok) files.writeBytes(this.blobPath(blob.value.id), bytes, { durable: true });
    return blob;
  }

  keepFile(path: string): Result<Blob> {
    const { files } = this.#world;
    try {
      const size = files.info(path)?.size ?? 0;
      const fits = fitsBlob(size);
      return fits.ok ? this.keepBlob(files.readBytes(path, 0, size)) : fits;
    } finally {
      files.remove(path);
    }
  }

  blobPath(id: string): string {
    return join(this.#options.folder, `blob-${id}`);
  }

  #dropBlob(id: string): void {
    this.#world.files.remove(this.blobPath(id));
  }

  async sendAgain(): Promise<void> {
    const sent = this.#kept.filter(({ entry }) => entry !== undefined);
    const entries = sent.map(({ entry }) => entry as string);
    const there = sent.length === 0 ? null : await this.#engine.have(toGroupStream(this.#options.groupId), entries);
    if (there?.ok === true) {
      for (const [index, kept] of sent.entries()) if (there.value[index] === false) kept.entry = undefined;
    }
    void this.#send();
  }

  async #send(): Promise<void> {
    if (this.#isSending || this.#isClosed) return;
    this.#isSending = true;
    this.#cancelAgain();
    try {
      for (;;) {
        const waiting = this.#kept.filter(({ entry }) => entry === undefined).slice(0, messagesAtOnce);
        if (waiting.length === 0 || this.#isClosed || !(await this.#sendAll(waiting))) break;
      }
    } catch (error) {
      this.#options.tell(`What an attempt tells could not be sent: ${String(error)}`);
    }
    this.#isSending = false;
    if (!this.#isClosed && this.#kept.some(({ entry }) => entry === undefined)) {
      this.#cancelAgain = this.#world.clock.after(againMs, () => void this.#send());
    }
  }

  async #sendAll(waiting: readonly Kept[]): Promise<boolean> {
    // A number that was sent must never be given to other news, whatever happens to this machine.
    this.sync();
    for (const kept of waiting) for (const blob of blobsOf(kept)) if (!(await this.#putBlob(blob))) return false;
    const { groupId } = this.#options;
    const messages = waiting.map((kept) => packed(this.#message(kept)));
    const sent = await this.#engine.send(toGroupStream(groupId), messages);
    if (!sent.ok) return false;
    for (const [index, kept] of waiting.entries()) kept.entry = sent.value[index];
    return true;
  }

  async #putBlob(blob: Blob): Promise<boolean> {
    const has = await this.#engine.hasBlob(blob);
    if (!has.ok || has.value) return has.ok;
    const size = this.#world.files.info(this.blobPath(blob.id))?.size ?? 0;
    const put = await this.#engine.putBlob(blob.id, this.#world.files.readBytes(this.blobPath(blob.id), 0, size));
    return put.ok;
  }

  #message(kept: Kept): ToGroup {
    const { host, token, attemptId } = this.#options;
    const { n } = kept;
    return { kind: 'attempt', host, token, attemptId, n, news: 'news' in kept ? kept.news : this.#printedNews(kept) };
  }

  #printedNews({ printed: { offset, length } }: { readonly printed: Printed }): AttemptNews {
    const bytes = this.#world.files.readBytes(this.#options.transcript, this.#options.offset() + offset, length);
    return { say: 'printed', offset, data: bytes };
  }

  /** Sends nothing any more; what was not taken in stays on the disk. */
  close(): void {
    this.#isClosed = true;
    this.#cancelAgain();
    this.#journal.close();
  }
}

/**
 * Whether it need not be told again. How it ended is told to a next runner, too: the one that has heard it may be gone
 * before that is on record. What was asked of its place afterwards shows that it was.
 */
function isDone(kept: Kept, through: number): boolean {
  const isEnd = 'news' in kept && (kept.news.say === 'ended' || kept.news.say === 'refused');
  return isEnd ? kept.n < through : kept.n <= through;
}

function blobsOf(kept: Kept): Blob[] {
  if (!('news' in kept) || kept.news.say !== 'checkpoint') return [];
  return [kept.news.files, kept.news.bundle].filter((blob) => blob !== undefined);
}
