/**
 * cli/options/: what options mean. This file: their values, checked before anything happens: numbers, names, free text.
 * Commander shows the sentences.
 */
import { InvalidArgumentError } from '@commander-js/extra-typings';
import type { ContextName } from '../../core/group.ts';
import {
  acceptRetriesMax,
  ageMs,
  concurrentMax,
  contextSystems,
  durationMs,
  hostNamePattern,
  hostNameRule,
  isMoneyUsd,
  isWhole,
  labelPattern,
  labelRule,
  labelsMax,
  lineProblem,
  memoryMb,
  moneyUsd,
  permissionRules,
  plainNamePattern,
  plainNameRule,
  processesRange,
  retriesMax,
  sessionNameLengthMax,
  sessionNamePattern,
  slotsMax,
  thresholdMax,
  wordPattern,
  wordRule,
} from '../../core/values.ts';
import { shellCommand } from '../../template/workflow/command-text.ts';

const number = /^(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;

/** US dollars, more than nothing. */
export function parseMoney(text: string): number {
  const value = toNumber(text.replace(/^\$/, ''));
  if (!isMoneyUsd(value)) {
    throw new InvalidArgumentError(`It must be an amount in US dollars from ${moneyUsd.min} to ${moneyUsd.max}.`);
  }
  return value;
}

/** A share: more than 0, at most 1. */
export function parseShare(text: string): number {
  const value = toNumber(text);
  if (!(value > 0 && value <= 1))
    throw new InvalidArgumentError('It must be a share above 0 and up to 1, such as 0.8.');
  return value;
}

/** How many sessions may run at once. */
export function parseConcurrent(text: string): number {
  return parseWhole(text, concurrentMax);
}

/** Failures after which nothing new starts. */
export function parseThreshold(text: string): number {
  return parseWhole(text, thresholdMax);
}

/** Further attempts after a transient failure. */
export function parseRetries(text: string): number {
  return parseWhole(text, retriesMax, 0);
}

/** How often claude may mend what the accept command found. */
export function parseAcceptRetries(text: string): number {
  return parseWhole(text, acceptRetriesMax, 0);
}

/** A shell command. */
export function parseCommand(text: string): string {
  const found = shellCommand(text);
  if (found.ok) return found.command;
  throw new InvalidArgumentError(`${found.problem[0]?.toUpperCase()}${found.problem.slice(1)}.`);
}

/** Megabytes (a million bytes) as they are typed; the value is in bytes. */
export function parseMegabytes(text: string): number {
  return parseWhole(text, 100_000_000, 0) * 1_000_000;
}

/** Megabytes as they are typed for what a session may use; the value is in bytes. */
export function parseMemory(text: string): number {
  return parseWhole(text, memoryMb.max, memoryMb.min) * 1_000_000;
}

/** Processes and threads that a session may have. */
export function parseMaxProcesses(text: string): number {
  return parseWhole(text, processesRange.max, processesRange.min);
}

/** A time such as `90s`, `15m` or `1h30m`; the value is in milliseconds. */
export function parseDuration(text: string): number {
  const ms = durationMs(text);
  if (ms === null) throw new InvalidArgumentError('It must be a time from 1s to 30d, such as 90s, 15m, 2h or 1h30m.');
  return ms;
}

/** How long ago something was, such as `30d`; the value is in milliseconds. */
export function parseAge(text: string): number {
  const ms = ageMs(text);
  if (ms === null) throw new InvalidArgumentError('It must be a time such as 12h, 30d or 365d.');
  return ms;
}

/** How many are left, none included. */
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

function toNumber(text: string): number {
  return number.test(text) ? Number(text) : Number.NaN;
}

/** A session's name: used in references and on every line of a report. */
export function parseSessionName(text: string): string {
  if (!sessionNamePattern.test(text)) {
    throw new InvalidArgumentError(
      `It must have 1 to ${sessionNameLengthMax} letters, digits, "-", "_" or ".", ` +
        'not only digits, and begin with a letter or digit.',
    );
  }
  return text;
}

/** One line that says something: names, descriptions. */
export function parseText(text: string): string {
  const problem = lineProblem(text) ?? (text.trim() === '' ? 'must not be blank' : null);
  if (problem !== null) throw new InvalidArgumentError(`It ${problem}.`);
  return text.trim();
}

/** A word without blanks, such as a model's name. */
export function parseWord(text: string): string {
  if (!wordPattern.test(text)) throw new InvalidArgumentError(`It must be ${wordRule}.`);
  return text;
}

/** Permission rules: `Edit,Bash(git log:*)`; may be given several times. */
export function parseRules(text: string, before: readonly string[] = []): readonly string[] {
  const rules = permissionRules(text);
  if (rules !== null) return [...before, ...rules];
  throw new InvalidArgumentError('It must be a list of permission rules such as "Edit,Bash(git log:*)".');
}

/** Context systems separated by commas, or `none`. */
export function parseContext(text: string): readonly ContextName[] {
  const names = contextSystems(text);
  if (names !== null) return names;
  throw new InvalidArgumentError('It must be a list of cpm, faber and handover, or none.');
}

/** For options that may be given several times. */
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

/** Of --work-id, which becomes part of names of folders and branches: 258, #258, ABC-12. */
export function parseWorkId(text: string): string {
  const id = text.replace(/^#/, '');
  if (plainNamePattern.test(id)) return id;
  throw new InvalidArgumentError(`It must have ${plainNameRule}, such as 258 or ABC-12.`);
}

/** What a session asks of a machine; may be given several times. */
export function parseLabel(text: string, before: readonly string[] | false = []): readonly string[] {
  if (!labelPattern.test(text)) throw new InvalidArgumentError(`It must have ${labelRule}.`);
  const labels = collect(text, before);
  if (labels.length > labelsMax) throw new InvalidArgumentError(`At most ${labelsMax} labels can be given.`);
  return labels;
}

/** The name of a machine. */
export function parseHostName(text: string): string {
  if (hostNamePattern.test(text)) return text;
  throw new InvalidArgumentError(`It must have ${hostNameRule}.`);
}

/** Seconds for which a machine may work without an answer; the value is in milliseconds. */
export function parseLease(text: string): number {
  return parseWhole(text, 3_600, 2) * 1_000;
}

/** Sessions that a machine may run at once. */
export function parseSlots(text: string): number {
  return parseWhole(text, slotsMax);
}
