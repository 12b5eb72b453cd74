/** Input from the terminal: keys for ink, without the reports that ink would drop or treat as typed text. */
import { type Background, backgroundOf } from './cells.ts';
import type { MousePress } from './keys.ts';

/** Button, column, row; a final `m` means that the button was released. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: reports begin with one.
const mouseReport = /\u001b\[<(\d+);(\d+);(\d+)([Mm])/g;
/** The colour of the background (OSC 11). */
// biome-ignore lint/suspicious/noControlCharactersInRegex: answers begin with one.
const backgroundAnswer = /\u001b\]11;([^\u0007\u001b]*)(?:\u0007|\u001b\\)/g;
/** Device attributes (DA1): every terminal answers this query, and answers it last. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: answers begin with one.
const identity = /\u001b\[\?[\d;]*c/g;
/** The start of a report whose end arrives later. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: reports begin with one.
const cutOff = /\u001b(?:\[<[\d;]*|\[\?[\d;]*|\]1(?:1(?:;[^\u0007\u001b]*\u001b?)?)?)$/;
/** Queries both. */
export const backgroundQuestion = '\u001b]11;?\u001b\\\u001b[c';

/** For a button that is pressed without modifier keys. */
const presses: Readonly<Record<number, MousePress['mouse']>> = { 0: 'click', 64: 'wheel-up', 65: 'wheel-down' };

export interface ReportEvents {
  onPress(press: MousePress): void;
  onBackground(background: Background): void;
  onAnswered(): void;
}

export class Reports {
  readonly #events: ReportEvents;
  #before = '';

  constructor(events: ReportEvents) {
    this.#events = events;
  }

  take(chunk: string): string {
    const text = this.#before + chunk;
    this.#before = cutOff.exec(text)?.[0] ?? '';
    const whole = text.slice(0, text.length - this.#before.length);
    return this.#withoutAnswers(whole).replaceAll(
      mouseReport,
      (_, button: string, column: string, row: string, end) => {
        const mouse = end === 'M' ? presses[Number(button)] : undefined;
        if (mouse !== undefined) this.#events.onPress({ mouse, x: Number(column) - 1, y: Number(row) - 1 });
        return '';
      },
    );
  }

  #withoutAnswers(text: string): string {
    return text
      .replaceAll(backgroundAnswer, (_, answer: string) => {
        const background = backgroundOf(answer);
        if (background !== null) this.#events.onBackground(background);
        return '';
      })
      .replaceAll(identity, () => {
        this.#events.onAnswered();
        return '';
      });
  }
}
