/** A runner looks whether the commands still live through which persons have sessions. */
import type { EventBody } from '../../core/event.ts';
import type { GroupState } from '../../core/state.ts';
import type { GroupPaths } from '../../store/paths.ts';
import type { World } from '../../system/world.ts';
import type { Fact } from '../../worker/facts.ts';
import { abandonedTakeOvers, endAbandoned } from './recover.ts';

export class TakeOverWatch {
  readonly #world: World;
  readonly #log: { readonly state: GroupState; readonly paths: GroupPaths };
  readonly #emit: (fact: Fact) => void;
  /** Those that are just being ended. */
  readonly #ending = new Set<string>();

  constructor(
    world: World,
    log: { readonly state: GroupState; readonly paths: GroupPaths },
    emit: (fact: Fact) => void,
  ) {
    this.#world = world;
    this.#log = log;
    this.#emit = emit;
  }

  look(): void {
    const { state, paths } = this.#log;
    if (state.takenOver.size === 0) return;
    for (const id of abandonedTakeOvers(this.#world, state)) {
      const record = state.sessions.get(id);
      const { takenOver } = record ?? {};
      if (record === undefined || takenOver === undefined || this.#ending.has(takenOver.id)) continue;
      this.#ending.add(takenOver.id);
      // What fails, on a full disk for example, is tried again at the next look.
      endAbandoned(this.#world, paths, state, { ...record, takenOver }).then(
        (event) => this.#emit({ kind: 'left-by-person', event }),
        () => this.#ending.delete(takenOver.id),
      );
    }
  }
}

/** What is to be logged: the command itself may have said it after all. */
export function leftEvents({ sessions }: GroupState, event: EventBody): EventBody[] {
  if (event.type !== 'session_detached') return [];
  return sessions.get(event.sessionId)?.takenOver?.id === event.attachmentId ? [event] : [];
}
