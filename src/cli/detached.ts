/** `--detach`: what is said about a runner of its own, and the exit code when it refused. */

import { whileBusy } from '../app/busy.ts';
import type { GroupReference } from '../app/resolve.ts';
import { startDetached } from '../app/run/detach.ts';
import { commandText } from '../core/advice.ts';
import { ok } from '../core/failure.ts';
import { safeJson, safeLine } from '../view/terminal-text.ts';
import type { Context, Work } from './context.ts';
import { exitCode, knownExitCode } from './exit-code.ts';
import type { RunCommandOptions } from './options/run-options.ts';

const sentenceColumnsMax = 1_000;

/** Starts a runner of its own for the group; the exit code is that of its refusal when it does not begin to run. */
export async function runDetached(context: Context, group: GroupReference, options: RunCommandOptions): Promise<Work> {
  const { stdout, stderr } = context;
  const { groupId } = group;
  const started = await whileBusy(context, 'Starting the runner', () => startDetached(context, group, options));
  if (!started.ok) return started;
  if (started.value.kind === 'refused') {
    for (const line of started.value.said) stderr.line(line);
    return ok(knownExitCode(started.value.code));
  }
  const { pid, log } = started.value;
  if (options.output === 'json') stdout.line(safeJson({ groupId, pid, log }));
  else stdout.line(groupId);
  if (options.output !== 'json' && options.output !== 'quiet') sayHowToGoOn(context, groupId, pid, log);
  if (options.notify) stderr.line('A detached run has no terminal to notify; an onEvent command is told of events.');
  return ok(exitCode.done);
}

function sayHowToGoOn({ stderr }: Context, groupId: string, pid: number, log: string): void {
  stderr.line(`It runs on its own (pid ${pid}), whatever becomes of this terminal.`);
  stderr.line(`Watch it: ${commandText(['group', 'watch', groupId])}`);
  stderr.line(`Pause it: ${commandText(['group', 'pause', groupId])}`);
  stderr.line(`Its log:  ${safeLine(log, sentenceColumnsMax)}`);
}
