/** Marks a worker and all its processes; the value is the attempt's id. In its own file, because hooks load it. */
export const attemptMark = 'CLAUDE_CODE_AGENT_ATTEMPT';
