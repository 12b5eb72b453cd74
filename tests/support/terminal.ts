/**
 * A terminal with a program in it: a real pty and an emulator that shows what a user would see. Nothing waits for time;
 * tests wait for text on the screen.
 */
import { type IUnicodeVersionProvider, Terminal } from '@xterm/headless';
import { patienceMs } from './mailbox.ts';

export interface TerminalWish {
  readonly columns?: number;
  readonly rows?: number;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Character widths of today's terminals; the emulator's own table is from 2010. */
const widths: IUnicodeVersionProvider = {
  version: 'today',
  wcwidth: (codePoint) => {
    const width = Bun.stringWidth(String.fromCodePoint(codePoint));
    return width === 0 ? 0 : width === 1 ? 1 : 2;
  },
  charProperties(codePoint, preceding) {
    let width: number = this.wcwidth(codePoint);
    let joins = width === 0 && preceding !== 0;
    if (joins) {
      const before = (preceding >> 1) & 3;
      if (before === 0) joins = false;
      else width = Math.max(width, before);
    }
    return (width << 1) | (joins ? 1 : 0);
  },
};

/** A whole run may pass before the screen shows it. */
const screenPatienceMs = 2 * patienceMs;
const echoPatienceMs = 5_000;

const echoFlag = 0o10;
const canonicalFlag = 0o2;

export interface ShownCell {
  readonly text: string;
  readonly isReverse: boolean;
  readonly colour: number | null;
  readonly background: number | null;
}

export class TestTerminal {
  readonly #emulator: Terminal;
  readonly #child: Bun.Subprocess;
  readonly #waiting = new Set<() => void>();
  readonly exited: Promise<number>;
  /** All bytes sent to the terminal. */
  raw = '';
  #isOver = false;

  constructor(command: readonly string[], { columns = 80, rows = 24, cwd, env }: TerminalWish) {
    this.#emulator = new Terminal({ cols: columns, rows, allowProposedApi: true, scrollback: 1000 });
    this.#emulator.unicode.register(widths);
    this.#emulator.unicode.activeVersion = widths.version;
    const decoder = new TextDecoder();
    const closed = Promise.withResolvers<void>();
    this.#child = Bun.spawn([...command], {
      cwd,
      env: { TERM: 'xterm-256color', ...env },
      terminal: {
        cols: columns,
        rows,
        data: (_terminal, data) => {
          this.raw += decoder.decode(data, { stream: true });
          this.#emulator.write(data, () => this.#look());
        },
        exit: () => closed.resolve(),
      },
    });
    // The answers of an ordinary terminal.
    this.#emulator.onData((answer) => this.#child.terminal?.write(answer));
    // Its last output may still be on its way through the pty and the emulator.
    this.exited = Promise.all([this.#child.exited, closed.promise]).then(([code]) => {
      this.#isOver = true;
      return new Promise((resolve) => {
        this.#emulator.write('', () => {
          this.#look();
          resolve(code);
        });
      });
    });
  }

  get pid(): number {
    return this.#child.pid;
  }

  get signalCode(): Bun.Subprocess['signalCode'] {
    return this.#child.signalCode;
  }

  /** The rows on the screen without trailing blanks. */
  lines(): string[] {
    const buffer = this.#emulator.buffer.active;
    const from = buffer.viewportY;
    return Array.from({ length: this.#emulator.rows }, (_, row) => {
      return buffer.getLine(from + row)?.translateToString(true) ?? '';
    });
  }

  text(): string {
    return this.lines().join('\n');
  }

  /** The character in this column of a row, whether it is in reverse, and its colours (of 256). */
  cell(row: number, column: number): ShownCell {
    const buffer = this.#emulator.buffer.active;
    const cell = buffer.getLine(buffer.viewportY + row)?.getCell(column);
    return {
      text: cell?.getChars() ?? '',
      isReverse: (cell?.isInverse() ?? 0) !== 0,
      colour: cell?.isFgPalette() ? cell.getFgColor() : null,
      background: cell?.isBgPalette() ? cell.getBgColor() : null,
    };
  }

  /** The alternate screen is on. */
  get isAlternate(): boolean {
    return this.#emulator.buffer.active.type === 'alternate';
  }

  /** Typed characters are echoed and collected to lines, as a shell needs it. */
  get isCooked(): boolean {
    const flags = this.#child.terminal?.localFlags ?? 0;
    return (flags & echoFlag) !== 0 && (flags & canonicalFlag) !== 0;
  }

  get wraps(): boolean {
    return this.#emulator.modes.wraparoundMode;
  }

  /** Clicks are sent to the program. */
  get tracksMouse(): boolean {
    return this.#emulator.modes.mouseTrackingMode !== 'none';
  }

  /** The cursor as the last sequence left it. */
  get showsCursor(): boolean {
    return this.raw.lastIndexOf('\u001b[?25h') > this.raw.lastIndexOf('\u001b[?25l');
  }

  type(keys: string): void {
    this.#child.terminal?.write(keys);
  }

  resize(columns: number, rows: number): void {
    this.#emulator.resize(columns, rows);
    this.#child.terminal?.resize(columns, rows);
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /**
   * Resolves when `condition` holds for a complete frame; incomplete frames are not shown. Rejects with the screen's
   * text when the program ends first, and after a while.
   */
  until(condition: (text: string) => boolean): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const giveUp = (why: string): void => {
      this.#waiting.delete(look);
      clearTimeout(timer);
      reject(new Error(`${why}, and the screen shows:\n${this.text()}`));
    };
    const timer = setTimeout(() => giveUp(`Waited ${screenPatienceMs / 1_000} s in vain`), screenPatienceMs);
    const look = (): void => {
      const isWhole = !this.#emulator.modes.synchronizedOutputMode;
      const isThere = isWhole && condition(this.text());
      if (!isThere) {
        if (this.#isOver) giveUp('The program ended');
        return;
      }
      this.#waiting.delete(look);
      clearTimeout(timer);
      resolve();
    };
    this.#waiting.add(look);
    look();
    return promise;
  }

  shows(...texts: readonly string[]): Promise<void> {
    return this.until((screen) => texts.every((text) => screen.includes(text)));
  }

  /**
   * Types a line like a person, who waits for the echo and types again what was lost: keys may not arrive while
   * claude starts or changes its conversation.
   */
  async enter(text: string): Promise<void> {
    for (;;) {
      this.type(text);
      const shown = this.shows(text).then(() => true);
      // Its reason is given by the next one.
      shown.catch(() => {});
      if ((await Promise.race([shown, Bun.sleep(echoPatienceMs)])) === true) break;
      this.type(key.eraseLine);
    }
    this.type(key.enter);
  }

  /** Closes the window: the program loses its terminal. */
  hangUp(): void {
    this.#child.terminal?.close();
  }

  /** Resolves when the program has ended, whatever happened to its terminal. */
  get ended(): Promise<number> {
    return this.#child.exited;
  }

  close(): void {
    this.#child.kill('SIGKILL');
    this.#child.terminal?.close();
  }

  #look(): void {
    for (const look of [...this.#waiting]) look();
  }
}

export const key = {
  up: '\u001b[A',
  down: '\u001b[B',
  right: '\u001b[C',
  left: '\u001b[D',
  pageUp: '\u001b[5~',
  pageDown: '\u001b[6~',
  home: '\u001b[H',
  end: '\u001b[F',
  enter: '\r',
  escape: '\u001b',
  tab: '\t',
  erase: '\u007f',
  eraseLine: '\u0015',
  ctrlC: '\u0003',
  ctrlL: '\u000c',
  ctrlZ: '\u001a',
} as const;
