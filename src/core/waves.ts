/** Canary waves as a user writes them: the sizes, and the rule by which the next wave starts. */
import type { SessionDefinition, SessionId } from './group.ts';
import { formatMoney } from './text.ts';

const sizePattern = /^(?:[1-9]\d{0,5}|(?:[1-9]\d?|100)%|rest)$/;

/** The problem with a list of waves, as the rest of a sentence about it. */
export function wavesProblem(waves: unknown): string | null {
  if (!Array.isArray(waves) || waves.length < 2) return 'must be at least two sizes of waves, such as 3,20%,rest';
  const wrong = waves.find((size) => typeof size !== 'string' || !sizePattern.test(size));
  if (wrong !== undefined)
    return `must be numbers, percentages from 1% and "rest", such as 3,20%,rest; ${JSON.stringify(wrong)} is not valid`;
  return waves.indexOf('rest') === waves.length - 1 ? null : 'must end with "rest", which occurs once';
}

function countIn(size: string, total: number): number {
  if (size === 'rest') return total;
  return size.endsWith('%') ? Math.ceil((total * Number.parseInt(size, 10)) / 100) : Number(size);
}

/**
 * The wave, from 1, of each session made by a matrix; each workflow entry is counted separately. A session is in no
 * earlier wave than its dependencies. An entry whose first wave needs wave 3 of another one starts with wave 3, so that
 * its own first wave stays small. `added` has the order of the file, `sorted` has dependencies first.
 */
export function assignWaves(
  added: readonly SessionDefinition[],
  sorted: readonly SessionDefinition[],
  waves: readonly string[],
): ReadonlyMap<SessionId, number> {
  const entries = Map.groupBy(
    added.filter(({ matrix }) => matrix !== undefined),
    ({ matrix }) => matrix as string,
  );
  const own = new Map<SessionId, number>();
  for (const entry of entries.values()) {
    let begin = 0;
    for (const [index, size] of waves.entries()) {
      const end = begin + countIn(size, entry.length);
      for (const { id } of entry.slice(begin, end)) own.set(id, index + 1);
      begin = end;
    }
  }
  let offsets = new Map<string, number>();
  let found = new Map<SessionId, number>();
  // Each round settles at least one more entry.
  for (let round = 0; round <= entries.size; round += 1) {
    const next = new Map<string, number>();
    found = new Map();
    for (const { id, matrix = '', dependsOn } of sorted) {
      const before = Math.max(0, ...dependsOn.map((other) => found.get(other) ?? 0));
      const wave = own.get(id);
      found.set(id, Math.max(before, wave === undefined ? 0 : wave + (offsets.get(matrix) ?? 0)));
      if (wave === 1) next.set(matrix, Math.max(next.get(matrix) ?? 0, before - 1));
    }
    offsets = next;
  }
  const numbers = [...new Set([...own.keys()].map((id) => found.get(id) ?? 0))].toSorted((a, b) => a - b);
  return new Map([...own.keys()].map((id) => [id, numbers.indexOf(found.get(id) ?? 0) + 1]));
}

export interface WaveResults {
  /** Number of sessions. */
  readonly size: number;
  /** Number of completed sessions. */
  readonly accepted: number;
  /** US dollars. */
  readonly cost: number;
}

interface Term {
  /** Why the results do not satisfy it; null when they do. */
  failure(results: WaveResults, quoteUsd: number | null): string | null;
}

const ruleExample = '"accepted >= 2/3 and cost <= quote"';

/** The terms of a rule, or the problem with it, as the rest of a sentence about it. */
export function parseContinueIf(text: string): readonly Term[] | string {
  const terms: Term[] = [];
  for (const part of text.trim().split(/\s+and\s+/)) {
    const term = acceptedTerm(part) ?? costTerm(part);
    if (term === null) {
      const forms = 'accepted >= N, N/M or N%, and cost <= $X or quote';
      return `must have terms such as ${ruleExample}; ${JSON.stringify(part)} is none of: ${forms}`;
    }
    terms.push(term);
  }
  return terms;
}

function acceptedTerm(text: string): Term | null {
  const [, number = '', of, percent] = /^accepted\s*>=\s*(\d{1,6})(?:\/(\d{1,6})|(%))?$/.exec(text) ?? [];
  const whole = of === undefined ? (percent === undefined ? undefined : 100) : Number(of);
  if (number === '' || (whole !== undefined && Number(number) > whole) || whole === 0) return null;
  return {
    failure({ size, accepted }) {
      const isMet = whole === undefined ? accepted >= Number(number) : accepted * whole >= Number(number) * size;
      return isMet ? null : `${accepted} of ${size} accepted, fewer than ${number}${percent ?? (of ? `/${of}` : '')}`;
    },
  };
}

function costTerm(text: string): Term | null {
  const [, limit] = /^cost\s*<=\s*(quote|\$\d+(?:\.\d+)?)$/.exec(text) ?? [];
  if (limit === undefined) return null;
  return {
    failure({ cost }, quoteUsd) {
      const usd = limit === 'quote' ? quoteUsd : Number(limit.slice(1));
      if (usd === null) return 'there was no estimate of its cost when the run began';
      return cost <= usd ? null : `it cost ${formatMoney(cost)}, more than ${formatMoney(usd)}`;
    },
  };
}
