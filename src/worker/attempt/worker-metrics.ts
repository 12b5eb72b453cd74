/** What the runner wants to know of a worker besides its stream: how long it runs, is silent, and what it did last. */
import type { ClaudeMessage } from '../../claude/messages.ts';
import type { AttemptStream } from '../../claude/stream.ts';

/** More than anybody reads in one look. */
const recentToolsMax = 20;

export class WorkerMetrics {
  /** Milliseconds since it was begun, or since this runner took it over. */
  ageMs = 0;
  /** Milliseconds without a line of its own and without a running tool. */
  silentMs = 0;
  /** Before there is a process. */
  isPreparing = false;
  /** Milliseconds since the model answered; Infinity = not since this runner has this worker. */
  unservedMs = Number.POSITIVE_INFINITY;
  /** After this the model answered once more, ms since 1970. What was read late may have been said much earlier. */
  answeredAtMs = Number.NEGATIVE_INFINITY;
  #lastToolId: string | undefined;
  readonly #recentTools: string[] = [];

  /** A line was taken into the stream; it was written after `writtenAfterMs`, or before this runner had the worker. */
  line(message: ClaudeMessage, stream: AttemptStream, writtenAfterMs: number | undefined): void {
    // Answers to our own questions are no progress of the session.
    if (message.kind !== 'control-response') this.silentMs = 0;
    if (message.kind === 'assistant' && message.error === undefined && message.model !== '<synthetic>') {
      this.answeredAtMs = writtenAfterMs ?? Number.NEGATIVE_INFINITY;
      // What is read of a time before this runner tells nothing about now.
      if (writtenAfterMs !== undefined) this.unservedMs = 0;
    }
    const { currentTool, currentToolId } = stream;
    if (currentTool === undefined || currentToolId === this.#lastToolId) return;
    this.#lastToolId = currentToolId;
    this.#recentTools.push(currentTool);
    if (this.#recentTools.length > recentToolsMax) this.#recentTools.shift();
  }

  /**
   * Counts time for timeouts and stalls; `ms` of it passed. Counted by ticks of a timer and not by the clock, so that
   * neither a jump of the clock nor a machine that slept makes a session look old.
   */
  tick(ms: number, { openTools, openTasks }: AttemptStream): void {
    this.ageMs += ms;
    this.unservedMs += ms;
    // What prepares a session has time limits of its own: a set-up command may be silent for longer than claude may.
    const works = this.isPreparing || openTools.size > 0 || openTasks.size > 0;
    this.silentMs = works ? 0 : this.silentMs + ms;
  }

  /** Tool calls begun since this was asked last. */
  takeRecentTools(): string[] {
    return this.#recentTools.splice(0);
  }
}
