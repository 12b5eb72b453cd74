/** Users' requests to a group from other processes: through its live runner, or directly without one. */

import { changeGroup, submit } from '../../../src/app/group-commands.ts';
import type { GroupReference } from '../../../src/app/resolve.ts';
import { fail, ok, type Result } from '../../../src/core/failure.ts';
import { openItems } from '../../../src/core/item.ts';
import { anyAttachedProblem } from '../../../src/runner/attach.ts';
import type { Command, CommandOf } from '../../../src/runner/request-answers.ts';
import { stopGroup } from '../../../src/runner/stop-group.ts';
import { deleteGroupFolder } from '../../../src/store/group-store.ts';
import type { PauseRequestMode } from '../../../src/store/requests.ts';
import type { World } from '../../../src/system/world.ts';
import { newDefinition } from './group-setup.ts';
import { takeOver } from './person.ts';
import type { Act } from './scenario.ts';
import type { VirtualMachine } from './virtual-machine.ts';
import type { VirtualRunner } from './virtual-runner.ts';

type Work = (world: World, runner: VirtualRunner) => Promise<Result<unknown>>;
type SessionAct = Extract<Act, { do: 'session-pause' | 'session-resume' | 'session-retry' | 'say' }>;

export interface CommandsParts {
  readonly machine: VirtualMachine;
  readonly group: GroupReference;
  /** Runs the work in a process of its own. */
  readonly command: (work: Work) => void;
  /** Runs the group with these sessions only. */
  readonly runOnly: (only: readonly string[]) => void;
  readonly onDeleted: () => void;
}

/** A reporter without output. */
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
      const paused = await submit({ world, notes }, group, { kind: 'pause', mode });
      // Like the command, which becomes the runner that waits for the sessions and starts none.
      if (runner.alive && paused.ok && paused.value.kind === 'runner-gone') runOnly([]);
      return paused;
    });
  }

  thaw(): void {
    this.#submit({ kind: 'thaw' });
  }

  raiseBudget(byUsd: number): void {
    const cap = this.#parts.machine.log.state?.group.config.maxBudgetUsd;
    if (cap !== undefined) this.#submit({ kind: 'edit-group', config: { maxBudgetUsd: cap + byUsd } });
  }

  addSession(dependsOnLast: boolean): void {
    const { log, timeline } = this.#parts.machine;
    const last = [...(log.state?.sessions.keys() ?? [])].at(-1);
    const session = newDefinition(timeline.wall(), dependsOnLast && last !== undefined ? [last] : []);
    this.#submit({ kind: 'add-session', session });
  }

  removeSession(index: number): void {
    const sessionId = this.#session(index);
    if (sessionId !== undefined) this.#submit({ kind: 'remove-session', sessionId });
  }

  attach(act: Extract<Act, { do: 'attach' }>): void {
    const { machine, group, command } = this.#parts;
    const sessionId = this.#session(act.index);
    if (sessionId === undefined) return;
    command((world, runner) => takeOver(machine, group, { sessionId, act, world, runner }));
  }

  ofSession(act: SessionAct): void {
    const sessionId = this.#session(act.index);
    if (sessionId === undefined) return;
    switch (act.do) {
      case 'session-pause':
        this.#submit({ kind: 'pause-session', sessionId });
        return;
      case 'session-resume':
        this.#startOne({ kind: 'resume-session', sessionId });
        return;
      case 'session-retry':
        this.#startOne({ kind: 'retry-session', sessionId });
        return;
      case 'say':
        this.#said += 1;
        this.#submit({ kind: 'say', sessionId, text: `And mind test ${this.#said}.` });
        return;
    }
  }

  /** Answers the oldest open item; false without one. */
  answer(words: 'allow' | 'deny'): boolean {
    const records = [...(this.#parts.machine.log.state?.sessions.values() ?? [])];
    const open = records.flatMap((record) => openItems(record).map((item) => ({ item, record })));
    const [first] = open.toSorted((a, b) => a.item.since.localeCompare(b.item.since));
    if (first === undefined) return false;
    const { item, record } = first;
    const sessionId = record.definition.id;
    this.#submit({ kind: 'answer-item', sessionId, item: item.id, given: { text: words } });
    return true;
  }

  /** Without a runner the command becomes one for this session, once it has released the group. */
  #startOne(asked: CommandOf<'resume-session' | 'retry-session'>): void {
    const { group, command, runOnly } = this.#parts;
    command(async (world, runner) => {
      const done = await submit({ world, notes }, group, asked);
      if (runner.alive && done.ok && done.value.by === 'log') runOnly([asked.sessionId]);
      return done;
    });
  }

  #submit(asked: Command): void {
    const { group, command } = this.#parts;
    command((world) => submit({ world, notes }, group, asked));
  }

  delete(): void {
    const { machine, group, onDeleted, command } = this.#parts;
    command((world, runner) =>
      changeGroup<unknown>({ world }, group, {
        direct: async (writer) => {
          const taken = anyAttachedProblem(writer.state);
          if (taken !== null) return taken;
          await stopGroup(world, writer, 'deleted');
          if (!runner.alive) return refusal('it died');
          machine.checks.step();
          machine.checks.settled();
          deleteGroupFolder(world, group.root, group.groupId);
          machine.log.forget();
          onDeleted();
          return ok(null);
        },
      }),
    );
  }

  #session(index: number): string | undefined {
    return [...(this.#parts.machine.log.state?.sessions.keys() ?? [])][index];
  }
}

function refusal(message: string): Result<never> {
  return fail('usage', message, '');
}
