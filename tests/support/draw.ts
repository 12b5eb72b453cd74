/** Repeatable random numbers, which depend on a seed alone. */

/** The seed of random tests unless TEST_SEED=N sets another, so that a green run stays green. */
export const testSeed = Number(process.env.TEST_SEED ?? 20_260_102);

/** An integer from 0 to below `max`, by the seed and the draw's number (the mixing steps of splitmix32). */
export function draw(seed: number, nth: number, max: number): number {
  let mixed = (seed * 0x9e3779b9 + nth * 0x85ebca6b) >>> 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
  return ((mixed ^ (mixed >>> 15)) >>> 0) % max;
}
