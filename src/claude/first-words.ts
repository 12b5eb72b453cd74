/**
 * Whether claude has been told its task, by what it has printed. Newer programs run their SessionStart hooks before
 * anything has come through stdin, and print lines about them and about the session's title; `init` and all that is not
 * of the kind `system` comes after that (docs/claude-contract.md).
 */
import { isObject } from './lenient.ts';

const systemLine = '{"type":"system","subtype":"';

/** False while nothing but such lines is there, the last of them whole or torn; what cannot be read counts as said. */
export function hasItsTask(printed: string): boolean {
  return printed.split('\n').some((line) => line !== '' && !isOfStart(line));
}

function isOfStart(line: string): boolean {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) && value.type === 'system' && value.subtype !== 'init';
  } catch {
    // Torn, and perhaps grown together where a full disk has swallowed an end of line: each piece as far as it goes.
    return line.split(/(?=\{"type":")/).every(isTornOfStart);
  }
}

function isTornOfStart(piece: string): boolean {
  return systemLine.startsWith(piece) || (piece.startsWith(systemLine) && !piece.startsWith(`${systemLine}init`));
}
