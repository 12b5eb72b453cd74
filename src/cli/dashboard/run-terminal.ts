/** What `group run` shows while it runs: lines, or the dashboard inside the running process. */
import type { RunDisplay } from '../../app/run/run-display.ts';

export interface RunTerminal extends RunDisplay {
  /** The user wants the run to go on without this terminal. */
  readonly isHandedOver: boolean;
}
