/** Input from the terminal: keys for ink, without reports of the mouse, which ink would treat as typed text. */
import type { MousePress } from './keys.ts';

/** Button, column, row; a final `m` means that the button was released. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: reports begin with one.
const mouseReport = /\u001b\[<(\d+);(\d+);(\d+)([Mm])/g;
/** The start of a report whose end arrives later. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: reports begin with one.
const cutOff = /\u001b\[<[\d;]*$/;

/** For a button that is pressed without modifier keys. */
const presses: Readonly<Record<number, MousePress['mouse']>> = { 0: 'click', 64: 'wheel-up', 65: 'wheel-down' };

export class MouseReports {
  readonly #onPress: (press: MousePress) => void;
  #before = '';

  constructor(onPress: (press: MousePress) => void) {
    this.#onPress = onPress;
  }

  /** The chunk without reports. */
  take(chunk: string): string {
    const text = this.#before + chunk;
    this.#before = cutOff.exec(text)?.[0] ?? '';
    const whole = text.slice(0, text.length - this.#before.length);
    return whole.replaceAll(mouseReport, (_, button: string, column: string, row: string, end) => {
      const mouse = end === 'M' ? presses[Number(button)] : undefined;
      if (mouse !== undefined) this.#onPress({ mouse, x: Number(column) - 1, y: Number(row) - 1 });
      return '';
    });
  }
}
