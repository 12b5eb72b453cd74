/** Options of everything that runs a group; the same names and meanings wherever they stand. */
import { type Command, Option } from '@commander-js/extra-typings';
import type { SessionId } from '../core/group.ts';
import { type ConfigOptions, options } from './group-options.ts';
import { type OutputKind, outputs } from './reporters.ts';

export interface RunWish {
  readonly config: ConfigOptions;
  readonly output: OutputKind;
  readonly rehearse: string | true | undefined;
  readonly retryFailed: boolean;
  /** Only tell what would happen. */
  readonly dryRun?: true;
  /** Tell also what each session will be told. */
  readonly prompts?: true;
  /** Only these sessions are started; absent = all. */
  readonly only?: readonly SessionId[];
}

/** Adds the options to a command. */
export function withRunOptions<Args extends unknown[]>(command: Command<Args>) {
  return command
    .addOption(options.concurrent())
    .addOption(options.respectDependencies())
    .addOption(options.noRespectDependencies())
    .addOption(options.errorThreshold())
    .addOption(options.pauseOnError())
    .addOption(options.noPauseOnError())
    .addOption(options.maxBudgetUsd())
    .addOption(options.onBudgetExceeded())
    .addOption(options.onLimit())
    .addOption(options.minFreeMemory())
    .option('--rehearse [script]', 'use the scripted API on this machine: no account, no cost')
    .option('--dry-run', 'show what would be done and what it may cost; start nothing')
    .option('--prompts', 'with --dry-run: show what each session will be told')
    .addOption(new Option('--output <kind>', 'what to print').choices(outputs).default('text' as const));
}

interface GivenRunOptions extends ConfigOptions {
  readonly output: OutputKind;
  readonly rehearse?: string | true | undefined;
  readonly dryRun?: true | undefined;
  readonly prompts?: true | undefined;
}

export function runWish(given: GivenRunOptions, retryFailed: boolean): RunWish {
  const { output, rehearse, dryRun, prompts, ...config } = given;
  return {
    config,
    output,
    rehearse,
    retryFailed,
    ...(dryRun === true ? { dryRun } : {}),
    ...(prompts === true ? { prompts } : {}),
  };
}
