/** How much a conversation holds, from the lines that claude printed. */
import { text } from './lenient.ts';
import { parseObject } from './messages.ts';

/**
 * Tokens of the last answer of the main loop with all that was before it, which the next request begins with. Undefined
 * when none is among the lines, or the conversation was compacted since.
 */
export function contextTokens(lines: Iterable<string>): number | undefined {
  let tokens: number | undefined;
  for (const line of lines) {
    const { message, value } = parseObject(line);
    if (message.kind === 'compact-boundary') tokens = undefined;
    if (message.kind !== 'assistant' || message.usage === undefined || message.model === '<synthetic>') continue;
    if (text(value?.parent_tool_use_id) !== undefined) continue;
    const { input, cacheRead, cacheCreation, output } = message.usage;
    tokens = input + cacheRead + cacheCreation + output;
  }
  return tokens;
}
