/** `rehearsal-serve` (hidden): the process that serves the scripted API of one group; started by `group run`. */
import type { Command } from '@commander-js/extra-typings';
import { onSignal } from '../../app/signals.ts';
import { defined } from '../../core/defined.ts';
import { ok } from '../../core/failure.ts';
import { serveRehearsal } from '../../rehearsal/serve.ts';
import { type Context, exitCode, type Work } from '../context.ts';

export function define(command: Command, context: Context): void {
  command
    .description('Serves the scripted Messages API of a rehearsal on 127.0.0.1 until SIGTERM. Used by group run.')
    .requiredOption('--group-folder <folder>', 'where rehearsal.json is written')
    .option('--script <file>', 'YAML file with the script')
    .action(({ groupFolder, script }) => context.run(() => serve(context, groupFolder, script)));
}

async function serve(context: Context, groupDir: string, scriptFile: string | undefined): Promise<Work> {
  const stop = new AbortController();
  // The terminal of the runner is not ours: only SIGTERM is meant for the server.
  const end = onSignal(context.world.clock, (signal) => {
    if (signal === 'SIGTERM') stop.abort();
  });
  const script = defined({ scriptFile });
  const served = await serveRehearsal(context.world, { groupDir, ...script, stop: stop.signal });
  end();
  return served.ok ? ok(exitCode.done) : served;
}
