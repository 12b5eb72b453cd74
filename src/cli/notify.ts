/** `--notify`: rings the terminal, and tells it what happened, when something happens that a user may wait for. */

import { awaitedEvents } from '../app/event-commands.ts';
import type { GroupEvent } from '../core/event.ts';
import { type GroupState, isThrottled } from '../core/state.ts';
import { formatDate } from '../view/format.ts';
import { safeLine } from '../view/terminal-text.ts';
import type { Output } from './output.ts';

const columnsMax = 120;

/**
 * A bell, and OSC 9, which many terminals show as a notification of the desktop. Nothing for other events, and nothing
 * when `stdout` is no terminal: such bytes must not get into a file.
 */
export function notify(
  stdout: Output,
  env: { readonly TERM?: string | undefined },
  event: GroupEvent,
  state: GroupState,
): void {
  if (!stdout.isTerminal || !awaitedEvents.has(event.type)) return;
  const text = safeLine(notificationText(event, state), columnsMax);
  stdout.write(env.TERM === 'dumb' ? '\u0007' : `\u0007\u001b]9;${text}\u0007`);
}

function notificationText(event: GroupEvent, { group }: GroupState): string {
  const name = safeLine(group.name, 60);
  switch (event.type) {
    case 'group_completed':
      return `${name} is completed`;
    case 'group_failed':
      return `${name} failed: ${event.reason}`;
    case 'group_paused':
      return `${name} is paused: ${event.reason}`;
    case 'limit_reached':
      return isThrottled(event)
        ? `${name} is throttled by the server until ${formatDate(event.resetsAt)}`
        : `${name} waits for a usage limit until ${formatDate(event.resetsAt)}`;
    default:
      return name;
  }
}
