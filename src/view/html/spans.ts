/** Stretches of time: laid over one another, joined, and taken away from each other. Times are ms since 1970. */

export interface Span {
  readonly from: number;
  readonly to: number;
}

export interface Piece<Kind> extends Span {
  readonly kind: Kind;
}

/** The pieces in order, with `kind` wherever a span covers them. `spans` are in order and do not overlap. */
export function paint<Kind>(pieces: readonly Piece<Kind>[], spans: readonly Span[], kind: Kind): Piece<Kind>[] {
  if (spans.length === 0) return [...pieces];
  const painted: Piece<Kind>[] = [];
  const add = (from: number, to: number, what: Kind): void => {
    if (to <= from) return;
    const last = painted.at(-1);
    if (last?.kind === what && last.to === from) painted[painted.length - 1] = { from: last.from, to, kind: what };
    else painted.push({ from, to, kind: what });
  };
  for (const piece of pieces) {
    let at = piece.from;
    for (let index = firstEndingAfter(spans, piece.from); index < spans.length; index += 1) {
      const span = spans[index] as Span;
      if (span.from >= piece.to) break;
      add(at, Math.max(at, span.from), piece.kind);
      at = Math.max(at, span.from);
      add(at, Math.min(piece.to, span.to), kind);
      at = Math.max(at, Math.min(piece.to, span.to));
    }
    add(at, piece.to, piece.kind);
  }
  return painted;
}

/** Place of the first span that ends after `at`, by binary search. */
function firstEndingAfter(spans: readonly Span[], at: number): number {
  let low = 0;
  let high = spans.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((spans[middle] as Span).to <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Everything that any of the spans covers: in order, without overlap and without empty spans. */
export function union(spans: readonly Span[]): Span[] {
  const joined: Span[] = [];
  for (const span of spans.filter(({ from, to }) => to > from).sort((a, b) => a.from - b.from)) {
    const last = joined.at(-1);
    if (last === undefined || span.from > last.to) joined.push({ from: span.from, to: span.to });
    else if (span.to > last.to) joined[joined.length - 1] = { from: last.from, to: span.to };
  }
  return joined;
}

/** What of `spans` no span of `others` covers; both as `union` makes them. */
export function subtract(spans: readonly Span[], others: readonly Span[]): Span[] {
  const pieces = spans.map(({ from, to }): Piece<boolean> => ({ from, to, kind: true }));
  return paint(pieces, others, false)
    .filter(({ kind }) => kind)
    .map(({ from, to }) => ({ from, to }));
}

/** Something that is so or is not so, as time goes on. */
export class Track {
  private readonly ended: Span[] = [];
  private since: number | undefined;

  /** From `at` on it is so, or is not. */
  set(isOn: boolean, at: number): void {
    if (isOn) this.since ??= at;
    else if (this.since !== undefined) {
      if (at > this.since) this.ended.push({ from: this.since, to: at });
      this.since = undefined;
    }
  }

  /** In order; what is still so ends at `end`. */
  spans(end: number): Span[] {
    if (this.since === undefined || end <= this.since) return this.ended;
    return [...this.ended, { from: this.since, to: end }];
  }
}
