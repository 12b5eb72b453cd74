/**
 * app/command/: commands that do more than what stands in the log of them. This file: what they answer, and on
 * which two ways they are done.
 */
import type { GroupEvent } from '../../core/event.ts';
import type { Result } from '../../core/failure.ts';
import type { SessionState } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import type { CommandOf } from '../../runner/request-answers.ts';
import type { GroupWriter } from '../../store/group-writer.ts';
import type { RequestAnswer } from '../../store/requests.ts';
import type { World } from '../../system/world.ts';
import type { GroupReference } from '../resolve.ts';
import type { PauseOutcome } from './pause-outcome.ts';

/** The answers of these commands, by kind. */
export interface Special {
  /** Given when the group is paused, or frozen. */
  readonly pause: PauseOutcome;
  readonly thaw: 'thawed' | 'needs-runner';
  /** How the session stands when it runs no more. */
  readonly 'pause-session': SessionState;
  /** How the session stands when it is kept for the person and runs no more. */
  readonly 'attach-session': SessionState;
  /** When the session hears it. */
  readonly say: 'now' | 'next-attempt';
}

/** Is told what is logged while no runner is there to tell it. */
export type Tell = (event: GroupEvent, state: GroupState) => void;

export interface Way<K extends keyof Special> {
  /** With the lock held. `gone`: the run that was asked for it first, and has ended without an answer. */
  direct(
    world: World,
    writer: GroupWriter,
    command: CommandOf<K>,
    about: { readonly tell: Tell; readonly gone: string | undefined },
  ): Result<Special[K]> | Promise<Result<Special[K]>>;
  /** The live runner has done it; `runner-gone` = try again from the start. */
  answered(
    world: World,
    group: GroupReference,
    runId: string,
    answer: RequestAnswer,
    command: CommandOf<K>,
  ): Result<Special[K]> | 'runner-gone' | Promise<Result<Special[K]> | 'runner-gone'>;
}
