/** A fake engine with fake hosts: messages to them are recorded, and the test sends their messages. */
import { fail, ok } from '../../../src/core/failure.ts';
import type { FleetLink } from '../../../src/fleet/engine-link.ts';
import type { SlotLeases } from '../../../src/fleet/redis.ts';
import type { RegisteredHost } from '../../../src/fleet/registry.ts';
import {
  type HostAbilities,
  type RefusedLogin,
  type ToGroup,
  type ToHost,
  wireVersion,
} from '../../../src/fleet/wire.ts';

export const hostAbilities: HostAbilities = {
  ...{ wire: wireVersion, version: '1', claudeVersion: '2' },
};

/** Messages received and sent by engine and hosts. */
export class VirtualLink implements FleetLink {
  /** Tokens of the slots that are held. */
  readonly held: string[] = [];
  readonly said: string[] = [];
  /** The last sender of a hello. */
  asker = '';
  readonly greeted: string[] = [];
  reconnect: () => void = () => {};
  readonly blobs: FleetLink['blobs'] = {
    putBlob: async (id, bytes) => ok({ id, pieces: 1, size: bytes.length, digest: '' }),
    getBlob: async () => ok(new Uint8Array(0)),
    dropBlob: async () => {},
  };
  /** Milliseconds that each lease holds; null = the engine does not answer. */
  left: number | null | 'unreachable' = 60_000;
  machines: RegisteredHost[] = [];
  hear: (message: ToGroup) => void = () => {};

  readonly slots: SlotLeases = {
    take: async ({ token }) => {
      this.held.push(token);
      return ok(true);
    },
    renew: async () => ok(new Set()),
    free: async ({ token }) => {
      this.held.splice(this.held.indexOf(token), 1);
      return ok(undefined);
    },
    look: async (leases) => {
      if (this.left === 'unreachable') return fail('timeout', 'The engine does not answer.', '');
      return ok(leases.map(() => this.left as number | null));
    },
  };
  send(host: string, message: ToHost): void {
    if (message.kind === 'hello') {
      this.asker = message.asker;
      this.greeted.push(host);
      return;
    }
    this.said.push(`${host}: ${message.token} ${message.command.do}`);
  }
  onConnect(action: () => void): void {
    this.reconnect = action;
  }
  listen(hear: VirtualLink['hear']): void {
    this.hear = hear;
  }
  async hosts() {
    return ok(this.machines);
  }
  readonly refused: string[] = [];
  async refuseLogin(host: string, { key = 'any', trouble }: RefusedLogin) {
    this.refused.push(`${host} ${key}: ${trouble}`);
    return ok(undefined);
  }
  async close(): Promise<void> {}

  /** A host that accepts everything. */
  has(name: string, loginKey?: string): void {
    const able = loginKey === undefined ? hostAbilities : { ...hostAbilities, loginKey };
    const state = { silentMs: 0, since: 0, seenAt: 0, isDrained: false, isGuarded: true, leaseMs: 60_000 };
    this.machines = [{ name, labels: [], slots: 4, used: 0, abilities: able, ...state }];
  }
}
