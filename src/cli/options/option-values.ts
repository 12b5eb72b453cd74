/**
 * cli/options/: what options mean. This file: their values, checked before anything happens: numbers, names, free text.
 * Commander shows the sentences.
 */
import { InvalidArgumentError } from '@commander-js/extra-typings';
import type { ContextName } from '../../core/definitions.ts';
import { parseSetting, type ValueRule } from '../../core/setting-values.ts';
import { ageMs, isWhole, plainNamePattern, plainNameRule, slotsMax } from '../../core/values.ts';
import { shellCommand } from '../../template/workflow/work-settings.ts';

export function parserOf<T>(rule: ValueRule): (text: string) => T {
  return (text) => {
    const parsed = parseSetting(rule, text);
    if ('problem' in parsed) throw new InvalidArgumentError(`It ${parsed.problem}.`);
    return parsed.value as T;
  };
}

export const parseMoney = parserOf<number>({ kind: 'money' });
export const parseText = parserOf<string>({ kind: 'line' });
export const parseContext = parserOf<readonly ContextName[]>({ kind: 'systems' });
export const parseMegabytes = parserOf<number>({ kind: 'megabytes', max: 100_000_000 });

/** A shell command. */
export function parseCommand(text: string): string {
  const found = shellCommand(text);
  if (found.ok) return found.command;
  throw new InvalidArgumentError(`${found.problem[0]?.toUpperCase()}${found.problem.slice(1)}.`);
}

export function parseAge(text: string): number {
  const ms = ageMs(text);
  if (ms === null) throw new InvalidArgumentError('It must be a time such as 12h, 30d or 365d.');
  return ms;
}

export function parseKept(text: string): number {
  return parseWhole(text, 1_000_000, 0);
}

function parseWhole(text: string, max: number, min = 1): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!isWhole(value, max, min)) {
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  }
  return value;
}

export function collect(text: string, before: readonly string[] | false = []): readonly string[] {
  // False: the option had been taken back by its negation.
  return [...(before || []), text];
}

/** A regular expression. Escapes that are none, as in `a\-b`, are allowed where they mean the same with and without. */
export function parsePattern(text: string): RegExp {
  for (const flags of ['u', '']) {
    try {
      return new RegExp(text, flags);
    } catch {}
  }
  throw new InvalidArgumentError('It must be a regular expression as JavaScript knows them.');
}

export function parseWorkId(text: string): string {
  const id = text.replace(/^#/, '');
  if (plainNamePattern.test(id)) return id;
  throw new InvalidArgumentError(`It must have ${plainNameRule}, such as 258 or ABC-12.`);
}

export function parseLease(text: string): number {
  return parseWhole(text, 3_600, 2) * 1_000;
}

/** Sessions that a machine may run at once. */
export function parseSlots(text: string): number {
  return parseWhole(text, slotsMax);
}
