/**
 * What a user said to a worker while it worked. claude merges it into the turn that runs, but only after a tool has
 * ended or as a turn of its own; until then it lies in claude's queue. An interrupt does not empty that queue, so what
 * lies there is taken back first; what claude has not read goes to the next attempt.
 */
import { readWithdrawal, userMessage, withdrawal } from '../claude/control.ts';
import type { ClaudeMessage } from '../claude/messages.ts';

interface Said {
  readonly text: string;
  where: 'here' | 'queued' | 'read';
}

export class MessageQueue {
  readonly #attemptId: string;
  readonly #said: Said[];
  /** A tool has ended since the model spoke last, and claude hands over its queue with the tool's result. */
  #handsOver: Said[] = [];

  /** `told`: what earlier runners said to this attempt. Nobody knows how much of it was read. */
  constructor(attemptId: string, told: readonly string[]) {
    this.#attemptId = attemptId;
    this.#said = told.map((text) => ({ text, where: 'queued' }));
  }

  add(text: string): void {
    this.#said.push({ text, where: 'here' });
  }

  /** The prompt was put together from the log, which may have held some of it already. */
  omit(prompt: string): void {
    for (const said of this.#said) if (said.where === 'here' && prompt.includes(said.text)) said.where = 'read';
  }

  /** Lines for claude's input that say what was not said yet; from now on that counts as queued. */
  take(): string[] {
    return this.#each('here', (said, index) => {
      said.where = 'queued';
      return userMessage(said.text, this.#attemptId, index);
    });
  }

  /** Lines for claude's input that take back what may lie in its queue. */
  withdrawals(): string[] {
    return this.#each('queued', (_, index) => withdrawal(this.#attemptId, index));
  }

  /** Takes in what claude printed, just now. */
  heard(message: ClaudeMessage, line: string): void {
    if (message.kind === 'user' && message.parentToolUseId === undefined && message.toolResults.length > 0) {
      this.#handsOver = this.#said.filter(({ where }) => where === 'queued');
    }
    if (message.kind === 'assistant' && message.parentToolUseId === undefined) {
      for (const said of this.#handsOver.splice(0)) if (said.where === 'queued') said.where = 'read';
    }
    const answer = message.kind === 'control-response' ? readWithdrawal(message.requestId, line) : null;
    const said = answer === null ? undefined : this.#said[answer.index];
    if (said !== undefined) said.where = answer?.withdrawn ? 'here' : 'read';
  }

  /** Something may lie in claude's queue, and would begin a turn of its own. */
  get isQueued(): boolean {
    return this.#said.some(({ where }) => where === 'queued');
  }

  /** claude rests and its queue is empty. */
  settle(): void {
    for (const said of this.#said) if (said.where === 'queued') said.where = 'read';
  }

  /** What the next attempt must be told. */
  get unread(): string[] {
    return this.#said.flatMap(({ text, where }) => (where === 'read' ? [] : [text]));
  }

  #each(where: Said['where'], line: (said: Said, index: number) => string): string[] {
    return this.#said.flatMap((said, index) => (said.where === where ? [line(said, index)] : []));
  }
}
