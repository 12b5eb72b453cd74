/** What each event of the log must agree with, by separate tables that do not use the reducer under test. */
import type { GroupEvent } from '../../../src/core/event.ts';
import type { SessionDefinition, Usage } from '../../../src/core/group.ts';
import type { ClaudeBook } from './books.ts';
import { invariants } from './checks.ts';
import { dearestMessageUsd, heldMessageUsd } from './scenario.ts';
import type { VirtualMachine } from './virtual-machine.ts';
import type { VirtualProcess } from './virtual-processes.ts';

type Ended = Extract<GroupEvent, { type: 'session_completed' | 'session_failed' | 'session_paused' }>;
type Paid = Ended | Extract<GroupEvent, { type: 'session_accepting' }>;
type Spent = Pick<ClaudeBook, 'chargedUsd' | 'recordedUsd'>;
type Standing = 'pending' | 'running' | 'paused' | 'completed' | 'failed';

/** Sums of money differ in the last digits. */
const sameUsd = 1e-9;

export class EventChecks {
  readonly #machine: VirtualMachine;
  readonly #definitions = new Map<string, SessionDefinition>();
  readonly #standings = new Map<string, Standing>();
  readonly #stopping = new Set<string>();
  #respectDependencies = true;
  #groupStatus = 'created';
  readonly #excused = new Set<VirtualProcess>();

  constructor(machine: VirtualMachine) {
    this.#machine = machine;
  }

  /** `isReplay`: the log is read again after a power cut; its content was checked when it happened. */
  take(events: readonly GroupEvent[], isReplay: boolean): void {
    if (isReplay) {
      this.#definitions.clear();
      this.#standings.clear();
      this.#stopping.clear();
      for (const book of [...this.#machine.claudes, ...this.#machine.guests]) book.recordedUsd = null;
    }
    for (const event of events) this.#takeOne(event, isReplay);
  }

  /** A process that could not be found: without the mark, and out of the tree before any check. */
  isExcused(process: VirtualProcess): boolean {
    return this.#excused.has(process) || (process.mark === undefined && process.gatheredBy === null);
  }

  #takeOne(event: GroupEvent, isReplay: boolean): void {
    if (!isReplay) this.#machine.say(describe(event));
    switch (event.type) {
      case 'group_created':
        this.#respectDependencies = event.group.config.respectDependencies;
        return;
      case 'group_changed':
        this.#respectDependencies = event.config.respectDependencies;
        return;
      case 'session_added':
        this.#definitions.set(event.sessionId, event.session);
        this.#standings.set(event.sessionId, 'pending');
        // A further session reopens a finished group.
        if (this.#groupStatus !== 'created' && this.#groupStatus !== 'running') this.#groupStatus = 'paused';
        return;
      case 'session_removed':
        this.#definitions.delete(event.sessionId);
        this.#standings.delete(event.sessionId);
        return;
      case 'session_starting':
        this.#begins(event.sessionId);
        return;
      case 'session_stopping':
        this.#stopping.add(event.attemptId);
        return;
      case 'session_warning':
        this.#machine.checks.says(event.type, event.warning.message);
        return;
      case 'request_answered':
        this.#machine.checks.says(event.type, event.message);
        return;
      case 'session_accepting':
        this.#paid(event, isReplay);
        return;
      case 'session_detached':
        this.#left(event, isReplay);
        return;
      case 'session_completed':
      case 'session_failed':
      case 'session_paused':
        this.#ends(event, isReplay);
        return;
      case 'group_started':
      case 'group_resumed':
        if (this.#groupStatus === 'completed') this.#violate(invariants.final, 'a completed group runs again');
        this.#groupStatus = 'running';
        return;
      case 'group_completed':
      case 'group_failed':
      case 'group_paused':
        this.#settles(event);
        return;
    }
  }

  #begins(sessionId: string): void {
    const standing = this.#standings.get(sessionId);
    if (standing === 'completed') this.#violate(invariants.final, `the completed session ${sessionId} begins again`);
    this.#standings.set(sessionId, 'running');
    if (!this.#respectDependencies || standing === 'running') return;
    for (const dependency of this.#definitions.get(sessionId)?.dependsOn ?? []) {
      if (this.#standings.get(dependency) === 'completed') continue;
      this.#violate(invariants.dependencies, `${sessionId} begins before ${dependency} is completed`);
    }
  }

  #ends(event: Ended, isReplay: boolean): void {
    const { sessionId, type } = event;
    const before = this.#standings.get(sessionId);
    if (before !== 'running') this.#violate(invariants.final, `${sessionId} ends although it is ${before}`);
    this.#standings.set(sessionId, type.slice(8) as Standing);
    this.#paid(event, isReplay);
    if (isReplay) return;
    if (type !== 'session_completed')
      this.#checkReason(type, event.reason, event.message, type === 'session_failed' ? event.next : null);
    this.#machine.coverage.note(
      type === 'session_completed' ? 'ended completed' : `ended ${type.slice(8)} ${event.reason}`,
    );
  }

  /** A user has detached: none of their claude is alive, and their spending counts once. */
  #left(event: Extract<GroupEvent, { type: 'session_detached' }>, isReplay: boolean): void {
    const { sessionId, attachmentId, usage } = event;
    const { costUsd, heldUsd = 0 } = usage;
    const guest = this.#machine.guests.find((other) => other.attachmentId === attachmentId);
    if (!isReplay) {
      this.#machine.coverage.note(guest === undefined ? 'left unseen' : 'left after a visit');
      if (guest?.process.alive) this.#violate(invariants.leftovers, `${guest.process.name} lives after they have left`);
      const chargedUsd = guest?.chargedUsd ?? 0;
      if (costUsd - heldUsd > chargedUsd + sameUsd)
        this.#violate(invariants.totals, `${sessionId} counts $${costUsd}; a person was charged $${chargedUsd}`);
      if (guest !== undefined && !guest.isUnsure && costUsd < guest.keptUsd - sameUsd)
        this.#violate(invariants.remembered, `${sessionId} counts $${costUsd}; a person was told $${guest.keptUsd}`);
    }
    if (guest !== undefined) guest.recordedUsd = costUsd;
    if (!isReplay) this.#checkOwnCap(sessionId);
  }

  /** The attempt's cost is recorded, and none of its processes is left; its work may still need acceptance. */
  #paid(event: Paid, isReplay: boolean): void {
    const { sessionId, attemptId, type } = event;
    const books = this.#machine.claudes.filter((book) => book.attemptId === attemptId);
    if (!isReplay) {
      this.#checkTotals(books, event.usage, sessionId);
      this.#checkRemembered(books, event.usage, sessionId);
      this.#checkLeftovers(books, event);
      // With an acceptance command, claude's success comes before it, possibly in an earlier attempt.
      const isJudged = this.#definitions.get(sessionId)?.accept !== undefined;
      if (type === (isJudged ? 'session_accepting' : 'session_completed')) this.#checkSuccess(books, attemptId);
    }
    // Only one process of an attempt ever worked, so it has the whole cost.
    for (const book of books) book.recordedUsd = book.chargedUsd > 0 ? event.usage.costUsd : 0;
    if (!isReplay) this.#checkOwnCap(sessionId);
  }

  #checkTotals(books: readonly ClaudeBook[], usage: Usage, sessionId: string): void {
    const charged = books.reduce((sum, book) => sum + book.chargedUsd, 0) + this.#unbookedUsd(sessionId);
    const provable = books.reduce((sum, book) => sum + book.provableUsd, 0);
    const { costUsd, heldUsd = 0 } = usage;
    if (costUsd - heldUsd <= charged + sameUsd && costUsd >= provable - sameUsd) return;
    const message = `${sessionId} counts $${costUsd}; charged were $${charged}, of which claude told $${provable}`;
    this.#violate(invariants.totals, message);
  }

  /** Whatever happened to the disk: what was reported once is counted. */
  #checkRemembered(books: readonly ClaudeBook[], { costUsd }: Usage, sessionId: string): void {
    const told = books.reduce((sum, book) => sum + Math.max(book.toldUsd, book.begunUsd), 0);
    if (costUsd >= told - sameUsd) return;
    this.#violate(invariants.remembered, `${sessionId} counts $${costUsd}, and claude had told of $${told}`);
  }

  /** A session's own cap holds like the group's: one message more, and costs that could not be known. */
  #checkOwnCap(sessionId: string): void {
    const cap = this.#definitions.get(sessionId)?.maxBudgetUsd;
    if (cap === undefined) return;
    const chargedUsd = this.#booksOf(sessionId).reduce((sum, book) => sum + book.chargedUsd, 0);
    const visits = this.#machine.guests.filter((guest) => guest.sessionId === sessionId).length;
    const unknownUsd = this.#unbookedUsd(sessionId);
    if (chargedUsd > cap + dearestMessageUsd * (1 + visits) + unknownUsd + sameUsd)
      this.#violate(invariants.money, `${sessionId} was charged $${chargedUsd}, its own cap is $${cap}`);
    // No more is held than the cap and one message allow.
    const bookedUsd = this.#booksOf(sessionId).reduce((sum, { recordedUsd }) => sum + (recordedUsd ?? 0), 0);
    if (bookedUsd > cap + heldMessageUsd * (1 + visits) + sameUsd)
      this.#violate(invariants.money, `${sessionId} counts $${bookedUsd}, its own cap is $${cap}`);
  }

  /** What was charged and is missing in the records; a later process whose totals include it counts it. */
  #unbookedUsd(sessionId: string): number {
    const unbookedUsd = ({ chargedUsd, recordedUsd }: Spent): number =>
      recordedUsd === null ? 0 : Math.max(0, chargedUsd - recordedUsd);
    return this.#booksOf(sessionId).reduce((sum, book) => sum + unbookedUsd(book), 0);
  }

  #booksOf(sessionId: string): Spent[] {
    const { claudes, guests } = this.#machine;
    return [...claudes, ...guests].filter((book) => book.sessionId === sessionId);
  }

  #checkLeftovers(books: readonly ClaudeBook[], { attemptId, type }: Paid): void {
    for (const { process } of books) {
      if (process.alive) this.#violate(invariants.leftovers, `${process.name} lives after the end of its attempt`);
    }
    const commands = this.#machine.commands.filter((book) => book.attemptId === attemptId);
    for (const process of this.#machine.table.living.values()) {
      if (process.kind !== 'tool' && process.kind !== 'command') continue;
      // It may have been started since, in the same moment.
      if (process.kind === 'command' && type === 'session_accepting') continue;
      if (process.mark === attemptId) this.#violate(invariants.leftovers, `${process.name} outlives its attempt`);
      if (process.mark !== undefined || this.#excused.has(process)) continue;
      if (![...books, ...commands].some((book) => book.process === process.origin)) continue;
      // A runner must end the processes it found; one found by an earlier runner, or never, is indistinguishable from a
      // stranger.
      if (process.gatheredBy?.alive)
        this.#violate(invariants.leftovers, `${process.name} was found and outlives its attempt`);
      else this.#excused.add(process);
    }
  }

  #checkSuccess(books: readonly ClaudeBook[], attemptId: string): void {
    const hasSuccess = books.some((book) => book.successEnds.length > 0);
    if (!hasSuccess)
      this.#violate(invariants.completed, `attempt ${attemptId} is completed without a success of claude`);
    for (const { process, contradicted } of books) {
      const wasSeen = process.parent?.alive === true && !this.#stopping.has(attemptId);
      if (contradicted && wasSeen && process.status?.kind === 'exited' && process.status.code !== 0) {
        this.#violate(
          invariants.completed,
          `${process.name} ended with ${process.status.code} and counts as completed`,
        );
      }
      if (process.dyingSuccessFor?.alive) {
        this.#violate(invariants.completed, `${process.name} reported its success only after it was told to end`);
      }
    }
  }

  #checkReason(type: string, reason: string, message: string, next: string | null): void {
    this.#machine.checks.says(type, `${reason}: ${message} ${next ?? ''}`);
    if (reason === 'internal') this.#violate(invariants.bugs, `${type} because of a bug: ${message}`);
    const isSentence = (text: string) => /^\S.*[.!?…]$/s.test(text);
    if (reason === '' || !isSentence(message) || (next !== null && !isSentence(next))) {
      this.#violate(invariants.reasons, `${type} says ${JSON.stringify({ reason, message, next })}`);
    }
  }

  #settles(event: Extract<GroupEvent, { type: 'group_completed' | 'group_failed' | 'group_paused' }>): void {
    this.#groupStatus = event.type.slice(6);
    const standings = [...this.#standings.values()];
    if (standings.includes('running')) this.#violate(invariants.final, `${event.type} while a session runs`);
    const isComplete = standings.every((standing) => standing === 'completed');
    if (event.type === 'group_completed') {
      if (!isComplete) this.#violate(invariants.completed, `the group is completed, its sessions are ${standings}`);
      return;
    }
    this.#machine.coverage.note(`${event.type} ${event.reason}`);
    this.#checkReason(event.type, event.reason, event.message, null);
  }

  #violate(invariant: string, message: string): void {
    this.#machine.violate(invariant, message);
  }
}

function describe(event: GroupEvent): string {
  const { seq, at: _at, groupId: _group, type, ...rest } = event;
  return `  #${seq} ${type} ${JSON.stringify(rest).slice(0, 230)}`;
}
