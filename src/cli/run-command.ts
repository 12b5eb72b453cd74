/** What `group run` and `group resume` share: the options, and the way from the command line to the runner. */

import { resolve } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { waitForShortCommands } from '../control/change-group.ts';
import { liveRunner } from '../control/live-runner.ts';
import { briefPath, tryPath } from '../control/path-argument.ts';
import { type GroupReference, resolveGroup } from '../control/resolve.ts';
import { createRunHooks, type RunHookOptions } from '../control/run-hooks.ts';
import { onSignal } from '../control/signals.ts';
import { readUserConfig } from '../control/user-config.ts';
import { commandText } from '../core/advice.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import { runCommand } from '../core/plan/advice.ts';
import { safeLine } from '../report/terminal-text.ts';
import { frozenTemplates } from '../runner/place/generated-config.ts';
import { type Rehearsal, type RunGroupOptions, type RunResult, runGroup } from '../runner/run-group.ts';
import { loadGroup } from '../store/group-store.ts';
import { hasMergeJournal } from '../store/merge-journal.ts';
import { checkRehearsed, gateForGroup, type OpenGate } from './claude-gate.ts';
import type { Context, Work } from './context.ts';
import type { RunDisplay } from './dashboard/run-display.ts';
import { exitCode, exitCodeForStatus } from './exit-code.ts';
import { notify } from './notify.ts';
import { type ConfigOptions, configOf } from './options/group-options.ts';
import { type RunWish, runWish, withRunOptions } from './options/run-options.ts';
import type { PreviewWish } from './preview.ts';
import { chooseOutput, createReporter, type OutputKind } from './reporters.ts';

/** A group can be taken by one short command after the other; more often than this is no accident. */
const takeTriesMax = 20;
const warningColumnsMax = 600;

export interface RunCommandTexts {
  readonly description: string;
  readonly example: string;
  /** Failed sessions are tried again without --retry-failed. */
  readonly retriesFailed: boolean;
  /** Looked at first; null = run. */
  readonly before?: (context: Context, group: GroupReference, config: ConfigOptions) => Promise<Work | null>;
}

export function defineRun(command: Command, context: Context, texts: RunCommandTexts): void {
  withRunOptions(command.description(texts.description).argument('<group>', 'id, unique prefix or slug'))
    .option('--retry-failed', 'try failed sessions again')
    .addHelpText('after', texts.example)
    .action((reference, given) => {
      const { retryFailed, ...rest } = given;
      const wish = runWish(rest, texts.retriesFailed || retryFailed === true);
      return context.run(() => run(context, reference, wish, texts.before));
    });
}

async function run(
  context: Context,
  reference: string,
  wish: RunWish,
  before: RunCommandTexts['before'],
): Promise<Work> {
  const group = resolveGroup(context, reference);
  if (!group.ok) return group;
  if (wish.dryRun) return dryRun(context, group.value, wish);
  const done = (await before?.(context, group.value, wish.config)) ?? null;
  if (done !== null) return done;
  if (wish.detach) return (await import('./detach.ts')).runDetached(context, group.value, wish);
  const result = await runHere(context, group.value, wish);
  return result.ok ? concludeRun(context, group.value, result.value) : result;
}

async function dryRun(context: Context, { root, groupId, paths }: GroupReference, wish: RunWish): Promise<Work> {
  const state = loadGroup(context.world, root, groupId);
  if (!state.ok) return state;
  const { group } = state.value;
  state.value.group = { ...group, config: { ...group.config, ...configOf(wish.config) } };
  const { showPreview } = await import('./preview.ts');
  return showPreview(context, root, state.value, frozenTemplates(context.world, paths), previewWish(wish));
}

/** What a dry run of the same options shows. */
export function previewWish({ output, rehearse, prompts, config: { acceptClaude } }: RunWish): PreviewWish {
  return { json: output === 'json', prompts: prompts === true, rehearsal: rehearse !== undefined, acceptClaude };
}

/** How a run that began here ended, or what came of handing it over to a runner of its own. */
export type RunHere =
  | RunResult
  | { readonly kind: 'handed-over'; readonly work: Work }
  /** By a signal, before it began. */
  | { readonly kind: 'interrupted' };

/**
 * This command becomes the runner of the group until it is settled; `opened` is a gate that was passed already. Fails
 * when the rehearsal script is not usable, and with `claude-unproven`.
 */
export async function runHere(
  context: Context,
  group: GroupReference,
  wish: RunWish,
  opened?: OpenGate,
): Promise<Result<RunHere>> {
  const rehearsal = await rehearsalOf(context, group, wish.rehearse);
  if (!rehearsal.ok) return rehearsal;
  const ofUser = await readUserConfig(context);
  if (!ofUser.ok) return ofUser;
  // While the group runs the log could not be told of a merge that was cut off.
  if (hasMergeJournal(context.world, group.paths)) {
    const finished = await (await import('../delivery/finish.ts')).finishInterruptedMerge(context, group);
    if (!finished.ok) return finished;
  }
  const output = chooseOutput(context, wish.output);
  if (!output.ok) return output;
  // What is rehearsed costs nothing, whatever claude does.
  const isReal = rehearsal.value === undefined && opened === undefined;
  const limitable = rehearsal.value === undefined ? ok(undefined) : checkRehearsed(context, group, wish);
  if (!limitable.ok) return limitable;
  const gate = isReal ? await gateForGroup(context, group, wish) : ok(opened);
  if (!gate.ok) return gate;
  const claude = gate.value;
  if (claude === 'interrupted') return ok({ kind: 'interrupted' });
  const display = await openRunDisplay(context, group, output.value);
  if (output.value === 'tui') claude?.hush();
  const hooks = createRunHooks(context, group, hookOptions(context, wish), ofUser.value.onEvent);
  const warnings: string[] = [];
  let result: RunResult;
  try {
    result = await runWhenFree(context, group, {
      root: group.root,
      groupId: group.groupId,
      callerEnv: context.env,
      packageRoot: context.packageRoot,
      reporter: hooks.around(display.reporter),
      overrides: { ...ofUser.value.config, ...configOf(wish.config) },
      retryFailed: wish.retryFailed,
      ...(wish.only === undefined ? {} : { only: wish.only }),
      ...(rehearsal.value === undefined ? {} : { rehearsal: rehearsal.value }),
      ...(claude === undefined ? {} : { claude }),
      warn: (message) => warnings.push(`warning: ${safeLine(message, warningColumnsMax)}`),
      onSignal: display.onSignal,
    });
  } finally {
    await claude?.close();
    await display.close();
  }
  for (const warning of [...warnings, ...(await hooks.finish(result.kind === 'left'))]) context.stderr.line(warning);
  if (result.kind !== 'left' || !display.isHandedOver) return ok(result);
  // Its options are on record and hold for the runner that takes over.
  const { rehearse } = wish;
  const { runDetached } = await import('./detach.ts');
  const further: RunWish = { config: {}, output: undefined, rehearse, retryFailed: false };
  return ok({ kind: 'handed-over', work: await runDetached(context, group, further) });
}

/** Without a script a group goes on with the one it was rehearsed with last. */
async function rehearsalOf(
  context: Context,
  { root, groupId }: GroupReference,
  rehearse: string | true | undefined,
): Promise<Result<Rehearsal | undefined>> {
  const state = rehearse === true ? loadGroup(context.world, root, groupId) : null;
  const script = state?.ok ? state.value.run?.script : undefined;
  if (script === undefined || context.world.files.info(script) !== null) {
    return rehearsalFor(context, script ?? rehearse);
  }
  const next = 'Put it back, or give the path of another one to --rehearse.';
  return fail('usage', `The script with which the group was rehearsed, ${briefPath(script)}, is gone.`, next);
}

/** The scripted API a run is to talk to; undefined for the real one. Fails when its script is not usable. */
export async function rehearsalFor(
  context: Context,
  rehearse: string | true | undefined,
): Promise<Result<Rehearsal | undefined>> {
  if (rehearse === undefined) return ok(undefined);
  const { createRehearsal } = await import('../control/rehearsal-process.ts');
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
    if (
      !isBusy ||
      result.failure.survivor !== undefined ||
      tries === takeTriesMax ||
      liveRunner(context.world, group) !== null
    )
      return result;
    await waitForShortCommands(context.world, group);
  }
}

/** What is said about the end of a run, and its exit code. */
export function concludeRun(context: Context, { groupId }: GroupReference, result: RunHere): Work {
  switch (result.kind) {
    case 'handed-over':
      return result.work;
    case 'interrupted':
      return ok(exitCode.interrupted);
    case 'settled':
      return ok(exitCodeForStatus(result.status));
    case 'left': {
      const { pausing } = result.state;
      const workers =
        pausing === undefined ? 'its workers go on' : 'its workers were asked to stop and end by themselves';
      context.stderr.line(
        `Left group ${groupId}; ${workers}. Take over again with: ${commandText(runCommand(result.state))}`,
      );
      return ok(exitCode.interrupted);
    }
    case 'already-completed':
      context.stderr.line(`Group ${groupId} is completed already; there is nothing to run.`);
      return ok(exitCode.done);
    case 'refused':
      return { ok: false, failure: result.failure };
  }
}

function hookOptions({ stdout, env }: Context, { notify: rings, rehearse }: RunWish): RunHookOptions {
  return {
    isRehearsal: rehearse !== undefined,
    ...(rings ? { ring: (event, state) => notify(stdout, env, event, state) } : {}),
  };
}

async function openRunDisplay(context: Context, group: GroupReference, output: OutputKind): Promise<RunDisplay> {
  if (output === 'tui') return (await import('./dashboard/run-dashboard.ts')).openRunDashboard(context, group);
  const reporter = await createReporter(context, group, output);
  const listen: RunDisplay['onSignal'] = (handler) => onSignal(context.world.clock, handler);
  return { reporter, onSignal: listen, isHandedOver: false, close: async () => {} };
}
