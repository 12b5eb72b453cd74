/**
 * cli/home/: the home screen over all groups, when the program is started on a terminal without a command. This file:
 * it takes what is on disk, draws frames, and carries out what keys ask for.
 */
import { onSignal, type RunnerSignal } from '../../app/signals.ts';
import type { HomeGroup, HomeWorkflow } from '../../app/watch/overview.ts';
import { homeGroups, homeWorkflows } from '../../app/watch/overview.ts';
import { defined } from '../../core/defined.ts';
import { programName } from '../../core/program-name.ts';
import type { Press } from '../../tui/dashboard/keys.ts';
import { type Paint, paintRow } from '../../tui/dashboard/paint.ts';
import type { Notice } from '../../tui/dashboard/view.ts';
import { type HomeFrame, homeFrame } from '../../tui/home/frame.ts';
import { firstHomeUi, type HomeCommand, type HomeUi, pressHome } from '../../tui/home/keys.ts';
import type { Context } from '../context.ts';
import { type Look, loadScreen, lookOf, type OpenScreen, type Screen } from '../dashboard/screen.ts';

/** Ages and costs go on without any key, milliseconds. */
const tickMs = 1_000;
/** Looking at all groups takes no more than one part in so many of the time. */
const lookPauses = 20;

export type HomeEnd =
  | { readonly by: 'command'; readonly command: Extract<HomeCommand, { do: 'open' | 'delete' | 'start' | 'quit' }> }
  | { readonly by: 'signal'; readonly signal: RunnerSignal }
  | { readonly by: 'trouble'; readonly error: unknown };

export interface HomeMemory {
  readonly ui: HomeUi;
  readonly notice?: Notice;
}

export const firstMemory: HomeMemory = { ui: firstHomeUi };

export async function showHome(
  context: Context,
  root: string,
  memory: HomeMemory,
): Promise<{ readonly end: HomeEnd; readonly memory: HomeMemory }> {
  const openScreen = await loadScreen(context.world);
  const { promise, resolve } = Promise.withResolvers<HomeEnd>();
  const unsubscribe = onSignal(context.world.clock, (signal) => resolve({ by: 'signal', signal }));
  context.stdout.onClosed(() => resolve({ by: 'command', command: { do: 'quit' } }));
  let home: Home | undefined;
  try {
    home = new Home({ context, root, openScreen, memory, resolve });
    const end = await promise;
    return { end, memory: { ui: home.ui } };
  } finally {
    await home?.close();
    unsubscribe();
  }
}

interface HomeOptions {
  readonly context: Context;
  readonly root: string;
  readonly openScreen: OpenScreen;
  readonly memory: HomeMemory;
  resolve(end: HomeEnd): void;
}

class Home {
  readonly #options: HomeOptions;
  readonly #look: Look;
  #paintFor: Paint;
  readonly #screen: Screen;
  readonly #workflows: readonly HomeWorkflow[];
  #groups: readonly HomeGroup[];
  #notice: Notice | undefined;
  #frame: HomeFrame;
  #cancel = (): void => {};
  #isClosed = false;
  ui: HomeUi;

  constructor(options: HomeOptions) {
    const { context, root, memory } = options;
    this.#options = options;
    this.#look = lookOf(context);
    this.#paintFor = this.#look.paint;
    this.#groups = homeGroups(context, root);
    this.#workflows = homeWorkflows(context);
    this.#notice = memory.notice;
    this.ui = memory.ui;
    this.#frame = this.#make({ columns: process.stdout.columns ?? 80, rows: process.stdout.rows ?? 24 });
    this.#screen = options.openScreen(this.#paint(), {
      asksBackground: this.#look.asksBackground,
      onBackground: (background) => {
        this.#paintFor = background;
        this.#guarded(() => this.#draw());
      },
      onPress: (press) => this.#guarded(() => this.#press(press)),
      onResize: () => this.#guarded(() => this.#draw()),
      onTrouble: (error) => options.resolve({ by: 'trouble', error }),
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
      this.#options.resolve({ by: 'trouble', error });
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
    return { lines: this.#frame.rows.map((row) => paintRow(row, this.#paintFor)) };
  }

  #draw(): void {
    // A terminal that lags behind would only lag more.
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
        this.#screen.suspend().catch((error: unknown) => this.#options.resolve({ by: 'trouble', error }));
        return;
      case 'tell':
        this.#notice = { text: command.message, tone: 'warn' };
        this.#draw();
        return;
      default:
        this.#options.resolve({ by: 'command', command });
    }
  }
}
