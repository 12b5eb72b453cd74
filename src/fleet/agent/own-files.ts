/** What of a session's folder belongs to one machine alone: it never comes with an order and is never sent back. */

import { join } from 'node:path';
import type { Files } from '../../system/world.ts';

/** Names at the top of the folder. */
const own: ReadonlySet<string> = new Set([
  ...['transcript.jsonl', 'stderr.log', 'stdin.fifo', 'processes.json', 'meta.json', 'order.json'],
  ...['workspace.json', 'setup.done', 'remote-worktree.json', 'login-check'],
]);

/** Where claude keeps a login when a person logs in within the session; who works elsewhere has one of that machine. */
const credentials = 'claude-config/.credentials.json';

/** `path` is relative to the session's folder. */
export function isOwn(path: string): boolean {
  const [top = ''] = path.split('/');
  return own.has(top) || top === 'tmp' || /^\..*\.tmp$/.test(top) || path === credentials;
}

/** Regular files below the folder, through no link, relative to it and sorted. */
export function filesIn(files: Files, top: string, isLeft: (path: string) => boolean): string[] {
  const found: string[] = [];
  const open = [''];
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    for (const name of files.list(join(top, folder))) {
      const path = folder === '' ? name : `${folder}/${name}`;
      if (isLeft(path)) continue;
      const kind = files.entryKind(join(top, path));
      if (kind === 'folder') open.push(path);
      else if (kind === 'file') found.push(path);
    }
  }
  return found.toSorted();
}

/** Null when it is no text. */
export function textOf(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.includes('\0') ? null : text;
  } catch {
    return null;
  }
}
