/** What a worker said last on stderr: often the only explanation of an end without a result. */
import type { Files } from '../system/world.ts';

const tailBytes = 4_096;

/** The last line of the file behind its byte `from`; empty when there is none. Throws the system’s error. */
export function lastStderrLine(files: Files, path: string, from: number): string {
  const size = files.info(path)?.size ?? 0;
  if (size <= from) return '';
  const bytes = files.readBytes(path, Math.max(from, size - tailBytes), tailBytes);
  return new TextDecoder().decode(bytes).trimEnd().split('\n').at(-1) ?? '';
}
