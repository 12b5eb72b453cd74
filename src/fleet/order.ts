/** Everything another host needs to start an attempt that was prepared here as if it ran here. */
import { basename, join, relative } from 'node:path';
import { defined } from '../core/defined.ts';
import type { SlotLease } from '../core/event.ts';
import { type Failure, fail, ok, type Result } from '../core/failure.ts';
import { defaultCommandTimeoutMs, type SessionDefinition, type Workspace } from '../core/group.ts';
import type { Git } from '../git/git.ts';
import { namedByProject } from '../git/include.ts';
import { parseOwn } from '../store/json.ts';
import type { SessionPaths } from '../store/paths.ts';
import { ownCommand } from '../system/own-program.ts';
import type { Files, SpawnOptions } from '../system/world.ts';
import type { AttemptSubject } from '../worker/host.ts';
import { filesIn, isOwn, type Places, takeOut, textOf, worktreeFolder } from './agent/lay-out.ts';
import type { BlobStore } from './redis.ts';
import { type Order, type Parcel, type ParcelFile, projectSlug, type SlotCommand, slugPlaceholder } from './wire.ts';
import type { WorkCode } from './work-code.ts';

export async function makeOrder(subject: RemoteSubject, spawn: SpawnOptions): Promise<Result<Order>> {
  const { git, blobs, paths, definition, code, place } = subject;
  const { files, random } = git.world;
  const workspace = subject.workspace();
  if (workspace === undefined) {
    return fail('worktree-failed', 'The session has no worktree that could be sent.', 'Retry the session.');
  }
  const places = placesHere(files, subject, workspace.path, spawn.cwd);
  const included = await namedByProject(git, workspace.path);
  if (!included.ok) return included;
  const work = await code.ship(subject.sessionId, workspace, place.host);
  if (!work.ok) return work.failure.reason === 'timeout' ? subject.notReached(work.failure) : work;
  const parcel = packSession(files, paths, places, included.value);
  const sent = await blobs.putBlob(random.uuid(), Buffer.from(JSON.stringify(parcel)));
  if (!sent.ok) return sent;
  const { setup, setupTimeoutMs = defaultCommandTimeoutMs, untrusted = false, memoryBytes, maxProcesses } = definition;
  return ok({
    attemptId: subject.attemptId,
    attempt: subject.number,
    groupId: subject.groupId,
    sessionId: subject.sessionId,
    args: spawn.args.map((arg) => takeOut(arg, places)),
    cwd: join(worktreeFolder, relative(places.worktree, files.realPath(spawn.cwd) ?? spawn.cwd)),
    files: sent.value,
    work: work.value,
    ...(setup === undefined ? {} : { setup: { command: setup, timeoutMs: setupTimeoutMs } }),
    untrusted,
    ...defined({ memoryBytes, processesMax: maxProcesses }),
    ...(subject.waits ? { waits: true } : {}),
  });
}

/** `cwd`: claude's working directory here. */
export function placesHere(
  files: Files,
  subject: Pick<RemoteSubject, 'paths' | 'packageRoot'>,
  worktree: string,
  cwd: string,
): Places {
  const { folder } = subject.paths;
  return {
    session: files.realPath(folder) ?? folder,
    worktree,
    package: subject.packageRoot,
    bun: ownCommand('main').program,
    slug: projectSlug(files.realPath(cwd) ?? join(folder, basename(cwd))),
  };
}

// The subject of an attempt on another host, and the messages to it.

export interface RemoteSubject extends AttemptSubject {
  readonly groupId: string;
  readonly place: SlotLease;
  readonly number: number;
  readonly offset: number;
  readonly definition: SessionDefinition;
  /** It is waited for, however long its host is lost. */
  readonly waits: boolean;
  readonly workspace: () => Workspace | undefined;
  readonly packageRoot: string;
  readonly git: Git;
  readonly blobs: BlobStore;
  readonly code: WorkCode;
  /** Converts a failed transfer by git to the attempt's result. */
  readonly notReached: (failure: Failure) => Result<never>;
}

export interface Sender {
  say(command: SlotCommand): void;
  hello(): void;
  later(ms: number, action: () => void): void;
}

// Packs the folder of a session for another host, with host-specific parts removed.

const conversations = 'claude-config/projects/';
const claudeState = 'claude-config/.claude.json';
const ofLogin: ReadonlySet<string> = new Set(['customApiKeyResponses', 'primaryApiKey', 'oauthAccount']);

/** Useless on other hosts: files about this host's folders, claude's caches, and files for readers here. */
const leftHere: ReadonlySet<string> = new Set([
  'claude-config/backups',
  ...['handover.json', 'handover-copies.json', 'begin.json', 'accept-before.txt'],
  ...['setup.log', 'accept.log'],
]);

/** Nothing is read through a symlink. `included`: additional files, by paths from the top of the worktree. */
export function packSession(
  files: Files,
  { folder }: Pick<SessionPaths, 'folder'>,
  places: Places,
  included: readonly string[],
): Parcel {
  const session = filesIn(files, folder, isLeft).map((path) => packFile(files, folder, path, places));
  const ignored = included.map((path) => {
    const bytes = bytesOf(files, join(places.worktree, path));
    return { path: `${worktreeFolder}${path}`, isText: false, data: bytes.toString('base64') };
  });
  return { files: [...session, ...ignored] };
}

function packFile(files: Files, folder: string, path: string, places: Places): ParcelFile {
  const bytes = bytesOf(files, join(folder, path));
  // A conversation stays byte for byte: the model has read it like that.
  const text = path.startsWith(conversations) ? null : textOf(bytes);
  const sent = path === claudeState ? withoutLogin(text ?? '') : text;
  const data = sent === null ? bytes : Buffer.from(takeOut(sent, places));
  const own = `${conversations}${places.slug}/`;
  const to = path.startsWith(own) ? `${conversations}${slugPlaceholder}/${path.slice(own.length)}` : path;
  return { path: to, isText: text !== null, data: data.toString('base64') };
}

/** claude's record of approved keys and of the logged-in user, which must stay here. */
function withoutLogin(text: string): string {
  const kept = Object.entries(parseOwn(text) ?? {}).filter(([name]) => !ofLogin.has(name));
  return JSON.stringify(Object.fromEntries(kept), null, 2);
}

function bytesOf(files: Files, path: string): Buffer {
  return Buffer.from(files.readBytes(path, 0, files.info(path)?.size ?? 0));
}

function isLeft(path: string): boolean {
  const begins = ['transcript.late-', `${claudeState}.`];
  return leftHere.has(path) || begins.some((begin) => path.startsWith(begin)) || isOwn(path);
}
