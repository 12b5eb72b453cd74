/** Reads whole files written by people: a problem is part of a sentence, never an exception. */
import { tryPath } from '../system/system-error.ts';
import type { World } from '../system/world.ts';

export type TextFile =
  | { readonly ok: true; readonly text: string }
  /** `trouble` completes a sentence that begins with the path; no full stop. */
  | { readonly ok: false; readonly trouble: string };

export type BytesFile =
  | { readonly ok: true; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly trouble: string };

export function readTextFile(world: World, path: string, bytesMax: number): TextFile {
  const read = readBytesFile(world, path, bytesMax);
  if (!read.ok) return read;
  const text = decodeText(read.bytes);
  if (text === null) return { ok: false, trouble: 'is not UTF-8 text' };
  return text.includes('\0') ? { ok: false, trouble: 'contains a NUL character' } : { ok: true, text };
}

export function readBytesFile({ files }: World, path: string, bytesMax: number): BytesFile {
  if (path.includes('\0')) return { ok: false, trouble: 'is not a valid path: it contains a NUL character' };
  const read = tryPath((): BytesFile => {
    const info = files.info(path);
    if (info === null) return { ok: false, trouble: 'does not exist' };
    if (info.kind === 'folder') return { ok: false, trouble: 'is a folder' };
    // A pipe may never end or start; a device has no size.
    if (info.kind !== 'file') return { ok: false, trouble: 'is not a regular file' };
    const bytes = files.readBytes(path, 0, bytesMax + 1);
    if (bytes.length > bytesMax) return { ok: false, trouble: `is larger than ${sizeText(bytesMax)}` };
    return { ok: true, bytes };
  });
  return read.ok ? read.value : read;
}

/** The text without a byte order mark; null when it is not UTF-8. */
export function decodeText(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

export function sizeText(bytes: number): string {
  return bytes >= 1024 ** 2 ? `${bytes / 1024 ** 2} MiB` : `${bytes / 1024} KiB`;
}
