/**
 * The likely cost of sessions, from earlier ones of the same kind. Without history there is no estimate: users would
 * rely on an invented figure.
 */

export interface Sample {
  /** Name of the prompt template; absent for a free prompt. */
  readonly template?: string;
  /** The requested model, or the one that claude chose. */
  readonly model?: string;
  readonly costUsd: number;
  /** Milliseconds over all attempts. */
  readonly durationMs: number;
}

/** Half of the earlier sessions were below `p50`, nine of ten below `p90`. */
export interface Spread {
  readonly p50: number;
  readonly p90: number;
}

export interface Forecast {
  /** Number of earlier sessions. */
  readonly samples: number;
  readonly costUsd: Spread;
  readonly durationMs: Spread;
}

export type Kind = Pick<Sample, 'template' | 'model'>;

export interface History {
  forecast(kind: Kind): Forecast | null;
}

export function costHistory(samples: readonly Sample[]): History {
  const byKind = new Map<string, Sample[]>();
  for (const sample of samples) {
    const key = keyOf(sample);
    const known = byKind.get(key);
    if (known === undefined) byKind.set(key, [sample]);
    else known.push(sample);
  }
  return {
    forecast(kind) {
      const found = byKind.get(keyOf(kind));
      if (found === undefined) return null;
      return {
        samples: found.length,
        costUsd: spreadOf(found.map(({ costUsd }) => costUsd)),
        durationMs: spreadOf(found.map(({ durationMs }) => durationMs)),
      };
    },
  };
}

function keyOf({ template, model }: Kind): string {
  return JSON.stringify([template ?? null, model ?? null]);
}

function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  return { p50: nearestRank(sorted, 0.5), p90: nearestRank(sorted, 0.9) };
}

/** The nearest-rank percentile: always a value that really occurred. */
function nearestRank(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] as number;
}
