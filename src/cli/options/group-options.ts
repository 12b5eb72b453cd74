/** Options that set a group's configuration; the same names in `group create` and `group run`. */
import { type Command, Option } from '@commander-js/extra-typings';
import { defined } from '../../core/defined.ts';
import {
  type BudgetAction,
  budgetActions,
  type GroupConfig,
  type LimitAction,
  limitActions,
  type WhereMode,
  whereModes,
} from '../../core/group.ts';
import {
  parseConcurrent,
  parseMegabytes,
  parseMoney,
  parseShare,
  parseText,
  parseThreshold,
  parseWord,
} from './option-values.ts';

export const options = {
  model: () =>
    new Option('--model <model>', "model for sessions that name none; claude's own default otherwise").argParser(
      parseWord,
    ),
  maxBudgetUsd: () =>
    new Option('--max-budget-usd <usd>', 'hard cap over all sessions and attempts').argParser(parseMoney),
  onBudgetExceeded: () =>
    new Option('--on-budget-exceeded <action>', 'what to do then (default: pause)').choices(budgetActions),
  warningThreshold: () =>
    new Option('--warning-threshold <share>', 'share of the budget that gives a warning (default: 0.8)').argParser(
      parseShare,
    ),
  concurrent: () =>
    new Option('--concurrent <n>', 'sessions that may run at once (default: 3)').argParser(parseConcurrent),
  commandsAtOnce: () =>
    new Option(
      '--commands-at-once <n>',
      'checkouts, set-up and acceptance commands that may run at once (default: cores)',
    ).argParser(parseConcurrent),
  errorThreshold: () =>
    new Option('--error-threshold <n>', 'so many failed sessions, and nothing new starts (default: 2)').argParser(
      parseThreshold,
    ),
  onLimit: () =>
    new Option('--on-limit <action>', 'at a usage limit of the login (default: wait for its reset)').choices(
      limitActions,
    ),
  warmCache: () =>
    new Option('--warm-cache', 'one of several similar sessions asks the model before the others start (default)'),
  noWarmCache: () => new Option('--no-warm-cache', 'similar sessions start at once, each filling the prompt cache'),
  minFreeMemory: () =>
    new Option('--min-free-memory <mb>', 'memory that a start must leave free, in MB (default: 1 GiB)').argParser(
      parseMegabytes,
    ),
  acceptClaude: () =>
    new Option('--accept-claude <version>', 'use this version of claude although it failed a check').argParser(
      parseWord,
    ),
  pauseOnError: () => new Option('--pause-on-error', 'at the threshold pause the group (default)'),
  noPauseOnError: () => new Option('--no-pause-on-error', 'at the threshold end the group as failed'),
  respectDependencies: () => new Option('--respect-dependencies', 'start a session after its dependencies (default)'),
  shareCheckouts: () =>
    new Option('--share-checkouts', 'sessions without a worktree may work in one checkout at the same time'),
  where: () =>
    new Option(
      '--where <machines>',
      'on which machines sessions work: this one, those of the fleet, or any (default, once there is a fleet)',
    ).choices(whereModes),
  noRespectDependencies: () => new Option('--no-respect-dependencies', 'ignore dependencies'),
} as const;

/** What a group is and how it is run; the same in `group create` and `group edit`. */
export function withGroupOptions<Args extends unknown[], Given extends Record<string, unknown>>(
  command: Command<Args, Given>,
) {
  return command
    .option('--name <text>', 'name for people (default: the slug)', parseText)
    .option('--description <text>', 'what the group is for', parseText)
    .addOption(options.model())
    .addOption(options.maxBudgetUsd())
    .addOption(options.onBudgetExceeded())
    .addOption(options.warningThreshold())
    .addOption(options.concurrent())
    .addOption(options.commandsAtOnce())
    .addOption(options.errorThreshold())
    .addOption(options.onLimit())
    .addOption(options.warmCache())
    .addOption(options.noWarmCache())
    .addOption(options.minFreeMemory())
    .addOption(options.pauseOnError())
    .addOption(options.noPauseOnError())
    .addOption(options.shareCheckouts())
    .addOption(options.acceptClaude())
    .addOption(options.where())
    .option('--template <name>', 'prompt or config template for sessions that name none')
    .option('--config-template <name>', 'config template that all sessions inherit');
}

export interface ConfigOptions {
  readonly model?: string | undefined;
  readonly maxBudgetUsd?: number | undefined;
  readonly onBudgetExceeded?: BudgetAction | undefined;
  readonly warningThreshold?: number | undefined;
  readonly concurrent?: number | undefined;
  readonly commandsAtOnce?: number | undefined;
  readonly errorThreshold?: number | undefined;
  readonly onLimit?: LimitAction | undefined;
  readonly warmCache?: boolean | undefined;
  /** Bytes. */
  readonly minFreeMemory?: number | undefined;
  readonly pauseOnError?: boolean | undefined;
  readonly respectDependencies?: boolean | undefined;
  readonly shareCheckouts?: true | undefined;
  readonly acceptClaude?: string | undefined;
  readonly where?: WhereMode | undefined;
}

/** Only what was given. */
export function configOf(given: ConfigOptions): Partial<GroupConfig> {
  const { concurrent, model, maxBudgetUsd, onBudgetExceeded, warningThreshold, errorThreshold } = given;
  const { pauseOnError, respectDependencies, onLimit, warmCache, minFreeMemory, shareCheckouts, acceptClaude } = given;
  const { commandsAtOnce, where } = given;
  return defined({
    model,
    maxBudgetUsd,
    onBudgetExceeded,
    warningThreshold,
    maxConcurrentSessions: concurrent,
    commandsAtOnce,
    errorThreshold,
    onLimit,
    warmCache,
    minFreeMemoryBytes: minFreeMemory,
    pauseOnError,
    respectDependencies,
    shareCheckouts,
    acceptClaude,
    where,
  });
}
