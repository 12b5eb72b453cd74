/** pack.json: where an installed pack came from and what its files were, so that changes by hand can be told apart. */
import { join } from 'node:path';
import { fields, isInstant, isNumber, isText, listOf, optional, parseJson } from '../../store/shape.ts';
import type { World } from '../../system/world.ts';
import type { PackFile } from './pack-files.ts';

export interface PackFileNote {
  readonly path: string;
  readonly bytes: number;
  /** Hexadecimal. */
  readonly sha256: string;
}

export interface PackNote {
  readonly version: 1;
  readonly name: string;
  /** URL without a password, or absolute path of a folder. */
  readonly source: string;
  /** Branch, tag or commit that was asked for. */
  readonly ref?: string;
  /** What was checked out there, where that is known. */
  readonly commit?: string;
  /** ISO 8601, UTC. */
  readonly addedAt: string;
  /** When its files last changed; absent = never since it was added. */
  readonly updatedAt?: string;
  /** Sorted by path. */
  readonly files: readonly PackFileNote[];
  /** SHA-256 over all files in hexadecimal. */
  readonly digest: string;
}

export type PackOrigin = Pick<PackNote, 'source' | 'ref' | 'commit'>;

export const noteFile = 'pack.json';
const noteBytesMax = 1024 * 1024;

const aNote = fields({
  version: (value) => value === 1,
  name: isText,
  source: isText,
  ref: optional(isText),
  commit: optional(isText),
  addedAt: isInstant,
  updatedAt: optional(isInstant),
  files: listOf(fields({ path: isText, bytes: isNumber, sha256: isText })),
  digest: isText,
});

/** Notes of the files in the order they are given. */
export function noteFiles(files: readonly PackFile[]): PackFileNote[] {
  return files.map(({ path, bytes }) => ({ path, bytes: bytes.length, sha256: sha256(bytes) }));
}

export function digestOf(files: readonly PackFileNote[]): string {
  return sha256(files.map(({ path, bytes, sha256: digest }) => `${path}\0${bytes}\0${digest}\n`).join(''));
}

export function sha256(data: string | Uint8Array): string {
  return new Bun.CryptoHasher('sha256').update(data).digest('hex');
}

/** Null when the folder has no note, or one that cannot be read; throws the system's error. */
export function readNote(world: World, folder: string): PackNote | null {
  const path = join(folder, noteFile);
  if (world.files.entryKind(path) !== 'file') return null;
  const text = Buffer.from(world.files.readBytes(path, 0, noteBytesMax)).toString('utf8');
  const value = parseJson(text);
  return aNote(value) ? (value as PackNote) : null;
}

/** What differs between two states of a pack, sorted by path. */
export interface PackChange {
  readonly kind: 'added' | 'changed' | 'removed';
  readonly path: string;
}

export function changesBetween(before: readonly PackFileNote[], after: readonly PackFileNote[]): PackChange[] {
  const old = new Map(before.map((file) => [file.path, file.sha256]));
  const now = new Set(after.map(({ path }) => path));
  const changes: PackChange[] = after.flatMap(({ path, sha256: digest }): PackChange[] => {
    const known = old.get(path);
    if (known === digest) return [];
    return [{ kind: known === undefined ? 'added' : 'changed', path }];
  });
  for (const { path } of before) if (!now.has(path)) changes.push({ kind: 'removed', path });
  return changes.sort((a, b) => (a.path < b.path ? -1 : 1));
}
