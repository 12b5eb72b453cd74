/** A user who has upgraded, and goes on with what an earlier program left. */
import { join } from 'node:path';
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

  groupFolder(groupId: string): string {
    return join(this.data, 'session-groups', groupId);
  }
}

interface Totals {
  readonly status: string;
  readonly cost: number;
  readonly tokens: object;
  readonly sessions: readonly { readonly status: string; readonly cost?: number }[];
}

/** Of what `group show --json` says. */
export function totals({ status, cost, tokens, sessions }: Totals): Totals {
  return { status, cost, tokens, sessions };
}
