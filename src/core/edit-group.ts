/** What may change of a group after it was made. Pure. */

import { advise } from './advice.ts';
import type { ChangesOf } from './edit.ts';
import { fail, type Result } from './failure.ts';
import {
  addUsage,
  budgetActions,
  type GroupConfig,
  type GroupDescription,
  limitActions,
  lossActions,
  type Usage,
  whereModes,
} from './group.ts';
import { moneyProblem } from './session-values.ts';
import type { GroupState } from './state.ts';
import { formatMoney } from './text.ts';
import { commandProblem, concurrentMax, isWhole, lineProblem, thresholdMax, wordPattern, wordRule } from './values.ts';

export function descriptionOf({ group }: Pick<GroupState, 'group'>): GroupDescription {
  const { id: _id, slug: _slug, createdAt: _createdAt, config: _config, ...description } = group;
  return description;
}

type Checks<T> = { readonly [K in keyof T]-?: (value: NonNullable<T[K]>) => string | null };

const unless = (isFine: boolean, problem: string): string | null => (isFine ? null : problem);
const aFlag = (value: boolean) => unless(typeof value === 'boolean', 'must be true or false');
const aWord = (value: string) => unless(wordPattern.test(value), `is none: expected ${wordRule}`);
const aCount = (max: number) => (value: number) =>
  unless(isWhole(value, max), `must be a whole number from 1 to ${max}`);
const oneOf = (words: readonly string[]) => (value: string) =>
  unless(words.includes(value), `must be one of ${words.join(', ')}`);
const aLine = (text: string) => lineProblem(text) ?? unless(text.trim() !== '', 'must not be blank');

const configChecks: Checks<GroupConfig> = {
  model: aWord,
  maxBudgetUsd: moneyProblem,
  onBudgetExceeded: oneOf(budgetActions),
  warningThreshold: (share) => unless(share > 0 && share <= 1, 'must be a share above 0 and up to 1'),
  maxConcurrentSessions: aCount(concurrentMax),
  commandsAtOnce: aCount(concurrentMax),
  respectDependencies: aFlag,
  pauseOnError: aFlag,
  errorThreshold: aCount(thresholdMax),
  onLimit: oneOf(limitActions),
  warmCache: aFlag,
  minFreeMemoryBytes: (bytes) => unless(bytes >= 0, 'must not be negative'),
  prices: () => null,
  shareCheckouts: aFlag,
  acceptClaude: aWord,
  where: oneOf(whereModes),
  onLost: oneOf(lossActions),
  onEvent: commandProblem,
};

const descriptionChecks: Checks<GroupDescription> = {
  name: aLine,
  description: lineProblem,
  template: aLine,
  configTemplate: () => null,
  variables: () => null,
  workflow: () => null,
};

/** Settings without which there is no group. */
const required: ReadonlySet<string> = new Set([
  'onBudgetExceeded',
  'warningThreshold',
  'maxConcurrentSessions',
  'respectDependencies',
  'pauseOnError',
  'errorThreshold',
  'name',
  'description',
]);

function firstProblem(changes: object, checks: Readonly<Record<string, unknown>>): Result<never> | null {
  for (const [name, value] of Object.entries(changes)) {
    const check = checks[name] as (value: unknown) => string | null;
    const problem = value === null ? unless(!required.has(name), 'cannot be left out') : check(value);
    if (problem !== null) return fail('usage', `The ${name} of the group ${problem}.`, 'Give another one.');
  }
  return null;
}

export type GroupChanges = {
  readonly config?: ChangesOf<GroupConfig>;
  readonly group?: ChangesOf<GroupDescription>;
};

/** Why the group cannot be changed so now; null when it can. `used`: what running attempts have used so far. */
export function groupEditProblem(
  state: GroupState,
  { config = {}, group = {} }: GroupChanges,
  used: () => Iterable<Usage>,
): Result<never> | null {
  const problem = firstProblem(config, configChecks) ?? firstProblem(group, descriptionChecks);
  if (problem !== null) return problem;
  const cap = config.maxBudgetUsd ?? undefined;
  return cap === undefined || cap === state.group.config.maxBudgetUsd ? null : capProblem(state, cap, used);
}

/** A cap is never below what is spent, nor below what running sessions may still spend without asking anybody. */
function capProblem(state: GroupState, cap: number, used: () => Iterable<Usage>): Result<never> | null {
  const { group, reservedUsd } = state;
  const wanted = formatMoney(cap);
  let spent = state.usage;
  for (const usage of used()) spent = addUsage(spent, usage);
  if (cap <= spent.costUsd) {
    const already = formatMoney(spent.costUsd, spent.estimated);
    const message = `Group ${group.id} has spent ${already} already, so it cannot be held to ${wanted}.`;
    return fail('usage', message, 'Give --max-budget-usd an amount above that.');
  }
  const before = group.config.maxBudgetUsd;
  const promised = state.usage.costUsd + reservedUsd;
  if (state.running.size + state.takenOver.size === 0 || before === undefined || cap >= Math.min(before, promised))
    return null;
  const share = `Running sessions have a share in the cap of group ${group.id}`;
  const message = `${share} until it reaches ${formatMoney(promised)}.`;
  const next = advise('Give at least that, or take it back first with', ['group', 'pause', group.id]);
  return fail('usage', message, next);
}
