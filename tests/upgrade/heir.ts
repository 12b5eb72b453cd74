/** A user who has upgraded, and goes on with what an earlier program left. */
import { Night } from '../cli/night.ts';
import type { Rig } from '../support/fake-claude-rig.ts';
import { type KeptGroup, type KeptName, type Unpacking, unpack } from './home-file.ts';

export class Heir extends Night {
  readonly #rig: Rig;

  constructor(rig: Rig) {
    super(rig);
    this.#rig = rig;
  }

  /** The group, with its workers alive again; its sessions go by their names from now on. */
  inherit(kept: KeptName, alter?: Unpacking['alter']): KeptGroup {
    const group = unpack(this.folder, kept, { standIn: this.#rig, ...(alter ? { alter } : {}) });
    for (const [name, id] of Object.entries(group.sessions)) this.note(name, id);
    return group;
  }

  /** Attempts that were begun of the session, in the whole log. */
  attempts(groupId: string, name: string): number {
    const begun = this.events(groupId).filter(
      (event) => event.type === 'session_starting' && event.sessionId === this.id(name),
    );
    return new Set(begun.map((event) => event.type === 'session_starting' && event.attempt.id)).size;
  }

  shown(groupId: string): Promise<Shown> {
    return this.json<Shown>('group', 'show', groupId);
  }
}

interface Shown {
  readonly status: string;
  /** US dollars. */
  readonly cost: number;
}

/** Puts another time (ms since 1970, whole seconds) in the place of the reset that claude had named. */
export function resettingAt(atMs: number): (text: string) => string {
  return (text) =>
    text
      .replaceAll('2099-01-01T00:00:00.000Z', new Date(atMs).toISOString())
      .replaceAll('4070908800000', String(atMs))
      .replaceAll('4070908800', String(atMs / 1_000));
}
