/** What shows a run while it runs, and is asked by whom it is stopped. */
import type { Reporter } from '../../view/reporter.ts';
import type { RunnerSignal } from '../../worker/facts.ts';

export interface RunDisplay {
  readonly reporter: Reporter;
  /** Signals of this process, and those that keys stand for. */
  onSignal(handler: (signal: RunnerSignal) => void): () => void;
  /** It has the whole terminal, and nothing else may write there. */
  readonly isScreen: boolean;
  /** Whatever it holds is given back. */
  close(): Promise<void>;
}
