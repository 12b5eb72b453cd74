/** What the permissions of a session did not allow, read from its transcript. */

import { printedLines } from '../../claude/conversation.ts';
import { object, objects, text } from '../../claude/lenient.ts';
import { parseObject } from '../../claude/messages.ts';
import { type DeniedCall, rulesFor } from '../../claude/permission-rules.ts';
import type { SessionId } from '../../core/group.ts';
import { type GroupPaths, sessionPaths } from '../../store/paths.ts';
import type { World } from '../../system/world.ts';

const rememberedMax = 2_000;

export interface Denial extends DeniedCall {
  /** Any of these would not do by itself where there are several; empty when no rule helps. */
  readonly rules: readonly string[];
}

/** Each once, in the order in which they were denied, over all attempts. */
export function denialsOf(world: World, paths: GroupPaths, sessionId: SessionId): Denial[] {
  const { transcript } = sessionPaths(paths, sessionId);
  const reader = new DenialReader();
  for (const line of printedLines(world, transcript, 0, Number.POSITIVE_INFINITY)) reader.read(line);
  return reader.denials();
}

class DenialReader {
  readonly #calls = new Map<string, DeniedCall>();
  readonly #denied = new Map<string, DeniedCall>();

  read(line: string): void {
    const { message, value } = parseObject(line);
    if (message.kind === 'assistant') {
      for (const block of message.blocks) {
        if (block.kind !== 'tool-use') continue;
        this.#calls.set(block.id, { tool: block.name, input: block.input });
        const oldest = this.#calls.keys().next().value;
        if (this.#calls.size > rememberedMax && oldest !== undefined) this.#calls.delete(oldest);
      }
    } else if (message.kind === 'denied') {
      const said = text(value?.message);
      const call = this.#calls.get(message.id) ?? { tool: message.tool, input: {} };
      this.#note(message.id, said === undefined ? call : { ...call, message: said });
    } else if (message.kind === 'result') {
      for (const one of objects(value?.permission_denials)) {
        const id = text(one.tool_use_id) ?? '';
        this.#note(id, { tool: text(one.tool_name) ?? '', input: object(one.tool_input), ...this.#denied.get(id) });
      }
    }
  }

  denials(): Denial[] {
    const seen = new Set<string>();
    return [...this.#denied.values()].flatMap((call) => {
      const kind = JSON.stringify([call.tool, call.input]);
      if (seen.has(kind)) return [];
      seen.add(kind);
      return [{ ...call, rules: rulesFor(call) }];
    });
  }

  #note(id: string, call: DeniedCall): void {
    if (this.#denied.size < rememberedMax || this.#denied.has(id)) this.#denied.set(id, call);
  }
}
