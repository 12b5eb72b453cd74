/** The engine and the machines of a fleet, made up: what they are told is noted, what they say is said by the test. */
import { ok } from '../../../src/core/failure.ts';
import type { WishPlace } from '../../../src/fleet/engine.ts';
import { labelsOf } from '../../../src/fleet/engine.ts';
import type { FleetLink } from '../../../src/fleet/engine-link.ts';
import type { RegisteredHost } from '../../../src/fleet/registry.ts';
import {
  type HostAbilities,
  type RefusedLogin,
  type ToGroup,
  type ToHost,
  wireVersion,
} from '../../../src/fleet/wire.ts';

export const abilities: HostAbilities = {
  ...{ wire: wireVersion, version: '1', claudeVersion: '2' },
  logins: [],
};

/** What the engine and the machines hear and say. */
export class VirtualLink implements FleetLink {
  readonly wished = new Map<string, { sessionId: string; labels: readonly string[] }>();
  readonly said: string[] = [];
  /** Who has said hello last. */
  asker = '';
  readonly greeted: string[] = [];
  reconnect: () => void = () => {};
  readonly blobs: FleetLink['blobs'] = {
    putBlob: async (id, bytes) => ok({ id, pieces: 1, size: bytes.length }),
    hasBlob: async () => ok(true),
    getBlob: async () => ok(new Uint8Array(0)),
    dropBlob: async () => {},
  };
  /** Milliseconds that each lease holds; null = the engine does not answer. */
  left: number | null | 'unreachable' = 60_000;
  machines: RegisteredHost[] = [];
  hear: (message: ToGroup, taken: () => void) => void = () => {};

  async wish(sessionId: string, place: WishPlace) {
    this.wished.set(place.job, { sessionId, labels: labelsOf(place.labelSet) });
    return ok(place);
  }
  readonly withdrawn: string[] = [];
  async withdraw({ job }: WishPlace): Promise<boolean> {
    this.withdrawn.push(job);
    return this.wished.delete(job);
  }
  async deadWishes(): Promise<ReadonlySet<WishPlace>> {
    return new Set();
  }
  send(host: string, message: ToHost): void {
    if (message.kind === 'hello') {
      this.asker = message.asker;
      this.greeted.push(host);
      return;
    }
    this.said.push(`${host}: ${message.token} ${message.n} ${message.command.do}`);
  }
  onConnect(action: () => void): void {
    this.reconnect = action;
  }
  listen(hear: VirtualLink['hear']): void {
    this.hear = hear;
  }
  async look(places: readonly WishPlace[]) {
    if (this.left === 'unreachable') return null;
    return { left: places.map(() => this.left as number | null), server: 'one' };
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

  get open(): string[] {
    return [...this.wished.values()].map(({ sessionId, labels }) => [sessionId.slice(0, 3), ...labels].join(' '));
  }

  offer(sessionId: string, job: string, token = `one:${job}`, login?: string): void {
    this.wished.delete(job);
    const able = login === undefined ? abilities : { ...abilities, loginKey: login };
    this.hear({ kind: 'offer', host: 'one', token, job, sessionId, abilities: able }, () => {});
  }
}
