/** Options of everything that runs a group; the same names and meanings wherever they stand. */
import { type Command, Option } from '@commander-js/extra-typings';
import type { RunOptions } from '../../app/run/run-options.ts';
import { type OutputKind, outputs } from '../reporters.ts';
import { type ConfigOptions, configOf, options } from './group-options.ts';

/** What a command line asks for. */
export interface RunCommandOptions extends RunOptions {
  /** Absent = the dashboard on a terminal, text elsewhere. */
  readonly output: OutputKind | undefined;
  /** Only tell what would happen. */
  readonly dryRun?: true;
  /** Tell also what each session will be told. */
  readonly prompts?: true;
  /** Run it in a process of its own. */
  readonly detach?: true;
  /** Ring the terminal at what a user may wait for. */
  readonly notify?: true;
}

/** Adds the options to a command. */
export function withRunOptions<Args extends unknown[]>(command: Command<Args>) {
  return command
    .addOption(options.concurrent())
    .addOption(options.commandsAtOnce())
    .addOption(options.respectDependencies())
    .addOption(options.noRespectDependencies())
    .addOption(options.errorThreshold())
    .addOption(options.pauseOnError())
    .addOption(options.noPauseOnError())
    .addOption(options.maxBudgetUsd())
    .addOption(options.onBudgetExceeded())
    .addOption(options.onLimit())
    .addOption(options.warmCache())
    .addOption(options.noWarmCache())
    .addOption(options.minFreeMemory())
    .addOption(options.acceptClaude())
    .addOption(options.where())
    .option('--rehearse [script]', 'use the scripted API on this machine: no account, no cost')
    .option('--dry-run', 'show what would be done and what it may cost; start nothing')
    .option('--prompts', 'with --dry-run: show what each session will be told')
    .option('--detach', 'run it in a process of its own that needs no terminal, and return')
    .option('--notify', 'ring the terminal when the group is done, failed, paused or at a usage limit')
    .addOption(new Option('--output <kind>', 'what to print; default: tui on a terminal, else text').choices(outputs));
}

interface GivenRunOptions extends ConfigOptions {
  readonly output?: OutputKind | undefined;
  readonly rehearse?: string | true | undefined;
  readonly dryRun?: true | undefined;
  readonly prompts?: true | undefined;
  readonly detach?: true | undefined;
  readonly notify?: true | undefined;
}

export function runCommandOptions(given: GivenRunOptions, retryFailed: boolean): RunCommandOptions {
  const { output, rehearse, dryRun, prompts, detach, notify, ...config } = given;
  return {
    config: configOf(config),
    output,
    rehearse,
    retryFailed,
    isQuiet: output === 'quiet',
    ...(dryRun === true ? { dryRun } : {}),
    ...(prompts === true ? { prompts } : {}),
    ...(detach === true ? { detach } : {}),
    ...(notify === true ? { notify } : {}),
  };
}
