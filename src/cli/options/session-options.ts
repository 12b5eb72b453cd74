/** The options that say what a session is and how it works; the same in `session add` and `session edit`. */
import { type Command, Option } from '@commander-js/extra-typings';
import type { NewSessionOptions } from '../../app/create/new-session.ts';
import { ok, type Result } from '../../core/failure.ts';
import { permissionModes } from '../../core/group.ts';
import type { Context } from '../context.ts';
import {
  collect,
  parseContext,
  parseDuration,
  parseHostName,
  parseLabel,
  parseMaxProcesses,
  parseMemory,
  parseMoney,
  parseRetries,
  parseRules,
  parseSessionName,
  parseText,
  parseWord,
} from './option-values.ts';
import { type PromptOptions, promptSource } from './prompt-source.ts';
import { type ConfigOptions, configOf, withConfigOptions } from './session-config.ts';
import { type WorkOptions, withWorkOptions, workFrom } from './session-work.ts';

/** Adds all but `--project` to a command. */
export function withSessionOptions<Args extends unknown[], Given extends Record<string, unknown>>(
  command: Command<Args, Given>,
) {
  const described = command
    .option('--prompt <text>', 'the task; "-" reads it from standard input')
    .option('--prompt-file <file>', 'file with the task; "-" is standard input')
    .option('--template <name>', 'prompt template that makes the task, or a config template')
    .option('--config-template <name>', 'what the session finds in its config dir')
    .option('--var <name=value>', 'value for a variable of a template; may be repeated', collect)
    .option('--name <name>', 'short name for references, unique in the group', parseSessionName)
    .option('--description <text>', 'what the session is for', parseText)
    .option('--depends-on <session>', 'id, number or name, with or without <group>/; may be repeated', collect)
    .option('--model <model>', "the session's model", parseWord)
    .option('--max-budget-usd <usd>', 'cap for this session alone', parseMoney)
    .addOption(new Option('--permission-mode <mode>', "claude's permission mode").choices(permissionModes))
    .option('--allowed-tools <rules>', 'permission rules such as "Edit,Bash(git log:*)"', parseRules)
    .option(
      '--context <systems>',
      'what keeps its state: of cpm, faber and handover, or none (default: all)',
      parseContext,
    )
    .option('--retries <n>', 'further attempts after a transient failure (default: 2)', parseRetries)
    .option('--timeout <time>', 'longest wall time of one attempt, such as 90s, 15m or 1h30m', parseDuration)
    .option('--stall-timeout <time>', 'longest time without any progress (default: 15m)', parseDuration)
    .option('--untrusted', "the project's hooks do not run, and of its variables only harmless ones count")
    .option(
      '--memory <mb>',
      'megabytes that its commands, with those of others that run at once, may take',
      parseMemory,
    )
    .option(
      '--max-processes <n>',
      "processes and threads that it may have at once, claude's own included; at least 64",
      parseMaxProcesses,
    );
  return withConfigOptions(withWorkOptions(withMachineOptions(described)));
}

function withMachineOptions<Args extends unknown[], Given extends Record<string, unknown>>(
  command: Command<Args, Given>,
) {
  return command
    .option('--requires <label>', 'work only on a machine of the fleet that has it; may be repeated', parseLabel)
    .option('--host <name>', 'work only on this machine of the fleet', parseHostName);
}

/** What is named and meant alike on the command line and for a new session. */
type SameForBoth = Omit<
  NewSessionOptions,
  'project' | 'prompt' | 'work' | 'config' | 'timeoutMs' | 'stallTimeoutMs' | 'memoryBytes'
>;

/** As commander gives them. */
export interface SessionOptions extends SameForBoth, PromptOptions, WorkOptions, ConfigOptions {
  /** Milliseconds, like the next. */
  readonly timeout?: number | undefined;
  readonly stallTimeout?: number | undefined;
  /** Bytes. */
  readonly memory?: number | undefined;
}

/** What the options come to. Reads only. Fails with `usage`. */
export async function sessionFrom(
  context: Context,
  given: SessionOptions,
): Promise<Result<Omit<NewSessionOptions, 'project'>>> {
  const config = await configOf(context, given);
  if (!config.ok) return config;
  const { timeout, stallTimeout, memory, prompt, promptFile, ...same } = given;
  return ok({
    ...same,
    prompt: promptSource(context, { prompt, promptFile }),
    work: workFrom(given),
    config: config.value,
    timeoutMs: timeout,
    stallTimeoutMs: stallTimeout,
    memoryBytes: memory,
  });
}
