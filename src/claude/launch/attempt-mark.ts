/** Marks a worker and everything it starts; the value is the attempt's id. In a file of its own, for hooks load it. */
export const attemptMark = 'CLAUDE_CODE_AGENT_ATTEMPT';
