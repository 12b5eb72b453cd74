/** What else happens when a group comes to a point that a user may wait for: `--notify` and `onEvent`. */
import { join } from 'node:path';
import { commandEnvironment } from '../claude/launch/environment.ts';
import type { GroupEvent } from '../core/event.ts';
import type { GroupState } from '../core/state.ts';
import { publicEvent } from '../view/json-reporter.ts';
import type { Reporter } from '../view/reporter.ts';
import { safeLine } from '../view/terminal-text.ts';
import { awaitedEvents, EventCommands, eventCommandTimeoutMs } from './event-commands.ts';
import type { Place } from './place.ts';
import type { GroupReference } from './resolve.ts';
import { onSignal } from './signals.ts';

const columnsMax = 1_000;
/** Nobody wonders about less than that. */
const silentMs = 1_000;

export interface RunHooks {
  /** The reporter, which is told first. */
  around(reporter: Reporter): Reporter;
  /** What a command logs because nobody runs the group. */
  tell(event: GroupEvent, state: GroupState): void;
  /**
   * Waits for the commands that were told; the lines to print when the screen is the shell's, if anything went wrong
   * with them. `left`: the runner goes at once, and nothing is waited for.
   */
  finish(left: boolean): Promise<readonly string[]>;
}

export interface RunHookOptions {
  /** Rings the terminal of whoever runs the group. */
  readonly ring?: (event: GroupEvent, state: GroupState) => void;
  readonly isRehearsal: boolean;
}

/** `ofUser`: the command in the user's own configuration; that of the workflow stands in the group. */
export function createRunHooks(
  place: Place,
  { paths }: Pick<GroupReference, 'paths'>,
  { ring, isRehearsal }: RunHookOptions,
  ofUser: string | undefined,
): RunHooks {
  const { world, env } = place;
  const warnings: string[] = [];
  const rehearsalHome = isRehearsal ? join(paths.folder, 'rehearsal-home') : undefined;
  const commands = new EventCommands(world, {
    paths,
    env: commandEnvironment(env, rehearsalHome),
    warn: (text) => warnings.push(text),
  });
  let tidied: Promise<void> | null = null;
  const tell = (event: GroupEvent, state: GroupState): void => {
    // Not before: the group is ours only now.
    tidied ??= commands.endLeftovers();
    ring?.(event, state);
    if (!awaitedEvents.has(event.type)) return;
    const { onEvent: ofWorkflow } = state.group.config;
    const told = [ofUser, ofWorkflow].filter((command) => command !== undefined);
    if (told.length === 0) return;
    const line = publicEvent(event, state);
    void tidied.then(() => commands.tell(line, told));
  };
  return {
    around: (reporter) => ({
      event(event, state, live) {
        reporter.event(event, state, live);
        tell(event, state);
      },
      progress: (...what) => reporter.progress(...what),
      resting: (...what) => reporter.resting?.(...what),
      waiting: (...what) => reporter.waiting(...what),
      machines: (...what) => reporter.machines?.(...what),
      warning: (...what) => reporter.warning?.(...what),
      summarize: (...what) => reporter.summarize(...what),
    }),
    tell,
    async finish(left) {
      // A user who does not want to wait for them either.
      const unsubscribe = onSignal(world.clock, () => commands.stop());
      await tidied;
      if (left) commands.stop();
      const waiting = `Waiting for an onEvent command, at most ${eventCommandTimeoutMs / 1_000} s; Ctrl-C ends it.`;
      const keepQuiet = world.clock.after(silentMs, () => place.notes.line(waiting));
      await commands.finish();
      keepQuiet();
      unsubscribe();
      return warnings.map((warning) => `warning: ${safeLine(warning, columnsMax)}`);
    },
  };
}
