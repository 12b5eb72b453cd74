/** What `group run` shows while it runs: lines, or the dashboard inside the running process. */
import type { Reporter } from '../../report/reporter.ts';
import type { RunnerSignal } from '../../runner/facts.ts';

export interface RunDisplay {
  readonly reporter: Reporter;
  /** Signals of this process, and those that keys stand for. */
  onSignal(handler: (signal: RunnerSignal) => void): () => void;
  /** The user wants the run to go on without this terminal. */
  readonly isHandedOver: boolean;
  /** Gives the terminal back and says what came of the run. */
  close(): Promise<void>;
}
