/**
 * An attempt whose host was lost, and is there again. What it printed, and what claude has kept of its conversation,
 * goes to files of its own, so that it can be counted what it has cost. Nothing else is taken in, for the session has
 * gone on without it.
 */
import { basename, dirname, join } from 'node:path';
import type { SlotLease } from '../core/event.ts';
import { quoted } from '../core/id.ts';
import type { Git } from '../git/git.ts';
import { lateConversations, latePath, type SessionPaths } from '../store/paths.ts';
import { problemWith } from './agent/lay-out.ts';
import type { BlobStore } from './engine.ts';
import { Intake, type IntakeOptions } from './intake.ts';
import { keepPrinted, PrintedFile, readParcel } from './mirror.ts';
import type { AttemptNews, Blob } from './wire.ts';

/** Where a sub-agent's part of a conversation lies: its folder has no dot, so no file has its name. */
const ofAgent = /[^/.]+\/subagents\/[^/]+\.jsonl$/;

export interface LateOptions {
  readonly attemptId: string;
  readonly place: SlotLease;
  readonly paths: SessionPaths;
  readonly offset: number;
  readonly onEnd: (path: string) => void;
  /** Its host was taken out of the fleet, so nothing will ever be heard of it. */
  readonly onForgotten: () => void;
  /** Something of its conversation can never be had; a full sentence, said once for each. */
  readonly onRefused: (message: string) => void;
}

export class LateAttempt {
  readonly place: SlotLease;
  readonly #options: LateOptions;
  readonly #git: Git;
  readonly #blobs: BlobStore;
  readonly #printed: PrintedFile;
  readonly #intake: Intake;

  constructor(git: Git, blobs: BlobStore, options: LateOptions, rest: Pick<IntakeOptions, 'have' | 'askAgain'>) {
    this.place = options.place;
    this.#options = options;
    this.#git = git;
    this.#blobs = blobs;
    const { paths, attemptId, offset } = options;
    keepPrinted(git, paths, attemptId, offset);
    this.#printed = new PrintedFile(git, latePath(paths, attemptId), 0);
    this.#intake = new Intake({ ...rest, printed: this.#printed, takeIn: (news) => this.#takeIn(news) }, false);
  }

  /** Its host is there, and tells what is not known to be here. */
  greeted(): void {
    this.#intake.open();
  }

  forgotten(): void {
    this.#options.onForgotten();
  }

  hear(news: AttemptNews): void {
    this.#intake.hear(news);
  }

  async #takeIn(news: Exclude<AttemptNews, { say: 'printed' }>): Promise<boolean> {
    if (news.say === 'checkpoint') return news.files === undefined || (await this.#keepConversation(news.files));
    if (news.say !== 'ended' && news.say !== 'refused') return true;
    const { paths, attemptId, onEnd } = this.#options;
    this.#printed.sync();
    onEnd(latePath(paths, attemptId));
    return true;
  }

  /** Each part by itself, under the name of where it begins: a part that comes again replaces itself. */
  async #keepConversation(blob: Blob): Promise<boolean> {
    const sent = await readParcel(this.#blobs, blob);
    // What is gone for good leaves the rest, and a figure that may be a little too low is marked as an estimate.
    if (!sent.ok && sent.failure.reason === 'timeout') return false;
    if (!sent.ok) return this.#refuse(sent.failure.message);
    const { files } = this.#git.world;
    const { paths, attemptId } = this.#options;
    for (const { path, offset = 0, data } of sent.value.files) {
      if (!path.startsWith('claude-config/projects/') || !path.endsWith('.jsonl')) continue;
      const problem = problemWith(path);
      if (problem !== null) {
        this.#refuse(`It holds a file ${quoted(path)}, ${problem}.`);
        continue;
      }
      const inProject = ofAgent.exec(path)?.[0] ?? basename(path);
      const target = join(lateConversations(paths, attemptId), 'projects', String(offset), inProject);
      files.makeFolder(dirname(target));
      files.remove(target);
      files.writeBytes(target, Buffer.from(data, 'base64'), { durable: true });
    }
    return true;
  }

  /** Its host is broken, or was stolen: what it cost must still be booked. */
  #refuse(why: string): true {
    const { place, attemptId, onRefused } = this.#options;
    const what = `What the host ${place.host} tells late of attempt ${attemptId} cannot be taken in whole`;
    onRefused(`${what}, so its cost may be more than is booked. ${why}`);
    return true;
  }
}
