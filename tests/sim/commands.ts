/** What people ask of a group from other processes: through its live runner, or by themselves when there is none. */

import { userMessage } from '../../src/claude/control.ts';
import { changeGroup } from '../../src/control/change-group.ts';
import { pauseGroup } from '../../src/control/pause-group.ts';
import { askRunner } from '../../src/control/request.ts';
import type { GroupReference } from '../../src/control/resolve.ts';
import { recordCommand } from '../../src/control/submit.ts';
import type { EventType } from '../../src/core/event.ts';
import { fail, ok, type Result } from '../../src/core/failure.ts';
import { nextGroupStatus } from '../../src/core/status.ts';
import { wishEvents } from '../../src/runner/request-answers.ts';
import { stopGroup, stopSession } from '../../src/runner/stop-group.ts';
import { deleteGroup } from '../../src/store/group-store.ts';
import type { GroupWriter } from '../../src/store/group-writer.ts';
import { sessionPaths } from '../../src/store/paths.ts';
import type { PauseRequestMode, RequestBody } from '../../src/store/requests.ts';
import type { World } from '../../src/world/world.ts';
import { newDefinition } from './group-setup.ts';
import type { Act } from './scenario.ts';
import type { VirtualMachine } from './virtual-machine.ts';
import type { VirtualRunner } from './virtual-runner.ts';

type Work = (world: World, runner: VirtualRunner) => Promise<Result<unknown>>;
type Direct = (writer: GroupWriter, world: World, runner: VirtualRunner) => Result<unknown> | Promise<Result<unknown>>;
type SessionAct = Extract<Act, { do: 'session-pause' | 'session-resume' | 'session-retry' | 'say' }>;

export interface CommandsParts {
  readonly machine: VirtualMachine;
  readonly group: GroupReference;
  /** Lets a process of its own do the work. */
  readonly command: (work: Work) => void;
  /** Runs the group with these sessions alone. */
  readonly runOnly: (only: readonly string[]) => void;
  readonly onDeleted: () => void;
}

/** Nobody reads along. */
const notes = { line() {}, passing() {} };

export class Commands {
  readonly #parts: CommandsParts;
  #said = 0;

  constructor(parts: CommandsParts) {
    this.#parts = parts;
  }

  pause(mode: PauseRequestMode): void {
    const { group, command, runOnly } = this.#parts;
    command(async (world, runner) => {
      const paused = await pauseGroup({ world, notes }, group, mode);
      // Like the command, which becomes the runner that waits for the sessions and starts none.
      if (runner.alive && paused.ok && paused.value.kind === 'runner-gone') runOnly([]);
      return paused;
    });
  }

  thaw(): void {
    this.#wish({ kind: 'thaw' }, () => refusal('nothing runs'));
  }

  raiseBudget(byUsd: number): void {
    const cap = this.#parts.machine.log.state?.group.config.maxBudgetUsd;
    if (cap !== undefined) this.#wish({ kind: 'raise-budget', maxBudgetUsd: cap + byUsd }, 'group_changed');
  }

  addSession(dependsOnLast: boolean): void {
    const { log, timeline } = this.#parts.machine;
    const last = [...(log.state?.sessions.keys() ?? [])].at(-1);
    const session = newDefinition(timeline.wall(), dependsOnLast && last !== undefined ? [last] : []);
    this.#wish({ kind: 'add-session', session }, 'session_added');
  }

  removeSession(index: number): void {
    const sessionId = this.#session(index);
    if (sessionId !== undefined) this.#wish({ kind: 'remove-session', sessionId }, 'session_removed');
  }

  ofSession(act: SessionAct): void {
    const sessionId = this.#session(act.index);
    if (sessionId === undefined) return;
    const { runOnly } = this.#parts;
    switch (act.do) {
      case 'session-pause':
        this.#wish({ kind: 'pause-session', sessionId }, async (writer, world) => {
          if (writer.state.sessions.get(sessionId)?.state.status !== 'running') {
            return recordCommand(world, writer, { kind: 'pause-session', sessionId });
          }
          await stopSession(world, writer, sessionId, 'user');
          return ok(null);
        });
        return;
      case 'session-resume':
      case 'session-retry': {
        const kind = act.do === 'session-resume' ? 'resume-session' : 'retry-session';
        this.#wish({ kind, sessionId }, (writer, world) => {
          const granted = recordCommand(world, writer, { kind, sessionId });
          // Without a runner the command becomes one for this session, as soon as it has let go of the group.
          if (granted.ok)
            this.#parts.machine.timeline.schedule(50, 'runs the session', null, () => runOnly([sessionId]));
          return granted;
        });
        return;
      }
      case 'say':
        this.#say(sessionId);
        return;
    }
  }

  #say(sessionId: string): void {
    this.#said += 1;
    const wish = { kind: 'say', sessionId, text: `And mind test ${this.#said}.` } as const;
    this.#wish(wish, async (writer, world) => {
      const state = writer.state.sessions.get(sessionId)?.state;
      const works = state?.status === 'running' && state.attempt.identified;
      const fifo = works ? world.fifos.openWriter(sessionPaths(writer.paths, sessionId).fifo) : null;
      // Who is gone, or has not got its task yet, is told with its next attempt.
      if (fifo === null) await stopSession(world, writer, sessionId, 'user');
      const said = recordCommand(world, writer, wish);
      if (said.ok) fifo?.writeLine(userMessage(wish.text));
      fifo?.close();
      return said;
    });
  }

  delete(): void {
    const { machine, group, onDeleted } = this.#parts;
    this.#change(async (writer, world, runner) => {
      await stopGroup(world, writer, 'deleted');
      if (!runner.alive) return refusal('it died');
      machine.checks.step();
      machine.checks.settled();
      deleteGroup(world, group.root, group.groupId);
      machine.log.forget();
      onDeleted();
      return ok(null);
    });
  }

  #session(index: number): string | undefined {
    return [...(this.#parts.machine.log.state?.sessions.keys() ?? [])][index];
  }

  /** Asked of the live runner; without one `direct` is done, or what the wish means is written down. */
  #wish(wish: RequestBody, direct: EventType | Direct): void {
    const write: Direct = (writer, world) => {
      if (nextGroupStatus(writer.state.status, direct as EventType) === null) return refusal('the group is over');
      const granted = wishEvents(world, writer, wish);
      if (granted.ok) writer.record(granted.value.events);
      return granted;
    };
    const { group } = this.#parts;
    this.#change(typeof direct === 'string' ? write : direct, (world, runId) => askRunner(world, group, runId, wish));
  }

  #change(direct: Direct, viaRunner?: (world: World, runId: string) => Promise<Result<unknown> | 'runner-gone'>): void {
    const { group, command } = this.#parts;
    command((world, runner) =>
      changeGroup<unknown>({ world, notes }, group, {
        direct: (writer) => direct(writer, world, runner),
        ...(viaRunner === undefined ? {} : { viaRunner: (runId: string) => viaRunner(world, runId) }),
      }),
    );
  }
}

function refusal(message: string): Result<never> {
  return fail('usage', message, '');
}
