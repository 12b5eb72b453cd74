/**
 * Rehearsal scripts: what the scripted model answers in each session, read from YAML or JSON; the position of a
 * conversation in its script; and requests that the real API would refuse.
 */
import type { z } from 'zod';
import { ok, type Result } from '../core/failure.ts';
import { schema } from '../store/schema.ts';
import { checkYaml, problemsFailure, readYaml } from '../store/yaml-text.ts';

const toolCall = schema((z) =>
  z.strictObject({
    /** As claude names it: Bash, Read, Edit, Write, Agent, ... */
    tool: z.string().min(1),
    input: z.record(z.string(), z.unknown()).optional(),
  }),
);

const count = schema((z) => z.int().min(0));

const faultKeys = ['status', 'hang', 'cut', 'limit'] as const;
const faultWords = '"status", "hang", "cut" or "limit"';

/** The ways in which a step gives no or no complete answer; a valid script has at most one per step. */
export function scriptFaults(item: { readonly [key in (typeof faultKeys)[number]]?: unknown }) {
  return faultKeys.filter((key) => item[key] !== undefined && item[key] !== false);
}

const step = schema((z) =>
  z
    .strictObject({
      /** The model's text. Without tool calls it ends the turn: the next step answers the next prompt. */
      text: z.string().min(1).optional(),
      /** The model's thinking before it; alone, it is the whole answer, once or `times` times. */
      thinking: z.string().min(1).optional(),
      tool: z.string().min(1).optional(),
      input: z.record(z.string(), z.unknown()).optional(),
      /** Several tool calls in one message, instead of `tool` and `input`. */
      tools: z.array(toolCall()).min(1).optional(),
      /** Tokens to report; the default is 1000 in and 200 out. */
      usage: z
        .strictObject({
          input: count().optional(),
          output: count().optional(),
          cacheRead: count().optional(),
          cacheCreation: count().optional(),
        })
        .optional(),
      /** How long the model thinks, milliseconds. */
      delayMs: count().optional(),
      /** Delay before each event of a streamed answer after the headers, milliseconds. */
      eventDelayMs: count().optional(),
      /** Answers with this HTTP error instead. */
      status: z.int().min(400).max(599).optional(),
      errorType: z.string().min(1).optional(),
      message: z.string().min(1).optional(),
      headers: z.record(z.string(), z.string()).optional(),
      /** The whole body of the error, such as the page of a proxy; HTML unless `headers` differ. */
      body: z.string().min(1).optional(),
      /** Never answers. */
      hang: z.boolean().optional(),
      /** Closes the connection in the middle of the answer. */
      cut: z.boolean().optional(),
      /** A usage limit: 429 with the headers of a subscription, from the first such request on for this long. */
      limit: z
        .strictObject({
          window: z.enum(['five_hour', 'seven_day', 'seven_day_opus', 'seven_day_sonnet', 'overage']),
          lastsMs: count(),
        })
        .optional(),
      /** This many events of the answer are streamed before the fault. */
      afterEvents: z.int().min(1).optional(),
      /** The fault applies only to models whose name contains one of these. */
      models: z.array(z.string().min(1)).min(1).optional(),
      /**
       * A fault applies only to the first requests, counted per session, sub-agent and step in the server's memory;
       * then the rest of the step applies, or the next step without a rest.
       */
      times: z.int().min(1).optional(),
      stopReason: z.string().min(1).optional(),
    })
    .check((context) => {
      const { value, issues } = context;
      const complain = (message: string, key?: string) =>
        issues.push({ code: 'custom', message, input: value, path: key === undefined ? [] : [key] });
      const faults = scriptFaults(value);
      if (value.tool !== undefined && value.tools !== undefined) complain('use either "tool" or "tools"', 'tools');
      if (value.input !== undefined && value.tool === undefined) complain('"input" needs a "tool" beside it', 'input');
      for (const key of ['errorType', 'message', 'headers', 'body'] as const) {
        if (value[key] !== undefined && value.status === undefined)
          complain(`"${key}" needs a "status" beside it`, key);
      }
      const says = value.text !== undefined || value.tool !== undefined || value.tools !== undefined;
      const counts = faults.length > 0 || (value.thinking !== undefined && !says);
      for (const key of ['times', 'models', 'afterEvents'] as const) {
        if (value[key] !== undefined && !(key === 'times' ? counts : faults.length > 0))
          complain(`"${key}" needs ${faultWords} beside it`, key);
      }
      for (const second of faults.slice(1)) complain(`use either "${faults[0]}" or "${second}"`, second);
      if (value.limit !== undefined && value.afterEvents !== undefined)
        complain('a usage limit comes before an answer', 'afterEvents');
      if (!counts && !says) {
        complain(`a step needs "text", "thinking", "tool", "tools", ${faultWords}`);
      }
    }),
);

const sessionScript = schema((z) =>
  z.strictObject({
    steps: z.array(step()).min(1),
    /** The steps of every sub-agent of the session, each from the first one. */
    agents: z.array(step()).min(1).optional(),
  }),
);

const script = schema((z) =>
  z.strictObject({
    version: z.literal(1),
    /** By session name or number; `*` applies to every other session. */
    sessions: z.record(z.string(), sessionScript()),
  }),
);

export type RehearsalScript = z.infer<ReturnType<typeof script>>;
export type Step = z.infer<ReturnType<typeof step>>;
export type ToolCall = z.infer<ReturnType<typeof toolCall>>;

export const defaultScript: RehearsalScript = {
  version: 1,
  sessions: {
    '*': {
      steps: [
        { text: 'I will look at the project first.', tool: 'Bash', input: { command: 'ls -la | head' } },
        { text: 'This was a rehearsal of session {{session}}: I listed the files of {{project}} and changed nothing.' },
      ],
    },
  },
};

/** Answers a sub-agent whose session has no `agents` steps. */
const defaultAgentSteps: readonly Step[] = [{ text: 'I looked into it; there is nothing to add.' }];

/** Numbers are equal by value: `2`, `002` and "2" name the same session. */
function sameKey(key: string, name: string): boolean {
  return key === name || (/^\d+$/.test(key) && /^\d+$/.test(name) && Number(key) === Number(name));
}

/** The script's key of the first matching name in `names`; undefined when only `*` could match. */
export function scriptKey(rehearsal: RehearsalScript, names: readonly string[]): string | undefined {
  const keys = Object.keys(rehearsal.sessions).filter((key) => key !== '*');
  for (const name of names) {
    const key = keys.find((candidate) => sameKey(candidate, name));
    if (key !== undefined) return key;
  }
  return undefined;
}

/** The steps of a session, or of its sub-agents: its own script, otherwise that of `*`, otherwise the default. */
export function stepsFor(rehearsal: RehearsalScript, name: string | undefined, agent: boolean): readonly Step[] {
  const key = name === undefined ? undefined : scriptKey(rehearsal, [name]);
  const own = rehearsal.sessions[key ?? '*'] ?? rehearsal.sessions['*'];
  if (agent) return own?.agents ?? defaultAgentSteps;
  return own?.steps ?? defaultScript.sessions['*']?.steps ?? [];
}

export function toolCalls(item: Step): readonly ToolCall[] {
  if (item.tools !== undefined) return item.tools;
  return item.tool === undefined ? [] : [{ tool: item.tool, ...(item.input ? { input: item.input } : {}) }];
}

/** Replaces `{{session}}` and `{{project}}` in every string of `value`, once. */
export function fillScript<T>(value: T, values: { readonly session: string; readonly project: string }): T {
  if (typeof value === 'string') {
    return value.replace(/\{\{(session|project)\}\}/g, (_, name: 'session' | 'project') => values[name]) as T;
  }
  if (Array.isArray(value)) return value.map((item) => fillScript(item, values)) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillScript(item, values)])) as T;
}

/** Reads a script. `file` is only used in messages. Fails with `usage` and names every problem with its position. */
export function parseScript(text: string, file: string): Result<RehearsalScript> {
  const yaml = readYaml({ text, file });
  const checked = yaml.ok ? checkYaml(yaml.value, script(), 'the script') : yaml;
  if (checked.ok) return ok(checked.value);
  return problemsFailure('The rehearsal script', checked.problems, 'Correct the script and run the command again.');
}

// The position of a conversation in its script follows from a request alone.

export interface ScriptedBlock {
  readonly type: string;
  readonly text?: string;
  readonly id?: string;
  readonly name?: string;
  readonly input?: unknown;
  readonly tool_use_id?: string;
  readonly is_error?: boolean;
  readonly content?: unknown;
}

export interface Message {
  readonly role: string;
  readonly content: string | readonly ScriptedBlock[];
}

export interface MessagesBody {
  readonly model?: string;
  readonly max_tokens?: number;
  readonly stream?: boolean;
  readonly system?: unknown;
  readonly tools?: readonly unknown[];
  readonly messages?: readonly Message[];
}

export function blocksOf(message: Message): readonly ScriptedBlock[] {
  if (typeof message.content === 'string') return [{ type: 'text', text: message.content }];
  // Anything may arrive over HTTP; a non-list contains no blocks.
  return Array.isArray(message.content) ? message.content : [];
}

/** The id of a tool call encodes its step; `unique` distinguishes two requests of one call. */
export function toolUseId(stepIndex: number, toolIndex: number, unique: string): string {
  return `toolu_step${stepIndex}_${toolIndex}_${unique}`;
}

const idPattern = /^toolu_step(\d+)_(\d+)_/;

/** Part of a compaction's summary; it replaces the summarised messages. */
export function progressMark(position: number): string {
  return `(rehearsal: ${position} steps done)`;
}

const markPattern = /\(rehearsal: (\d+) steps done\)/g;

/** claude's text in the result of a tool that was running when the session was interrupted. */
const interruptedPattern =
  /doesn't want to (proceed with this tool use|take this action)|\[Request interrupted by user/;

export interface ScriptPosition {
  /** Index of the step; the number of steps at the end of the script. */
  readonly step: number;
  /** Indices of the step's tool calls that still have to be requested. */
  readonly tools: readonly number[];
}

/**
 * The rule. A step is over when the conversation shows so:
 * - a step with tool calls, when each call has a result that is not an interruption. The step is read from the ids
 *   of our own tool calls, so it does not matter what stands between. A failed or denied call did get its answer
 *   and counts. A call that was interrupted, or that claude dropped from the history (it does so after a signal),
 *   is asked for again; the other calls of its message are not.
 * - a step with text only, when the whole text stands in an assistant message after the steps before it. Text that
 *   is not the step's own ("No response requested.", an API error told as a message, the words of a tool step whose
 *   call was dropped) does not count.
 * - every step before one that is over; this is how a compaction is survived: its summary carries a mark with the
 *   number of steps done, and the tool call that claude keeps after it carries its id.
 * A step that only fails, hangs or thinks leaves no trace (claude sends no thoughts that nothing followed); `passed`
 * tells whether it has done so often enough.
 */
export function findPlace(
  messages: readonly Message[],
  steps: readonly Step[],
  passed: (step: number) => boolean,
): ScriptPosition {
  const answered = answeredCalls(messages);
  const done = new Set<string>();
  let next = 0;
  const isOver = (index: number): boolean => {
    const calls = toolCalls(steps[index] as Step);
    return calls.length > 0 && calls.every((_, tool) => done.has(`${index}.${tool}`));
  };
  for (const message of messages) {
    for (const block of blocksOf(message)) {
      if (message.role === 'user') {
        for (const mark of userText(block).matchAll(markPattern)) next = Math.max(next, Number(mark[1]));
        continue;
      }
      if (message.role !== 'assistant') continue;
      if (block.type === 'text') {
        const spoken = nextSpoken(steps, next);
        const step = steps[spoken];
        if (step && toolCalls(step).length === 0 && sameText(step.text, block.text)) next = spoken + 1;
      }
      const match = block.type === 'tool_use' ? idPattern.exec(block.id ?? '') : null;
      if (!match) continue;
      const index = Number(match[1]);
      if (index >= steps.length) continue;
      next = Math.max(next, index);
      if (answered.has(block.id ?? '')) done.add(`${index}.${match[2]}`);
      if (isOver(index)) next = Math.max(next, index + 1);
    }
  }
  while (next < steps.length && isInvisible(steps[next] as Step) && passed(next)) next++;
  const calls: readonly ToolCall[] = next < steps.length ? toolCalls(steps[next] as Step) : [];
  const tools = calls.map((_, tool) => tool).filter((tool) => !done.has(`${next}.${tool}`));
  return { step: next, tools };
}

/** True for a step that only fails, hangs or thinks: it leaves no trace in the conversation. */
export function isInvisible(step: Step): boolean {
  return step.text === undefined && toolCalls(step).length === 0;
}

function nextSpoken(steps: readonly Step[], from: number): number {
  let index = from;
  while (index < steps.length && isInvisible(steps[index] as Step)) index++;
  return index;
}

function answeredCalls(messages: readonly Message[]): Set<string> {
  const answered = new Set<string>();
  for (const message of messages) {
    if (message.role !== 'user') continue;
    for (const block of blocksOf(message)) {
      if (block.type !== 'tool_result' || block.tool_use_id === undefined) continue;
      const interrupted = block.is_error === true && interruptedPattern.test(JSON.stringify(block.content));
      if (!interrupted) answered.add(block.tool_use_id);
    }
  }
  return answered;
}

/** Text of the user side, without tool results, because a tool may print anything, even a mark. */
function userText(block: ScriptedBlock): string {
  return block.type === 'text' ? (block.text ?? '') : '';
}

function sameText(a: string | undefined, b: string | undefined): boolean {
  const plain = (text: string | undefined) => (text ?? '').replace(/\s+/g, ' ').trim();
  return plain(a) === plain(b);
}

export function isSummaryRequest(messages: readonly Message[]): boolean {
  const last = messages.findLast((message) => message.role === 'user');
  if (last === undefined) return false;
  return blocksOf(last).some((block) => userText(block).includes('Your task is to create a detailed summary'));
}

/** claude's working folder as reported to the model; empty when it is missing. */
export function projectOf(body: MessagesBody): string {
  const texts = [systemText(body.system), ...(body.messages ?? []).flatMap(blocksOf).map(userText)];
  for (const text of texts) {
    const match = /Primary working directory: ([^\n]+)/.exec(text);
    if (match?.[1]) return match[1].trimEnd();
  }
  return '';
}

function systemText(system: unknown): string {
  if (typeof system === 'string') return system;
  return Array.isArray(system) ? system.map((block: ScriptedBlock) => block.text ?? '').join('\n') : '';
}

/** What the real Messages API would refuse in this request; empty when it is valid. */
export function requestProblems(body: MessagesBody, headers: Readonly<Record<string, string>>): string[] {
  const problems: string[] = [];
  const bearer = /^Bearer \S/.test(headers.authorization ?? '');
  if (!headers['x-api-key'] && !bearer) problems.push('neither x-api-key nor a bearer token is present');
  if (typeof body.model !== 'string' || body.model === '') problems.push('model is missing');
  if (!Number.isInteger(body.max_tokens) || (body.max_tokens ?? 0) < 1) problems.push('max_tokens is missing');
  const turns = mergeTurns(body.messages ?? []);
  if (turns.length === 0) problems.push('messages are missing');
  else if (turns[0]?.role !== 'user') problems.push('the first message is not from the user');
  let asked: string[] = [];
  const seen = new Set<string>();
  for (const { role, blocks } of turns) {
    const results = blocks.filter((block) => block.type === 'tool_result').map((block) => block.tool_use_id ?? '');
    for (const id of asked) if (!results.includes(id)) problems.push(`tool_use ${id} has no tool_result`);
    for (const id of results) if (!asked.includes(id)) problems.push(`tool_result ${id} answers no tool_use`);
    if (new Set(results).size < results.length) problems.push('a tool_use is answered twice');
    asked =
      role === 'assistant' ? blocks.filter((block) => block.type === 'tool_use').map((block) => block.id ?? '') : [];
    for (const id of asked) {
      if (seen.has(id)) problems.push(`tool_use ${id} occurs twice`);
      seen.add(id);
    }
  }
  for (const id of asked) problems.push(`tool_use ${id} has no tool_result`);
  return problems;
}

interface Turn {
  readonly role: string;
  readonly blocks: ScriptedBlock[];
}

/** Adjacent messages of one role count as one, as in the real API. claude's notes (role system) are no turn. */
function mergeTurns(messages: readonly Message[]): Turn[] {
  const turns: Turn[] = [];
  for (const message of messages) {
    if (message.role === 'system') continue;
    const last = turns.at(-1);
    if (last?.role === message.role) last.blocks.push(...blocksOf(message));
    else turns.push({ role: message.role, blocks: [...blocksOf(message)] });
  }
  return turns;
}
