/** What a group's configuration may say, whoever gives it by the names of meta.json. */
import { budgetActions, type GroupConfig, limitActions, lossActions, whereModes } from './group.ts';
import { moneyProblem } from './session-values.ts';
import { commandProblem, concurrentMax, isWhole, thresholdMax, wordPattern, wordRule } from './values.ts';

type Checks = { readonly [K in keyof GroupConfig]-?: (value: NonNullable<GroupConfig[K]>) => string | null };

const unless = (isFine: boolean, problem: string): string | null => (isFine ? null : problem);
const aCount = (max: number) => (count: number) =>
  unless(isWhole(count, max), `must be a whole number from 1 to ${max}`);
const aFlag = (flag: boolean) => unless(typeof flag === 'boolean', 'must be true or false');
const aWord = (word: string) => unless(wordPattern.test(word), `is none: ${wordRule}`);

const checks: Checks = {
  model: aWord,
  maxBudgetUsd: moneyProblem,
  onBudgetExceeded: (action) => unless(budgetActions.includes(action), `must be one of ${budgetActions.join(', ')}`),
  warningThreshold: (share) => unless(share > 0 && share <= 1, 'must be a share above 0 and up to 1'),
  maxConcurrentSessions: aCount(concurrentMax),
  commandsAtOnce: aCount(concurrentMax),
  respectDependencies: aFlag,
  pauseOnError: aFlag,
  errorThreshold: aCount(thresholdMax),
  onLimit: (action) => unless(limitActions.includes(action), `must be one of ${limitActions.join(', ')}`),
  warmCache: aFlag,
  minFreeMemoryBytes: (bytes) => unless(Number.isSafeInteger(bytes) && bytes >= 0, 'must be a number of bytes'),
  prices: () => null,
  shareCheckouts: aFlag,
  acceptClaude: aWord,
  where: (mode) => unless(whereModes.includes(mode), `must be one of ${whereModes.join(', ')}`),
  onLost: (action) => unless(lossActions.includes(action), `must be one of ${lossActions.join(', ')}`),
  onEvent: commandProblem,
};

/** What is wrong with a configuration, as a sentence without its full stop; null when nothing is. */
export function configProblem(config: Partial<GroupConfig>): string | null {
  for (const [key, value] of Object.entries(config)) {
    if (!Object.hasOwn(checks, key)) return `A group has no setting ${JSON.stringify(key)}`;
    const check = checks[key as keyof GroupConfig] as (value: unknown) => string | null;
    const problem = value === undefined ? null : check(value);
    if (problem !== null) return `The ${key} of the group ${problem}`;
  }
  return null;
}
