/** What `import "claude-code-agent"` is under Node: one sentence. The names are there so that it is reached at all. */
export let SessionGroup, SessionGroupError, SessionGroupRunner;

throw new Error(
  'claude-code-agent is a library for Bun: run your program with "bun your-program.ts" ("npm install bun" adds it, ' +
    '"npx bun your-program.ts" starts it), or start groups from Node with the command claude-code-agent and its ' +
    'option --output json.',
);
