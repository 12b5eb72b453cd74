/**
 * What a session's definition may say, whoever adds it: a user at a command line, or a file that was left for a runner
 * by whatever program.
 */
import { permissionModes, type SessionDefinition } from './group.ts';
import {
  acceptRetriesMax,
  commandProblem,
  hostNamePattern,
  hostNameRule,
  isDurationMs,
  isMoneyUsd,
  isPermissionRule,
  isWhole,
  labelPattern,
  labelRule,
  labelsMax,
  lineProblem,
  memoryMb,
  moneyUsd,
  processesRange,
  promptProblem,
  retriesMax,
  sessionNamePattern,
  sessionNameRule,
  wordPattern,
  wordRule,
} from './values.ts';

type Checks = { readonly [K in keyof SessionDefinition]?: (value: NonNullable<SessionDefinition[K]>) => string | null };

const unless = (isFine: boolean, problem: string): string | null => (isFine ? null : problem);
const aTime = (ms: number) => unless(isDurationMs(ms), 'must be a time from 1s to 30d');

/** `problem` completes a sentence that begins with what it is about. */
const checks: Checks = {
  name: (name) => unless(sessionNamePattern.test(name), `is none: ${sessionNameRule}`),
  description: lineProblem,
  prompt: promptProblem,
  projectPath: (path) => unless(path.startsWith('/') && !path.includes('\0'), 'must be an absolute path'),
  repository: (path) => unless(path.startsWith('/') && !path.includes('\0'), 'must be an absolute path'),
  template: lineProblem,
  model: (model) => unless(wordPattern.test(model), `is none: expected ${wordRule}`),
  permissionMode: (mode) => unless(permissionModes.includes(mode), `must be one of ${permissionModes.join(', ')}`),
  allowedTools: (rules) => unless(rules.every(isPermissionRule), 'must be permission rules'),
  maxBudgetUsd: moneyProblem,
  memoryBytes: (bytes) =>
    unless(
      isWhole(bytes / 1_000_000, memoryMb.max, memoryMb.min),
      `must be from ${memoryMb.min} MB to ${memoryMb.max} MB`,
    ),
  maxProcesses: (count) =>
    unless(
      isWhole(count, processesRange.max, processesRange.min),
      `must be a whole number from ${processesRange.min} to ${processesRange.max}`,
    ),
  requires: (labels) =>
    unless(
      labels.length <= labelsMax && labels.every((label) => labelPattern.test(label)),
      `must be at most ${labelsMax} labels: ${labelRule}`,
    ),
  host: (name) => unless(hostNamePattern.test(name), `is no name of a machine: ${hostNameRule}`),
  retries: (count) => unless(isWhole(count, retriesMax, 0), `must be a whole number from 0 to ${retriesMax}`),
  acceptRetries: (count) =>
    unless(isWhole(count, acceptRetriesMax, 0), `must be a whole number from 0 to ${acceptRetriesMax}`),
  timeoutMs: aTime,
  stallTimeoutMs: aTime,
  acceptTimeoutMs: aTime,
  setupTimeoutMs: aTime,
  accept: commandProblem,
  setup: commandProblem,
};

export function moneyProblem(usd: number): string | null {
  return unless(isMoneyUsd(usd), `must be an amount in US dollars from ${moneyUsd.min} to ${moneyUsd.max}`);
}

/** What is wrong with a definition, as a sentence without its full stop; null when nothing is. */
export function sessionProblem(session: Omit<SessionDefinition, 'id'>): string | null {
  for (const [key, check] of Object.entries(checks)) {
    const value = session[key as keyof typeof session];
    const problem = value === undefined ? null : (check as (value: unknown) => string | null)(value);
    if (problem !== null) return `The ${key} of the session ${problem}`;
  }
  return null;
}
