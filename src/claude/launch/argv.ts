/**
 * claude/launch/: how claude is started. This file: its arguments. Other users can see them, so they contain no secret
 * and no prompt.
 */

import type { PermissionMode } from '../../core/definitions.ts';
import type { JsonObject } from '../../store/json.ts';

export interface WorkerArgsInput {
  /** Absent = claude's default. On resume the model of the first attempt's `init`; otherwise the window shrinks. */
  readonly model?: string;
  /** Comma-separated, in order of preference. */
  readonly fallbackModel?: string;
  readonly effort?: string;
  readonly maxTurns?: number;
  /** `new` starts a conversation under this id, `resume` continues it. The id is a UUID. */
  readonly conversation: { readonly kind: 'new' | 'resume'; readonly claudeSessionId: string };
  /** claude's id of the message from which a resumed conversation continues. */
  readonly resumeAt?: string;
  /** For users; without a name claude pays for a request that generates a title. */
  readonly name: string;
  readonly permissionMode: PermissionMode;
  /** Permission requests and questions arrive as control requests, and wait. */
  readonly asks?: boolean;
  readonly settingsFile: string;
  readonly systemPromptFile?: string;
  readonly mcpConfigFile?: string;
  readonly allowedTools?: readonly string[];
  /** JSON Schema of the answer; claude takes it only as text on the command line. */
  readonly outputSchema?: JsonObject;
  readonly addedFolders?: readonly string[];
  readonly pluginFolders?: readonly string[];
  /** US dollars this attempt may spend; absent = no cap. */
  readonly reservedUsd?: number;
}

/** A smaller amount would be passed as "0.0000", on which claude crashes. */
const leastUsd = 0.001;
/** claude reports an error when it reaches its limit exactly. Added so that a cap can be used in full. */
const inclusive = 0.000001;

export function workerArgs(input: WorkerArgsInput): string[] {
  const { reservedUsd } = input;
  return [
    '-p',
    // Required for stream-json output.
    '--verbose',
    '--output-format',
    'stream-json',
    '--input-format',
    'stream-json',
    ...sharedArgs(input),
    ...(input.outputSchema === undefined ? [] : [`--json-schema=${JSON.stringify(input.outputSchema)}`]),
    ...(input.maxTurns === undefined ? [] : [`--max-turns=${input.maxTurns}`]),
    ...(reservedUsd === undefined
      ? []
      : ['--max-budget-usd', (Math.max(leastUsd, reservedUsd) + inclusive).toFixed(6)]),
    // Otherwise the stream has only the tool calls of sub-agents.
    '--forward-subagent-text',
    // Otherwise the output of a project's hook that stopped claude is missing.
    '--include-hook-events',
    // Otherwise claude would wait for a user to answer an MCP server's question.
    ...(input.asks ? ['--permission-prompt-tool', 'stdio'] : ['--permission-prompts', 'none']),
  ];
}

/** Arguments for an attached user: no cap and no output schema. */
export function attendedArgs(input: WorkerArgsInput): string[] {
  return sharedArgs(input);
}

function sharedArgs(input: WorkerArgsInput): string[] {
  const { conversation } = input;
  return [
    conversation.kind === 'new' ? '--session-id' : '--resume',
    conversation.claudeSessionId,
    ...(input.resumeAt === undefined ? [] : [`--resume-session-at=${input.resumeAt}`]),
    // Options with optional or several values are one word each, so that they cannot swallow the next argument.
    ...(input.model === undefined ? [] : [`--model=${input.model}`]),
    ...(input.fallbackModel === undefined ? [] : [`--fallback-model=${input.fallbackModel}`]),
    ...(input.effort === undefined ? [] : [`--effort=${input.effort}`]),
    ...(input.name === '' ? [] : [`--name=${input.name}`]),
    ...(input.allowedTools ?? []).map((rule) => `--allowedTools=${rule}`),
    ...(input.addedFolders ?? []).map((folder) => `--add-dir=${folder}`),
    ...(input.pluginFolders ?? []).map((folder) => `--plugin-dir=${folder}`),
    ...(input.mcpConfigFile === undefined ? [] : [`--mcp-config=${input.mcpConfigFile}`]),
    // Otherwise the conversation keeps its first system prompt, even after its template was edited.
    ...(conversation.kind === 'resume' ? ['--system-prompt-snapshot', 'off'] : []),
    '--permission-mode',
    input.permissionMode,
    '--settings',
    input.settingsFile,
    ...(input.systemPromptFile === undefined ? [] : [`--append-system-prompt-file=${input.systemPromptFile}`]),
    // Otherwise the servers of the project's .mcp.json start without approval.
    '--strict-mcp-config',
    // Moves folder, machine, git status and memory path from the system prompt to the first message, so that sessions
    // share the system prompt in the prompt cache.
    '--exclude-dynamic-system-prompt-sections',
  ];
}
