/**
 * An attempt on a lost host that has returned. Its output, and claude's copy of its conversation, go to separate files,
 * so that its cost can be counted. Nothing else is used, because the session has continued without it.
 */
import type { SlotLease } from '../core/event.ts';
import type { Git } from '../git/git.ts';
import { lateFolder, type SessionPaths } from '../store/paths.ts';
import type { BlobStore } from './engine.ts';
import { Intake, type IntakeOptions } from './intake.ts';
import { keepPrinted, layOutSynced, readParcel } from './mirror.ts';

export interface LateOptions {
  readonly attemptId: string;
  readonly place: SlotLease;
  readonly paths: SessionPaths;
  readonly offset: number;
  /** Everything is here; `path`: its output. */
  readonly onEnd: (path: string) => void;
  /** Its host was removed from the fleet, so it will never report. */
  readonly onForgotten: () => void;
}

export function lateIntake(
  git: Git,
  blobs: BlobStore,
  { attemptId, paths, offset, onEnd }: LateOptions,
  rest: Pick<IntakeOptions, 'have' | 'askAgain'>,
): Intake {
  const printed = keepPrinted(git, paths, attemptId, offset);
  const session = lateFolder(paths, attemptId);
  const places = { session, worktree: session, package: '', bun: '', slug: 'late' };
  const takeIn: IntakeOptions['takeIn'] = async (news) => {
    if (news.say === 'checkpoint' && news.files !== undefined) {
      const sent = await readParcel(blobs, news.files);
      // A missing part leaves the rest, and the figure may be slightly too low.
      if (!sent.ok) return sent.failure.reason !== 'timeout';
      const told = sent.value.files.filter(({ path }) => /^claude-config\/projects\/.*\.jsonl$/.test(path));
      layOutSynced(git.world.files, told, places);
    }
    if (news.say === 'ended' || news.say === 'refused') {
      printed.sync();
      onEnd(printed.path);
    }
    return true;
  };
  return new Intake({ ...rest, printed, takeIn }, false);
}
