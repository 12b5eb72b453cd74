/** What really happened, written down by the machine itself and never read from the program under test. */
import type { VirtualProcess } from './virtual-processes.ts';

/** One acceptance command. */
export interface CommandBook {
  readonly process: VirtualProcess;
  /** Who has started it. */
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
  /** It was given its prompt and works. */
  begun = false;
  /** It has printed a result. */
  hasConcluded = false;
  /** It will never do anything more of its own accord. */
  hangs = false;
  printedBytes = 0;
  /** So many of them before it read its input. */
  firstBytes = 0;
  /** What the API billed, US dollars. */
  chargedUsd = 0;
  /** The highest total that it ever told, and what its messages cost that it ever told of, by their input. */
  toldUsd = 0;
  begunUsd = 0;
  /** Totals that stand in the transcript, with the size of the file after their line. */
  reports: { readonly end: number; readonly usd: number }[] = [];
  /** Sizes of the transcript after results that report success. */
  successEnds: number[] = [];
  /** When a line that is no answer of ours was written last, virtual milliseconds. */
  spokeMs = 0;
  /** Since when the transcript shows a running tool, virtual milliseconds. */
  toolSinceMs: number | null = null;
  /** The latest moment at which the model answered, by the wall clock. */
  answeredWallMs = Number.NEGATIVE_INFINITY;
  /** When it answered last, virtual milliseconds. */
  answeredMs = Number.NEGATIVE_INFINITY;
  /** When the limit that it reported is lifted, by the wall clock. */
  resetsAtWallMs: number | undefined;
  /** Its success is contradicted by how it ended. */
  contradicted = false;
  /** Its end is in the log, with this cost. */
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

  /** A message that has begun is told of. */
  begin(usd: number): void {
    this.begunUsd += usd;
  }

  report(end: number, usd: number): void {
    this.toldUsd = Math.max(this.toldUsd, usd);
    this.reports.push({ end, usd });
  }

  /** It has printed what it prints only after something has come through its input. */
  get hasSpoken(): boolean {
    return this.printedBytes > this.firstBytes;
  }

  /** The highest total that anybody can still read, US dollars. */
  get provableUsd(): number {
    return this.reports.reduce((most, { usd }) => Math.max(most, usd), 0);
  }

  /** A power cut left the first `size` bytes of the transcript. */
  keepOnly(size: number): void {
    this.reports = this.reports.filter(({ end }) => end <= size);
    this.successEnds = this.successEnds.filter((end) => end <= size);
  }
}
