/** What a session is told about its progress file: the part of CPM that only the model can do. */
import { assert } from '../../core/failure.ts';
import { isSessionId, progressFolder, progressName } from './state.ts';

/** For CLAUDE.md; where there is none, for the end of the system prompt. `sessionId` is claude's id, chosen by us. */
export function cpmInstructions(sessionId: string): string {
  assert(isSessionId(sessionId), 'a session id is part of a file name');
  const path = `${progressFolder}/${progressName(sessionId)}`;
  return `Your session id is \`${sessionId}\` (\`CPM_SESSION_ID\`), your progress file \`${path}\`.`;
}

/** Markdown for the system prompt: the same for every session. */
export const cpmRules = `## State Management

For work of several phases, keep your state in your own progress file, so that a compaction, a pause or a crash costs
nothing. It is \`${progressFolder}/.cpm-progress-<session id>.md\` of the project.

- **When**: before the first phase (make \`${progressFolder}\` if it is missing), before and after each phase, and
  before anything that takes long (a build, a test run, sub-agents). Replace the whole file with the Write tool.
- **What**: \`# CPM Session State\`; the lines \`**Skill**: name\`, \`**Phase**: N of M — name\` and
  \`**Output target**: path\`; \`## Completed Phases\` with a \`###\` part each, what was decided and done, enough
  to go on without asking; \`## Next Action\`, the very next step.
- **Reading it**: after a start, a resume or a compaction a hook shows it after \`--- CPM SESSION STATE\`. Go on with
  its next action. When it says that the rest is in the file, read the file first.
- **Adoption**: \`/clear\`, a fork or a resume may change the id; \`$CLAUDE_CODE_SESSION_ID\` in Bash is always right.
  When your own state is in a file with an earlier id, write it to the file with the new id (when that exists, add what
  it lacks), read it back, and only then delete the old one. Files of other sessions are not yours: leave them alone.
- **At the end**: delete it, after every output was written and checked, never before.`;
