/** The work that is being accepted right now, by session. */
import { defined } from '../../core/defined.ts';
import type { StopReason } from '../../core/event.ts';
import type { SessionId } from '../../core/group.ts';
import type { GroupState } from '../../core/state.ts';
import { type GroupPaths, sessionPaths } from '../../store/paths.ts';
import type { World } from '../../system/world.ts';
import { fillPrompt } from '../../template/fill-references.ts';
import type { Fact } from '../facts.ts';
import { Acceptance, type AcceptanceOptions } from './acceptance.ts';
import type { AttemptPreparer } from './attempt-setup.ts';
import type { CommandSlots } from './command-slots.ts';

/** Stops that concern the worker alone. */
const passing: ReadonlySet<StopReason> = new Set(['timeout', 'stall', 'slice', 'disk']);

export interface AcceptancesOptions {
  readonly paths: GroupPaths;
  readonly needs: AttemptPreparer['forCommands'] & { readonly slots: CommandSlots };
  readonly elsewhere?: (sessionId: SessionId) => AcceptanceOptions['elsewhere'];
  readonly enqueue: (fact: Fact) => void;
}

export class Acceptances {
  readonly #running = new Map<SessionId, Acceptance>();
  readonly #world: World;
  readonly #options: AcceptancesOptions;

  constructor(world: World, options: AcceptancesOptions) {
    this.#world = world;
    this.#options = options;
  }

  begin(state: GroupState, sessionId: SessionId, { isTakenOver = false } = {}): void {
    const record = state.sessions.get(sessionId);
    if (record?.state.status !== 'running' || record.state.attempt.accepting === undefined) return;
    const { id: attemptId, stopping } = record.state.attempt;
    const { paths, needs, enqueue } = this.#options;
    const elsewhere = this.#options.elsewhere?.(sessionId);
    const acceptance = new Acceptance(this.#world, {
      record,
      attemptId,
      task: () => fillPrompt(record.definition, state, sessionPaths(paths, sessionId).inputs).prompt,
      paths: sessionPaths(paths, sessionId),
      ...needs,
      ...defined({ elsewhere }),
      report: (verdict) => {
        this.#running.delete(sessionId);
        enqueue({ kind: 'judged', sessionId, attemptId, verdict });
      },
    });
    this.#running.set(sessionId, acceptance);
    // A stop that came while the worker was ending has not reached anybody yet. One that was to make the worker go on,
    // or was begun by a runner that is gone, is over now that the work is done; a person's wish stays.
    const isOver = isTakenOver ? stopping !== 'user' : stopping !== undefined && passing.has(stopping);
    if (stopping !== undefined && !isOver) acceptance.stop(stopping);
  }

  has(sessionId: SessionId): boolean {
    return this.#running.has(sessionId);
  }

  stop(sessionId: SessionId, reason: StopReason): void {
    this.#running.get(sessionId)?.stop(reason);
  }

  /** No command of any kind begins meanwhile. */
  halt(isHalted: boolean): void {
    this.#options.needs.slots.halt(isHalted);
    for (const acceptance of this.#running.values()) acceptance.halt(isHalted);
  }

  /** Lets go of all of them; the next runner begins them again, and every other command that waits. */
  leave(): void {
    this.#options.needs.slots.close();
    for (const acceptance of this.#running.values()) acceptance.leave();
  }
}
