/**
 * The local copy of an attempt on another host: its transcript, conversation, files and work, as far as received.
 * Everything is on disk before the other end is told.
 */
import { dirname } from 'node:path';
import type { SlotLease } from '../core/event.ts';
import { ok, type Result } from '../core/failure.ts';
import type { SessionId, Workspace } from '../core/group.ts';
import type { Git } from '../git/git.ts';
import { applySnapshot, keptCommits, type Snapshot, setRefs } from '../git/worktrees/snapshot.ts';
import { latePath, type SessionPaths } from '../store/paths.ts';
import { destination, layOut, type Places } from './agent/lay-out.ts';
import { workRefs } from './order.ts';
import type { BlobStore } from './redis.ts';
import { type AttemptNews, type Blob, parcelIn } from './wire.ts';

type Checkpoint = Extract<AttemptNews, { say: 'checkpoint' }>;

export interface MirrorOptions {
  readonly sessionId: SessionId;
  readonly paths: SessionPaths;
  readonly offset: number;
  /** Of this host; undefined without a worktree. */
  readonly places: () => Places | undefined;
  readonly workspace: () => Workspace | undefined;
  /** Fetches commits of the session into its refs here. Fails as `WorkCode.fetch`. */
  readonly fetch: (workspace: Workspace, made: Snapshot) => Promise<Result<void>>;
}

/** Appends received output to a file, each byte once. */
export class PrintedFile {
  readonly #git: Git;
  readonly path: string;
  readonly #offset: number;
  #isUnsynced = false;

  constructor(git: Git, path: string, offset: number) {
    this.#git = git;
    this.path = path;
    this.#offset = offset;
  }

  /** Bytes received. */
  get size(): number {
    return Math.max(0, (this.#git.world.files.info(this.path)?.size ?? 0) - this.#offset);
  }

  /** False when something before it is missing; then nothing is stored. */
  take(offset: number, bytes: Uint8Array): boolean {
    const { files } = this.#git.world;
    const have = this.size;
    if (offset > have) return false;
    const rest = bytes.subarray(have - offset);
    if (rest.length === 0) return true;
    const file = files.openAppend(this.path);
    file.appendBytes(rest);
    file.close();
    this.#isUnsynced = true;
    return true;
  }

  sync(): void {
    if (!this.#isUnsynced) return;
    const file = this.#git.world.files.openAppend(this.path);
    file.sync();
    file.close();
    this.#isUnsynced = false;
  }
}

export class Mirror {
  readonly printed: PrintedFile;
  readonly #git: Git;
  readonly #blobs: BlobStore;
  readonly #options: MirrorOptions;
  #taking: Promise<unknown> = Promise.resolve();

  constructor(git: Git, blobs: BlobStore, options: MirrorOptions) {
    this.#git = git;
    this.#blobs = blobs;
    this.#options = options;
    this.printed = new PrintedFile(git, options.paths.transcript, options.offset);
  }

  /** Files are written at once, work is only kept. Fails with `gone` when it can never be received. */
  checkpoint(made: Checkpoint): Promise<Result<void>> {
    const taking = this.#take(made);
    this.#taking = taking.catch(() => {});
    return taking;
  }

  /** The work first: a conversation must never mention missing work. */
  async #take({ files, head, snapshot }: Checkpoint): Promise<Result<void>> {
    if (head !== undefined && snapshot !== undefined) {
      const workspace = this.#options.workspace();
      const kept = workspace === undefined ? ok(undefined) : await this.#options.fetch(workspace, { head, snapshot });
      if (!kept.ok) return kept;
    }
    return files === undefined ? ok(undefined) : this.#takeFiles(files);
  }

  async #takeFiles(blob: Blob): Promise<Result<void>> {
    const bytes = await this.#blobs.getBlob(blob);
    const sent = bytes.ok ? parcelIn(bytes.value) : bytes;
    if (!sent.ok) return sent;
    const places = this.#options.places();
    if (places === undefined) return ok(undefined);
    const { files } = this.#git.world;
    const own = sent.value.filter(({ path }) => comesBack(path));
    const laidOut = layOut(files, own, places);
    if (!laidOut.ok) return laidOut;
    for (const file of own) {
      const written = files.openAppend(destination(places, file).target);
      written.sync();
      written.close();
    }
    return laidOut;
  }

  /** The attempt is over: its work is applied to the worktree and branch here. Fails with `worktree-failed`. */
  async settle(): Promise<Result<void>> {
    // Half of a checkpoint is not a valid state.
    await this.#taking;
    const workspace = this.#options.workspace();
    if (workspace === undefined) return ok(undefined);
    const git = this.#git;
    const { repository } = workspace;
    const refs = workRefs(this.#options.sessionId);
    const kept = await keptCommits(git, repository, this.#options.sessionId);
    if (!kept.ok) return kept;
    const [sentHead, sent, head, checkpoint, marked] = [
      ...['sent-head', 'sent', 'head', 'checkpoint', 'applying'].map((name) => kept.value.get(name)),
    ];
    const isChanged = sentHead !== undefined && sent !== undefined && head !== undefined && checkpoint !== undefined;
    const applied = !isChanged
      ? ok(undefined)
      : await applySnapshot(git, {
          workspace,
          known: { head: sentHead, snapshot: sent },
          wanted: { head, snapshot: checkpoint },
          markRef: refs.applying,
          marked,
        });
    if (!applied.ok || kept.value.size === 0) return applied;
    return setRefs(
      git,
      repository,
      [...Object.values(refs)].map((ref) => [ref, null]),
    );
  }
}

const conversationFolders: ReadonlySet<string> = new Set(['projects', 'todos', 'tasks', 'plans', 'file-history']);

/** A stolen host must not write settings, programs or the runner's own files; the worktree arrives as commits. */
function comesBack(path: string): boolean {
  const [top = '', folder = '', ...rest] = path.split('/');
  if (top === 'claude-config') return rest.length > 0 && conversationFolders.has(folder);
  return path === 'hooks.log' || path === 'setup.log';
}

/** Keeps the attempt's output in a separate file, because the transcript continues with the next attempt. */
export function keepPrinted(git: Git, paths: SessionPaths, attemptId: string, offset: number): PrintedFile {
  const { files } = git.world;
  const path = latePath(paths, attemptId);
  if (files.entryKind(path) === null) {
    const size = files.info(paths.transcript)?.size ?? 0;
    files.writeBytes(path, files.readBytes(paths.transcript, offset, Math.max(0, size - offset)), { durable: true });
    files.syncFolder(dirname(path));
  }
  return new PrintedFile(git, path, 0);
}

// Processes the reports of one attempt in order. The host is told what is on disk here, and sends everything
// else, as often as it is requested.

export interface IntakeOptions {
  readonly printed: PrintedFile;
  /** False when it cannot be stored now. */
  takeIn(news: Exclude<AttemptNews, { say: 'printed' }>): Promise<boolean>;
  /** The host need not send this again. */
  have(printed: number, checkpoint: number): void;
  /** The host must send missing parts again after a while. */
  askAgain(): void;
}

export class Intake {
  readonly #options: IntakeOptions;
  #heard: AttemptNews[] = [];
  /** The last stored checkpoint. */
  #checkpoint = 0;
  #isTaking = false;
  #isOpen: boolean;

  /** `isOpen`: false = messages to an earlier runner may still arrive, and are ignored. */
  constructor(options: IntakeOptions, isOpen: boolean) {
    this.#options = options;
    this.#isOpen = isOpen;
  }

  /** From here on the host sends everything not known to be here. */
  open(): void {
    this.#isOpen = true;
  }

  close(): void {
    this.#isOpen = false;
    this.#heard = [];
  }

  hear(news: AttemptNews): void {
    if (!this.#isOpen) return;
    this.#heard.push(news);
    if (!this.#isTaking) void this.#takeAll();
  }

  async #takeAll(): Promise<void> {
    this.#isTaking = true;
    // Messages read together are processed first, so that one sync covers all of them.
    await Promise.resolve();
    while (this.#heard.length > 0) await this.#takeSome(this.#heard.splice(0));
    this.#isTaking = false;
  }

  async #takeSome(heard: readonly AttemptNews[]): Promise<void> {
    const { printed, have, askAgain } = this.#options;
    let isMissing = false;
    for (const news of heard) {
      if (!this.#isOpen) return;
      // Later reports are repeated together with it.
      isMissing ||= !(await this.#isTakenIn(news));
    }
    try {
      printed.sync();
      if (heard.some(({ say }) => say === 'printed' || say === 'checkpoint')) have(printed.size, this.#checkpoint);
    } catch {
      isMissing = true;
    }
    if (isMissing) askAgain();
  }

  /** A full disk, for example, must not lose data that the host still has. */
  async #isTakenIn(news: AttemptNews): Promise<boolean> {
    const { printed, takeIn } = this.#options;
    try {
      if (news.say === 'printed') return printed.take(news.offset, news.data);
      if (news.say !== 'checkpoint') return await takeIn(news);
      if (news.n <= this.#checkpoint) return true;
      const isTaken = news.prints <= printed.size && (await takeIn(news));
      if (isTaken) this.#checkpoint = news.n;
      return isTaken;
    } catch {
      return false;
    }
  }
}

// An attempt on a lost host that has returned. Its output goes to a separate file, so that its cost can be counted.
// Nothing else is used, because the session has continued without it.

export interface LateOptions {
  readonly attemptId: string;
  readonly place: SlotLease;
  readonly paths: SessionPaths;
  readonly offset: number;
  /** `path`: its whole output. */
  readonly onEnd: (path: string) => void;
  /** Its host was removed from the fleet, so it will never report. */
  readonly onForgotten: () => void;
}

export function lateIntake(
  git: Git,
  { attemptId, paths, offset, onEnd }: LateOptions,
  rest: Pick<IntakeOptions, 'have' | 'askAgain'>,
): Intake {
  const printed = keepPrinted(git, paths, attemptId, offset);
  const takeIn: IntakeOptions['takeIn'] = async ({ say }) => {
    if (say !== 'ended' && say !== 'refused') return true;
    printed.sync();
    onEnd(printed.path);
    return true;
  };
  return new Intake({ ...rest, printed, takeIn }, false);
}
