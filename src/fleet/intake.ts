/**
 * Processes the reports of one attempt in order. The host is told what is on disk here, and sends everything else, as
 * often as it is requested.
 */
import type { PrintedFile } from './mirror.ts';
import type { AttemptNews } from './wire.ts';

export interface IntakeOptions {
  readonly printed: PrintedFile;
  /** False when it cannot be stored now. */
  takeIn(news: Exclude<AttemptNews, { say: 'printed' }>): Promise<boolean>;
  /** The host need not send this again. */
  have(printed: number, checkpoint: number): void;
  /** The host must send missing parts again after a while. */
  askAgain(): void;
}

export class Intake {
  readonly #options: IntakeOptions;
  #heard: AttemptNews[] = [];
  /** The last stored checkpoint. */
  #checkpoint = 0;
  #isTaking = false;
  #isOpen: boolean;

  /** `isOpen`: false = messages to an earlier runner may still arrive, and are ignored. */
  constructor(options: IntakeOptions, isOpen: boolean) {
    this.#options = options;
    this.#isOpen = isOpen;
  }

  /** From here on the host sends everything not known to be here. */
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
    // Messages read together are processed first, so that one sync covers all of them.
    await Promise.resolve();
    while (this.#heard.length > 0) await this.#takeSome(this.#heard.splice(0));
    this.#isTaking = false;
  }

  async #takeSome(heard: readonly AttemptNews[]): Promise<void> {
    const { printed, have, askAgain } = this.#options;
    let isMissing = false;
    for (const news of heard) {
      if (!this.#isOpen) return;
      // Later reports are repeated together with it.
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

  /** A full disk, for example, must not lose data that the host still has. */
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
