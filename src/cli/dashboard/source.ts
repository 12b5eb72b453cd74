/** The source of the dashboard's state: the files of a group, whichever process runs it; and the end of transcripts. */
import { isRun } from '../../app/live-runner.ts';
import type { LoadedGroup } from '../../app/resolve.ts';
import { followGroup, type GroupFollower } from '../../app/watch/follow-group.ts';
import {
  type ProgressView,
  readGroupProgress,
  type UsageReader,
  usageReader,
  withoutRunner,
} from '../../app/watch/live-view.ts';
import type { GroupEvent } from '../../core/event.ts';
import type { Failure } from '../../core/failure.ts';
import type { SessionId, Workspace } from '../../core/group.ts';
import { LineSplitter } from '../../core/line-splitter.ts';
import type { GroupState } from '../../core/state.ts';
import type { TranscriptEntry } from '../../core/transcript.ts';
import type { World } from '../../system/world.ts';
import { type AttemptNotes, noteAttempt } from '../../tui/dashboard/attempts.ts';
import type { Runner } from '../../tui/dashboard/view.ts';
import { colourStyle } from '../../view/format.ts';
import { GroupMarks, MarkPrinter, type TranscriptMark } from '../../view/transcript/entry-lines.ts';
import type { Line } from '../../view/transcript/markdown.ts';
import { TranscriptRenderer } from '../transcript/transcript.ts';

/** How often progress.json and the runner are checked, besides file events, milliseconds. */
const lookEveryMs = 500;
/** File events within this time are handled together, milliseconds. */
const gatherMs = 200;

export interface Source {
  readonly state: GroupState;
  readonly seen: ProgressView;
  readonly runner: Runner;
  readonly notes: EventNotes;
}

/** What events contain besides the state. Takes each event once, in order. */
export class EventNotes {
  readonly attempts: AttemptNotes = new Map();
  readonly marks = new GroupMarks();
  /** The worktree each session has or had last. */
  readonly workspaces = new Map<SessionId, Workspace>();

  take(event: GroupEvent): void {
    noteAttempt(this.attempts, event);
    this.marks.take(event);
    if (event.type === 'session_isolated') this.workspaces.set(event.sessionId, event.workspace);
  }
}

export interface SourceEvents {
  onChange(): void;
  onLost(failure: Failure): void;
  onTrouble(error: unknown): void;
}

/** Follows the files of a group. It writes nothing and sends no requests, so the runner does not notice. */
export class FileSource implements Source {
  readonly notes = new EventNotes();
  readonly #world: World;
  readonly #group: LoadedGroup;
  readonly #events: SourceEvents;
  readonly #isHere: boolean;
  readonly #follower: GroupFollower;
  readonly #unwatch: () => void;
  #runner: Runner;
  readonly #usages: UsageReader;
  #seen: ProgressView | undefined;
  #file: FileLook | null = null;
  #isOver = false;
  #cancel = (): void => {};

  /** `isHere`: this process runs the group. */
  constructor(world: World, group: LoadedGroup, events: SourceEvents, isHere = false) {
    this.#world = world;
    this.#group = group;
    this.#events = events;
    this.#isHere = isHere;
    this.#usages = usageReader(world, group.paths);
    this.#runner = this.#runnerNow();
    const onEvent = (event: GroupEvent): void => {
      this.notes.take(event);
      this.#changed();
    };
    const calm = withRareHints(world);
    this.#follower = followGroup(calm, group, onEvent, (failure) => events.onLost(failure));
    // The first frame is complete.
    this.#follower.catchUp();
    this.#unwatch = calm.files.watch(group.paths.folder, () => this.#guarded(() => this.#lookAtProgress()));
    this.#lookAgain(0);
  }

  get state(): GroupState {
    return this.#follower.state ?? this.#group.state;
  }

  /** Read only for a frame that is drawn: it is written more often than anybody can look. */
  get seen(): ProgressView {
    if (this.#runner === 'none') return withoutRunner(this.state, this.#usages(this.state));
    this.#seen ??= readGroupProgress(this.#world, this.#group.paths.progress, this.state);
    return this.#seen;
  }

  get runner(): Runner {
    return this.#runner;
  }

  /** The state after all that is logged. */
  stateNow(): GroupState {
    this.#follower.catchUp();
    return this.state;
  }

  close(): void {
    this.#isOver = true;
    this.#cancel();
    this.#unwatch();
    this.#follower.close();
  }

  #runnerNow(): Runner {
    if (this.#isHere) return 'here';
    return isRun(this.#world, this.#group.paths) ? 'elsewhere' : 'none';
  }

  #lookAgain(delayMs: number): void {
    this.#cancel = this.#world.clock.after(delayMs, () => {
      this.#guarded(() => this.#look());
      if (!this.#isOver) this.#lookAgain(lookEveryMs);
    });
  }

  #look(): void {
    // Asked before the log is read: what a runner logged before it ended is then read for certain.
    const runner = this.#runnerNow();
    if (runner === 'none' && this.#runner !== 'none') this.#follower.catchUp();
    if (runner !== this.#runner) this.#changed();
    this.#runner = runner;
    this.#lookAtProgress();
  }

  #lookAtProgress(): void {
    if (this.#runner === 'none') return;
    const { size = 0, mtimeMs = 0 } = this.#world.files.info(this.#group.paths.progress) ?? {};
    if (mtimeMs === this.#file?.mtimeMs && size === this.#file.size) return;
    this.#file = { size, mtimeMs };
    this.#changed();
  }

  #changed(): void {
    this.#seen = undefined;
    this.#events.onChange();
  }

  #guarded(action: () => void): void {
    if (this.#isOver) return;
    try {
      action();
    } catch (error) {
      this.#events.onTrouble(error);
    }
  }
}

/** Groups file events: reading the log for each costs a watcher as much as all its frames. */
function withRareHints(world: World): World {
  const watch: World['files']['watch'] = (folder, onChange) => {
    let cancel: (() => void) | undefined;
    const end = world.files.watch(folder, () => {
      cancel ??= world.clock.after(gatherMs, () => {
        cancel = undefined;
        onChange();
      });
    });
    return () => {
      cancel?.();
      end();
    };
  };
  return { ...world, files: { ...world.files, watch } };
}

interface FileLook {
  readonly size: number;
  readonly mtimeMs: number;
}

// The end of a session's transcript as people read it, with what the log tells of its attempts and of what the
// user said; kept up to date by looking at the file.

/** How far from its end a transcript is read, bytes. */
const tailBytes = 256 * 1024;
const linesMax = 1_000;
const newline = 0x0a;

export interface LogTail {
  /** Harmless, styled by `colourStyle`. */
  readonly lines: readonly Line[];
  refresh(): void;
}

/** `marks` may grow. */
export function tailLog(world: World, path: string, marks: readonly TranscriptMark[]): LogTail {
  let reading = new Reading(world, path, marks, 0);
  return {
    get lines() {
      return reading.lines;
    },
    refresh() {
      const size = world.files.info(path)?.size ?? 0;
      // A mark may come later than what was printed behind it.
      const isBehind = reading.isPastMark || size < reading.offset || size - reading.offset > tailBytes;
      if (isBehind) reading = new Reading(world, path, marks, Math.max(0, size - tailBytes));
      reading.readTo(size);
    },
  };
}

/** A log opened in full is shown from its beginning if it has at most this many bytes. */
const wholeBytes = 16 * 1024 * 1024;

/** The whole log, as `tailLog` shows the end of it. */
export function wholeLog(world: World, path: string, marks: readonly TranscriptMark[]): readonly Line[] {
  const size = world.files.info(path)?.size ?? 0;
  const reading = new Reading(world, path, marks, Math.max(0, size - wholeBytes), Number.POSITIVE_INFINITY);
  reading.readTo(size);
  return reading.lines;
}

class Reading {
  readonly #world: World;
  readonly #path: string;
  readonly #renderer = new TranscriptRenderer(colourStyle, true);
  readonly #splitter = new LineSplitter();
  readonly #teller: MarkPrinter;
  offset: number;
  lines: Line[] = [];
  readonly #linesMax: number;

  constructor(world: World, path: string, marks: readonly TranscriptMark[], from: number, most = linesMax) {
    this.#world = world;
    this.#linesMax = most;
    this.#path = path;
    this.#teller = new MarkPrinter(marks, (entry) => this.#show(entry));
    this.offset = from;
    if (from === 0) return;
    // The line in whose middle this may be is left out.
    const bytes = world.files.readBytes(path, from, tailBytes);
    const end = bytes.indexOf(newline);
    this.offset += end === -1 ? bytes.length : end + 1;
    this.#teller.skip(this.offset);
  }

  get isPastMark(): boolean {
    const { nextOffset } = this.#teller;
    return nextOffset !== undefined && nextOffset < this.offset;
  }

  readTo(size: number): void {
    this.#teller.reach(this.offset);
    while (this.offset < size) {
      const end = Math.min(size, this.#teller.nextOffset ?? size);
      const bytes = this.#world.files.readBytes(this.#path, this.offset, end - this.offset);
      if (bytes.length === 0) break;
      this.offset += bytes.length;
      for (const line of this.#splitter.push(bytes)) for (const entry of this.#renderer.read(line)) this.#show(entry);
      this.#teller.reach(this.offset);
    }
    this.#teller.printEnd();
    if (this.lines.length > this.#linesMax) this.lines = this.lines.slice(-this.#linesMax);
  }

  #show(entry: TranscriptEntry): void {
    this.lines.push(...this.#renderer.show(entry));
  }
}
