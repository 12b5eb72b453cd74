/** What `group run` shows while it runs: lines, or the dashboard inside the running process. */
import type { Reporter } from '../../report/reporter.ts';
import type { RunnerSignal } from '../../runner/facts.ts';
import type { Context } from '../context.ts';
import { createReporter, type OutputKind } from '../reporters.ts';
import type { GroupReference } from '../resolve.ts';
import { onSignal } from '../signals.ts';

export interface RunDisplay {
  readonly reporter: Reporter;
  /** Signals of this process, and those that keys stand for. */
  onSignal(handler: (signal: RunnerSignal) => void): () => void;
  /** The user wants the run to go on without this terminal. */
  readonly isHandedOver: boolean;
  /** Gives the terminal back and says what came of the run. */
  close(): Promise<void>;
}

export async function openRunDisplay(context: Context, group: GroupReference, output: OutputKind): Promise<RunDisplay> {
  if (output === 'tui') return (await import('./run-dashboard.ts')).openRunDashboard(context, group);
  const reporter = await createReporter(context, group, output);
  const listen: RunDisplay['onSignal'] = (handler) => onSignal(context.world.clock, handler);
  return { reporter, onSignal: listen, isHandedOver: false, close: async () => {} };
}
