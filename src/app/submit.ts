/**
 * Everything one can ask of a group and its sessions. With the lock free it is done here, else the live runner is
 * asked; on both ways it is checked by the same function and comes to the same events (runner/request-answers.ts).
 */
import { defined } from '../core/defined.ts';
import { ok, type Result } from '../core/failure.ts';
import type { SessionId } from '../core/group.ts';
import { recoverTakeOvers } from '../runner/attach/recover.ts';
import type { Command } from '../runner/request-answers.ts';
import { readLog } from '../store/event-log.ts';
import { loadGroup } from '../store/group-store.ts';
import { type GroupWriter, type OpenFailure, openGroupWriter } from '../store/group-writer.ts';
import type { RequestBody } from '../store/requests.ts';
import { systemFailure } from '../store/system-failure.ts';
import { delay } from '../system/clock.ts';
import type { World } from '../system/world.ts';
import type { Special, Tell, Way } from './commands.ts';
import { attachWay, meaningOf, pauseGroupWay, pauseSessionWay, recordCommand, sayWay } from './commands.ts';
import { liveRunner, shortRunPrefix } from './live-runner.ts';
import type { Place } from './place.ts';
import { askRunner } from './request.ts';
import type { GroupReference } from './resolve.ts';

export type { CommandOf } from '../runner/request-answers.ts';

export type { Command };

type Kind = Command['kind'];

/** Who has taken note of the command. */
export interface Done {
  readonly by: 'runner' | 'log';
  /** The session it was about, or that it made. */
  readonly sessionId?: SessionId;
}

/** What comes of a command. */
export type Answer<K extends Kind> = K extends keyof Special ? Special[K] : Done;

export interface SubmitOptions {
  /** What has to go first, once it is known that the command can be carried out; not through a live runner. */
  readonly before?: (writer: GroupWriter) => Promise<Result<void>>;
  /** What goes along, with the lock still held; not through a live runner. */
  readonly after?: (writer: GroupWriter) => Promise<Result<void>>;
  /** Called when the live runner has agreed, before what comes of it is waited for. */
  readonly accepted?: () => void;
  /** Is told what is logged without a runner when that takes its time. */
  readonly tell?: Tell;
  /** A run that was ended for this. */
  readonly gone?: string;
}

const ways: { readonly [K in keyof Special]: Way<K> } = {
  pause: pauseGroupWay,
  thaw: {
    // Whoever lets it go on by running it ends the freeze first.
    direct: () => ok('needs-runner'),
    answered: () => ok('thawed'),
  },
  'pause-session': pauseSessionWay,
  'attach-session': attachWay,
  say: sayWay,
};

/** Fails with a sentence when it cannot be done now; `survivor`: a runner that cannot be asked is in the way. */
export async function submit<C extends Command>(
  place: Pick<Place, 'world' | 'notes'>,
  group: GroupReference,
  command: C,
  options: SubmitOptions = {},
): Promise<Result<Answer<C['kind']>, OpenFailure>> {
  const { world } = place;
  const asked: Command = command;
  // The table gives each kind the way of that kind, which the compiler does not see for a kind that it does not know.
  const way: Way<never> | undefined = Object.hasOwn(ways, command.kind) ? ways[command.kind as never] : undefined;
  const work: Work = { command, way, ...options };
  let { gone } = options;
  const viaRunner = (runId: string, command: RequestBody) => {
    gone = runId;
    return askFor(world, group, runId, { ...work, command });
  };
  const submitted = await changeGroup<unknown>(place, group, {
    direct: (writer) => carryOut(world, writer, { ...work, ...defined({ gone }) }),
    ...(asked.kind === 'archive' ? {} : { viaRunner: (runId) => viaRunner(runId, asked) }),
  });
  return submitted as Result<Answer<C['kind']>, OpenFailure>;
}

interface Work extends SubmitOptions {
  readonly command: Command;
  readonly way: Way<never> | undefined;
}

async function carryOut(world: World, writer: GroupWriter, work: Work): Promise<Result<unknown>> {
  const { command, way, before, after, tell = () => {}, gone } = work;
  if (way !== undefined) return way.direct(world, writer, command as never, { tell, gone });
  const possible = meaningOf(world, writer, command);
  if (!possible.ok) return possible;
  const ready = await before?.(writer);
  if (ready?.ok === false) return ready;
  const recorded = recordCommand(world, writer, command);
  if (!recorded.ok) return recorded;
  const done = await after?.(writer);
  return done?.ok === false ? done : ok({ by: 'log', ...aboutOf(recorded.value) } satisfies Done);
}

async function askFor(
  world: World,
  group: GroupReference,
  runId: string,
  { command, way, accepted }: Work & { readonly command: RequestBody },
): Promise<Result<unknown, OpenFailure> | 'runner-gone'> {
  // A refusal that is found here needs no answer of the runner.
  const possible = checkCommand(world, group, command);
  if (!possible.ok) return possible;
  const answer = await askRunner(world, group, runId, command);
  if (answer === 'runner-gone' || !answer.ok) return answer;
  accepted?.();
  if (way !== undefined) return way.answered(world, group, runId, answer.value, command as never);
  return ok({ by: 'runner', ...aboutOf(answer.value) } satisfies Done);
}

/** Whether it could be done as the group is now; a log that cannot be read rules nothing out. Changes nothing. */
export function checkCommand(world: World, { root, groupId, paths }: GroupReference, command: Command): Result<void> {
  const state = loadGroup(world, root, groupId);
  const meaning = state.ok ? meaningOf(world, { state: state.value, paths }, command) : ok(undefined);
  return meaning.ok ? ok(undefined) : meaning;
}

function aboutOf({ sessionId }: { readonly sessionId?: SessionId }): Pick<Done, 'sessionId'> {
  return defined({ sessionId });
}

/** Many commands at once queue up behind each other; each takes a few milliseconds. */
const patienceMs = 20_000;
const pollMs = 15;

export interface Change<T> {
  /** Acts with the lock held. The lock is released afterwards, whatever happens. */
  readonly direct: (writer: GroupWriter) => Result<T> | Promise<Result<T>>;
  /** Acts through the live runner; `runner-gone` = try again from the start. Absent = a live runner is in the way. */
  readonly viaRunner?: (runId: string) => Promise<Result<T, OpenFailure> | 'runner-gone'>;
}

export async function changeGroup<T>(
  { world }: Pick<Place, 'world'>,
  group: GroupReference,
  change: Change<T>,
): Promise<Result<T, OpenFailure>> {
  let deadline = world.clock.now() + patienceMs;
  for (;;) {
    const runId = `${shortRunPrefix}${world.random.uuid()}`;
    const opened = openGroupWriter(world, group.root, group.groupId, runId);
    if (opened.ok) {
      try {
        await recoverTakeOvers(world, opened.value);
        const changed = await change.direct(opened.value);
        return changed;
      } catch (error) {
        // The system says what it refused, but for a write into an open file: the log.
        if ((error as { path?: unknown }).path !== undefined) throw error;
        return { ok: false, failure: systemFailure(group.paths.events, error) };
      } finally {
        opened.value.close();
      }
    }
    if (opened.failure.reason !== 'busy' || opened.failure.survivor !== undefined) return opened;
    const runner = liveRunner(world, group);
    if (runner !== null) {
      if (change.viaRunner === undefined) return opened;
      // What a newer runner answers stands in a log that cannot be read.
      const log = readLog(world, group.paths.events);
      if (!log.ok && log.failure.reason === 'newer-version') return log;
      const answer = await change.viaRunner(runner);
      if (answer !== 'runner-gone') return answer;
      // The runner may have been waited for much longer than a short command.
      deadline = world.clock.now() + patienceMs;
    }
    if (world.clock.now() > deadline) return opened;
    await delay(world.clock, pollMs);
  }
}

/** Waits until no short command holds the group any more, for a command that will take the lock itself. */
export async function waitForShortCommands(world: World, group: Pick<GroupReference, 'paths'>): Promise<void> {
  const deadline = world.clock.now() + patienceMs;
  while (world.locks.holder(group.paths.lock)?.runId.startsWith(shortRunPrefix) && world.clock.now() < deadline) {
    await delay(world.clock, pollMs);
  }
}
