/**
 * An attempt whose machine was lost, and is there again. What it printed goes to a file of its own, so that it can be
 * counted what it has cost; of all else nothing is taken in, for the session has gone on without it.
 */
import type { Place } from '../../core/event.ts';
import type { Git } from '../../git/git.ts';
import type { SessionPaths } from '../../store/paths.ts';
import { keepPrinted, latePath, PrintedFile } from './mirror.ts';
import { type NewsHandler, NewsInOrder } from './news-in-order.ts';
import type { AttemptNews } from './wire.ts';

export interface LateOptions {
  readonly attemptId: string;
  readonly place: Place;
  readonly paths: SessionPaths;
  /** Bytes of the transcript before the attempt. */
  readonly offset: number;
  /** All that it printed is in that file. */
  readonly onEnd: (path: string) => void;
}

export class LateAttempt {
  readonly place: Place;
  readonly #options: LateOptions;
  readonly #printed: PrintedFile;
  readonly #news: NewsInOrder;

  constructor(git: Git, options: LateOptions, rest: Pick<NewsHandler, 'acknowledge' | 'later'>) {
    this.place = options.place;
    this.#options = options;
    const { paths, attemptId, offset } = options;
    keepPrinted(git, paths, attemptId, offset);
    this.#printed = new PrintedFile(git, latePath(paths, attemptId), 0);
    const takeIn = async (news: AttemptNews) => this.#takeIn(news);
    this.#news = new NewsInOrder({ ...rest, takeIn, sync: () => this.#printed.sync() }, null);
  }

  /** Its machine is there, and knows that everything up to this number was taken in. */
  greeted(acknowledged: number): void {
    this.#news.goOnFrom(acknowledged);
  }

  hear(n: number, news: AttemptNews, taken: () => void): void {
    this.#news.hear(n, news, taken);
  }

  /** What it has cost is on record. */
  settle(): void {
    this.#news.settle();
  }

  #takeIn(news: AttemptNews): boolean {
    if (news.say === 'printed') return this.#printed.take(news.offset, Buffer.from(news.data, 'base64'));
    if (news.say !== 'ended' && news.say !== 'refused') return true;
    const { paths, attemptId, onEnd } = this.#options;
    this.#printed.sync();
    onEnd(latePath(paths, attemptId));
    return true;
  }
}
