/** "Did you mean": the known word nearest to a mistyped one. */

/** Of longer words only the beginning is compared. */
const lengthMax = 64;

/** Comparing words is slow: with more of them nothing is suggested. */
const wordsMax = 1_000;

/** The word with the fewest typing mistakes, if it is close enough; undefined otherwise. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (known.length > wordsMax) return undefined;
  let best: string | undefined;
  let fewest = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const candidate of known) {
    const mistakes = distance(word.toLowerCase().slice(0, lengthMax), candidate.toLowerCase().slice(0, lengthMax));
    if (mistakes >= fewest) continue;
    fewest = mistakes;
    best = candidate;
  }
  return best;
}

/** `; did you mean "x"?`, or nothing. */
export function hint(word: string, known: Iterable<string>): string {
  const near = nearest(word, [...known]);
  return near === undefined ? '' : `; did you mean ${JSON.stringify(near)}?`;
}

/** Insertions, deletions, changes and swaps of letters (Damerau–Levenshtein, restricted). */
function distance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const change = (last[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let least = Math.min((last[j] as number) + 1, (row[j - 1] as number) + 1, change);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwap) least = Math.min(least, (beforeLast[j - 2] as number) + 1);
      row.push(least);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] as number;
}
