/** Everything another host needs to start an attempt that was prepared here as if it ran here. */

import { createHash } from 'node:crypto';
import { basename, join, relative } from 'node:path';
import { defined } from '../core/defined.ts';
import type { SlotLease } from '../core/event.ts';
import { type Failure, fail, ok, type Result } from '../core/failure.ts';
import { defaultCommandTimeoutMs, type SessionDefinition, type SessionId, type Workspace } from '../core/group.ts';
import type { Git } from '../git/git.ts';
import { namedByProject } from '../git/include.ts';
import { askOwn } from '../git/run-git.ts';
import {
  type CodeUrl,
  fetchCommits,
  keepingRef,
  keptCommits,
  pushRefs,
  type Snapshot,
  setRefs,
  snapshotOf,
} from '../git/worktrees/snapshot.ts';
import { parseOwn } from '../store/json.ts';
import type { SessionPaths } from '../store/paths.ts';
import { ownCommand } from '../system/own-program.ts';
import type { Files, SpawnOptions } from '../system/world.ts';
import type { AttemptSubject } from '../worker/host.ts';
import { filesIn, isOwn, type Places, packFile, takeOut, worktreeFolder } from './agent/lay-out.ts';
import type { BlobStore } from './redis.ts';
import {
  type GitSetting,
  isSentSetting,
  type Order,
  type ParcelFile,
  projectSlug,
  type ShippedWork,
  type SlotCommand,
  sentVariables,
} from './wire.ts';

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
  const parcel = { files: packSession(files, paths, places, included.value) };
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
    variables: sentVariables.parse(spawn.env),
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
): readonly ParcelFile[] {
  const session = filesIn(files, folder, isLeft).map((path) => {
    const bytes = bytesOf(files, join(folder, path));
    return packFile(path, path === claudeState ? withoutLogin(bytes) : bytes, places);
  });
  const ignored = included.map((path) => {
    const bytes = bytesOf(files, join(places.worktree, path));
    return { path: `${worktreeFolder}${path}`, isText: false, data: bytes.toString('base64') };
  });
  return [...session, ...ignored];
}

/** claude's record of approved keys and of the logged-in user, which must stay here. */
function withoutLogin(bytes: Buffer): Buffer {
  const kept = Object.entries(parseOwn(bytes.toString()) ?? {}).filter(([name]) => !ofLogin.has(name));
  return Buffer.from(JSON.stringify(Object.fromEntries(kept), null, 2));
}

function bytesOf(files: Files, path: string): Buffer {
  return Buffer.from(files.readBytes(path, 0, files.info(path)?.size ?? 0));
}

function isLeft(path: string): boolean {
  const begins = ['transcript.late-', `${claudeState}.`];
  return leftHere.has(path) || begins.some((begin) => path.startsWith(begin)) || isOwn(path);
}

// Transfers a session's work to a host and back: by git, over ssh to a repository of the host, or through a
// remote that both reach.

/** Refs of a session that keep what was sent and received. */
export function workRefs(sessionId: SessionId) {
  return {
    sentHead: keepingRef(sessionId, 'sent-head'),
    sent: keepingRef(sessionId, 'sent'),
    head: keepingRef(sessionId, 'head'),
    checkpoint: keepingRef(sessionId, 'checkpoint'),
    applying: keepingRef(sessionId, 'applying'),
  } as const;
}

/** Everything else of the user's repository that a session can see, except the branches of other sessions. */
const context = ['refs/heads/*', 'refs/tags/*', 'refs/remotes/*'].map((refs) => `+${refs}:${refs}`);
const notOfSessions = '^refs/heads/cca/*';

export class WorkCode {
  readonly #git: Git;
  readonly #codeUrlOf: (host: string) => string | undefined | null;
  /** The sessions of a group start together: the first push of a repository to a host serves all of them. */
  readonly #pushing = new Map<string, Promise<unknown>>();

  /** `codeUrlOf`: see HostEntry; null = unknown yet. */
  constructor(git: Git, codeUrlOf: (host: string) => string | undefined | null) {
    this.#git = git;
    this.#codeUrlOf = codeUrlOf;
  }

  /** Fails with `worktree-failed`, and with `timeout` when the host is unreachable or its disk is full. */
  async ship(sessionId: SessionId, workspace: Workspace, host: string): Promise<Result<ShippedWork>> {
    const git = this.#git;
    const { path, repository, branch } = workspace;
    const taken = await snapshotOf(git, path);
    if (!taken.ok) return taken;
    const { head, snapshot } = taken.value;
    const refs = workRefs(sessionId);
    // The results of an earlier attempt have been applied already.
    const kept = await setRefs(git, repository, [
      ...([refs.head, refs.checkpoint, refs.applying] as const).map((ref) => [ref, null] as const),
      [refs.sentHead, head],
      [refs.sent, snapshot],
    ]);
    if (!kept.ok) return kept;
    const settings = await settingsOf(git, path);
    if (!settings.ok) return settings;
    const to = await this.#routeTo(host, repository);
    if (!to.ok) return to;
    const before = this.#pushing.get(to.value.url) ?? Promise.resolve();
    const pushing = before.then(() => this.#push(repository, to.value, [refs.sentHead, refs.sent]));
    this.#pushing.set(to.value.url, pushing);
    const pushed = await pushing;
    if (!pushed.ok) return pushed;
    const { isOnHost, url } = to.value;
    const remote = isOnHost ? {} : { remote: url };
    return ok({ repository: keyOf(git, repository), head, snapshot, branch, settings: settings.value, ...remote });
  }

  async #push(repository: string, to: CodeUrl, own: readonly string[]): Promise<Result<void>> {
    const refspecs = own.map((ref) => `+${ref}:${ref}`);
    if (!to.isOnHost) return pushRefs(this.#git, repository, to, refspecs);
    const all = await pushRefs(this.#git, repository, to, [...refspecs, ...context, notOfSessions]);
    // A branch that has become a folder of branches, or a git before 2.29: the session can work without the others.
    const isOther = !all.ok && all.failure.reason === 'worktree-failed';
    return isOther ? pushRefs(this.#git, repository, to, refspecs) : all;
  }

  /** Fetches a checkpoint from the host. Fails as `ship`. */
  async fetch(sessionId: SessionId, { repository }: Workspace, host: string, made: Snapshot): Promise<Result<void>> {
    const git = this.#git;
    const refs = workRefs(sessionId);
    const kept = await keptCommits(git, repository, sessionId);
    if (!kept.ok) return kept;
    if (kept.value.get('head') === made.head && kept.value.get('checkpoint') === made.snapshot) return ok(undefined);
    const from = await this.#routeTo(host, repository);
    if (!from.ok) return from;
    const wanted = [
      [made.head, refs.head],
      [made.snapshot, refs.checkpoint],
    ] as const;
    return fetchCommits(git, repository, from.value, wanted);
  }

  async #routeTo(host: string, repository: string): Promise<Result<CodeUrl>> {
    const onHost = this.#codeUrlOf(host);
    if (onHost === null) return fail('timeout', `Nothing is known of the host ${host} yet.`, '');
    if (onHost !== undefined) return ok({ url: `${onHost}/${keyOf(this.#git, repository)}`, isOnHost: true });
    const settings = await settingsOf(this.#git, repository);
    if (!settings.ok) return settings;
    const urls = settings.value.filter(([key]) => key.endsWith('.url'));
    const url = (urls.find(([key]) => key === 'remote.origin.url') ?? urls[0])?.[1];
    if (url !== undefined) return ok({ url, isOnHost: false });
    const message = `The host ${host} cannot be reached by ssh, and the repository has no remote that both reach.`;
    return fail('worktree-failed', message, 'Add a remote to the repository, or join the host again with --ssh.');
  }
}

/** Identity and remotes of the user's repository, without passwords. Fails with `worktree-failed`. */
async function settingsOf(git: Git, path: string): Promise<Result<GitSetting[]>> {
  const pattern = '^(user\\.(name|email)|remote\\..*\\.(url|fetch)|lfs\\.url)$';
  const asked = await askOwn(git, path, ['config', '--null', '--get-regexp', pattern]);
  if (!asked.ok) return asked;
  const entries = asked.value.stdout.split('\0').filter((entry) => entry !== '');
  const settings = entries.map((entry): GitSetting => {
    const end = entry.indexOf('\n');
    return [entry.slice(0, end), entry.slice(end + 1).replace(/^(https?:\/\/)[^/@]*@/, '$1')];
  });
  return ok(settings.filter(isSentSetting));
}

/** Identical for all sessions of a repository on this host, and unique to it. */
function keyOf({ world }: Git, repository: string): string {
  return createHash('sha256')
    .update(join(`/${world.machine.host}`, repository))
    .digest('hex')
    .slice(0, 32);
}
