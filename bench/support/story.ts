/** A run without workers: what a runner logs of it, and decides, as fast as it can. */
import type { EventBody } from '../../src/core/event.ts';
import { noUsage, type SessionId } from '../../src/core/group.ts';
import { decide } from '../../src/core/plan/schedule.ts';
import type { GroupWriter } from '../../src/store/group-writer.ts';
import type { CountingWorld } from './counting-world.ts';
import { timed } from './figures.ts';

/** How many of its sessions run at once; so many chains side by side keep them all busy. */
export const inFlight = 8;
const circumstances = { preparingMax: 100 };

/** The run of a group whose sessions do nothing: every event is recorded by itself and followed by a decision. */
export class Story {
  readonly plain = { ms: 0, events: 0 };
  readonly synced = { ms: 0, events: 0 };
  readonly #world: CountingWorld;
  readonly #writer: GroupWriter;
  readonly #running: SessionId[] = [];
  #begun = 0;

  constructor(world: CountingWorld, writer: GroupWriter) {
    this.#world = world;
    this.#writer = writer;
    const runner = { pid: 1, startTime: '1', host: 'here', bootId: 'boot' };
    this.#writer.record([{ type: 'group_started', run: { id: 'bench', runner } }]);
    decide(this.#writer.state, circumstances);
  }

  /** Every second one as safe against a power cut as a runner makes it, unless told otherwise. */
  live(lives: number, syncs = true): void {
    for (let life = 0; life < lives; life += 1) {
      const isSynced = syncs && life % 2 === 1;
      this.#world.syncs = isSynced;
      const time = isSynced ? this.synced : this.plain;
      time.ms += timed(() => {
        time.events += this.#step(life < lives - 1);
      });
    }
    this.#world.syncs = true;
  }

  /** Milliseconds of writing the snapshots when one more session has changed. */
  snapshotMs(): number {
    this.#writer.snapshot('now');
    const [sessionId = ''] = this.#writer.state.sessions.keys();
    const warning = { code: 'denied-tools', message: 'One tool call was denied.' } as const;
    this.#record({ type: 'session_warning', sessionId, warning });
    return timed(() => this.#writer.snapshot('now'));
  }

  /** Ends the oldest session when all slots are taken, and begins those that may; the number of events. */
  #step(goesOn: boolean): number {
    let count = 0;
    const oldest = this.#running.length >= inFlight || !goesOn ? this.#running.shift() : undefined;
    if (oldest !== undefined) count += this.#record({ type: 'session_completed', ...attempt(oldest), ...nothing });
    for (const decision of decide(this.#writer.state, circumstances)) {
      if (decision.do !== 'start') continue;
      count += this.#begin(decision.sessionId, decision.isolated === true);
    }
    return count;
  }

  #begin(sessionId: SessionId, isolated: boolean): number {
    this.#begun += 1;
    const { attemptId } = attempt(sessionId);
    const process = { pid: this.#begun, startTime: '1', host: 'here', bootId: 'boot' };
    this.#running.push(sessionId);
    const where = isolated ? ({ isolated } as const) : {};
    const intent = { id: attemptId, number: 1, kind: 'start', offset: 0, ...where } as const;
    const claude = { claudeSessionId: sessionId.slice(4), model: 'claude-opus-4-8' };
    return (
      this.#record({ type: 'session_starting', sessionId, attempt: intent }) +
      this.#record({ type: 'session_started', ...attempt(sessionId), attempt: 1, process }) +
      this.#record({ type: 'session_identified', ...attempt(sessionId), ...claude })
    );
  }

  #record(body: EventBody): 1 {
    this.#writer.record([body]);
    decide(this.#writer.state, circumstances);
    return 1;
  }
}

const nothing = { result: 'Done.', usage: noUsage };

function attempt(sessionId: SessionId): { sessionId: SessionId; attemptId: string } {
  return { sessionId, attemptId: `attempt-${sessionId}` };
}
