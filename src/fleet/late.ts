/**
 * An attempt whose machine was lost, and is there again. What it printed, and what claude has kept of its conversation,
 * goes to files of its own, so that it can be counted what it has cost. Nothing else is taken in, for the session has
 * gone on without it.
 */
import { basename, dirname, join } from 'node:path';
import type { Place } from '../core/event.ts';
import { quoted } from '../core/id.ts';
import type { Git } from '../git/git.ts';
import { lateConversations, latePath, type SessionPaths } from '../store/paths.ts';
import { problemWith } from './agent/lay-out.ts';
import type { BlobStore } from './engine.ts';
import { keepPrinted, PrintedFile, readParcel } from './mirror.ts';
import type { AttemptNews, Blob } from './wire.ts';

/** Where a sub-agent's part of a conversation lies: its folder has no dot, so no file has its name. */
const ofAgent = /[^/.]+\/subagents\/[^/]+\.jsonl$/;

export interface LateOptions {
  readonly attemptId: string;
  readonly place: Place;
  readonly paths: SessionPaths;
  readonly offset: number;
  readonly onEnd: (path: string) => void;
  /** Something of its conversation can never be had; a full sentence, said once for each. */
  readonly onRefused: (message: string) => void;
}

export class LateAttempt {
  readonly place: Place;
  readonly #options: LateOptions;
  readonly #git: Git;
  readonly #blobs: BlobStore;
  readonly #printed: PrintedFile;
  readonly #news: NewsInOrder;

  constructor(git: Git, blobs: BlobStore, options: LateOptions, rest: Pick<NewsHandler, 'acknowledge' | 'later'>) {
    this.place = options.place;
    this.#options = options;
    this.#git = git;
    this.#blobs = blobs;
    const { paths, attemptId, offset } = options;
    keepPrinted(git, paths, attemptId, offset);
    this.#printed = new PrintedFile(git, latePath(paths, attemptId), 0);
    const takeIn = (news: AttemptNews) => this.#takeIn(news);
    this.#news = new NewsInOrder({ ...rest, takeIn, sync: () => this.#printed.sync() }, null);
  }

  /** Its machine is there, and knows that everything up to this number was taken in. */
  greeted(acknowledged: number): void {
    this.#news.goOnFrom(acknowledged);
  }

  hear(n: number, news: AttemptNews, taken: () => void): void {
    this.#news.hear(n, news, taken);
  }

  settle(): void {
    this.#news.settle();
  }

  async #takeIn(news: AttemptNews): Promise<boolean> {
    if (news.say === 'checkpoint') return news.files === undefined || (await this.#keepConversation(news.files));
    if (news.say === 'printed') return this.#printed.take(news.offset, news.data);
    if (news.say !== 'ended' && news.say !== 'refused') return true;
    const { paths, attemptId, onEnd } = this.#options;
    this.#printed.sync();
    onEnd(latePath(paths, attemptId));
    return true;
  }

  /** Each part by itself, under the name of where it begins: a part that comes again replaces itself. */
  async #keepConversation(blob: Blob): Promise<boolean> {
    const sent = await readParcel(this.#blobs, blob);
    // What is gone for good leaves the rest, and a figure that may be a little too low is marked as an estimate.
    if (!sent.ok && sent.failure.reason === 'timeout') return false;
    if (!sent.ok) return this.#refuse(sent.failure.message);
    const { files } = this.#git.world;
    const { paths, attemptId } = this.#options;
    for (const { path, offset = 0, data } of sent.value.files) {
      if (!path.startsWith('claude-config/projects/') || !path.endsWith('.jsonl')) continue;
      const problem = problemWith(path);
      if (problem !== null) {
        this.#refuse(`It holds a file ${quoted(path)}, ${problem}.`);
        continue;
      }
      const inProject = ofAgent.exec(path)?.[0] ?? basename(path);
      const target = join(lateConversations(paths, attemptId), 'projects', String(offset), inProject);
      files.makeFolder(dirname(target));
      files.remove(target);
      files.writeBytes(target, Buffer.from(data, 'base64'), { durable: true });
    }
    return true;
  }

  /** Its machine is broken, or was stolen: what it cost must still be booked. */
  #refuse(why: string): true {
    const { place, attemptId, onRefused } = this.#options;
    const what = `What the machine ${place.host} tells late of attempt ${attemptId} cannot be taken in whole`;
    onRefused(`${what}, so its cost may be more than is booked. ${why}`);
    return true;
  }
}

// What is heard of one attempt, taken in one after another by its numbers, in whatever order it comes, and once.

interface Told {
  readonly news: AttemptNews;
  readonly taken: () => void;
}

export interface NewsHandler {
  /** False when it cannot be taken in now, and has to be tried again. */
  takeIn(news: AttemptNews): Promise<boolean>;
  /** What was taken in is made to survive a power cut. */
  sync(): void;
  acknowledge(through: number): void;
  later(action: () => void): void;
}

export class NewsInOrder {
  readonly #handler: NewsHandler;
  readonly #waiting = new Map<number, Told>();
  /** The last that was taken in; null = an earlier runner may have taken in some. */
  #lastN: number | null;
  #isTaking = false;
  #isAsked = false;
  /** What could not be taken in is left alone for a while. */
  #isResting = false;
  #isStopped = false;
  #isSettled = false;
  #dropped: number | null = null;
  readonly #ends: (() => void)[] = [];

  constructor(handler: NewsHandler, lastN: number | null) {
    this.#handler = handler;
    this.#lastN = lastN;
  }

  /** Nothing is known of what came before, until `goOnFrom`. */
  forget(): void {
    this.#lastN = null;
  }

  /** Up to this number everything was taken in. */
  goOnFrom(n: number): void {
    this.#lastN ??= n;
    // An earlier runner has taken them in, and was gone before they were removed.
    for (const [number, told] of this.#waiting) {
      if (number > this.#lastN) continue;
      this.#waiting.delete(number);
      this.#mayTell(told);
    }
    void this.#takeAll();
  }

  hear(n: number, news: AttemptNews, taken: () => void): void {
    if (this.#isStopped) return;
    if (this.#lastN !== null && n <= this.#lastN) {
      if (this.#mayTell({ news, taken })) this.#handler.acknowledge(this.#lastN);
      return;
    }
    // The first stays where it is until it is taken in, so this one is not needed.
    if (this.#waiting.has(n)) {
      taken();
      return;
    }
    this.#waiting.set(n, { news, taken });
    void this.#takeAll();
  }

  /** It is to be sent again, and until then it counts as not heard. */
  drop(news: AttemptNews): void {
    for (const [n, told] of this.#waiting) {
      if (told.news !== news) continue;
      this.#waiting.delete(n);
      this.#dropped = n;
      told.taken();
    }
  }

  /** What was dropped has not been heard since. */
  get lacksDropped(): boolean {
    const n = this.#dropped;
    return !this.#isStopped && n !== null && n > (this.#lastN ?? 0) && !this.#waiting.has(n);
  }

  stop(): [n: number, news: AttemptNews, taken: () => void][] {
    this.#isStopped = true;
    return [...this.#waiting].map(([n, { news, taken }]) => [n, news, taken]);
  }

  async #takeAll(): Promise<void> {
    // What comes while the last look ends must not wait for the next.
    this.#isAsked = true;
    if (this.#isTaking) return;
    this.#isTaking = true;
    try {
      // What was read with it is heard first, so that all of it is made safe and acknowledged at once.
      await Promise.resolve();
      while (this.#isAsked) {
        this.#isAsked = false;
        while (await this.#takeNext());
      }
    } finally {
      this.#isTaking = false;
    }
  }

  async #takeNext(): Promise<boolean> {
    if (this.#lastN === null || this.#isStopped || this.#isResting) return false;
    const first = this.#lastN;
    const batch = this.#batchAfter(first);
    if (batch.length === 0) return false;
    for (const { news } of batch) {
      if (await this.#isTakenIn(news)) continue;
      this.#isResting = true;
      this.#handler.later(() => {
        this.#isResting = false;
        void this.#takeAll();
      });
      return false;
    }
    this.#handler.sync();
    this.#lastN = first + batch.length;
    for (let n = first + 1; n <= this.#lastN; n += 1) this.#waiting.delete(n);
    if (batch.map((told) => this.#mayTell(told)).every(Boolean)) this.#handler.acknowledge(this.#lastN);
    return true;
  }

  /** A full disk, for example, is no reason to lose what its machine still has. */
  async #isTakenIn(news: AttemptNews): Promise<boolean> {
    try {
      return await this.#handler.takeIn(news);
    } catch {
      return false;
    }
  }

  /** Of the end whoever writes the log says when it is safe: a later runner must hear of it until then. */
  #mayTell({ news, taken }: Told): boolean {
    const isEnd = news.say === 'ended' || news.say === 'refused';
    if (isEnd && !this.#isSettled) this.#ends.push(taken);
    else taken();
    return !isEnd || this.#isSettled;
  }

  settle(): void {
    this.#isSettled = true;
    for (const taken of this.#ends.splice(0)) taken();
    // Nobody asks any more what else was told.
    for (const { taken } of this.#waiting.values()) taken();
    this.#waiting.clear();
  }

  /** What was printed in a row is made safe at once; anything else goes by itself. */
  #batchAfter(first: number): Told[] {
    const batch: Told[] = [];
    for (let n = first + 1; ; n += 1) {
      const told = this.#waiting.get(n);
      if (told === undefined) return batch;
      if (told.news.say !== 'printed') return batch.length > 0 ? batch : [told];
      batch.push(told);
    }
  }
}
