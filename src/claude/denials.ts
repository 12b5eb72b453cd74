/** Denied tool calls: claude reports each when it happens, and all of them at the end of the turn. */
import type { Denied } from '../core/progress.ts';
import type { Denial } from './messages.ts';
import { oneLine } from './text.ts';

/** More than any session tries in vain; what comes then is not remembered. */
const callsMax = 1_000;
const nameChars = 60;
const firstChars = 120;
const namesMax = 20;

interface DeniedTool {
  readonly tool: string;
  readonly target: string;
}

export type Denials = Map<string, DeniedTool>;

export function noteDenial(denials: Denials, { id, tool }: Denial, target: string): void {
  if (denials.size < callsMax) denials.set(id, { tool, target: target || (denials.get(id)?.target ?? '') });
}

export function deniedOf({ denials }: { readonly denials: Denials }): Denied | undefined {
  const [first] = denials.values();
  if (first === undefined) return undefined;
  const names = [...new Set([...denials.values()].map(({ tool }) => oneLine(tool, nameChars)))];
  const tools = names.filter((name) => name !== '').slice(0, namesMax);
  const { tool, target } = first;
  const shown = target === '' ? {} : { first: oneLine(`${tool} ${target}`, firstChars) };
  return { calls: denials.size, tools, ...shown };
}
