/** Contenders at the same job, measured in turns, so that whatever else the machine does meets all of them alike. */
import { type Figure, lacking, missing } from './figures.ts';

export interface Contender {
  readonly name: string;
  /** Programs without which it cannot take part. */
  readonly needs?: readonly string[];
  /** Does the job once and returns what it took; throws when the job was not done. */
  run(round: number): number | Promise<number>;
}

export interface Standings {
  /** What each that took part took, in the order of the rounds. */
  readonly taken: ReadonlyMap<string, readonly number[]>;
  /** A row for each that could not. */
  readonly absent: readonly Figure[];
}

export async function inTurns(contenders: readonly Contender[], rounds: number): Promise<Standings> {
  const taken = new Map<string, number[]>();
  const absent: Figure[] = [];
  const present = contenders.filter(({ name, needs = [] }) => {
    const programs = lacking(needs);
    if (programs.length > 0) absent.push(missing(name, programs));
    return programs.length === 0;
  });
  for (let round = 0; round < rounds; round += 1) {
    for (const contender of present) {
      const values = taken.get(contender.name) ?? [];
      values.push(await contender.run(round));
      taken.set(contender.name, values);
    }
  }
  return { taken, absent };
}
