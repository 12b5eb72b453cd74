/**
 * Transfers a session's work to a host and back: by git, over ssh to a repository of the host, or through a remote that
 * both reach.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { advise } from '../core/advice.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import type { SessionId, Workspace } from '../core/group.ts';
import type { Git } from '../git/git.ts';
import { askOwn } from '../git/run-git.ts';
import {
  type CodeUrl,
  fetchCommits,
  keepingRef,
  keptCommits,
  pushRefs,
  setRefs,
} from '../git/worktrees/session-refs.ts';
import { type Snapshot, snapshotOf } from '../git/worktrees/snapshot.ts';
import { type GitSetting, isSentSetting, type ShippedWork } from './wire.ts';

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
    const add = ['host', 'add', host, '--ssh', 'USER@HOST'];
    return fail('worktree-failed', message, advise('Add a remote to the repository, or add the host with ssh', add));
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
