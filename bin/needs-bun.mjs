/** What `import "claude-code-agent"` is under Node: one sentence. The names are there so that it is reached at all. */
export let SessionGroup, SessionGroupError, SessionGroupRunner;

throw new Error(
  'claude-code-agent is a library for Bun: run your program with "bun your-program.ts" (https://bun.sh), or start ' +
    'groups from Node with the command claude-code-agent and its option --output json.',
);
