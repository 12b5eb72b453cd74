/**
 * Wishes for slots: put, taken back, and put again when nobody will ever grant them. A machine that is preferred is
 * asked alone at first.
 */
import type { SessionId } from '../core/group.ts';
import type { Needs, Wish } from '../core/plan/decision.ts';
import type { WishPlace } from './engine.ts';
import { hostLabel, labelSetOf } from './engine.ts';
import type { FleetLink } from './engine-link.ts';
import { type RegisteredHost, takesNew } from './registry.ts';

/** Others wait no longer for one that nobody grants, and it no longer for one machine alone. */
const longWishMs = 5_000;
/** A question that was not answered is not asked of the engine any more after that. */
const unsureMs = 60_000;

interface Wished {
  readonly needs: Needs;
  /** 1 goes first. */
  readonly priority: number;
  readonly sinceMs: number;
  readonly asked: Wish['prefer'];
  /** The machine that is asked alone; undefined = any that has what is needed. */
  prefer: Wish['prefer'];
  place?: WishPlace;
  placedFor?: Wish['prefer'];
  isMoving: boolean;
  wasLong?: true;
}

export interface WishesOptions {
  readonly newId: () => string;
  readonly nowMs: () => number;
  /** The machines as they are now; null = not known. */
  readonly hosts: () => Promise<readonly RegisteredHost[] | null>;
  /** One could not be put: whoever still wants it wishes anew. */
  readonly onFailure: () => void;
}

export class Wishes {
  readonly #link: FleetLink;
  readonly #options: WishesOptions;
  readonly #wished = new Map<SessionId, Wished>();
  /** Nobody wants them, and somebody holds them; or they may still get there until then, for all that is known. */
  readonly #held = new Map<WishPlace, number>();
  #isLooking = false;

  constructor(link: FleetLink, options: WishesOptions) {
    this.#link = link;
    this.#options = options;
  }

  isLong(sessionId: SessionId): boolean {
    const wished = this.#wished.get(sessionId);
    return wished !== undefined && this.#age(wished) >= longWishMs;
  }

  #age({ sinceMs }: Wished): number {
    return this.#options.nowMs() - sinceMs;
  }

  want(wishes: readonly Wish[]): void {
    const wanted = new Map(wishes.map((wish, index) => [wish.sessionId, { ...wish, priority: index + 1 }]));
    for (const [sessionId, wished] of this.#wished) {
      const now = wanted.get(sessionId);
      const isSame = now?.prefer === wished.asked && JSON.stringify(now?.needs) === JSON.stringify(wished.needs);
      if (now !== undefined && isSame) wanted.delete(sessionId);
      else this.#withdraw(sessionId, wished);
    }
    for (const [sessionId, { needs, priority, prefer }] of wanted) {
      const sinceMs = this.#options.nowMs();
      const wished: Wished = { needs, priority, sinceMs, asked: prefer, prefer, isMoving: false };
      this.#wished.set(sessionId, wished);
      void this.#begin(sessionId, wished);
    }
  }

  #withdraw(sessionId: SessionId, { place }: Wished): void {
    this.#wished.delete(sessionId);
    if (place !== undefined) void this.takeBack(place);
  }

  /** Tried until it is done, because a machine that took the wish may be gone before it offers the slot. */
  async takeBack(place: WishPlace): Promise<void> {
    if (!(await this.#link.withdraw(place))) this.#held.set(place, 0);
  }

  async #begin(sessionId: SessionId, wished: Wished): Promise<void> {
    if (wished.prefer !== undefined) this.#judge(wished, await this.#options.hosts());
    await this.#put(sessionId, wished);
  }

  /** One that takes nothing is not waited for. */
  #judge(wished: Wished, hosts: readonly RegisteredHost[] | null): void {
    const isThere = hosts?.some((host) => host.name === wished.prefer && takesNew(host)) ?? true;
    if (!isThere || this.#age(wished) >= longWishMs) wished.prefer = undefined;
  }

  async #put(sessionId: SessionId, wished: Wished): Promise<void> {
    if (!this.#isWanted(sessionId, wished)) return;
    const { needs, prefer, priority } = wished;
    const host = needs.host ?? prefer;
    const labels = [...(needs.requires ?? []), ...(host === undefined ? [] : [hostLabel(host)])];
    const place = { labelSet: labelSetOf(labels), job: this.#options.newId() };
    const placed = await this.#link.wish(sessionId, place, priority);
    if (placed.ok && this.#isWanted(sessionId, wished)) {
      wished.place = place;
      wished.placedFor = prefer;
    } else if (placed.ok) void this.takeBack(place);
    else {
      // What was not answered may be done later.
      this.#held.set(place, this.#options.nowMs() + unsureMs);
      if (this.#isWanted(sessionId, wished)) this.#wished.delete(sessionId);
      this.#options.onFailure();
    }
  }

  #isWanted(sessionId: SessionId, wished: Wished): boolean {
    return this.#wished.get(sessionId) === wished;
  }

  isBeingPut(sessionId: SessionId): boolean {
    const wished = this.#wished.get(sessionId);
    return wished !== undefined && (wished.place === undefined || wished.isMoving);
  }

  /** A machine has granted that wish, which is none any more; undefined when nobody wants it. */
  granted(sessionId: SessionId, job: string): WishPlace | undefined {
    const place = this.#wished.get(sessionId)?.place;
    if (place?.job !== job) return undefined;
    this.#wished.delete(sessionId);
    return place;
  }

  /** To be called again and again; `hosts` as they were listed last. True when one has become long since. */
  tick(hosts: readonly RegisteredHost[] | null): boolean {
    let hasNew = false;
    for (const [sessionId, wished] of this.#wished) {
      if (!wished.wasLong && this.isLong(sessionId)) {
        wished.wasLong = true;
        hasNew = true;
      }
      if (wished.prefer !== undefined) this.#judge(wished, hosts);
      if (wished.placedFor !== wished.prefer) void this.#putAgain(sessionId, wished);
    }
    return hasNew;
  }

  /** Puts a wish again when the machine that took it died, or when the engine has forgotten it. */
  async look(): Promise<void> {
    const placed = [...this.#wished].filter(([, { place, isMoving }]) => place !== undefined && !isMoving);
    if (this.#isLooking || placed.length + this.#held.size === 0) return;
    this.#isLooking = true;
    const dead = await this.#link.deadWishes([
      ...placed.map(([, { place }]) => place as WishPlace),
      ...this.#held.keys(),
    ]);
    this.#isLooking = false;
    for (const [place, unsureUntilMs] of this.#held) {
      const isWithdrawn = await this.#link.withdraw(place);
      const isGone = dead.has(place) && this.#options.nowMs() >= unsureUntilMs;
      if (isWithdrawn || isGone) this.#held.delete(place);
    }
    for (const [sessionId, wished] of placed) {
      if (wished.place !== undefined && dead.has(wished.place)) void this.#putAgain(sessionId, wished);
    }
  }

  async #putAgain(sessionId: SessionId, wished: Wished): Promise<void> {
    const { place } = wished;
    // What is not put yet is put with what is preferred by then.
    if (place === undefined || wished.isMoving || !this.#isWanted(sessionId, wished)) return;
    wished.isMoving = true;
    // One that somebody holds is about to be granted; one that is gone altogether cannot be taken back either.
    const isFree = (await this.#link.withdraw(place)) || (await this.#link.deadWishes([place])).has(place);
    if (isFree) await this.#put(sessionId, wished);
    wished.isMoving = false;
  }
}
