/** What a benchmark says: figures with their units, and how they are put into a table. */
import { loadavg } from 'node:os';

export interface Figure {
  readonly what: string;
  /** The figure with its unit. */
  readonly value: string;
  /** What it is compared with or should be; absent = nothing. */
  readonly beside?: string;
}

export interface Benchmark {
  /** One sentence: what is measured, and of what. */
  readonly about: string;
  run(): Promise<Figure[]>;
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

/** MB (10^6 bytes) a second. */
export function formatRate(bytes: number, ms: number): string {
  return `${(bytes / 1000 / ms).toFixed(0)} MB/s`;
}

export function ratio(one: number, other: number): string {
  return `${(one / other).toFixed(2)} ×`;
}

/** The one in the middle; of an even number the lower one. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

/** Milliseconds that `action` takes. */
export function timed(action: () => void): number {
  const begin = performance.now();
  action();
  return performance.now() - begin;
}

export function load(): string {
  return loadavg()
    .map((average) => average.toFixed(1))
    .join(' ');
}
