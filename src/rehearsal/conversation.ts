/**
 * Finds the position of a conversation in its script from a request alone, and requests that the real API would refuse.
 */
import { type Step, type ToolCall, toolCalls } from './script.ts';

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
