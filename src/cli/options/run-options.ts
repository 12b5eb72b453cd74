/** Options of everything that runs a group; the same names and meanings wherever they stand. */
import { type Command, Option } from '@commander-js/extra-typings';
import type { GroupReference } from '../../app/resolve.ts';
import type { RunOptions } from '../../app/run/run-options.ts';
import { groupSettings } from '../../core/definitions.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { Reporter } from '../../view/reporter.ts';
import type { Context } from '../context.ts';
import { addRunSettings, givenSettings } from './setting-options.ts';

export interface RunCommandOptions extends RunOptions {
  readonly output: OutputKind | undefined;
  readonly dryRun?: true;
  readonly prompts?: true;
  readonly detach?: true;
  readonly notify?: true;
}

export function withRunOptions<Args extends unknown[]>(command: Command<Args>) {
  addRunSettings(command);
  return command
    .option('--rehearse [script]', 'use the scripted API on this machine: no account, no cost')
    .option('--dry-run', 'show what would be done and what it may cost; start nothing')
    .option('--prompts', 'with --dry-run: show what each session will be told')
    .option('--detach', 'run it in a process of its own that needs no terminal, and return')
    .option('--notify', 'ring the terminal when the group is done, failed, paused or at a usage limit')
    .addOption(new Option('--output <kind>', 'what to print; default: tui on a terminal, else text').choices(outputs));
}

interface GivenRunOptions {
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
    config: givenSettings(groupSettings, config),
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

export const outputs = ['tui', 'text', 'json', 'quiet'] as const;
export type OutputKind = (typeof outputs)[number];
export type LineOutput = Exclude<OutputKind, 'tui'>;

/**
 * What is shown: as wished, else the dashboard on a terminal and text elsewhere. Fails with `usage` when a dashboard
 * is wished for where none can be.
 */
export function chooseOutput<Kind extends OutputKind>(
  context: Context,
  wished: Kind | undefined,
): Result<Kind | 'tui' | 'text'> {
  const obstacle = dashboardObstacle(context);
  if (wished === undefined) return ok(obstacle === null && !isBuildServer(context) ? 'tui' : 'text');
  if (wished !== 'tui' || obstacle === null) return ok(wished);
  return fail('usage', `The dashboard cannot be shown: ${obstacle}.`, 'Use --output text instead.');
}

/** Why there can be no dashboard; null = there can be one. */
function dashboardObstacle({ stdout, stdinIsTerminal, env }: Context): string | null {
  if (!stdout.isTerminal) return 'standard output is no terminal';
  if (!stdinIsTerminal) return 'standard input is no terminal';
  const terminal = env.TERM ?? '';
  if (terminal === '') return 'TERM is not set';
  return terminal === 'dumb' ? 'the terminal is a dumb one' : null;
}

/** Some of them give their jobs a terminal that nobody sits at. */
function isBuildServer({ env }: Context): boolean {
  return !['', '0', 'false'].includes(env.CI ?? '');
}

/** Only the one that is wished for is loaded. */
export async function createReporter(context: Context, group: GroupReference, kind: LineOutput): Promise<Reporter> {
  const { stdout, world, env } = context;
  const write = (text: string): void => stdout.write(text);
  const now = (): number => world.clock.now();
  switch (kind) {
    case 'text': {
      const columns = stdout.isTerminal ? stdout.columns : undefined;
      const lasting = context.leavesNothing === true ? {} : { groupFolder: group.paths.folder };
      const options = { write, style: stdout.style, now, columns, ...lasting };
      if (env.GITHUB_ACTIONS !== 'true')
        return (await import('../../view/text-reporter.ts')).createTextReporter(options);
      const commands = (text: string): void => stdout.commands(text);
      return (await import('../../view/text-reporter.ts')).createGithubReporter({ ...options, write: commands });
    }
    case 'json': {
      const { createJsonReporter } = await import('../../view/json-reporter.ts');
      return createJsonReporter({ write, groupId: group.groupId, clock: world.clock });
    }
    case 'quiet':
      return (await import('../../view/reporter.ts')).createQuietReporter(write);
  }
}
