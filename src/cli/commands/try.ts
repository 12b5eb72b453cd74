/** `try`: shows a rehearsal of the bundled example in the dashboard, with a temporary data folder. */
import { join } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { findDataRoot } from '../../app/app-context.ts';
import { createNewGroup } from '../../app/create/new-group.ts';
import { readWorkflow } from '../../app/create/workflow-group.ts';
import { stopRehearsal } from '../../app/leftovers.ts';
import { liveRunner } from '../../app/live-runner.ts';
import { tryPath } from '../../app/path-argument.ts';
import { pauseAndNotify } from '../../app/pause-group.ts';
import { type GroupReference, groupReference, loadReferredGroup } from '../../app/resolve.ts';
import { endProcessBy, onSignal } from '../../app/signals.ts';
import { findClaude, forRehearsal } from '../../claude/launch/program.ts';
import { advise, commandText } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { ok } from '../../core/failure.ts';
import { serveRehearsal } from '../../rehearsal/serve.ts';
import { systemFailure } from '../../store/system-failure.ts';
import { safeLine } from '../../view/terminal-text.ts';
import { type CommandResult, type Context, exitCode, knownExitCode, need, refuse, refuseWith } from '../context.ts';
import { parseWhole, type RunCommandOptions } from '../options/options.ts';

const example = `
Example:
  $ claude-code-agent try
  $ claude-code-agent try --seconds 20`;

const setupMsMax = 60_000;

export function define(command: Command, context: Context): void {
  command
    .description(
      `Show a demonstration: four sessions in three small projects, with the
      installed Claude Code and a scripted model, without account or cost. Shows the
      dashboard on a terminal until you leave it with q, and lines elsewhere. Uses a
      temporary folder that is removed at the end; your groups are not touched.`,
    )
    .option('--seconds <n>', 'leave after this many seconds', parseWhole(1, 3_600))
    .addHelpText('after', example)
    .action(({ seconds }) =>
      context.run(async () => {
        const { world, env, packageRoot } = context;
        // Report a missing claude once, instead of once per session.
        need(findClaude(world, env, { packageRoot, ...forRehearsal }));
        const folder = join(env.TMPDIR || '/tmp', `claude-code-agent-try-${world.random.uuid()}`);
        const made = tryPath(() => world.files.makeFolder(folder));
        if (!made.ok)
          return refuse('usage', `The temporary folder ${folder} ${made.trouble}.`, 'Set TMPDIR to another one.');
        // Before the group runs, there are only files to remove.
        const unsubscribe = onSignal(world.clock, (signal) => {
          tryPath(() => world.files.remove(folder));
          unsubscribe();
          endProcessBy(signal);
        });
        const own = withOwnData(context, folder);
        let ready: Ready | undefined;
        try {
          ready = await prepare(own, folder).finally(unsubscribe);
          const isShown = context.stdout.isTerminal && context.stdinIsTerminal;
          const played = await (isShown ? show(own, ready, seconds) : print(own, ready, seconds));
          context.stdout.line('The demonstration has ended at no cost. Its files were removed.');
          context.stdout.line(`Next: ${commandText(['init'])}        a workflow over your own projects`);
          return played;
        } finally {
          if (ready !== undefined) await settle(own, ready);
          const gone = tryPath(() => world.files.remove(folder));
          if (!gone.ok) context.stderr.line(safeLine(`${folder} ${gone.trouble}; remove it yourself.`, 600));
        }
      }),
    );
}

/** The same context with its own data folder and without the user's configuration. */
function withOwnData(context: Context, folder: string): Context {
  const own = { CLAUDE_CODE_AGENT_HOME: join(folder, 'data'), XDG_CONFIG_HOME: join(folder, 'config') };
  const env = { ...context.env, ...own };
  const root = () => findDataRoot(context.world, env);
  return Object.create(context, {
    env: { value: env },
    root: { value: root },
    leavesNothing: { value: true },
  }) as Context;
}

interface Ready {
  readonly group: GroupReference;
  readonly options: RunCommandOptions;
}

async function prepare(context: Context, folder: string): Promise<Ready> {
  const { world, packageRoot } = context;
  const example = join(packageRoot, 'examples', 'cross-project-refactor');
  const projects = join(folder, 'projects');
  const set = Object.entries(context.env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const setup = need(
    await world.processes.run({
      program: 'sh',
      args: [join(example, 'setup.sh'), projects],
      cwd: folder,
      env: Object.fromEntries(set),
      timeoutMs: setupMsMax,
    }),
  );
  if (setup.exitCode !== 0) {
    const reason = setup.stderr.trim().split('\n').at(-1) ?? '';
    const message = `The demonstration projects could not be created: ${safeLine(reason, 400)}.`;
    return refuse('usage', message, advise('See what is missing', ['doctor']));
  }
  const root = need(context.root());
  const described = need(await readWorkflow(context, join(example, 'workflow.yaml'), [`dir=${projects}`]));
  const created = need(createNewGroup(context, root, described));
  const { id } = created.group;
  const group = groupReference(root, id);
  const rehearse = join(example, 'rehearsal.yaml');
  return { group, options: { config: {}, output: 'text', rehearse, retryFailed: false } };
}

/** Starts a separate runner and shows the dashboard, which stays open when the group is done. */
async function show(context: Context, { group, options }: Ready, seconds: number | undefined): Promise<CommandResult> {
  const { startDetached } = await import('../../app/run/detach.ts');
  const started = need(await startDetached(context, group, options));
  if (started.kind === 'refused') {
    context.stderr.lines(started.lines);
    return ok(knownExitCode(started.code));
  }
  const loaded = need(loadReferredGroup(context, group.groupId));
  const { watchedOnScreen } = await import('../dashboard/display.ts');
  const end = await watchedOnScreen(context, loaded, seconds === undefined ? {} : { leavesAfterMs: seconds * 1000 });
  switch (end.by) {
    case 'user':
      return;
    case 'loss':
      return refuseWith(end.failure);
    case 'signal':
      // A signal ends the terminal, so nothing is left behind.
      return exitCode.interrupted;
  }
}

async function print(context: Context, { group, options }: Ready, seconds: number | undefined): Promise<CommandResult> {
  const { concludeRun, runInTerminal } = await import('./group/run.ts');
  let isOver = false;
  const cancel =
    seconds === undefined
      ? () => {}
      : context.world.clock.after(seconds * 1000, () => {
          isOver = true;
          pauseAndNotify(context, group, 'now').catch(() => {});
        });
  const ran = need(await runInTerminal(context, group, options).finally(cancel));
  const work = concludeRun(context, group, ran);
  return isOver ? exitCode.done : work;
}

/** Pauses the group, so that no process outlives the temporary folder. */
async function settle(context: Context, { group }: Ready): Promise<void> {
  const { world, stderr } = context;
  try {
    if (liveRunner(world, group) !== null) await pauseAndNotify(context, group, 'now');
    await stopRehearsal(world, group.paths);
  } catch (error) {
    stderr.line(safeLine(systemFailure(group.paths.folder, error).message, 600));
  }
}

/** `rehearsal-serve` (hidden): the process that serves the scripted API of one group; started by `group run`. */
export function defineRehearsalServe(command: Command, context: Context): void {
  command
    .description('Serves the scripted Messages API of a rehearsal on 127.0.0.1 until SIGTERM. Used by group run.')
    .requiredOption('--group-folder <folder>', 'where rehearsal.json is written')
    .option('--script <file>', 'YAML file with the script')
    .action(({ groupFolder, script }) => context.run(() => serve(context, groupFolder, script)));
}

async function serve(context: Context, groupDir: string, scriptFile: string | undefined): Promise<CommandResult> {
  const stop = new AbortController();
  // Ctrl-C in the terminal of the runner must not end the server; the runner sends SIGTERM.
  const end = onSignal(context.world.clock, (signal) => {
    if (signal === 'SIGTERM') stop.abort();
  });
  const script = defined({ scriptFile });
  const served = await serveRehearsal(context.world, { groupDir, ...script, stop: stop.signal });
  end();
  return served.ok ? ok(exitCode.done) : served;
}
