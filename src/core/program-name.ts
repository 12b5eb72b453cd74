/** The name by which the program was started. */

/** A live binding: `startedAs` comes before anything is said. */
export let programName = 'claude-code-agent';

/**
 * How command lines that are shown begin, so that they can be pasted where they are read: the name, or the whole path
 * where a path was typed.
 */
export let programPath = 'claude-code-agent';

/** A name or a path that a shell takes as one word; anything else would not be pasted as it stands. */
const plainName = /^(?:\/[\w./+-]{1,200}\/)?[\w][\w.-]{0,60}$/;

/** `typed` is a name, or a path where one was typed; what is no name a person could type is passed over. */
export function startedAs(typed = ''): void {
  const name = typed.slice(typed.lastIndexOf('/') + 1);
  if (!plainName.test(name)) return;
  programName = name;
  programPath = plainName.test(typed) ? typed : name;
}
