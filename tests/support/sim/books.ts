/** What really happened, recorded by the machine itself and never read from the program under test. */
import type { VirtualProcess } from './virtual-processes.ts';

/** One acceptance command. */
export interface CommandBook {
  readonly process: VirtualProcess;
  /** Its parent process. */
  readonly runner: VirtualProcess;
  readonly attemptId: string;
  readonly sessionId: string;
}

/** One claude process. */
export class ClaudeBook {
  readonly process: VirtualProcess;
  readonly attemptId: string;
  readonly sessionId: string;
  readonly claudeSessionId: string;
  readonly transcript: string;
  readonly conversation: string;
  readonly resumes: boolean;
  /** `--max-budget-usd`. */
  readonly capUsd: number | undefined;
  /** It received its prompt and is working. */
  begun = false;
  /** It has printed a result. */
  hasConcluded = false;
  /** It will never do anything more by itself. */
  hangs = false;
  printedBytes = 0;
  /** Number of lines before it read its input. */
  firstBytes = 0;
  /** What the API billed, US dollars. */
  chargedUsd = 0;
  /** The highest total it ever reported, and the input cost of the messages it ever reported. */
  toldUsd = 0;
  begunUsd = 0;
  /** Totals in the transcript, with the size of the file after their line. */
  reports: { readonly end: number; readonly usd: number }[] = [];
  /** Sizes of the transcript after successful results. */
  successEnds: number[] = [];
  /** When a line other than an answer to our requests was last written, virtual milliseconds. */
  spokeMs = 0;
  /** Since when the transcript shows a running tool, virtual milliseconds. */
  toolSinceMs: number | null = null;
  /** The model's latest answer, by the wall clock. */
  answeredWallMs = Number.NEGATIVE_INFINITY;
  /** The model's latest answer, virtual milliseconds. */
  answeredMs = Number.NEGATIVE_INFINITY;
  /** When the reported limit is lifted, by the wall clock. */
  resetsAtWallMs: number | undefined;
  /** Its end contradicts its success. */
  contradicted = false;
  /** Its end is logged, with this cost. */
  recordedUsd: number | null = null;

  constructor(
    fields: Pick<
      ClaudeBook,
      'process' | 'attemptId' | 'sessionId' | 'claudeSessionId' | 'transcript' | 'conversation' | 'resumes' | 'capUsd'
    >,
  ) {
    this.process = fields.process;
    this.attemptId = fields.attemptId;
    this.sessionId = fields.sessionId;
    this.claudeSessionId = fields.claudeSessionId;
    this.transcript = fields.transcript;
    this.conversation = fields.conversation;
    this.resumes = fields.resumes;
    this.capUsd = fields.capUsd;
  }

  charge(usd: number): void {
    this.chargedUsd += usd;
  }

  /** A started message is reported. */
  begin(usd: number): void {
    this.begunUsd += usd;
  }

  report(end: number, usd: number): void {
    this.toldUsd = Math.max(this.toldUsd, usd);
    this.reports.push({ end, usd });
  }

  /** It has printed its lines only after input arrived. */
  get hasSpoken(): boolean {
    return this.printedBytes > this.firstBytes;
  }

  /** The highest total that can still be read, US dollars. */
  get provableUsd(): number {
    return this.reports.reduce((most, { usd }) => Math.max(most, usd), 0);
  }

  /** A power cut left the first `size` bytes of the transcript. */
  keepOnly(size: number): void {
    this.reports = this.reports.filter(({ end }) => end <= size);
    this.successEnds = this.successEnds.filter((end) => end <= size);
  }
}
