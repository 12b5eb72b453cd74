/** `session add`: a new session in a group; its id alone on stdout. */
import { type Command, Option } from '@commander-js/extra-typings';
import { addSession } from '../../../control/create/new-session.ts';
import { whileWaiting } from '../../../control/request.ts';
import { loadReferredGroup } from '../../../control/resolve.ts';
import { ok } from '../../../core/failure.ts';
import { type ContextName, permissionModes, type SessionDefinition } from '../../../core/group.ts';
import { safeLine } from '../../../report/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import {
  collect,
  parseContext,
  parseDuration,
  parseMaxProcesses,
  parseMemory,
  parseMoney,
  parseRetries,
  parseRules,
  parseSessionName,
  parseText,
  parseWord,
} from '../../options/option-values.ts';
import { type PromptOptions, promptSource } from '../../options/prompt-source.ts';
import { type ConfigOptions, configOf, withConfigOptions } from '../../options/session-config.ts';
import { type WorkOptions, withWorkOptions, workWish } from '../../options/session-work.ts';

const noteColumnsMax = 1000;

const example = `
Example:
  $ claude-code-agent session add auth-refactor --project ./api --prompt "Add a login endpoint" --name api
  $ claude-code-agent session add auth-refactor --project ./web --prompt-file login-page.md --depends-on api
  $ claude-code-agent session add auth-refactor --project ./api --template code-review --var file_path=src/login.ts
  $ git diff | claude-code-agent session add review --project . --prompt -
  $ claude-code-agent session add auth-refactor --project ./api --prompt "Speed it up" --accept "npm test"`;

export function define(command: Command, context: Context): void {
  const described = command
    .description('Adds a session to a group and prints its id. Works while the group is running, too.')
    .argument('<group>', 'id, unique prefix or slug')
    .requiredOption('--project <dir>', 'folder of the project in which the session works')
    .option('--prompt <text>', 'the task; "-" reads it from standard input')
    .option('--prompt-file <file>', 'file with the task')
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
  withConfigOptions(withWorkOptions(described))
    .addHelpText('after', example)
    .action((reference, given) => context.run(() => add(context, reference, given)));
}

interface Given extends PromptOptions, WorkOptions, ConfigOptions {
  readonly project: string;
  readonly template?: string | undefined;
  readonly configTemplate?: string | undefined;
  readonly var?: readonly string[] | undefined;
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  readonly dependsOn?: readonly string[] | undefined;
  readonly model?: string | undefined;
  readonly maxBudgetUsd?: number | undefined;
  readonly permissionMode?: SessionDefinition['permissionMode'] | undefined;
  readonly allowedTools?: readonly string[] | undefined;
  readonly context?: readonly ContextName[] | undefined;
  readonly retries?: number | undefined;
  /** Milliseconds, like the next. */
  readonly timeout?: number | undefined;
  readonly stallTimeout?: number | undefined;
  readonly untrusted?: boolean | undefined;
  /** Bytes. */
  readonly memory?: number | undefined;
  readonly maxProcesses?: number | undefined;
}

async function add(context: Context, reference: string, given: Given): Promise<Work> {
  const group = loadReferredGroup(context, reference);
  if (!group.ok) return group;
  const config = configOf(context, given);
  if (!config.ok) return config;
  const { timeout, stallTimeout, memory, prompt, promptFile, ...same } = given;
  const adding = addSession(context, group.value, {
    ...same,
    prompt: promptSource(context, { prompt, promptFile }),
    work: workWish(given),
    config: config.value,
    timeoutMs: timeout,
    stallTimeoutMs: stallTimeout,
    memoryBytes: memory,
  });
  const added = await whileWaiting(context, group.value, adding);
  if (!added.ok) return added;
  for (const note of added.value.notes) context.stderr.line(safeLine(note, noteColumnsMax));
  context.stdout.line(added.value.sessionId);
  return ok(exitCode.done);
}
