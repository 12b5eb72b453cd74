/** Repeatable random numbers: every random choice of a simulation comes from one seed. */

export class Seeded {
  #a: number;

  constructor(seed: number) {
    this.#a = seed >>> 0;
  }

  /** 0 ≤ value < 1 (mulberry32). */
  next(): number {
    this.#a = (this.#a + 0x6d2b79f5) >>> 0;
    let t = this.#a;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** An integer, both ends included. */
  int(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.next() * list.length)] as T;
  }

  /** Mostly the small value, rarely the large one: the distribution of delays on real machines. */
  delay(usualMs: number, rareMs: number): number {
    return this.chance(0.03) ? this.next() * rareMs : this.next() * usualMs;
  }

  uuid(): string {
    const hex = () =>
      Math.floor(this.next() * 0x10000)
        .toString(16)
        .padStart(4, '0');
    return `${hex()}${hex()}-${hex()}-4${hex().slice(1)}-8${hex().slice(1)}-${hex()}${hex()}${hex()}`;
  }
}

/** A separate source for one purpose, so that leaving it out does not change other random numbers. */
export function seededFor(seed: number, name: string): Seeded {
  let hash = 2_166_136_261 ^ seed;
  for (let index = 0; index < name.length; index += 1) hash = Math.imul(hash ^ name.charCodeAt(index), 16_777_619);
  return new Seeded(Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) ^ seed);
}
