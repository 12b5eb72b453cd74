/** What a benchmark says: figures with their units, spread and targets. */
import { loadavg } from 'node:os';

export interface Figure {
  readonly what: string;
  /** The median with its unit, or why there is none. */
  readonly value: string;
  /** From the best to the worst, and of how many runs. */
  readonly spread?: string;
  /** How it compares with what is named there. */
  readonly ratio?: string;
  readonly target?: Target;
  /** What the target says of the same thing elsewhere, on a disk for example: told, but not counted. */
  readonly aside?: Target;
  readonly note?: string;
  /** A peer that is not installed here. */
  readonly isMissing?: true;
}

export interface Target {
  /** As people write it: `≤ 20 ms`. */
  readonly text: string;
  readonly isMet: boolean;
}

/** How much is measured. */
export interface Effort {
  /** One round of everything, and less of it: to try out the benchmarks, not to publish figures. */
  readonly isQuick: boolean;
  /** Runs of which the median is taken. */
  readonly rounds: number;
}

export interface Benchmark {
  /** One sentence: what is measured, and of what. */
  about(effort: Effort): string;
  run(effort: Effort): Promise<Figure[]>;
}

export const mib = 1024 ** 2;

export function formatBytes(bytes: number): string {
  if (bytes >= mib) return `${(bytes / mib).toFixed(bytes >= 100 * mib ? 0 : 1)} MiB`;
  return bytes >= 1024 ? `${(bytes / 1024).toFixed(1)} KiB` : `${bytes} B`;
}

export function formatMs(ms: number): string {
  if (ms >= 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms >= 1) return `${ms.toFixed(ms >= 100 ? 0 : 1)} ms`;
  return `${(ms * 1000).toFixed(ms >= 0.1 ? 0 : 1)} µs`;
}

export function formatRatio(ratio: number): string {
  return `${ratio.toFixed(2)} ×`;
}

export function ratio(one: number, other: number): string {
  return formatRatio(one / other);
}

/** The one in the middle; of an even number the lower one. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

/** Median and spread of the same thing measured several times. */
export function measured(
  what: string,
  values: readonly number[],
  format: (value: number) => string = formatMs,
): Pick<Figure, 'what' | 'value' | 'spread'> {
  const spread = `${format(Math.min(...values))} … ${format(Math.max(...values))}, ${values.length} runs`;
  return { what, value: format(median(values)), ...(values.length > 1 ? { spread } : {}) };
}

export function atMost(value: number, limit: number, format: (value: number) => string = formatMs): Target {
  return { text: `≤ ${format(limit)}`, isMet: value <= limit };
}

/** A row for each peer that cannot be compared with, because its programs are not here. */
export function missing(name: string, programs: readonly string[]): Figure {
  return { what: name, value: 'not installed', note: `${programs.join(' and ')} not found on PATH`, isMissing: true };
}

/** Those of the programs that are not on PATH. */
export function lacking(programs: readonly string[]): string[] {
  return programs.filter((name) => Bun.which(name) === null);
}

export function load(): string {
  return loadavg()
    .map((average) => average.toFixed(1))
    .join(' ');
}
