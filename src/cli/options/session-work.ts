/** The options that say where a session works and how its work is checked. */
import { type Command, Option } from '@commander-js/extra-typings';
import { type IsolationMode, isolationModes } from '../../core/group.ts';
import type { GivenWork } from '../../template/workflow/work-settings.ts';
import { parseAcceptRetries, parseCommand, parseDuration } from './option-values.ts';

/** As commander gives them; `--no-accept` makes `accept` false. */
export interface WorkOptions {
  readonly isolate?: IsolationMode | undefined;
  readonly accept?: string | boolean | undefined;
  readonly acceptRetries?: number | undefined;
  /** Milliseconds, like `setupTimeout`. */
  readonly acceptTimeout?: number | undefined;
  readonly setup?: string | boolean | undefined;
  readonly setupTimeout?: number | undefined;
  readonly expectChanges?: boolean | undefined;
  readonly commit?: boolean | undefined;
}

/** Adds the options to a command. */
export function withWorkOptions<Args extends unknown[], Given extends Record<string, unknown>>(
  command: Command<Args, Given>,
) {
  return command
    .addOption(
      new Option('--isolate <mode>', 'a git worktree of its own, or none (default: as the group needs it)').choices(
        isolationModes,
      ),
    )
    .option('--accept <command>', 'shell command that must succeed before the session is completed', parseCommand)
    .option('--no-accept', "without the accept command of the project's own file")
    .option('--accept-retries <n>', 'how often claude may mend what the command found (default: 1)', parseAcceptRetries)
    .option('--accept-timeout <time>', 'longest time of the accept command (default: 10m)', parseDuration)
    .option('--setup <command>', 'shell command that is run once in a new worktree', parseCommand)
    .option('--no-setup', "without the setup command of the project's own file")
    .option('--setup-timeout <time>', 'longest time of the setup command (default: 10m)', parseDuration)
    .option('--expect-changes', 'warn when the session changed no file')
    .option('--no-commit', 'leave uncommitted work of the worktree uncommitted');
}

/** What the options say; nothing is looked at. */
export function workFrom({
  accept,
  setup,
  acceptTimeout,
  setupTimeout,
  commit,
  expectChanges,
  ...rest
}: WorkOptions): GivenWork {
  const { isolate, acceptRetries } = rest;
  return {
    isolate,
    accept: accept === true ? undefined : accept,
    acceptRetries,
    acceptTimeoutMs: acceptTimeout,
    setup: setup === true ? undefined : setup,
    setupTimeoutMs: setupTimeout,
    expectChanges,
    // What --no-commit alone would turn off is on unless said.
    commit: commit === false ? false : undefined,
  };
}
