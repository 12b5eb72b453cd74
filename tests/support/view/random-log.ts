/**
 * Logs that could have happened, from a list of numbers: sessions with hostile names and texts, runs that end, break
 * off and go on, limits, halts, money, worktrees, acceptance, and a clock that jumps in both directions.
 */

import type { EventBody, GroupEvent, PauseReason, StopReason } from '../../../src/core/event.ts';
import { noUsage, type SessionId, type Usage } from '../../../src/core/group.ts';
import { reduce } from '../../../src/core/reduce.ts';
import type { SessionRecord } from '../../../src/core/session-state.ts';
import { type GroupState, initialState } from '../../../src/core/state.ts';
import { groupDefinition, groupId, processIdentity, sessionDefinition } from '../core-events.ts';
import { fc } from '../property.ts';

export interface RandomLog {
  readonly events: GroupEvent[];
  readonly state: GroupState;
}

/** What nobody should be able to say in a report. */
export const hostileTexts = [
  '</script><script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' onmouseover='x' \"",
  '<!-- --> ]]> &amp; &lt; &#0; &',
  '\u001b[31mred\u001b]52;c;AAAA\u0007 \u009b0m',
  '\u202eright to left\u2066 \u061c العربية',
  'half \ud83d character \ufffe\uffff\u0000',
  '```\n</details>\n# heading\n| a | b |\n@someone #12 https://example.org',
  '日本語 🚀 é',
  ' ',
  '%%{init: {}}%% --> "];',
] as const;

/** A source of choices. */
class Dice {
  private at = 0;
  private readonly numbers: readonly number[];

  constructor(numbers: readonly number[]) {
    this.numbers = numbers;
  }

  get isUsedUp(): boolean {
    return this.at >= this.numbers.length;
  }

  below(count: number): number {
    const number = this.numbers[this.at % Math.max(1, this.numbers.length)] ?? 0;
    this.at += 1;
    return number % count;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }

  text(): string {
    const text = this.pick(hostileTexts);
    return this.below(8) === 0 ? text.repeat(this.below(400)) : text;
  }

  usage(): Usage {
    const tokens = { input: this.below(900), output: this.below(9e5), cacheRead: this.below(9e6), cacheCreation: 3 };
    const costUsd = this.below(1000) / 333;
    const models = this.below(3) === 0 ? {} : { [this.text().slice(0, 40)]: { costUsd: costUsd / 2, tokens } };
    const estimated = this.below(4) === 0 ? { estimated: true as const } : {};
    return { ...noUsage, costUsd, tokens, durationMs: this.below(1e7), turns: this.below(40), models, ...estimated };
  }
}

class Story {
  readonly events: GroupEvent[] = [];
  readonly state: GroupState;
  private nowMs = Date.UTC(2026, 0, 2, 3, 4, 5);
  private readonly dice: Dice;

  constructor(dice: Dice) {
    this.dice = dice;
    const limits = dice.below(2) === 0 ? {} : { maxBudgetUsd: 1 + dice.below(9) };
    const config = { ...limits, respectDependencies: dice.below(5) > 0, errorThreshold: 1 + dice.below(4) };
    const group = { ...groupDefinition(config), name: dice.text(), description: dice.text() };
    const first = this.event({ type: 'group_created', group });
    this.events.push(first);
    this.state = initialState(first);
    const count = dice.below(7);
    for (let number = 1; number <= count; number += 1) this.addSession(number);
  }

  private addSession(number: number): void {
    const { dice } = this;
    const dependsOn = Array.from({ length: number - 1 }, (_, index) => index + 1).filter(() => dice.below(3) === 0);
    const session = sessionDefinition(number, dependsOn, {
      ...(dice.below(2) === 0 ? {} : { name: `${number} ${dice.text()}` }),
      description: dice.text(),
      projectPath: `/projects/${dice.text()}`,
      prompt: dice.text(),
      ...(dice.below(3) === 0 ? { maxBudgetUsd: 0.5 } : {}),
    });
    this.add({ type: 'session_added', sessionId: session.id, session });
  }

  private event(body: EventBody): GroupEvent {
    const { dice } = this;
    this.nowMs += dice.pick([0, 1, 900, 60_000, 5_000_000, -30_000, 90_000_000]);
    return { seq: this.events.length + 1, at: new Date(this.nowMs).toISOString(), groupId, ...body };
  }

  private add(...bodies: EventBody[]): this {
    for (const body of bodies) {
      const event = this.event(body);
      reduce(this.state, event);
      this.events.push(event);
    }
    return this;
  }

  private with(...statuses: string[]): SessionRecord[] {
    return [...this.state.sessions.values()].filter(({ state }) => statuses.includes(state.status));
  }

  step(): void {
    if (this.state.status === 'running') this.running();
    else this.resting();
  }

  private resting(): this {
    const { dice, state } = this;
    const [session] = this.with('pending', 'paused', 'failed');
    if (session !== undefined && state.status !== 'completed' && state.status !== 'archived' && dice.below(6) === 0) {
      const changed = dice.below(2) === 0 ? {} : { changed: ['prompt', dice.text()] };
      const edited = { ...session.definition, prompt: dice.text(), accept: dice.text() };
      return this.add({ type: 'session_changed', sessionId: edited.id, session: edited, ...changed });
    }
    const run = { id: 'run', runner: processIdentity, ...(dice.below(4) === 0 ? { rehearsal: true as const } : {}) };
    if (state.status === 'created') return this.add({ type: 'group_started', run });
    if (state.status === 'archived') return this;
    const retry = this.with('failed').map(({ definition }) => definition.id);
    const only = dice.below(4) === 0 ? { only: [...state.sessions.keys()].slice(0, 2) } : {};
    if (state.status !== 'completed' && dice.below(4) > 0) {
      return this.add({ type: 'group_resumed', run, retry: dice.below(2) === 0 ? retry : [], ...only });
    }
    if (session !== undefined && dice.below(2) === 0 && state.status !== 'completed') {
      const queued = dice.below(2) === 0;
      return this.add({ type: 'session_queued', sessionId: session.definition.id, queued, prompt: dice.text() });
    }
    const done = [...state.sessions.keys()];
    const merged = [{ repository: '/r', into: dice.text(), from: 'a', to: 'b', sessionIds: done }];
    this.add({ type: 'group_merged', merged });
    return dice.below(3) === 0 ? this.add({ type: 'group_archived' }) : this;
  }

  private running(): this {
    const { dice, state } = this;
    const kind = dice.below(12);
    const [waiting, going] = [this.with('pending', 'paused', 'failed'), this.with('running')];
    if (kind < 3 && waiting.length > 0) return this.start(dice.pick(waiting));
    if (kind < 8 && going.length > 0) return this.goOn(dice.pick(going));
    const money = { usage: dice.below(9), limit: dice.below(9) };
    const run = { id: 'next', runner: processIdentity };
    const general: (() => unknown)[] = [
      () => this.add({ type: 'limit_reached', resetsAt: dice.pick(['soon', '2026-01-02T09:00:00Z']) }),
      () => this.add({ type: 'limit_lifted' }),
      () => this.add({ type: 'group_frozen', until: '2026-01-02T09:00:00Z' }),
      () => this.add({ type: 'group_thawed' }),
      () => this.add({ type: 'group_pausing', reason: 'user', ...(dice.below(2) ? { mode: 'drain' as const } : {}) }),
      () => this.add({ type: 'group_resumed', run, retry: [] }),
      () => this.add({ type: 'budget_warning', ...money }),
      () =>
        this.add({
          type: 'budget_exceeded',
          action: dice.pick(['stopped', 'paused', 'continued']),
          ...money,
        }),
      () => this.add({ type: 'group_changed', config: { ...state.group.config, maxBudgetUsd: 50 } }),
      () =>
        this.add({
          type: 'group_redefined',
          group: { name: dice.text(), description: dice.text() },
          changed: ['name'],
        }),
      () => this.end(),
    ];
    dice.pick(general)();
    return this;
  }

  private end(): this {
    const { dice, state } = this;
    // A run ends when nothing runs any more.
    for (const record of this.with('running')) this.finish(record, 'paused');
    const text = {
      reason: dice.pick(['user', 'budget', 'limit', 'error-threshold', dice.text()]),
      message: dice.text(),
    };
    if (state.counts.completed === state.sessions.size) return this.add({ type: 'group_completed' });
    return this.add({ type: dice.below(2) === 0 ? 'group_failed' : 'group_paused', ...text });
  }

  private start({ definition: { id }, attempts, state }: SessionRecord): this {
    const { dice } = this;
    const kind = state.status === 'pending' ? 'start' : state.status === 'paused' ? 'resume' : 'retry';
    const place = { host: dice.text(), token: 't', job: 'slots-any/j' };
    const elsewhere = dice.below(4) === 0 ? { place, reservedUsd: 3 } : {};
    const attempt = { id: `${id}#${attempts + 1}`, number: attempts + 1, kind, offset: 0, ...elsewhere } as const;
    if (attempt.place !== undefined) this.add({ type: 'session_moved', sessionId: id, to: place.host });
    this.add({ type: 'session_starting', sessionId: id, attempt });
    if (dice.below(6) === 0) this.add({ type: 'session_starting', sessionId: id, attempt });
    if (dice.below(6) === 0) return this;
    const of = { sessionId: id, attemptId: attempt.id };
    const name = { start: 'session_started', resume: 'session_resumed', retry: 'session_retrying' } as const;
    this.add({ type: name[kind], ...of, attempt: attempt.number, process: processIdentity });
    return this.add({ type: 'session_identified', ...of, claudeSessionId: 'c', model: dice.text() });
  }

  /** Its machine is lost, or one that was lost is there again. */
  private lose({ definition: { id: sessionId }, state, lost }: SessionRecord): void {
    const { dice } = this;
    const [counted] = lost ?? [];
    if (counted !== undefined && dice.below(2) === 0) {
      this.add({ type: 'session_booked', sessionId, attemptId: counted.attempt.id, usage: dice.usage() });
    }
    if (state.status !== 'running' || state.attempt.place === undefined || dice.below(3) > 0) return;
    const { id: attemptId, place } = state.attempt;
    this.add({ type: 'session_host_lost', sessionId, attemptId, host: place.host, held: 1 });
  }

  private goOn(record: SessionRecord): this {
    this.lose(record);
    const { dice } = this;
    const { definition, state } = record;
    if (state.status !== 'running') return this;
    const of = { sessionId: definition.id, attemptId: state.attempt.id };
    const workspace = { path: '/w', folder: '/w', repository: '/r', branch: dice.text(), base: 'b' };
    const others: (() => unknown)[] = [
      () => this.finish(record, 'completed'),
      () => this.finish(record, 'failed'),
      () => this.finish(record, 'paused'),
      () => this.add({ type: 'session_accepting', ...of, result: dice.text(), usage: dice.usage() }),
      () => this.add({ type: 'session_isolated', ...of, workspace }),
      () => this.add({ type: 'session_stalled', ...of, step: 'notice', silentMs: 5 }),
      () => this.add({ type: 'session_message', sessionId: of.sessionId, text: dice.text() }),
      () =>
        this.add({
          type: 'session_warning',
          sessionId: of.sessionId,
          warning: { code: 'denied-tools', message: dice.text() },
        }),
    ];
    dice.pick(others)();
    return this;
  }

  private finish({ definition, state }: SessionRecord, outcome: 'completed' | 'failed' | 'paused'): this {
    if (state.status !== 'running') return this;
    const { dice } = this;
    const of: { sessionId: SessionId; attemptId: string } = { sessionId: definition.id, attemptId: state.attempt.id };
    const usage = dice.usage();
    const work = dice.below(2) === 0 ? {} : { work: { commit: dice.text(), files: 1, insertions: 2, deletions: 3 } };
    if (outcome === 'completed') {
      const structured = dice.below(3) === 0 ? { structured: { [dice.text()]: [dice.text()] } } : {};
      return this.add({ type: 'session_completed', ...of, result: dice.text(), ...structured, ...work, usage });
    }
    const output = dice.below(2) === 0 ? {} : { output: dice.text() };
    if (outcome === 'failed') {
      const reason = dice.pick(['not-accepted', 'claude-error', 'not-logged-in'] as const);
      const text = { message: dice.text(), next: dice.text() };
      return this.add({ type: 'session_failed', ...of, reason, ...text, ...output, usage });
    }
    const reasons: (PauseReason | StopReason)[] = [
      'user',
      'limit',
      'transient',
      'interrupted',
      'budget',
      'not-accepted',
    ];
    const retryAt = dice.below(2) === 0 ? {} : { retryAt: new Date(this.nowMs + dice.below(1e7)).toISOString() };
    const reason = dice.pick(reasons);
    return this.add({ type: 'session_paused', ...of, reason, message: dice.text(), ...output, ...retryAt, usage });
  }
}

export const randomLogs: fc.Arbitrary<RandomLog> = fc
  .array(fc.nat({ max: 1_000_000 }), { minLength: 1, maxLength: 400, size: 'max' })
  .map((numbers) => {
    const dice = new Dice(numbers);
    const story = new Story(dice);
    for (let step = 0; step < 60 && !dice.isUsedUp; step += 1) story.step();
    return { events: story.events, state: story.state };
  });
