/** Runs the home screen, which lists all groups and opens their dashboards. */

import { createNewGroup } from '../../app/create/new-group.ts';
import { readWorkflow } from '../../app/create/workflow-group.ts';
import { whileBusy } from '../../app/live-runner.ts';
import { groupReference, loadReferredGroup } from '../../app/resolve.ts';
import { startDetached } from '../../app/run/detach.ts';
import { onSignal, type RunnerSignal } from '../../app/signals.ts';
import { type HomeGroup, type HomeWorkflow, homeGroups, homeWorkflows } from '../../app/watch/overview.ts';
import { defined } from '../../core/defined.ts';
import { describeFailure } from '../../core/failure.ts';
import type { GroupId } from '../../core/group.ts';
import { programName } from '../../core/program-name.ts';
import type { Press } from '../../tui/dashboard/keys.ts';
import type { Notice } from '../../tui/dashboard/view.ts';
import {
  firstHomeUi,
  type HomeCommand,
  type HomeFrame,
  type HomeUi,
  homeFrame,
  pressHome,
} from '../../tui/home/home.ts';
import { paintLayout } from '../../tui/layout.ts';
import { deleteGroups } from '../commands/group/remove.ts';
import { attempt, type CommandResult, type Context, need, refuse, refuseWith } from '../context.ts';
import { endBy, watchedOnScreen } from '../dashboard/display.ts';
import { loadScreen, type OpenScreen, type Screen, type ScreenStyle, screenStyle } from '../dashboard/screen.ts';
import { createOutput } from '../output.ts';

export async function runHome(context: Context): Promise<CommandResult> {
  const root = need(context.root());
  let ui = firstHomeUi;
  let notice: Notice | undefined;
  for (;;) {
    const shown = await showHome(context, root, ui, notice);
    const { end } = shown;
    if (end.do === 'signal') return endBy(context, end.signal);
    if (end.do === 'quit') return;
    ui = shown.ui;
    const done = await attempt(() => perform(context, root, end));
    if (!done.ok) {
      notice = { text: describeFailure(done.failure).replaceAll(/\s+/g, ' '), tone: 'bad' };
      continue;
    }
    const { text, selected = ui.selected, signal } = done.value;
    if (signal !== undefined) return endBy(context, signal);
    ui = { ...ui, selected };
    notice = text === undefined ? undefined : { text, tone: 'good' };
  }
}

interface Performed {
  readonly text?: string;
  readonly selected?: GroupId;
  readonly signal?: RunnerSignal;
}

async function perform(
  context: Context,
  root: string,
  command: Exclude<HomeEnd, { do: 'quit' | 'signal' }>,
): Promise<Performed> {
  if (command.do === 'delete') return remove(context, command.id);
  const id = 'id' in command ? command.id : await start(context, root, command.reference, command.rehearse);
  const end = await watchedOnScreen(context, need(loadReferredGroup(context, id)));
  if (end.by === 'loss') return refuseWith(end.failure);
  return end.by === 'signal' ? { signal: end.signal } : { selected: id };
}

async function remove(context: Context, id: GroupId): Promise<Performed> {
  const { quiet, lines } = captureOutput(context);
  await deleteGroups(quiet, [id], { yes: true }, () => ({}));
  return { text: lines().at(-1) ?? 'Deleted.' };
}

async function start(context: Context, root: string, reference: string, rehearse: boolean): Promise<GroupId> {
  const { quiet } = captureOutput(context);
  const described = need(await readWorkflow(quiet, reference, []));
  const created = need(createNewGroup(quiet, root, described));
  const { id } = created.group;
  const group = groupReference(root, id);
  const options = { config: {}, retryFailed: false, rehearse: rehearse ? true : undefined } as const;
  const started = need(await whileBusy(context, 'Starting the runner', () => startDetached(quiet, group, options)));
  if (started.kind === 'running') return id;
  return refuse('usage', started.lines.join(' '), '');
}

/** Collects what a command prints, because the screen must not be written to. */
function captureOutput(context: Context) {
  const parts: string[] = [];
  const stream = {
    on: () => {},
    write(data: string | Uint8Array, done: () => void) {
      parts.push(typeof data === 'string' ? data : new TextDecoder().decode(data));
      done();
    },
  };
  const output = createOutput(stream, context.env);
  const properties = { stdout: { value: output }, stderr: { value: output }, notes: { value: output } };
  const quiet = Object.create(context, properties) as Context;
  const lines = (): string[] =>
    parts
      .join('')
      .split('\n')
      .filter((line) => line.trim() !== '');
  return { quiet, lines };
}

/** Ages and costs are refreshed without input, milliseconds. */
const tickMs = 1_000;
/** Reading all groups takes at most this fraction of the time (one in n). */
const lookPauses = 20;

type HomeEnd =
  | Extract<HomeCommand, { do: 'open' | 'delete' | 'start' | 'quit' }>
  | { readonly do: 'signal'; readonly signal: RunnerSignal };

async function showHome(context: Context, root: string, ui: HomeUi, notice: Notice | undefined) {
  const openScreen = await loadScreen(context.world);
  const { promise, resolve, reject } = Promise.withResolvers<HomeEnd>();
  const unsubscribe = onSignal(context.world.clock, (signal) => resolve({ do: 'signal', signal }));
  context.stdout.onClosed(() => resolve({ do: 'quit' }));
  let home: Home | undefined;
  try {
    home = new Home({ context, root, openScreen, resolve, onTrouble: reject }, ui, notice);
    const end = await promise;
    return { end, ui: home.ui };
  } finally {
    await home?.close();
    unsubscribe();
  }
}

interface HomeOptions {
  readonly context: Context;
  readonly root: string;
  readonly openScreen: OpenScreen;
  resolve(end: HomeEnd): void;
  onTrouble(error: unknown): void;
}

class Home {
  readonly #options: HomeOptions;
  readonly #look: ScreenStyle;
  readonly #screen: Screen;
  readonly #workflows: readonly HomeWorkflow[];
  #groups: readonly HomeGroup[];
  #notice: Notice | undefined;
  #frame: HomeFrame;
  #cancel = (): void => {};
  #isClosed = false;
  ui: HomeUi;

  constructor(options: HomeOptions, ui: HomeUi, notice: Notice | undefined) {
    const { context, root } = options;
    this.#options = options;
    this.#look = screenStyle(context);
    this.#groups = homeGroups(context, root);
    this.#workflows = homeWorkflows(context);
    this.#notice = notice;
    this.ui = ui;
    this.#frame = this.#make({ columns: process.stdout.columns ?? 80, rows: process.stdout.rows ?? 24 });
    this.#screen = options.openScreen(this.#paint(), {
      onPress: (press) => this.#guarded(() => this.#press(press)),
      onResize: () => this.#guarded(() => this.#draw()),
      onTrouble: options.onTrouble,
    });
    this.#tick(tickMs);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
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

  #tick(delayMs: number): void {
    const { context, root } = this.#options;
    const { clock } = context.world;
    this.#cancel = clock.after(delayMs, () => {
      this.#guarded(() => {
        const beginMs = clock.now();
        this.#groups = homeGroups(context, root);
        this.#draw();
        this.#tick(Math.max(tickMs, (clock.now() - beginMs) * lookPauses));
      });
    });
  }

  #make({ columns, rows }: Pick<Screen, 'columns' | 'rows'>): HomeFrame {
    const view = {
      groups: this.#groups,
      workflows: this.#workflows,
      programName,
      nowMs: this.#options.context.world.clock.now(),
      ...defined({ notice: this.#notice }),
    };
    const frame = homeFrame(view, this.ui, { columns, rows, glyphs: this.#look.glyphs });
    this.ui = frame.ui;
    return frame;
  }

  #paint() {
    return paintLayout(this.#frame, this.#look.paint, this.#look.glyphs);
  }

  #draw(): void {
    // Skip frames for a slow terminal.
    if (!this.#screen.isReady) return;
    this.#frame = this.#make(this.#screen);
    this.#screen.show(this.#paint());
  }

  #press(press: Press): void {
    const { groups, index, listRows } = this.#frame;
    this.#notice = undefined;
    const { ui, command } = pressHome(this.ui, press, { groups, workflows: this.#workflows, index, listRows });
    this.ui = ui;
    this.#draw();
    if (command === undefined) return;
    switch (command.do) {
      case 'redraw':
        this.#screen.redraw();
        return;
      case 'suspend':
        this.#screen.suspend().catch(this.#options.onTrouble);
        return;
      case 'tell':
        this.#notice = { text: command.message, tone: 'warn' };
        this.#draw();
        return;
      default:
        this.#options.resolve(command);
    }
  }
}
