/**
 * claude/: all knowledge of Claude Code, so that its changes affect one folder. This file: the state of one attempt,
 * reduced from its stream. The reduction is deterministic, so an adopting runner reaches the same state.
 */

import { defined } from '../core/defined.ts';
import type { Warning } from '../core/event.ts';
import { addUsage, noUsage, type PriceTable, sanityLimits, type Usage } from '../core/group.ts';
import type { ApiRetry, DenialSummary, TaskCounts } from '../core/progress.ts';
import type { JsonObject } from '../store/json.ts';
import { answersBase, answersInterrupt, modelAsked } from './control.ts';
import { endingOf } from './endings.ts';
import type {
  ApiRetryMessage,
  AssistantMessage,
  BackgroundTask,
  ClaudeMessage,
  ControlResponseMessage,
  DeniedToolCall,
  HookMessage,
  InitMessage,
  RateLimitMessage,
  ResultMessage,
  UserMessage,
} from './messages.ts';
import { isUnknownModel } from './pricing.ts';
import {
  addReportedTotal,
  addSeenMessage,
  type ClaudeSpending,
  type EarlierSpending,
  emptySpending,
  initialSpending,
  type ReportedTotals,
  startNewConversation,
} from './spending.ts';
import { cleanLine, cleanLines, clip } from './text.ts';

interface OpenTool {
  readonly name: string;
  readonly target: string;
}

/** `costUsd`, `tokens`, `models` and `estimated`: the cost and the tokens so far. */
export interface AttemptStream extends ClaudeSpending {
  lines: number;
  malformed: number;
  sawInit: boolean;
  claudeSessionId?: string;
  /** All conversation ids in order: `/clear` and forks create new ones. */
  readonly claudeSessionIds: string[];
  model?: string;
  claudeVersion?: string;
  cwd?: string;
  /** A turn is running, or background tasks may start the next one. */
  isAtWork: boolean;
  inTurn: boolean;
  /** Sub-agents and background commands; true for a sub-agent. */
  readonly openTasks: Map<string, boolean>;
  /** Ids in the last list of background tasks. */
  backgroundTasks: ReadonlySet<string>;
  readonly openTools: Map<string, OpenTool>;
  results: number;
  turns: number;
  /** The session's result, unless another turn follows. */
  lastResult?: ResultMessage;
  structured?: unknown;
  currentToolId?: string;
  /** Name and short target of the running tool, at most 80 characters, without control characters. */
  currentTool?: string;
  /** Start of the model's last text, at most 200 characters, without control characters except newlines. */
  lastText?: string;
  lastSaid?: string;
  /** Successful tool results, of the main loop and of sub-agents. */
  toolsDone: number;
  readonly denials: DenialCounts;
  /** Calls with a permission request: their denials are intended. */
  readonly asked: Set<string>;
  /** The output of the last hook that objected. */
  objection?: string;
  otherModel?: { readonly asked: string; readonly answered: string };
  /** A Stop hook blocked so often that claude ended anyway. */
  isEndForced: boolean;
  hookOk: boolean;
  /** Our hook of the running compaction restored the session's task. */
  restored: boolean;
  /** Started hooks of that compaction that have not succeeded. */
  unrestored: number;
  /** A compaction after which the session's state was not restored. */
  contextLost: boolean;
  hookSeen: boolean;
  /** claude identified itself before any SessionStart hook was reported. */
  startedWithoutHook: boolean;
  rateLimit?: RateLimitMessage;
  /** The last `api_retry`, until an answer of the model follows. */
  lastRetry?: ApiRetry;
  /** The error code of claude's last error message, until an answer of the model. */
  apiError?: string;
  /** Another conversation began, and no total was reported since. */
  isNewConversation: boolean;
  /** Present until the baseline of claude's totals is known. */
  earlier?: EarlierSpending;
  /** US dollars that claude had recorded and no earlier attempt had; they are included in the cost. */
  unrecordedCostUsd: number;
  readonly prices: PriceTable;
  unpriced: readonly string[];
  compactions: number;
  interruptAnswered: boolean;
  /** claude waits for input. A Monitor or a command may run in the background, and start a turn. */
  isIdle: boolean;
  /** The last turn succeeded, with no task left, before claude confirmed an interrupt. */
  successBeforeAnswer: boolean;
  /** Message ids; claude prints one line per block, with other lines in between. */
  readonly spoken: Set<string>;
  messages: number;
  /** Id of the model's last message in the main loop. */
  lastMessageId?: string;
  /** claude exited cleanly, and its final totals are in the cost. */
  hasFinalTotals: boolean;
  /** claude's own task list. */
  readonly taskList: Map<string, { readonly subject: string; readonly status: string }>;
  readonly complaints: Complaints;
}

const toolChars = 80;
const textChars = 200;
const errorChars = 60;

/** `earlier`: for an attempt that resumes a conversation. */
export function emptyStream(prices: PriceTable = {}, earlier?: EarlierSpending): AttemptStream {
  return {
    ...emptySpending(),
    lines: 0,
    malformed: 0,
    sawInit: false,
    claudeSessionIds: [],
    isAtWork: false,
    inTurn: false,
    openTasks: new Map(),
    backgroundTasks: new Set(),
    openTools: new Map(),
    results: 0,
    turns: 0,
    toolsDone: 0,
    denials: new Map(),
    asked: new Set(),
    isEndForced: false,
    hookOk: false,
    restored: false,
    unrestored: 0,
    contextLost: false,
    hookSeen: false,
    startedWithoutHook: false,
    isNewConversation: false,
    ...defined({ earlier }),
    unrecordedCostUsd: 0,
    prices,
    unpriced: [],
    compactions: 0,
    interruptAnswered: false,
    isIdle: false,
    successBeforeAnswer: false,
    spoken: new Set(),
    messages: 0,
    hasFinalTotals: false,
    taskList: new Map(),
    complaints: new Map(),
  };
}

export function foldMessage(s: AttemptStream, m: ClaudeMessage): AttemptStream {
  s.lines += 1;
  noteSessionId(s, m.claudeSessionId);
  switch (m.kind) {
    case 'init':
      foldInit(s, m);
      break;
    case 'assistant':
      foldAssistant(s, m);
      break;
    case 'user':
      foldToolResults(s, m);
      break;
    case 'result':
      foldResult(s, m);
      break;
    case 'api-retry':
      s.lastRetry = retryOf(m);
      s.apiError = m.error;
      break;
    case 'rate-limit':
      s.rateLimit = m;
      break;
    case 'hook':
      foldHook(s, m);
      break;
    case 'notice':
      noteWords(s.complaints, m.text);
      break;
    case 'other-model':
      s.otherModel = { asked: m.asked, answered: m.answered };
      break;
    case 'notification':
      s.isEndForced ||= m.key === 'stop-hook-block-cap';
      break;
    case 'task':
      if (m.phase === 'ended') s.openTasks.delete(m.taskId);
      else s.openTasks.set(m.task.id, m.task.isAgent);
      break;
    case 'background':
      foldBackground(s, m.tasks);
      break;
    case 'state':
      s.isIdle = m.isIdle;
      break;
    case 'compact-boundary':
      s.compactions += 1;
      // The hooks of a compaction are reported before the compaction itself.
      s.contextLost = !s.restored || s.unrestored > 0;
      s.restored = false;
      s.unrestored = 0;
      break;
    case 'control-response':
      foldResponse(s, m);
      break;
    case 'denied':
      noteDenial(s.denials, m, s.openTools.get(m.id)?.target ?? '');
      break;
    case 'control-request':
      if (m.call !== undefined) s.asked.add(m.call.toolUseId);
      else noteWords(s.complaints, `${m.asked} was requested and refused`);
      break;
    case 'malformed':
      s.malformed += 1;
      break;
  }
  return s;
}

/** Cost, tokens and turns of the attempt. `durationMs` is the wall time of the process. */
export function usageOf(s: AttemptStream, durationMs: number): Usage {
  const turns = s.results > 0 ? s.turns : s.messages;
  const usage: Usage = { costUsd: s.costUsd, tokens: s.tokens, durationMs, turns, models: s.models };
  // claude's figure for a model without a known price is a guess as well.
  const isGuess = s.estimated || unknownModels(s).length > 0;
  // The sum is rounded, model by model.
  return addUsage(noUsage, isGuess ? { ...usage, estimated: true } : usage);
}

/** Models with a price in neither claude nor a price table: they count as the most expensive known model. */
export function unknownModels({ unpriced, prices }: AttemptStream): readonly string[] {
  return unpriced.filter((model) => isUnknownModel(model, prices));
}

/** A foreground sub-agent may have no task of its own, but its call is open. */
export function runningAgents({ openTasks, openTools }: Pick<AttemptStream, 'openTasks' | 'openTools'>): number {
  const tasks = openTasks.values().filter((isAgent) => isAgent);
  const calls = openTools.values().filter(({ name }) => name === 'Agent' || name === 'Task');
  return Math.max([...tasks].length, [...calls].length);
}

/** Work continues after the last result: a turn has started, or a task runs in the background. */
export function isWorkPending({ inTurn, openTasks }: AttemptStream): boolean {
  return inTurn || openTasks.size > 0;
}

export function isSuccess(result: ResultMessage): boolean {
  return result.subtype === 'success' && !result.isError && result.numTurns > 0 && endingOf(result) === 'result';
}

function noteSessionId(s: AttemptStream, id: string | undefined): void {
  if (id === undefined || id === '') return;
  s.claudeSessionId ??= id;
  const known = s.claudeSessionIds;
  if (!known.includes(id)) known.push(id);
}

function foldInit(s: AttemptStream, m: InitMessage): void {
  s.isNewConversation ||= s.sawInit && m.sessionId !== '' && m.sessionId !== s.claudeSessionId;
  s.sawInit = true;
  s.isEndForced = false;
  s.isAtWork = true;
  s.inTurn = true;
  s.startedWithoutHook ||= !s.hookSeen;
  if (m.sessionId !== '') s.claudeSessionId = m.sessionId;
  if (m.model !== undefined) s.model = m.model;
  if (m.claudeVersion !== undefined) s.claudeVersion = m.claudeVersion;
  if (m.cwd !== undefined) s.cwd = m.cwd;
  for (const { name, status } of m.servers) noteServer(s.complaints, name, status);
  // The session continues, so the success of an earlier turn is not its end.
  if (!s.interruptAnswered) s.successBeforeAnswer = false;
}

function retryOf({ attempt, attemptsMax, error, errorStatus }: ApiRetryMessage): ApiRetry {
  const max = defined({ attemptsMax });
  return { attempt, ...max, error: cleanLine(error, errorChars), errorStatus };
}

function foldAssistant(s: AttemptStream, m: AssistantMessage): void {
  const isMainLoop = m.parentToolUseId === undefined;
  if (m.error !== undefined) s.apiError = m.error;
  else if (m.model !== '<synthetic>') {
    delete s.apiError;
    delete s.lastRetry;
  }
  if (m.messageId !== '' && !s.spoken.has(m.messageId)) {
    s.spoken.add(m.messageId);
    if (isMainLoop) s.messages += 1;
    const model = modelName(s, m);
    if (model !== '<synthetic>' && isMainLoop) s.lastMessageId = m.messageId;
    if (m.usage !== undefined && model !== '<synthetic>') Object.assign(s, addSeenMessage(s, model, m.usage, s.prices));
  }
  for (const block of m.blocks) {
    if (block.kind === 'text') {
      const text = cleanLines(block.text, textChars);
      if (text === '' || !isMainLoop) continue;
      s.lastText = text;
      s.lastSaid = block.text;
    } else if (block.kind === 'tool-use' && block.id !== '') {
      const tool = { name: cleanLine(block.name, toolChars), target: targetOf(block.input, s.cwd) };
      s.openTools.set(block.id, tool);
      showTool(s, block.id, tool);
    }
  }
}

/** Messages have the API's model name; claude's own figures have the name of `init`, which may end in `[1m]`. */
function modelName(s: AttemptStream, m: AssistantMessage): string {
  const name = m.model ?? s.model ?? '';
  return s.model?.startsWith(`${name}[`) ? s.model : name;
}

function foldToolResults(s: AttemptStream, m: UserMessage): void {
  // A sub-agent's list does not count.
  if (m.taskList !== undefined && m.parentToolUseId === undefined) foldTaskList(s.taskList, m.taskList);
  for (const result of m.toolResults) {
    if (!result.isError) s.toolsDone += 1;
    s.openTools.delete(result.toolUseId);
    if (s.currentToolId !== result.toolUseId) continue;
    // The oldest open call is shown next: with sub-agents that is the call that runs them.
    const [next] = s.openTools;
    showTool(s, next?.[0], next?.[1]);
  }
}

function foldTaskList(list: AttemptStream['taskList'], change: NonNullable<UserMessage['taskList']>): void {
  if (change.isWhole) list.clear();
  for (const { id, subject = list.get(id)?.subject ?? `task ${id}`, status } of change.tasks)
    list.set(cleanLine(id, toolChars), { subject: cleanLine(subject, toolChars), status });
}

export function taskCounts({ taskList }: Pick<AttemptStream, 'taskList'>): TaskCounts | undefined {
  const counted = [...taskList.values()].filter(({ status }) => status !== 'deleted');
  const done = counted.filter(({ status }) => status === 'completed').length;
  return counted.length === 0 ? undefined : { done, total: counted.length };
}

/** A finished background task starts its own turn. The last result is the answer of the session. */
function foldResult(s: AttemptStream, m: ResultMessage): void {
  s.results += 1;
  s.turns = Math.min(sanityLimits.count, s.turns + m.numTurns);
  // The output of a built-in command is not the session's answer.
  if (s.lastResult === undefined || m.numTurns > 0 || m.isError) s.lastResult = m;
  if (m.structured !== undefined) s.structured = m.structured;
  if (!s.interruptAnswered) s.successBeforeAnswer = isSuccess(m) && s.openTasks.size === 0;
  for (const denial of m.denials)
    if (!s.asked.has(denial.id)) noteDenial(s.denials, denial, targetOf(denial.input, s.cwd));
  foldTotal(s, m);
  noteTurnEnd(s);
  showTool(s, undefined, undefined);
}

function foldResponse(
  s: AttemptStream,
  { requestId, ok, error, costUsd, models, unpriced }: ControlResponseMessage,
): void {
  const model = modelAsked(requestId);
  if (!ok && model !== undefined)
    noteWords(s.complaints, `it continues with its model, not with ${model}: ${error ?? ''}`);
  if (ok && answersInterrupt(requestId)) s.interruptAnswered = true;
  if (costUsd !== undefined) foldAnswer(s, requestId, { costUsd, models: models ?? {}, unpriced: unpriced ?? [] });
}

/** The baseline is requested first; an answer after a message of the model is an ordinary total. */
function foldAnswer(s: AttemptStream, requestId: string, total: ReportedTotals): void {
  if (!answersBase(requestId) || s.costUsd > 0) {
    foldTotal(s, total);
    return;
  }
  Object.assign(s, initialSpending(total, s.earlier?.booked));
  s.unrecordedCostUsd = s.costUsd;
  delete s.earlier;
}

function foldTotal(s: AttemptStream, total: ReportedTotals): void {
  if (s.earlier !== undefined) Object.assign(s, { base: s.earlier.findBase() });
  delete s.earlier;
  if (s.isNewConversation) Object.assign(s, startNewConversation(s, total.costUsd));
  s.isNewConversation = false;
  s.unpriced = total.unpriced ?? [];
  Object.assign(s, addReportedTotal(s, total, s.prices));
}

export function foldTotalAtEnd(s: AttemptStream, total: ReportedTotals): void {
  foldTotal(s, { ...total, unpriced: [...new Set([...s.unpriced, ...(total.unpriced ?? [])])] });
  s.hasFinalTotals = true;
}

/** The beginning of our hook's output; a project has hooks as well. */
const ownHookMark = 'Claude Code session ';

function foldHook(s: AttemptStream, m: HookMessage): void {
  if (m.failure !== undefined) noteHookFailure(s.complaints, m.failure);
  if (m.objection !== undefined) s.objection = m.objection;
  if (m.hookEvent !== 'SessionStart') return;
  s.hookSeen = true;
  const isCompaction = m.hookName.endsWith(':compact');
  if (isCompaction && m.phase === 'started') s.unrestored += 1;
  if (m.phase !== 'response' || m.outcome !== 'success') return;
  s.hookOk = true;
  if (!isCompaction) return;
  s.unrestored -= 1;
  if (m.stdout?.includes(ownHookMark)) s.restored = true;
}

/** Interrupted calls get no result. Sub-agents may continue. */
function noteTurnEnd(s: AttemptStream): void {
  s.openTools.clear();
  s.isAtWork = s.openTasks.size > 0;
  s.inTurn = false;
}

/** A task missing from the list has ended. The list does not contain foreground tasks. */
function foldBackground(s: AttemptStream, tasks: readonly BackgroundTask[]): void {
  const ids = new Set(tasks.map(({ id }) => id));
  for (const id of s.backgroundTasks) if (!ids.has(id)) s.openTasks.delete(id);
  for (const { id, isAgent } of tasks) s.openTasks.set(id, isAgent);
  s.backgroundTasks = ids;
}

function showTool(s: AttemptStream, id: string | undefined, tool: OpenTool | undefined): void {
  if (id === undefined || tool === undefined) {
    delete s.currentToolId;
    delete s.currentTool;
    return;
  }
  s.currentToolId = id;
  s.currentTool = cleanLine(`${tool.name} ${tool.target}`, toolChars);
}

/** The input fields that best describe a tool's target, in this order. */
const targetKeys = ['command', 'file_path', 'notebook_path', 'path', 'pattern', 'url', 'query', 'description', 'skill'];

/** The tool's target in at most `max` characters; paths are relative to the working folder where possible. */
export function targetOf(input: JsonObject, cwd: string | undefined, max = toolChars): string {
  const value = targetKeys.map((key) => input[key]).find((candidate) => typeof candidate === 'string');
  if (typeof value !== 'string') return '';
  const inside = cwd !== undefined && value.startsWith(`${cwd}/`) ? value.slice(cwd.length + 1) : value;
  return cleanLine(inside, max);
}

const nameChars = 60;
const firstChars = 120;
const namesMax = 20;

interface DeniedTool {
  readonly tool: string;
  readonly target: string;
}

export type DenialCounts = Map<string, DeniedTool>;

function noteDenial(denials: DenialCounts, { id, tool }: DeniedToolCall, target: string): void {
  denials.set(id, { tool, target: target || (denials.get(id)?.target ?? '') });
}

export function denialCounts({ denials }: { readonly denials: DenialCounts }): DenialSummary | undefined {
  const [first] = denials.values();
  if (first === undefined) return undefined;
  const names = [...new Set([...denials.values()].map(({ tool }) => cleanLine(tool, nameChars)))];
  const tools = names.filter((name) => name !== '').slice(0, namesMax);
  const { tool, target } = first;
  const shown = target === '' ? {} : { first: cleanLine(`${tool} ${target}`, firstChars) };
  return { calls: denials.size, tools, ...shown };
}

// Warnings for the user about what claude, a hook or a server ignored or could not do.

/** Sentences without a full stop, with the number of reports. */
type Complaints = Map<string, { readonly code: Warning['code']; times: number }>;

const reasonChars = 200;
const complaintsMax = 20;
const linesMax = 5;
/** A hook exits with this code to refuse, which is not a failure. */
const refusalCode = 2;
const notFoundCodes: ReadonlySet<number> = new Set([126, 127]);

function note(complaints: Complaints, code: Warning['code'], sentence: string): void {
  const known = complaints.get(sentence);
  // claude lists its servers again in each turn.
  if (known !== undefined) known.times += code === 'mcp-server' ? 0 : 1;
  else if (complaints.size < complaintsMax) complaints.set(sentence, { code, times: 1 });
}

function noteHookFailure(
  complaints: Complaints,
  { hookName, exitCode, stderr }: NonNullable<HookMessage['failure']>,
): void {
  if (exitCode === refusalCode) return;
  const reason = cleanLine(stderr, reasonChars) || `exit code ${exitCode}`;
  const isMissing = notFoundCodes.has(exitCode);
  const fix = isMissing ? '. Install its program where the session works, for example with a set-up command' : '';
  note(complaints, 'hook-failed', `The ${hookName} hook failed and had no effect: ${reason}${fix}`);
}

/** `status`: claude's word. A `pending` server may still connect. */
function noteServer(complaints: Complaints, name: string, status: string): void {
  if (!['failed', 'needs-auth'].includes(status)) return;
  const why = status === 'failed' ? 'could not be started' : 'needs a login';
  note(complaints, 'mcp-server', `The MCP server ${cleanLine(name, reasonChars)} ${why}, so its tools were missing`);
}

function noteWords(complaints: Complaints, words: string): void {
  note(complaints, 'claude-reports', `claude reports: ${cleanLine(words, reasonChars).replace(/\.$/, '')}`);
}

export function complaintsOf(complaints: Complaints, stderr = ''): Warning[] {
  const all: Complaints = new Map(complaints);
  const lines = stderr.split('\n').filter((line) => line.trim() !== '' && !isAlreadyReported.test(line));
  for (const line of lines.slice(-linesMax)) noteWords(all, `${clip(line, reasonChars)} (stderr.log)`);
  return [...all].map(([sentence, { code, times }]) => {
    return { code, message: times === 1 ? `${sentence}.` : `${sentence} (${times} times).` };
  });
}

/** The run named these rules before it started. */
const isAlreadyReported = /^Ignoring \d+ permissions\./;
