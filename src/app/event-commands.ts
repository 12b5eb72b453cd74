/**
 * Runs `onEvent` commands of the user and the workflow at events that a user may wait for. Each gets the event as one
 * line of JSON on its input. A failing command never harms the run, and its processes end with it.
 */
import { basename, join } from 'node:path';
import { commandEnvironment, rehearsalBase } from '../claude/launch/environment.ts';
import type { Environment } from '../claude/launch/variables.ts';
import type { EventType, GroupEvent } from '../core/event.ts';
import { errorText } from '../core/failure.ts';
import { openItems } from '../core/item.ts';
import type { GroupState } from '../core/state.ts';
import type { GroupPaths } from '../store/paths.ts';
import type { World } from '../system/world.ts';
import { type PublicEvent, publicEvent } from '../view/json-reporter.ts';
import type { Reporter } from '../view/reporter.ts';
import { safeJson, safeLine } from '../view/terminal-text.ts';
import { type CommandEnd, type RunningCommand, runShellCommand } from '../worker/shell-command.ts';
import type { AppContext } from './app-context.ts';
import type { GroupReference } from './resolve.ts';
import { onSignal } from './signals.ts';

const awaited = ['group_completed', 'group_failed', 'group_paused', 'limit_reached', 'item_opened'] as const;
const awaitedEvents: ReadonlySet<EventType> = new Set(awaited);

/** An item that a rule or an earlier answer resolved at once does not wait for the user. */
export function isAwaited(event: GroupEvent, { sessions }: GroupState): boolean {
  if (event.type !== 'item_opened' || event.kind === 'wave') return awaitedEvents.has(event.type);
  return openItems(sessions.get(event.sessionId) ?? {}).some(({ id }) => id === event.item);
}

export const eventCommandTimeoutMs = 30_000;
const columnsMax = 200;

export interface EventCommandsOptions {
  readonly paths: GroupPaths;
  readonly env: Environment;
  /** Receives each warning once. */
  readonly warn: (text: string) => void;
  readonly timeoutMs?: number;
}

export class EventCommands {
  readonly #world: World;
  readonly #options: EventCommandsOptions;
  readonly #running = new Set<RunningCommand>();
  #hasWarned = false;

  constructor(world: World, options: EventCommandsOptions) {
    this.#world = world;
    this.#options = options;
  }

  /** Starts the commands for the event. Never throws. */
  tell(event: PublicEvent, commands: readonly string[]): void {
    for (const [index, command] of commands.entries()) {
      try {
        this.#start(event, command, index);
      } catch (error) {
        // The disk is full, or the group was deleted.
        this.#warn(`An onEvent command could not be started: ${errorText(error)}.`);
      }
    }
  }

  async finish(): Promise<void> {
    await Promise.all([...this.#running].map(({ ended }) => ended));
  }

  stop(): void {
    for (const running of this.#running) running.stop();
  }

  /** `index`: among the commands for one event. */
  #start(event: PublicEvent, command: string, index: number): void {
    const { paths, env, timeoutMs = eventCommandTimeoutMs } = this.#options;
    const name = `${event.seq}-${index}.json`;
    const inputFile = join(paths.eventCommands, name);
    this.#world.files.makeFolder(paths.eventCommands);
    this.#world.files.writeAtomic(inputFile, `${safeJson(event)}\n`);
    const logFile = join(paths.eventCommands, 'output.log');
    // The path is unique, so the mark is unique on this machine.
    const mark = `${paths.folder}/on-event/${name}`;
    const how = { cwd: paths.folder, env, logFile, timeoutMs, mark, inputFile };
    const running = runShellCommand(this.#world, { command, ...how });
    this.#running.add(running);
    void running.ended.then((end) => {
      this.#running.delete(running);
      this.#conclude(command, end, inputFile, logFile);
    });
  }

  #conclude(command: string, end: CommandEnd, inputFile: string, logFile: string): void {
    try {
      this.#world.files.remove(inputFile);
    } catch {}
    if (end.ok) return;
    const code = end.exitCode === null ? 'ended by a signal' : `exit code ${end.exitCode}`;
    const how = end.timedOut ? 'took too long and was ended' : `failed (${code})`;
    const last = end.tail.split('\n').findLast((line) => line.trim() !== '') ?? '';
    const output = last === '' ? '' : `: ${safeLine(last, columnsMax)}`;
    this.#warn(`An onEvent command ${how}: ${safeLine(command, columnsMax)}${output}. Its output: ${logFile}`);
  }

  #warn(text: string): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.#options.warn(text);
  }
}

// `--notify` and `onEvent` of a run.

const noticeColumnsMax = 1_000;
/** Announce a wait for the commands after this time. */
const silentMs = 1_000;

export interface RunHooks {
  /** The reporter, called before the commands. */
  around(reporter: Reporter): Reporter;
  /** For an event that a command logs because the group has no runner. */
  tell(event: GroupEvent, state: GroupState): void;
  /** Waits for the commands unless the runner `left`. Returns warnings. */
  finish(left: boolean): Promise<readonly string[]>;
}

/** `ofUser`: the command in config.yaml. The command of the workflow is in the group. */
export function createRunHooks(
  context: AppContext,
  { paths }: Pick<GroupReference, 'paths'>,
  { ring, isRehearsal }: { readonly isRehearsal: boolean; readonly ring?: RunHooks['tell'] },
  ofUser: string | undefined,
): RunHooks {
  const { world, env } = context;
  const warnings: string[] = [];
  // Commands of a rehearsal do not get the user's tokens, because nothing real happened.
  const ofCommands = isRehearsal ? rehearsalBase(env, join(paths.folder, 'rehearsal-home')) : commandEnvironment(env);
  const commands = new EventCommands(world, {
    paths,
    env: { ...ofCommands, CCA_GROUP: basename(paths.folder) },
    warn: (text) => warnings.push(text),
  });
  const tell = (event: GroupEvent, state: GroupState): void => {
    ring?.(event, state);
    if (!isAwaited(event, state)) return;
    const { onEvent: ofWorkflow } = state.group.config;
    const wanted = [ofUser, ofWorkflow].filter((command) => command !== undefined);
    if (wanted.length === 0) return;
    commands.tell(publicEvent(event, state), wanted);
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
      warning: (...what) => reporter.warning?.(...what),
      summarize: (...what) => reporter.summarize(...what),
    }),
    tell,
    async finish(left) {
      // A user who left does not wait for the commands.
      const unsubscribe = onSignal(world.clock, () => commands.stop());
      if (left) commands.stop();
      const waiting = `Waiting for an onEvent command, at most ${eventCommandTimeoutMs / 1_000} s; Ctrl-C ends it.`;
      const keepQuiet = world.clock.after(silentMs, () => context.notes.line(waiting));
      await commands.finish();
      keepQuiet();
      unsubscribe();
      return warnings.map((warning) => `warning: ${safeLine(warning, noticeColumnsMax)}`);
    },
  };
}
