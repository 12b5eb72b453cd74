/**
 * What the program is called by whoever started it: every command line that is shown begins with it, so that it can be
 * pasted where it is read.
 */

/** A live binding: `startedAs` comes before anything is said. */
export let programName = 'claude-code-agent';

/** A name that a shell takes as one word; anything else would not be pasted as it stands. */
const plainName = /^[\w][\w.-]{0,60}$/;

/** `typed` is the last part of the path that was started; what is no name a person could type is passed over. */
export function startedAs(typed: string | undefined): void {
  if (typed !== undefined && plainName.test(typed)) programName = typed;
}
