/** The name by which the program was started. */

/** A live binding: `startedAs` runs before any output. */
export let programName = 'claude-code-agent';

/**
 * The program in printed command lines, so that they can be pasted: its name, or the whole path if a path was typed.
 */
export let programPath = 'claude-code-agent';

/** A name or path that is one shell word; anything else could not be pasted. */
const plainName = /^(?:\/[\w./+-]{1,200}\/)?[\w][\w.-]{0,60}$/;

/** `typed` is a name, or the typed path; anything a user could not type is ignored. */
export function startedAs(typed = ''): void {
  const name = typed.slice(typed.lastIndexOf('/') + 1);
  if (!plainName.test(name)) return;
  programName = name;
  programPath = plainName.test(typed) ? typed : name;
}
