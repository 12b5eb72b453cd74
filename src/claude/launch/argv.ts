/** claude/launch/: how claude is started. This file: its arguments, which others can read: no secret, no prompt. */

import type { PermissionMode } from '../../core/definitions.ts';
import type { JsonObject } from '../../store/json.ts';

export interface WorkerArgsInput {
  /** Absent = claude's own default. On resume the model of the first attempt's `init`, or the window shrinks. */
  readonly model?: string;
  /** Names with commas between them, the first to answer first. */
  readonly fallbackModel?: string;
  readonly effort?: string;
  readonly maxTurns?: number;
  /** `new` starts a conversation under this id, `resume` continues it. The id is a UUID. */
  readonly conversation: { readonly kind: 'new' | 'resume'; readonly claudeSessionId: string };
  /** claude's id of the message that a resumed conversation goes on from. */
  readonly resumeAt?: string;
  /** For people; without a name claude pays for a request that finds a title. */
  readonly name: string;
  readonly permissionMode: PermissionMode;
  /** Requests for permissions and questions come as control requests, and wait. */
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

/** Below this claude would be given "0.0000", with which it crashes. */
const leastUsd = 0.001;
/** claude stops at its limit, and turns even a finished answer into an error there; our caps may be used up in full. */
const inclusive = 0.000001;

export function workerArgs(input: WorkerArgsInput): string[] {
  const { reservedUsd } = input;
  return [
    '-p',
    // stream-json output is refused without it.
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
    // Without it the stream has only the tool calls of sub-agents.
    '--forward-subagent-text',
    // Without it nothing tells what a hook of the project said when it stopped claude.
    '--include-hook-events',
    // No person is there: claude would wait for the answer to an MCP server's question as long as the server does.
    ...(input.asks ? ['--permission-prompt-tool', 'stdio'] : ['--permission-prompts', 'none']),
  ];
}

/** The same claude for a person at a terminal, where it knows neither a cap nor a form of its answer. */
export function attendedArgs(input: WorkerArgsInput): string[] {
  return sharedArgs(input);
}

function sharedArgs(input: WorkerArgsInput): string[] {
  const { conversation } = input;
  return [
    conversation.kind === 'new' ? '--session-id' : '--resume',
    conversation.claudeSessionId,
    ...(input.resumeAt === undefined ? [] : [`--resume-session-at=${input.resumeAt}`]),
    // Options with free or several values are given as one word each, so that they can swallow nothing after them.
    ...(input.model === undefined ? [] : [`--model=${input.model}`]),
    ...(input.fallbackModel === undefined ? [] : [`--fallback-model=${input.fallbackModel}`]),
    ...(input.effort === undefined ? [] : [`--effort=${input.effort}`]),
    ...(input.name === '' ? [] : [`--name=${input.name}`]),
    ...(input.allowedTools ?? []).map((rule) => `--allowedTools=${rule}`),
    ...(input.addedFolders ?? []).map((folder) => `--add-dir=${folder}`),
    ...(input.pluginFolders ?? []).map((folder) => `--plugin-dir=${folder}`),
    ...(input.mcpConfigFile === undefined ? [] : [`--mcp-config=${input.mcpConfigFile}`]),
    // Otherwise the first system prompt of the conversation holds, also after its template was edited.
    ...(conversation.kind === 'resume' ? ['--system-prompt-snapshot', 'off'] : []),
    '--permission-mode',
    input.permissionMode,
    '--settings',
    input.settingsFile,
    ...(input.systemPromptFile === undefined ? [] : [`--append-system-prompt-file=${input.systemPromptFile}`]),
    // Without it the project's .mcp.json servers are started unasked.
    '--strict-mcp-config',
    // Folder, machine, Git status and memory path then stand in the first message instead of the system prompt, which
    // is the same for all sessions of a kind: they can share it in the prompt cache.
    '--exclude-dynamic-system-prompt-sections',
  ];
}
