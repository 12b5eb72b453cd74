/** Runs code once for every sequence of choices it can make, so that small state spaces are tested completely. */
export class Choices {
  /** The choice made at each point, and the number of options there. */
  private readonly path: { taken: number; of: number }[] = [];
  private at = 0;

  /** A number from 0 to `count` - 1; over all runs each value is returned at this point. */
  choose(count: number): number {
    const known = this.path[this.at];
    if (known === undefined) this.path.push({ taken: 0, of: count });
    else if (known.of !== count) throw new Error(`the run is not deterministic: ${known.of} choices became ${count}`);
    this.at += 1;
    return known?.taken ?? 0;
  }

  /** Moves to the next sequence; false after the last one. */
  advance(): boolean {
    this.at = 0;
    for (let last = this.path.at(-1); last !== undefined; last = this.path.at(-1)) {
      last.taken += 1;
      if (last.taken < last.of) return true;
      this.path.pop();
    }
    return false;
  }
}

/** Calls `run` once for every sequence of choices; returns the number of calls. */
export function forEveryChoice(run: (choices: Choices) => void): number {
  const choices = new Choices();
  let runs = 0;
  do {
    run(choices);
    runs += 1;
  } while (choices.advance());
  return runs;
}

/**
 * Every acyclic graph over `count` sessions as lists of dependencies by index. With `sorted` only those whose sessions
 * depend on earlier ones: every shape at least once, but not every order of definition.
 */
export function everyGraph(count: number, sorted: boolean): number[][][] {
  const edges: [number, number][] = [];
  for (let from = 0; from < count; from += 1) {
    for (let to = 0; to < count; to += 1) if (sorted ? to < from : to !== from) edges.push([from, to]);
  }
  const graphs: number[][][] = [];
  for (let mask = 0; mask < 2 ** edges.length; mask += 1) {
    const dependsOn: number[][] = Array.from({ length: count }, () => []);
    edges.forEach(([from, to], bit) => {
      if (mask & (1 << bit)) dependsOn[from]?.push(to);
    });
    if (sorted || isAcyclic(dependsOn)) graphs.push(dependsOn);
  }
  return graphs;
}

function isAcyclic(dependsOn: readonly (readonly number[])[]): boolean {
  const left = new Set(dependsOn.keys());
  for (;;) {
    const free = [...left].filter((node) => dependsOn[node]?.every((dependency) => !left.has(dependency)));
    if (free.length === 0) return left.size === 0;
    for (const node of free) left.delete(node);
  }
}
