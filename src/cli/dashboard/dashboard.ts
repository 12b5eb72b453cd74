/** cli/dashboard/: the live dashboard. This file: takes state from a source, draws frames, obeys keys. */
import { diffOf } from '../../app/delivery/work-diff.ts';
import { type GroupReference, sessionPaths } from '../../app/resolve.ts';
import type { RunnerSignal } from '../../app/signals.ts';
import { ChangeCounts } from '../../app/watch/change-counts.ts';
import { runningSetup, samplesByGroup, samplesOf } from '../../app/watch/live-view.ts';
import { commandText } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { describeFailure, errorText } from '../../core/failure.ts';
import type { GroupId, SessionId } from '../../core/group.ts';
import { costHistory, remainingMs, type Sample } from '../../core/plan/preview.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import type { World } from '../../system/world.ts';
import type { KeyCommand } from '../../tui/dashboard/actions.ts';
import { hourlyUsd } from '../../tui/dashboard/attempts.ts';
import { type Frame, frameOf } from '../../tui/dashboard/frame.ts';
import { type Press, press } from '../../tui/dashboard/keys.ts';
import { firstUi, paneShape, type Ui } from '../../tui/dashboard/ui.ts';
import { type Diff, type Notice, reasoned, type SessionDetails } from '../../tui/dashboard/view.ts';
import { type Painted, paintLayout } from '../../tui/layout.ts';
import { colourStyle, plural } from '../../view/format.ts';
import { diffLines } from '../../view/terminal-text.ts';
import { titleOf } from '../../view/wording.ts';
import { statWords } from '../commands/diff.ts';
import type { Context } from '../context.ts';
import { type GroupCommand, grant, requestText } from './ask-group.ts';
import type { OpenScreen, Screen, ScreenStyle } from './screen.ts';
import { type LogTail, type Source, tailLog } from './source.ts';
import { TerminalHandoff } from './terminal-handoff.ts';

/** Minimum time between two frames, milliseconds. Keys are answered at once. */
const frameMs = 300;
/** Without events, clocks, logs and reasons are updated this often, milliseconds. */
const tickMs = 500;
/** The rate of spending is computed this often, milliseconds. */
const paceMs = 1_000;
/** Garbage collection takes at most this fraction of the time. */
const tidyPauses = 50;

export interface DashboardOptions extends ScreenStyle {
  readonly context: Context;
  readonly group: GroupReference;
  readonly source: Source;
  readonly openScreen: OpenScreen;
  onQuit(): void;
  onLeave(): void;
  onInterrupt(): void;
  onTrouble(error: unknown): void;
}

export class Dashboard {
  readonly #options: DashboardOptions;
  readonly #world: World;
  readonly #screen: Screen;
  #ui: Ui = firstUi;
  #frame: Frame;
  readonly #toasts: Notifications;
  #pace: { readonly atMs: number; readonly perHourUsd: number | null } | undefined;
  #tail: (LogTail & { readonly sessionId: SessionId }) | undefined;
  readonly #diffs: DiffView;
  readonly #changes: ChangeCounts;
  readonly #forecaster: Forecaster;
  readonly #away: TerminalHandoff;
  #cancelFrame: (() => void) | undefined;
  #cancelTick = (): void => {};
  #tidyAtMs = 0;
  #isClosed = false;

  constructor(options: DashboardOptions) {
    this.#options = options;
    this.#world = options.context.world;
    const { root, groupId } = options.group;
    this.#toasts = new Notifications(this.#world, options.source.state, () => this.changed());
    this.#forecaster = new Forecaster(this.#world, root, groupId);
    this.#diffs = new DiffView(options, () => this.changed());
    this.#changes = new ChangeCounts(options.context, options.group);
    const tell = (notice: Notice): void => this.tell(notice);
    const { context, group, source } = options;
    this.#away = new TerminalHandoff({ context, group, source, tell, lend: (use) => this.#screen.lend(use) });
    const size = { columns: process.stdout.columns ?? 80, rows: process.stdout.rows ?? 24 };
    this.#frame = this.#make(size);
    this.#screen = options.openScreen(this.#paint(), {
      onPress: (key) => this.#guarded(() => this.#press(key)),
      onResize: () => this.#guarded(() => this.#draw()),
      onTrouble: options.onTrouble,
    });
    this.#tick();
  }

  /** Schedules a frame. */
  changed(): void {
    if (this.#isClosed || this.#cancelFrame !== undefined) return;
    this.#cancelFrame = this.#world.clock.after(frameMs, () => {
      this.#cancelFrame = undefined;
      this.#guarded(() => this.#draw());
    });
  }

  tell(notice: Notice): void {
    if (this.#isClosed) return;
    this.#toasts.put('key', notice);
    this.#guarded(() => this.#draw());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelFrame?.();
    this.#cancelTick();
    this.#toasts.close();
    this.#forecaster.close();
    // An open editor or pager is closed first.
    await this.#away.close();
    await this.#screen.close();
  }

  #guarded(action: () => void): void {
    if (this.#isClosed) return;
    try {
      action();
    } catch (error) {
      this.#options.onTrouble(error);
    }
  }

  #tick(): void {
    this.#cancelTick = this.#world.clock.after(tickMs, () => {
      this.#guarded(() => {
        const { state, notes } = this.#options.source;
        this.#changes.refresh(state, notes.workspaces, () => this.changed());
        this.changed();
        this.#tidy();
      });
      if (!this.#isClosed) this.#tick();
    });
  }

  /** Each frame allocates megabytes, and a dashboard is open all night. */
  #tidy(): void {
    const { source } = this.#options;
    const beginMs = this.#world.clock.now();
    if (source.runner === 'here' || beginMs < this.#tidyAtMs) return;
    Bun.gc(true);
    const nowMs = this.#world.clock.now();
    this.#tidyAtMs = nowMs + (nowMs - beginMs) * tidyPauses;
  }

  #draw(): void {
    if (this.isAway) return;
    // More output would slow a slow terminal further.
    if (!this.#screen.isReady) {
      this.changed();
      return;
    }
    this.#frame = this.#make(this.#screen);
    this.#screen.show(this.#paint());
    if (this.#frame.isTurning) this.changed();
  }

  #make(size: Pick<Screen, 'columns' | 'rows'>): Frame {
    const { selected } = this.#ui;
    const frame = this.#lookOnce(size);
    this.#ui = frame.ui;
    // What a filter has chosen has details of its own.
    return frame.ui.selected === selected ? frame : this.#lookOnce(size);
  }

  #lookOnce({ columns, rows }: Pick<Screen, 'columns' | 'rows'>): Frame {
    const { source, group, glyphs } = this.#options;
    const nowMs = this.#world.clock.now();
    const { state, runner } = source;
    const material = this.#material(columns);
    const remainingMs = state.status === 'running' && runner !== 'none' ? this.#forecaster.remaining(state) : null;
    const view = {
      state,
      ...source.seen,
      runner,
      nowMs,
      attempts: source.notes.attempts,
      changes: this.#changes.counts,
      perHourUsd: this.#paceAt(nowMs),
      ...(remainingMs === null ? {} : { remainingMs }),
      setupLog: (record: SessionRecord) => runningSetup(this.#world, group.paths, record),
      notices: this.#toasts.of(state),
      ...defined({ material }),
    };
    return frameOf(view, this.#ui, { columns, rows, glyphs });
  }

  #paceAt(nowMs: number): number | null {
    if (this.#pace === undefined || Math.abs(nowMs - this.#pace.atMs) >= paceMs) {
      const { seen, notes } = this.#options.source;
      const { live } = seen;
      this.#pace = { perHourUsd: hourlyUsd(notes.attempts, live, nowMs), atMs: nowMs };
    }
    return this.#pace.perHourUsd;
  }

  #paint(): Painted {
    return paintLayout(this.#frame, this.#options.paint, this.#options.glyphs);
  }

  #material(columns: number): SessionDetails | undefined {
    const { tab, selected } = this.#ui;
    const { source, group } = this.#options;
    const shape = paneShape(this.#ui, columns);
    if (shape === 'none' || selected === null || !source.state.sessions.has(selected)) return undefined;
    if (tab === 'log' || tab === 'now') {
      if (this.#tail?.sessionId !== selected) {
        const { transcript } = sessionPaths(group.paths, selected);
        const marks = source.notes.marks.listOf(selected);
        this.#tail = Object.assign(tailLog(this.#world, transcript, marks), { sessionId: selected });
      }
      this.#tail.refresh();
    }
    const diff = tab === 'diff' ? this.#diffs.of(selected) : undefined;
    return {
      sessionId: selected,
      log: this.#tail?.sessionId === selected ? this.#tail.lines : [],
      attempts: source.notes.attempts.get(selected) ?? [],
      ...defined({ diff }),
    };
  }

  #press(key: Press): void {
    const { source } = this.#options;
    const { ids, index, listRows, paneRows, shape, hit } = this.#frame;
    const situation = { state: source.state, ids, index, listRows, paneRows, shape, hit, runner: source.runner };
    const { ui, command } = press(this.#ui, key, situation);
    this.#ui = ui;
    this.#draw();
    if (command !== undefined) this.#obey(command);
  }

  #obey(command: KeyCommand): void {
    const { onQuit, onLeave, onInterrupt, onTrouble } = this.#options;
    switch (command.do) {
      case 'quit':
        onQuit();
        break;
      case 'leave':
        onLeave();
        break;
      case 'interrupt':
        onInterrupt();
        break;
      case 'redraw':
        this.#screen.redraw();
        break;
      case 'mouse':
        this.#screen.setMouse(command.isOn);
        this.tell({
          text: command.isOn
            ? 'The mouse controls the dashboard again.'
            : 'The mouse selects text. Press m to end that.',
        });
        break;
      case 'suspend':
        this.#screen.suspend().catch(onTrouble);
        break;
      case 'open':
      case 'review':
      case 'attach':
      case 'edit':
        this.#away.begin(command).then((notice) => notice === null || this.tell(notice), onTrouble);
        break;
      case 'tell':
        this.tell({ text: command.message, tone: 'warn' });
        break;
      default:
        this.#ask(command);
    }
  }

  /** Whether another program has the terminal. Keys, including Ctrl-C, are then not for this program. */
  get isAway(): boolean {
    return this.#away.isNow;
  }

  recall(): void {
    this.#away.recall();
  }

  #ask(command: GroupCommand): void {
    const { context, group, source, onTrouble } = this.#options;
    this.tell(requestText(source.state, command));
    const tell = (notice: Notice): void => this.tell(notice);
    grant(context, group, source.state, command, tell).then(tell, onTrouble);
  }
}

/** Whether this program handles a signal: a Ctrl-C belongs to the program that has the terminal. */
export function hears(dashboard: Pick<Dashboard, 'isAway' | 'recall'>, signal: RunnerSignal): boolean {
  if (dashboard.isAway && signal === 'SIGINT') return false;
  dashboard.recall();
  return true;
}

/** Pause between reading the logs of two groups, in milliseconds, so that keys are handled meanwhile. */
const restMs = 50;
/** A forecast covers minutes, so it is not computed for every frame. */
const keptMs = 5_000;

export class Forecaster {
  readonly #world: World;
  readonly #samples: Sample[] = [];
  #cancel = (): void => {};
  #last: { readonly atMs: number; readonly remainingMs: number | null } | undefined;

  constructor(world: World, root: string, own: GroupId) {
    this.#world = world;
    const groups = samplesByGroup(world, root, own);
    const readOne = (): void => {
      const { value, done } = groups.next();
      if (done) return;
      this.#samples.push(...value);
      this.#cancel = world.clock.after(restMs, readOne);
    };
    this.#cancel = world.clock.after(restMs, readOne);
  }

  remaining(state: GroupState): number | null {
    const nowMs = this.#world.clock.now();
    if (this.#last === undefined || Math.abs(nowMs - this.#last.atMs) >= keptMs) {
      const history = costHistory([...this.#samples, ...samplesOf(state)]);
      this.#last = { atMs: nowMs, remainingMs: remainingMs(state, history, nowMs) };
    }
    return this.#last.remainingMs;
  }

  close(): void {
    this.#cancel();
  }
}

const shownMs = 8_000;
/** More failures at once become one notice with their number. */
const separateNoticesMax = 2;

interface Toast {
  readonly notice: Notice;
  cancel(): void;
}

export class Notifications {
  readonly #world: World;
  readonly #onChange: () => void;
  /** By what they are about: the next one about the same takes its place. */
  readonly #shown = new Map<string, Toast>();
  #failed: ReadonlySet<SessionId>;

  constructor(world: World, { failed }: GroupState, onChange: () => void) {
    this.#world = world;
    this.#failed = new Set(failed);
    this.#onChange = onChange;
  }

  put(about: string, notice: Notice): void {
    this.#shown.get(about)?.cancel();
    this.#shown.delete(about);
    // Not by the time of day, which may be set back.
    const cancel = this.#world.clock.after(shownMs, () => {
      this.#shown.delete(about);
      this.#onChange();
    });
    this.#shown.set(about, { notice, cancel });
  }

  /** All that are to be seen now, the newest last; tells of what has failed since it was asked last. */
  of(state: GroupState): readonly Notice[] {
    const fresh = [...state.failed].filter((id) => !this.#failed.has(id));
    this.#failed = new Set(state.failed);
    if (fresh.length > separateNoticesMax)
      this.put('failed', { text: `${plural(fresh.length, 'session')} failed.`, tone: 'bad' });
    else for (const id of fresh) this.put(id, failureOf(state, id));
    return [...this.#shown.values()].map(({ notice }) => notice);
  }

  close(): void {
    for (const { cancel } of this.#shown.values()) cancel();
    this.#shown.clear();
  }
}

function failureOf(state: GroupState, id: SessionId): Notice {
  const session = state.sessions.get(id)?.state;
  const why = session?.status === 'failed' ? ` ${reasoned(session.failure.reason, session.failure.message)}` : '';
  return { text: `${titleOf(state, id)} failed.${why}`, tone: 'bad' };
}

/** The diff of a running session is read again after this time, milliseconds. */
const staleMs = 3_000;
/** A large difference is for `group diff`. */
const charactersMax = 256 * 1024;

interface Around {
  readonly context: Context;
  readonly group: GroupReference;
  readonly source: Source;
}

interface Looked {
  readonly sessionId: SessionId;
  readonly atMs: number;
  /** Of the session's last event then. */
  readonly seq: number;
  readonly diff: Diff;
}

export class DiffView {
  readonly #around: Around;
  readonly #onChange: () => void;
  #last: Looked | undefined;
  #isLooking = false;

  constructor(around: Around, onChange: () => void) {
    this.#around = around;
    this.#onChange = onChange;
  }

  /** As it was seen last; undefined before that. Looks again where it may be out of date. */
  of(sessionId: SessionId): Diff | undefined {
    const known = this.#last?.sessionId === sessionId ? this.#last : undefined;
    if (!this.#isLooking && this.#isStale(known, sessionId)) this.#look(sessionId);
    return known?.diff;
  }

  #isStale(known: Looked | undefined, sessionId: SessionId): boolean {
    if (known === undefined) return true;
    const { context, source } = this.#around;
    const isRunning = source.state.sessions.get(sessionId)?.state.status === 'running';
    if (!isRunning && known.seq === source.state.lastSeq) return false;
    return Math.abs(context.world.clock.now() - known.atMs) >= staleMs;
  }

  #look(sessionId: SessionId): void {
    this.#isLooking = true;
    const seq = this.#around.source.state.lastSeq;
    const keep = (diff: Diff): void => {
      this.#isLooking = false;
      this.#last = { sessionId, atMs: this.#around.context.world.clock.now(), seq, diff };
      this.#onChange();
    };
    this.#read(sessionId).then(keep, (error) => keep({ lines: [], summary: errorText(error) }));
  }

  async #read(sessionId: SessionId): Promise<Diff> {
    const { context, group, source } = this.#around;
    const { state, runner, notes } = source;
    const record = state.sessions.get(sessionId);
    if (record === undefined) return { lines: [], summary: 'The session was removed.' };
    const session = { ...group, state, hadRunner: runner !== 'none', sessionId, record };
    const diff = await diffOf(context, session, notes.workspaces.get(sessionId), {});
    if (!diff.ok) return { lines: [], summary: describeFailure(diff.failure) };
    const { text = '', gone } = diff.value;
    const isCut = text.length > charactersMax;
    const shown = text === '' ? [] : diffLines(text.slice(0, charactersMax), colourStyle);
    const rest = isCut ? ` The rest is shown by: ${commandText(['group', 'diff', group.groupId])}` : '';
    return { lines: shown, summary: [`${statWords(diff.value)}.`, gone ?? '', rest].join(' ').trim() };
  }
}
