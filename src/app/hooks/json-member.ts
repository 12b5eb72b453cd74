/** Changes one member of a JSON object in its text, so that the rest keeps its numbers, its order and its layout. */
import { applyEdits, modify } from 'jsonc-parser';

/**
 * The text of the object with the member set to `value`, or without it when that is undefined. `text` must be a valid
 * JSON object in which no key stands twice.
 */
export function withMember(text: string, key: string, value: unknown): string {
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const indent = /\n([ \t]+)"/.exec(text)?.[1] ?? '  ';
  const isOneLine = !text.trim().includes('\n') && text.includes('"');
  const layout = { eol, insertSpaces: !indent.startsWith('\t'), tabSize: indent.length };
  const changed = applyEdits(text, modify(text, [key], value, isOneLine ? {} : { formattingOptions: layout }));
  // As it was before something was put in.
  return value === undefined ? changed.replace(/^(\s*)\{\s+\}/, '$1{}') : changed;
}
