/**
 * What is heard of one attempt, taken in one after another. Its host is told what is on the disk here, and tells all
 * that is not, as often as it is asked.
 */
import type { PrintedFile } from './mirror.ts';
import type { AttemptNews } from './wire.ts';

export interface IntakeOptions {
  readonly printed: PrintedFile;
  /** False when it cannot be taken in now. */
  takeIn(news: Exclude<AttemptNews, { say: 'printed' }>): Promise<boolean>;
  /** The host need not tell this again. */
  have(printed: number, checkpoint: number): void;
  /** After a while the host is to tell again what is not here. */
  askAgain(): void;
}

export class Intake {
  readonly #options: IntakeOptions;
  #heard: AttemptNews[] = [];
  /** The last one that was taken in. */
  #checkpoint = 0;
  #isTaking = false;
  #isOpen: boolean;

  /** `isOpen`: false = what was said to an earlier runner may still come, and is nothing to go by. */
  constructor(options: IntakeOptions, isOpen: boolean) {
    this.#options = options;
    this.#isOpen = isOpen;
  }

  /** From here on the host tells all that is not known to be here. */
  open(): void {
    this.#isOpen = true;
  }

  close(): void {
    this.#isOpen = false;
    this.#heard = [];
  }

  hear(news: AttemptNews): void {
    if (!this.#isOpen) return;
    this.#heard.push(news);
    if (!this.#isTaking) void this.#takeAll();
  }

  async #takeAll(): Promise<void> {
    this.#isTaking = true;
    // What was read with it is heard first, so that all of it is made safe at once.
    await Promise.resolve();
    while (this.#heard.length > 0) await this.#takeSome(this.#heard.splice(0));
    this.#isTaking = false;
  }

  async #takeSome(heard: readonly AttemptNews[]): Promise<void> {
    const { printed, have, askAgain } = this.#options;
    let isMissing = false;
    for (const news of heard) {
      if (!this.#isOpen) return;
      // What comes after it is told again with it.
      isMissing ||= !(await this.#isTakenIn(news));
    }
    try {
      printed.sync();
      if (heard.some(({ say }) => say === 'printed' || say === 'checkpoint')) have(printed.size, this.#checkpoint);
    } catch {
      isMissing = true;
    }
    if (isMissing) askAgain();
  }

  /** A full disk, for example, is no reason to lose what its host still has. */
  async #isTakenIn(news: AttemptNews): Promise<boolean> {
    const { printed, takeIn } = this.#options;
    try {
      if (news.say === 'printed') return printed.take(news.offset, news.data);
      if (news.say !== 'checkpoint') return await takeIn(news);
      if (news.n <= this.#checkpoint) return true;
      const isTaken = news.prints <= printed.size && (await takeIn(news));
      if (isTaken) this.#checkpoint = news.n;
      return isTaken;
    } catch {
      return false;
    }
  }
}
