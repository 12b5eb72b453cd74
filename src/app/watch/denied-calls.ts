/** Reads the denied tool calls of a session from its transcript. */
import { printedLines } from '../../claude/conversation.ts';
import { object, objects, text } from '../../claude/lenient.ts';
import { parseObject } from '../../claude/messages.ts';
import { type DeniedCall, rulesFor } from '../../claude/permission-rules.ts';
import { defined } from '../../core/defined.ts';
import type { SessionId } from '../../core/group.ts';
import { reduce } from '../../core/reduce.ts';
import { type GroupState, initialState } from '../../core/state.ts';
import { readLog } from '../../store/event-log.ts';
import { type GroupPaths, sessionPaths } from '../../store/paths.ts';
import type { World } from '../../system/world.ts';

export interface DenialAdvice extends DeniedCall {
  /** Rules that allow the call together; empty if no rule helps. */
  readonly rules: readonly string[];
  /** Rules that were set when the call was denied. */
  readonly despite?: readonly string[];
}

/** Denied calls of all attempts, each once, in order. */
export function denialsOf(world: World, paths: GroupPaths, sessionId: SessionId): DenialAdvice[] {
  const { transcript } = sessionPaths(paths, sessionId);
  const calls = new Map<string, DeniedCall>();
  const denied = new Map<string, DenialAdvice>();
  let from = 0;
  /** `allowed`: the rules of the attempt that printed the lines. */
  const readTo = (end: number, allowed: readonly string[]) => {
    for (const line of printedLines(world, transcript, from, end)) {
      for (const [id, call] of deniedIn(line, calls, denied)) denied.set(id, adviceOn(call, allowed));
    }
    from = end;
  };
  const log = readLog(world, paths.events);
  let state: GroupState | undefined;
  let allowed: readonly string[] = [];
  for (const event of log.ok ? log.value : []) {
    state = state === undefined ? initialState(event) : reduce(state, event);
    if (event.type !== 'session_starting' || event.sessionId !== sessionId) continue;
    readTo(event.attempt.offset, allowed);
    allowed = state.sessions.get(sessionId)?.definition.allowedTools ?? [];
  }
  readTo(Number.POSITIVE_INFINITY, allowed);
  // The last denial of a call replaces earlier ones.
  const byKind = new Map([...denied.values()].map((one) => [JSON.stringify([one.tool, one.input]), one]));
  return [...byKind.values()];
}

function adviceOn(call: DeniedCall, allowed: readonly string[]): DenialAdvice {
  const rules = rulesFor(call);
  const isInPlace = rules.length > 0 && rules.every((rule) => allowed.includes(rule));
  return { ...call, ...(isInPlace ? { rules: [], despite: rules } : { rules }) };
}

/** The calls that a line reports as denied, by id. Remembers in `calls` what is known about calls. */
function deniedIn(
  line: string,
  calls: Map<string, DeniedCall>,
  denied: ReadonlyMap<string, DenialAdvice>,
): (readonly [id: string, DeniedCall])[] {
  const { message, value } = parseObject(line);
  if (message.kind === 'assistant') {
    for (const block of message.blocks) {
      if (block.kind === 'tool-use') calls.set(block.id, { tool: block.name, input: block.input });
    }
  } else if (message.kind === 'user') {
    // claude reports a call that a hook denied only in the tool result.
    for (const { toolUseId, isError, text: result } of message.toolResults) {
      const call = isError && /^PreToolUse:\S* hook/.test(result) ? calls.get(toolUseId) : undefined;
      if (call !== undefined) calls.set(toolUseId, { ...call, by: 'hook', message: result });
    }
  } else if (message.kind === 'denied') {
    const call = calls.get(message.id) ?? { tool: message.tool, input: {} };
    const why = defined({ message: text(value?.message), by: text(value?.decision_reason_type) });
    return [[message.id, { ...call, ...why }]];
  } else if (message.kind === 'result') {
    return objects(value?.permission_denials).map((one) => {
      const id = text(one.tool_use_id) ?? '';
      const named = { tool: text(one.tool_name) ?? '', input: object(one.tool_input) };
      return [id, { ...named, ...calls.get(id), ...denied.get(id) }];
    });
  }
  return [];
}
