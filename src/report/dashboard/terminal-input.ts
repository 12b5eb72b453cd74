/** What the terminal sends: keys for ink, and taken out of them what ink would drop or take for typed text. */
import type { MousePress } from './keys.ts';

const pasteStart = '\u001b[200~';
const pasteEnd = '\u001b[201~';
const ctrlC = '\u0003';

/** Button, column, row; `m` at its end when the button is let go. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: reports begin with one.
const mouseReport = /\u001b\[<(\d+);(\d+);(\d+)([Mm])/g;
/** The begin of a report whose end comes later. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: reports begin with one.
const cutOff = /\u001b\[<[\d;]*$/;
/** Of a button that is pressed without any of the keys that change its meaning. */
const presses: Readonly<Record<number, MousePress['mouse']>> = { 0: 'click', 64: 'wheel-up', 65: 'wheel-down' };

export class Reports {
  readonly #onMouse: (press: MousePress) => void;
  #before = '';

  constructor(onMouse: (press: MousePress) => void) {
    this.#onMouse = onMouse;
  }

  /** What was typed or pasted. */
  take(chunk: string): string {
    const text = this.#before + chunk;
    this.#before = cutOff.exec(text)?.[0] ?? '';
    const whole = text.slice(0, text.length - this.#before.length);
    return whole.replaceAll(mouseReport, (_, button: string, column: string, row: string, end: string) => {
      const mouse = end === 'M' ? presses[Number(button)] : undefined;
      if (mouse !== undefined) this.#onMouse({ mouse, x: Number(column) - 1, y: Number(row) - 1 });
      return '';
    });
  }
}

/** ink waits for the end of a paste without limit, and would not even hear Ctrl-C until it comes. */
export class Pastes {
  #isOpen = false;
  /** A mark may come in two parts. */
  #before = '';

  /** What was typed or pasted, with the end of a paste put before a Ctrl-C that comes last in the middle of one. */
  take(chunk: string): string {
    const text = this.#before + chunk;
    const [begin, end] = [text.lastIndexOf(pasteStart), text.lastIndexOf(pasteEnd)];
    if (begin !== end) this.#isOpen = begin > end;
    this.#before = text.slice(1 - pasteStart.length);
    // Terminals take control characters out of what is pasted, so this one was pressed.
    if (!this.#isOpen || !chunk.endsWith(ctrlC)) return chunk;
    this.#isOpen = false;
    return `${chunk.slice(0, -1)}${pasteEnd}${ctrlC}`;
  }
}
