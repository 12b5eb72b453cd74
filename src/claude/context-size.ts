/** How much a conversation holds, from the lines that claude printed. */
import { text } from './lenient.ts';
import { parseObject } from './messages.ts';

/** What a line that matters holds; parsing all of them would take long. */
const marks = ['"type":"assistant"', '"compact_boundary"'];

/**
 * Tokens of the last answer of the main loop with all that was before it, which the next request begins with. Undefined
 * when none is among the lines, or the conversation was compacted since.
 */
export function contextTokens(lines: readonly string[]): number | undefined {
  const last = lines.findLast((line) => marks.some((mark) => line.includes(mark)) && tokensIn(line) !== undefined);
  return last === undefined ? undefined : (tokensIn(last) ?? undefined);
}

/** True when any of these lines tells of a prompt cache that is kept for an hour, as with a subscription. */
export function isKeptForAnHour(lines: readonly string[]): boolean {
  return lines.some((line) => {
    if (!line.includes(hourMark)) return false;
    const { message } = parseObject(line);
    return message.kind === 'assistant' && (message.usage?.hourly ?? 0) > 0;
  });
}

const hourMark = '"ephemeral_1h_input_tokens":';

/** Null at a compaction, undefined when the line tells nothing. */
function tokensIn(line: string): number | null | undefined {
  const { message, value } = parseObject(line);
  if (message.kind === 'compact-boundary') return null;
  if (message.kind !== 'assistant' || message.usage === undefined || message.model === '<synthetic>') return undefined;
  if (text(value?.parent_tool_use_id) !== undefined) return undefined;
  const { input, cacheRead, cacheCreation, output } = message.usage;
  return input + cacheRead + cacheCreation + output;
}
