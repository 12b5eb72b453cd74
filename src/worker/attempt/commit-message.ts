/** What is written over the work of a session in git's history. */
import { clip, oneLine } from '../../claude/text.ts';
import type { SessionDefinition } from '../../core/group.ts';
import { sessionLabel } from '../../core/id.ts';

/** UTF-16 units of the first line, as git and those who show its history have it. */
const subjectMax = 72;

/** What the session was to do as the subject, then whose work it is. `task` is its prompt, filled in. */
export function commitMessage({ id, name, description }: SessionDefinition, task: string): string {
  const lines = (description === '' ? task : description).split('\n');
  // What is quoted of several sessions stands under headings.
  const words = lines.map((line) => oneLine(line, subjectMax).replace(/(^|\s)#+ /g, '$1'));
  const subject = `${sessionLabel(id, name)}: ${words.find((line) => line !== '') ?? 'work'}`;
  return `${clip(subject, subjectMax)}\n\nUncommitted work of session ${id}, committed by claude-code-agent.\n`;
}
