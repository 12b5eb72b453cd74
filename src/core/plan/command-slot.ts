/**
 * Heavy commands of sessions on this machine, of which a limited number run at once: what a session waits for, in
 * words.
 */
import type { SessionId } from '../group.ts';
import { sessionLabel } from '../id.ts';
import type { GroupState } from '../state.ts';

/** Users of a command slot: creating a worktree, its set-up command, the acceptance command. */
export type SlotUser = 'checkout' | 'setup' | 'accept';

export interface SlotUse {
  readonly sessionId: SessionId;
  readonly command: SlotUser;
}

export interface SlotWait {
  readonly command: SlotUser;
  readonly atOnce: number;
  /** The holders of slots; of many the first, see `heldMax`. */
  readonly heldBy: readonly SlotUse[];
}

export const slotReason = 'command-slot';

/** Maximum number of named holders. */
export const heldMax = 8;

const names: Readonly<Record<SlotUser, string>> = {
  checkout: 'checkout',
  setup: 'set-up command',
  accept: 'acceptance command',
};

/** `Its set-up command waits for a command slot (1 at once); now running: the acceptance command of 001 api.` */
export function slotSentence({ sessions }: GroupState, { command, atOnce, heldBy }: SlotWait): string {
  const holders = heldBy.map(
    ({ sessionId, command: held }) =>
      `the ${names[held]} of ${sessionLabel(sessionId, sessions.get(sessionId)?.definition.name)}`,
  );
  const others = heldBy.length === heldMax && atOnce > heldMax ? ' and others' : '';
  const running = holders.length === 0 ? '' : `; now running: ${holders.join(', ')}${others}`;
  return `Its ${names[command]} waits for a command slot (${atOnce} at once)${running}.`;
}
