/** Denied tool calls: said when it happens, by newer programs, and once more at the end of the turn. */
import type { Denied } from '../core/progress.ts';
import type { Denial } from './messages.ts';
import { oneLine } from './text.ts';

/** More than any session tries in vain; what comes then is not remembered. */
const callsMax = 1_000;
const nameChars = 60;
/** Nobody reads more at once. */
const namesMax = 20;

/** Changes `denials`: call id → tool. */
export function noteDenial(denials: Map<string, string>, { id, tool }: Denial): void {
  if (denials.size < callsMax) denials.set(id, tool);
}

/** Those of a stream so far; undefined when there are none. */
export function deniedOf({ denials }: { readonly denials: ReadonlyMap<string, string> }): Denied | undefined {
  if (denials.size === 0) return undefined;
  const names = [...new Set(denials.values())].map((name) => oneLine(name, nameChars));
  return { calls: denials.size, tools: names.filter((name) => name !== '').slice(0, namesMax) };
}
