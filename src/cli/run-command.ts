/** What `group run` and `group resume` share: the options, and the way from the command line to the runner. */
import { resolve } from 'node:path';
import { type Command, Option } from '@commander-js/extra-typings';
import { fail, ok, type Result } from '../core/failure.ts';
import type { SessionId } from '../core/group.ts';
import { type Rehearsal, type RunGroupOptions, type RunResult, runGroup } from '../runner/run-group.ts';
import { liveRunner, waitForShortCommands } from './change-group.ts';
import type { Context, Work } from './context.ts';
import { exitCode, exitCodeForStatus } from './exit-code.ts';
import { type ConfigOptions, configOf, options } from './group-options.ts';
import { briefPath, tryPath } from './path-argument.ts';
import { createRehearsal } from './rehearsal-process.ts';
import { createReporter, type OutputKind, outputs } from './reporters.ts';
import { type GroupReference, resolveGroup } from './resolve.ts';
import { onSignal } from './signals.ts';

/** A group can be taken by one short command after the other; more often than this is no accident. */
const takeTriesMax = 20;

export interface RunCommandTexts {
  readonly description: string;
  readonly example: string;
  /** Failed sessions are tried again without --retry-failed. */
  readonly retriesFailed: boolean;
  /** Looked at first; null = run. */
  readonly before?: (context: Context, group: GroupReference, config: ConfigOptions) => Promise<Work | null>;
}

export function defineRun(command: Command, context: Context, texts: RunCommandTexts): void {
  command
    .description(texts.description)
    .argument('<group>', 'id, unique prefix or slug')
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
    .option('--retry-failed', 'try failed sessions again')
    .option('--rehearse [script]', 'use the scripted API on this machine: no account, no cost')
    .addOption(new Option('--output <kind>', 'what to print').choices(outputs).default('text' as const))
    .addHelpText('after', texts.example)
    .action((reference, given) => {
      const { output, rehearse, retryFailed, ...config } = given;
      const wish = { config, output, rehearse, retryFailed: texts.retriesFailed || retryFailed === true };
      return context.run(() => run(context, reference, wish, texts.before));
    });
}

export interface RunWish {
  readonly config: ConfigOptions;
  readonly output: OutputKind;
  readonly rehearse: string | true | undefined;
  readonly retryFailed: boolean;
  /** Only these sessions are started; absent = all. */
  readonly only?: readonly SessionId[];
}

async function run(
  context: Context,
  reference: string,
  wish: RunWish,
  before: RunCommandTexts['before'],
): Promise<Work> {
  const group = resolveGroup(context, reference);
  if (!group.ok) return group;
  const done = (await before?.(context, group.value, wish.config)) ?? null;
  if (done !== null) return done;
  const result = await runHere(context, group.value, wish);
  return result.ok ? concludeRun(context, group.value, result.value) : result;
}

/** This command becomes the runner of the group until it is settled. Fails when the rehearsal script is not usable. */
export async function runHere(context: Context, group: GroupReference, wish: RunWish): Promise<Result<RunResult>> {
  const rehearsal = rehearsalFor(context, wish.rehearse);
  if (!rehearsal.ok) return rehearsal;
  const result = await runWhenFree(context, group, {
    root: group.root,
    groupId: group.groupId,
    callerEnv: context.env,
    packageRoot: context.packageRoot,
    reporter: createReporter(context, group, wish.output),
    overrides: configOf(wish.config),
    retryFailed: wish.retryFailed,
    ...(wish.only === undefined ? {} : { only: wish.only }),
    ...(rehearsal.value === undefined ? {} : { rehearsal: rehearsal.value }),
    onSignal,
  });
  return ok(result);
}

function rehearsalFor(context: Context, rehearse: string | true | undefined): Result<Rehearsal | undefined> {
  if (rehearse === undefined) return ok(undefined);
  const { world, packageRoot, env } = context;
  if (rehearse === true) return createRehearsal(world, { packageRoot, env });
  const scriptFile = resolve(context.cwd, rehearse);
  const made = tryPath(() => createRehearsal(world, { packageRoot, env, scriptFile }));
  if (made.ok) return made.value;
  const next = 'Give the path of a YAML file to --rehearse, or no path at all.';
  return fail('usage', `The rehearsal script ${briefPath(scriptFile)} ${made.trouble}.`, next);
}

/** A short command of another process, such as `session add`, is waited for; another runner is not. */
async function runWhenFree(context: Context, group: GroupReference, options: RunGroupOptions): Promise<RunResult> {
  for (let tries = 1; ; tries += 1) {
    const result = await runGroup(context.world, options);
    const isBusy = result.kind === 'refused' && result.failure.reason === 'busy';
    if (!isBusy || tries === takeTriesMax || liveRunner(context.world, group) !== null) return result;
    await waitForShortCommands(context.world, group);
  }
}

/** What is said about the end of a run, and its exit code. */
export function concludeRun(context: Context, { groupId }: GroupReference, result: RunResult): Work {
  switch (result.kind) {
    case 'settled':
      return ok(exitCodeForStatus(result.status));
    case 'left': {
      const { pausing, run } = result.state;
      const command = `claude-code-agent group run ${groupId}${run?.rehearsal ? ' --rehearse' : ''}`;
      const workers =
        pausing === undefined ? 'its workers go on' : 'its workers were asked to stop and end by themselves';
      context.stderr.line(`Left group ${groupId}; ${workers}. Take over again with: ${command}`);
      return ok(exitCode.interrupted);
    }
    case 'already-completed':
      context.stderr.line(`Group ${groupId} is completed already; there is nothing to run.`);
      return ok(exitCode.done);
    case 'refused':
      return { ok: false, failure: result.failure };
  }
}
