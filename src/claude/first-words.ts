/**
 * Whether claude has been told its task, by what it has printed. Newer programs run their SessionStart hooks, and print
 * lines about them, before anything has come through stdin; all other lines come after that (docs/claude-contract.md).
 */
import { isObject } from './lenient.ts';

/** How a line about a hook begins. */
const hookLine = '{"type":"system","subtype":"hook_';

/** False while there are only lines about hooks, the last of them whole or torn; what cannot be read counts as said. */
export function saysMoreThanHooks(printed: string): boolean {
  return printed.split('\n').some((line) => line !== '' && !isOfHook(line));
}

function isOfHook(line: string): boolean {
  if (line.startsWith(hookLine) || hookLine.startsWith(line)) return true;
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) && value.type === 'system' && `${value.subtype}`.startsWith('hook_');
  } catch {
    return false;
  }
}
