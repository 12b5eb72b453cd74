/** Messages to claude, against the machine's own record: its task first, and no message is lost. */
import type { GroupEvent } from '../../../src/core/event.ts';
import type { ClaudeBook } from './books.ts';
import { invariants } from './checks.ts';
import type { VirtualMachine } from './virtual-machine.ts';

/** How a prompt begins that refers to the one before it. */
const asksAgain = 'The API did not answer';

export class ToldChecks {
  readonly #machine: VirtualMachine;
  /** By session the messages that no claude has read. */
  readonly #unread = new Map<string, Set<string>>();
  /** Messages that some claude of the session has read; a power cut does not undo that. */
  readonly #read = new Map<string, string[]>();
  /** By session the boot in which its conversation last received its task; a power cut may remove that. */
  readonly #answerStateIn = new Map<string, string>();

  constructor(machine: VirtualMachine) {
    this.#machine = machine;
  }

  /** `isReplay`: the log is read again, and may have lost its end. */
  take(events: readonly GroupEvent[], isReplay: boolean): void {
    if (isReplay) this.#unread.clear();
    for (const event of events) {
      if (event.type === 'session_message') this.#says(event.sessionId, event.text);
      else if (event.type === 'session_removed') this.#unread.delete(event.sessionId);
    }
    if (this.#unread.size > 0) this.#checkUnread();
  }

  /** A claude reads a user message from its input; `isFirst` of all it gets. */
  reads(book: ClaudeBook, line: string, isFirst: boolean): void {
    const { sessionId, process } = book;
    const { bootId } = this.#machine.table;
    const text = (JSON.parse(line) as { message: { content: string } }).message.content;
    const task = this.#machine.log.state?.sessions.get(sessionId)?.definition.prompt;
    const isTold = task !== undefined && text.includes(task);
    if (isTold) this.#answerStateIn.set(sessionId, bootId);
    // If the conversation ends with the unread prompt, the prompt is not repeated.
    const isKnown = book.resumes && text.startsWith(asksAgain) && this.#answerStateIn.get(sessionId) === bootId;
    if (isFirst && !isTold && !isKnown)
      this.#violate(invariants.task, `${process.name} works without the task of ${sessionId}: ${text.slice(0, 100)}`);
    this.#read.set(sessionId, [...(this.#read.get(sessionId) ?? []), text]);
    const unread = this.#unread.get(sessionId);
    for (const said of unread ?? []) if (text.includes(said)) unread?.delete(said);
  }

  #says(sessionId: string, said: string): void {
    if (this.#read.get(sessionId)?.some((text) => text.includes(said))) return;
    const unread = this.#unread.get(sessionId);
    if (unread === undefined) this.#unread.set(sessionId, new Set([said]));
    else unread.add(said);
  }

  /** While it runs, messages may be in transit; afterwards they are kept for the next attempt. */
  #checkUnread(): void {
    for (const [sessionId, texts] of this.#unread) {
      const record = this.#machine.log.state?.sessions.get(sessionId);
      if (record === undefined || record.state.status === 'running') continue;
      for (const text of texts) {
        if (record.messages.includes(text)) continue;
        this.#violate(invariants.said, `what was said to ${sessionId} is lost: ${text}`);
      }
    }
  }

  #violate(invariant: string, message: string): void {
    this.#machine.violate(invariant, message);
  }
}
