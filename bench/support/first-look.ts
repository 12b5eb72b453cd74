/** What `--quick` does within a minute on any machine: one benchmark after the other, as long as there is time. */

/** None begins later than this, milliseconds: the longest of them takes less than what is left of a minute. */
const beginWithinMs = 35_000;

/**
 * Runs them in order; the names of those that were left out because time was up. Those that were asked for by name are
 * all run. `now` in milliseconds.
 */
export async function runThose(
  names: readonly string[],
  isFirstLook: boolean,
  now: () => number,
  run: (name: string) => Promise<void>,
): Promise<string[]> {
  const begin = now();
  const left: string[] = [];
  for (const name of names) {
    if (isFirstLook && now() - begin > beginWithinMs) left.push(name);
    else await run(name);
  }
  return left;
}
