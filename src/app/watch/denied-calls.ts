/** Reads the denied tool calls of a session from its transcript. */
import { printedLines } from '../../claude/conversation.ts';
import { object, objects, text } from '../../claude/lenient.ts';
import { parseObject, type UserMessage } from '../../claude/messages.ts';
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
  const reader = new DenialReader();
  let from = 0;
  const readTo = (end: number) => {
    for (const line of printedLines(world, transcript, from, end)) reader.read(line);
    from = end;
  };
  const log = readLog(world, paths.events);
  let state: GroupState | undefined;
  for (const event of log.ok ? log.value : []) {
    state = state === undefined ? initialState(event) : reduce(state, event);
    if (event.type !== 'session_starting' || event.sessionId !== sessionId) continue;
    readTo(event.attempt.offset);
    reader.allowed = state.sessions.get(sessionId)?.definition.allowedTools ?? [];
  }
  readTo(Number.POSITIVE_INFINITY);
  return reader.denials();
}

class DenialReader {
  /** The rules of the current attempt. */
  allowed: readonly string[] = [];
  readonly #calls = new Map<string, DeniedCall>();
  readonly #denied = new Map<string, DenialAdvice>();

  read(line: string): void {
    const { message, value } = parseObject(line);
    if (message.kind === 'assistant') {
      for (const block of message.blocks) {
        if (block.kind !== 'tool-use') continue;
        this.#calls.set(block.id, { tool: block.name, input: block.input });
      }
    } else if (message.kind === 'user') {
      for (const result of message.toolResults) this.#noteHook(result);
    } else if (message.kind === 'denied') {
      const reason = text(value?.message);
      const by = text(value?.decision_reason_type);
      const call = this.#calls.get(message.id) ?? { tool: message.tool, input: {} };
      this.#note(message.id, { ...call, ...defined({ message: reason, by }) });
    } else if (message.kind === 'result') {
      for (const one of objects(value?.permission_denials)) {
        const id = text(one.tool_use_id) ?? '';
        const named = { tool: text(one.tool_name) ?? '', input: object(one.tool_input) };
        this.#note(id, { ...named, ...this.#calls.get(id), ...this.#denied.get(id) });
      }
    }
  }

  /** claude reports a call that a hook denied only in the tool result. */
  #noteHook({ toolUseId, isError, text: result }: UserMessage['toolResults'][number]): void {
    const call = isError && /^PreToolUse:\S* hook/.test(result) ? this.#calls.get(toolUseId) : undefined;
    if (call !== undefined) this.#calls.set(toolUseId, { ...call, by: 'hook', message: result });
  }

  /** The last denial of a call replaces earlier ones. */
  denials(): DenialAdvice[] {
    const byKind = new Map<string, DenialAdvice>();
    for (const denial of this.#denied.values()) byKind.set(JSON.stringify([denial.tool, denial.input]), denial);
    return [...byKind.values()];
  }

  #note(id: string, call: DeniedCall): void {
    const rules = rulesFor(call);
    const isInPlace = rules.length > 0 && rules.every((rule) => this.allowed.includes(rule));
    this.#denied.set(id, { ...call, ...(isInPlace ? { rules: [], despite: rules } : { rules }) });
  }
}
