/** The terminal while a screen is on it, and that all of it is given back. Only here ink and react are loaded. */
import type { ReactNode } from 'react';
import { delay } from '../../system/clock.ts';
import type { World } from '../../system/world.ts';
import type { AppOptions, Store } from '../../tui/app.ts';
import { asciiGlyphs, type Glyphs, type Paint, unicodeGlyphs } from '../../tui/dashboard/cells.ts';
import type { MousePress, Press } from '../../tui/dashboard/keys.ts';
import { MouseReports } from '../../tui/dashboard/terminal-input.ts';
import type { Painted } from '../../tui/layout.ts';
import { plainStyle } from '../../view/format.ts';
import type { Context } from '../context.ts';

/** Rows are cut to the width; a terminal that measures a character wider must not break them into two. */
const wrapOff = '\u001b[?7l';
/** Before ink draws, which begins where the cursor stands: the alternate screen takes that over. */
const enter = `\u001b[?1049h\u001b[H${wrapOff}`;
/** Clicks and the wheel in decimal numbers (SGR), for any column. */
const mouseOn = '\u001b[?1000h\u001b[?1006h';
const mouseOff = '\u001b[?1006l\u001b[?1000l';
const wrapOn = '\u001b[?7h';
/** The end of a frame, bracketed paste and the alternate screen off, the cursor shown: what ink turns around. */
const inkOff = '\u001b[?2026l\u001b[?2004l\u001b[?1049l\u001b[?25h';
/** The libraries that draw, in a line of a stack. */
const drawing = /[\\/]node_modules[\\/](?:ink|react|react-reconciler)[\\/]/;
const framesPerSecond = 10;
/** A terminal with more unsent output gets no new frame, bytes. */
const unsentMax = 64 * 1024;
/** Ctrl-Z does not stop a process without a shell, and no SIGCONT follows: wait only this long, milliseconds. */
const stoppedWaitMs = 250;

export interface Screen {
  readonly columns: number;
  readonly rows: number;
  readonly isReady: boolean;
  show(painted: Painted): void;
  setMouse(isOn: boolean): void;
  redraw(): void;
  lend(use: () => Promise<void>): Promise<void>;
  suspend(): Promise<void>;
  close(): Promise<void>;
}

export interface ScreenEvents {
  onPress(press: Press): void;
  onResize(): void;
  /** What draws broke; the screen is closed already. */
  onTrouble(error: unknown): void;
}

export type OpenScreen = (first: Painted, events: ScreenEvents) => Screen;

type AppModule = typeof import('../../tui/app.ts');
type InkModule = typeof import('ink');
type Suspend = Parameters<AppOptions['onSuspendable']>[0];

export async function loadScreen(world: World): Promise<OpenScreen> {
  const ink = await asProduction(() => import('ink'));
  const app = await asProduction(() => import('../../tui/app.ts'));
  return (first, events) => new TerminalScreen(world, { app, ink }, first, events);
}

/** React looks at NODE_ENV when it is loaded, and ink at DEV. Workers inherit our environment: it is put back. */
export async function asProduction<T>(action: () => Promise<T>): Promise<T> {
  const restore = [setVariable('NODE_ENV', 'production'), setVariable('DEV', undefined)];
  try {
    return await action();
  } finally {
    for (const undo of restore) undo();
  }
}

/** By a name that is not written out, for what is compiled holds its own value for `process.env.NODE_ENV`. */
function setVariable(name: 'NODE_ENV' | 'DEV', value: string | undefined): () => void {
  const { env } = process;
  const before = env[name];
  const set = (to: string | undefined) => {
    if (to === undefined) delete env[name];
    else env[name] = to;
  };
  set(value);
  return () => set(before);
}

class TerminalScreen implements Screen {
  readonly #world: World;
  readonly #events: ScreenEvents;
  readonly #store: FrameStore;
  readonly #instance: ReturnType<InkModule['render']>;
  readonly #ended: Promise<void>;
  readonly #abandoned = Promise.withResolvers<void>();
  #suspend: Suspend | undefined;
  #hasMouse = true;
  #isClosed = false;

  constructor(world: World, { app, ink }: { app: AppModule; ink: InkModule }, first: Painted, events: ScreenEvents) {
    this.#world = world;
    this.#events = events;
    this.#store = new FrameStore(first);
    const { stdout, stdin } = process;
    // Before ink's own: it then draws what fits the new size.
    stdout.on('resize', this.#onResize);
    // The terminal is gone; the signal that says so, or the output, ends the program.
    stdin.on('error', ignore);
    // Before the first frame, because the user may press a key as soon as it appears.
    stdin.setRawMode(true);
    process.on('SIGTSTP', this.#onStop);
    process.on('exit', restoreModes);
    process.on('uncaughtException', this.#onUncaught);
    process.on('unhandledRejection', this.#onUncaught);
    const node = app.createApp({
      store: this.#store,
      onPress: (press) => events.onPress(press),
      onSuspendable: (suspend) => {
        this.#suspend = suspend;
      },
    });
    stdout.write(enter + mouseOn);
    this.#instance = this.#render(ink, node);
    this.#ended = this.#instance.waitUntilExit().then(ignore, (error: unknown) => {
      this.#release();
      events.onTrouble(error);
    });
  }

  #render(ink: InkModule, node: ReactNode): ReturnType<InkModule['render']> {
    const { stdout, stdin } = process;
    const restoreDev = setVariable('DEV', undefined);
    try {
      return ink.render(node, {
        stdout,
        stdin: withoutMouse(stdin, (press) => this.#events.onPress(press)),
        alternateScreen: true,
        incrementalRendering: true,
        maxFps: framesPerSecond,
        exitOnCtrlC: false,
        patchConsole: false,
        // The caller has looked; what a build server sets is no reason to draw nothing.
        interactive: true,
      });
    } catch (error) {
      this.#release();
      giveBack();
      throw error;
    } finally {
      restoreDev();
    }
  }

  get columns(): number {
    return process.stdout.columns ?? 80;
  }

  get rows(): number {
    return process.stdout.rows ?? 24;
  }

  get isReady(): boolean {
    return process.stdout.writableLength <= unsentMax;
  }

  show(painted: Painted): void {
    this.#store.set(painted);
  }

  setMouse(isOn: boolean): void {
    this.#hasMouse = isOn;
    process.stdout.write(isOn ? mouseOn : mouseOff);
  }

  redraw(): void {
    this.#instance.clear();
    this.#store.set({ ...this.#store.current() });
  }

  suspend(): Promise<void> {
    return this.lend(() => stopHere(this.#world));
  }

  async lend(use: () => Promise<void>): Promise<void> {
    if (this.#isClosed || this.#suspend === undefined) return;
    await this.#suspend(async () => {
      restoreModes();
      process.off('SIGTSTP', this.#onStop);
      await stopReading(this.#world);
      try {
        await use();
      } finally {
        process.on('SIGTSTP', this.#onStop);
        process.stdout.write(this.#hasMouse ? enter + mouseOn : enter);
      }
    });
    // The window may have been resized while this program was suspended.
    this.#events.onResize();
  }

  async close(): Promise<void> {
    this.#end();
    await Promise.race([this.#ended, this.#abandoned.promise]);
  }

  #end(): void {
    if (this.#isClosed) return;
    this.#release();
    try {
      this.#instance.unmount();
    } catch {
      // It draws once more before it goes, and if that is what broke, it never goes.
      giveBack();
      process.on('uncaughtException', onLate);
      this.#abandoned.resolve();
    }
  }

  #release(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    process.stdout.off('resize', this.#onResize);
    process.off('SIGTSTP', this.#onStop);
    process.off('exit', restoreModes);
    process.off('uncaughtException', this.#onUncaught);
    process.off('unhandledRejection', this.#onUncaught);
    restoreModes();
  }

  readonly #onResize = (): void => this.#events.onResize();

  readonly #onStop = (): void => {
    this.suspend().catch(this.#events.onTrouble);
  };

  /** ink draws in timers, so a caller cannot catch its errors. They are reported to the owner of the screen. */
  readonly #onUncaught = (error: unknown): void => {
    this.#end();
    if (isOfDrawing(error)) this.#events.onTrouble(error);
    else throwUncaught(error);
  };
}

/** The terminal's input without its reports of the mouse. */
function withoutMouse(stdin: typeof process.stdin, onPress: (press: MousePress) => void): typeof process.stdin {
  const reports = new MouseReports(onPress);
  const read = (size?: number): unknown => {
    const chunk: unknown = stdin.read(size);
    return typeof chunk === 'string' ? reports.take(chunk) : chunk;
  };
  return new Proxy(stdin, {
    get(target, name) {
      if (name === 'read') return read;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

function ignore(): void {}

function isOfDrawing(error: unknown): boolean {
  return error instanceof Error && drawing.test(error.stack ?? '');
}

function throwUncaught(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

/** Errors of frames that ink had scheduled before it was abandoned. */
function onLate(error: unknown): void {
  if (isOfDrawing(error)) return;
  process.off('uncaughtException', onLate);
  throwUncaught(error);
}

/** What ink does when it goes, without ink. */
function giveBack(): void {
  const { stdin, stdout } = process;
  stdout.removeAllListeners('resize');
  stdin.removeAllListeners('readable');
  stdin.setRawMode(false);
  stdin.unref();
  stdout.write(inkOff);
}

/** The modes that ink does not restore. */
function restoreModes(): void {
  process.stdout.write(mouseOff + wrapOn);
}

/**
 * Leaves later input to another program. ink has stopped listening, but Bun (1.4) reads once more from a terminal
 * without a listener, unless the stream was resumed before it was paused; each of the two takes a turn of the loop.
 */
async function stopReading({ clock }: World): Promise<void> {
  const { stdin } = process;
  await delay(clock, 1);
  stdin.resume();
  await delay(clock, 1);
  stdin.pause();
  await delay(clock, 1);
}

/** Stops this process and its job, as the terminal does; resolves when it continues. */
function stopHere(world: World): Promise<void> {
  return new Promise((resolve) => {
    const goOn = (): void => {
      process.off('SIGCONT', goOn);
      cancel();
      resolve();
    };
    process.on('SIGCONT', goOn);
    const cancel = world.clock.after(stoppedWaitMs, goOn);
    process.kill(0, 'SIGTSTP');
  });
}

class FrameStore implements Store {
  readonly #listeners = new Set<() => void>();
  #now: Painted;

  constructor(first: Painted) {
    this.#now = first;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly current = (): Painted => this.#now;

  set(painted: Painted): void {
    this.#now = painted;
    for (const listener of this.#listeners) listener();
  }
}

// What the terminal can show: colours or none, Unicode or ASCII.

export interface ScreenStyle {
  readonly glyphs: Glyphs;
  readonly paint: Paint;
}

export function screenStyle({ env, stdout }: Pick<Context, 'env' | 'stdout'>): ScreenStyle {
  const glyphs = hasUnicode(env) ? unicodeGlyphs : asciiGlyphs;
  return { glyphs, paint: stdout.style === plainStyle ? 'plain' : 'colour' };
}

/** As the C library chooses: the first that is set counts. Nothing set says nothing, and today means UTF-8. */
function hasUnicode({ LC_ALL, LC_CTYPE, LANG, TERM }: Context['env']): boolean {
  const locale = [LC_ALL, LC_CTYPE, LANG].find((value) => (value ?? '') !== '');
  return TERM !== 'linux' && (locale === undefined || /utf-?8/i.test(locale));
}
