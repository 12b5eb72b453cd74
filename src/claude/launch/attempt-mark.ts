/** Marks a worker and all its processes with the attempt's id. A separate file, so that hooks load fast. */
export const attemptMark = 'CLAUDE_CODE_AGENT_ATTEMPT';
