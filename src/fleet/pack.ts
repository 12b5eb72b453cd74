/** The folder of a session as a parcel for another machine, with what differs between machines taken out. */
import { join } from 'node:path';
import { isObject } from '../claude/lenient.ts';
import type { SessionPaths } from '../store/paths.ts';
import type { Files } from '../system/world.ts';
import { type Places, takeOut } from './agent/lay-out.ts';
import { filesIn, isOwn, textOf } from './agent/own-files.ts';
import { type Parcel, type ParcelFile, slugPlaceholder } from './wire.ts';

const conversations = 'claude-config/projects/';
const claudeState = 'claude-config/.claude.json';
const ofLogin: ReadonlySet<string> = new Set(['customApiKeyResponses', 'primaryApiKey', 'oauthAccount']);

/** Of no use elsewhere: what tells of this machine's folders, what claude has put aside, and what people read here. */
const leftHere: ReadonlySet<string> = new Set([
  'claude-config/backups',
  ...['worktree', 'handover.json', 'handover-copies.json', 'before.txt', 'accept-before.txt'],
  ...['setup.log', 'accept.log'],
]);

/** Nothing that is read through a link. `included`: paths, from the top of the worktree, of files that go along. */
export function packSession(
  files: Files,
  { folder }: Pick<SessionPaths, 'folder'>,
  places: Places,
  included: readonly string[],
): Parcel {
  const session = filesIn(files, folder, isLeft).map((path) => packFile(files, folder, path, places));
  const ignored = included.map((path) => {
    const bytes = bytesOf(files, join(folder, 'worktree', path));
    return { path: `worktree/${path}`, mode: 0o600, isText: false, data: bytes.toString('base64') };
  });
  return { files: [...session, ...ignored] };
}

function packFile(files: Files, folder: string, path: string, places: Places): ParcelFile {
  const bytes = bytesOf(files, join(folder, path));
  // A conversation stays as it is to the byte: the model has read it like that.
  const text = path.startsWith(conversations) ? null : textOf(bytes);
  const sent = path === claudeState ? withoutLogin(text ?? '') : text;
  const data = sent === null ? bytes : Buffer.from(takeOut(sent, places));
  const own = `${conversations}${places.slug}/`;
  const to = path.startsWith(own) ? `${conversations}${slugPlaceholder}/${path.slice(own.length)}` : path;
  return { path: to, mode: 0o600, isText: text !== null, data: data.toString('base64') };
}

/** What claude notes of keys that a person has let it use, and of who is logged in. It stays. */
function withoutLogin(text: string): string {
  try {
    const state: unknown = JSON.parse(text);
    if (!isObject(state)) return '{}';
    const kept = Object.entries(state).filter(([name]) => !ofLogin.has(name));
    return JSON.stringify(Object.fromEntries(kept), null, 2);
  } catch {
    return '{}';
  }
}

function bytesOf(files: Files, path: string): Buffer {
  return Buffer.from(files.readBytes(path, 0, files.info(path)?.size ?? 0));
}

function isLeft(path: string): boolean {
  const begins = ['transcript.late-', 'conversations.late-', `${claudeState}.`];
  return leftHere.has(path) || begins.some((begin) => path.startsWith(begin)) || isOwn(path);
}
