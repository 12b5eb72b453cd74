/** The result of a check of `doctor`. */
import { type Advice, adviceText } from '../../core/advice.ts';

/** `warning`: works with a limitation. `broken`: groups cannot run, or something was left behind. */
export type FindingLevel = 'ok' | 'warning' | 'broken';

export interface Finding {
  readonly check: string;
  readonly level: FindingLevel;
  readonly message: string;
  /** The suggestion; empty if nothing is wrong. */
  readonly next: string;
}

export function finding(check: string, level: FindingLevel, message: string, next: string | Advice): Finding {
  return { check, level, message, next: typeof next === 'string' ? next : adviceText(next) };
}

export function fine(check: string, message: string): Finding {
  return { check, level: 'ok', message, next: '' };
}
