/** How much of what was said is shown, so that a page stays small whoever said how much. */
import { type Child, cutText, el, escapeText, type Markup } from '../picture/markup.ts';
import type { ReportSession } from './model.ts';
import { foreign } from './parts.ts';

/** Of all texts on a page. */
const pageBytes = 260_000;
/** Of the texts of one session. */
const sessionBytesMax = 16_000;
const sessionBytesMin = 400;
/** Even where there is no room left, this much of a text is shown. */
const leastBytes = 80;

/** Bytes of text that each session may have: as many as all of them together can, so that long ones pay for it. */
export function textBytesEach(sessions: readonly ReportSession[]): number {
  const wanted = sessions.map(bytesOf).sort((a, b) => a - b);
  let left = pageBytes;
  for (const [index, bytes] of wanted.entries()) {
    const share = left / (wanted.length - index);
    if (bytes > share) return Math.max(sessionBytesMin, Math.floor(share));
    left -= bytes;
  }
  return sessionBytesMax;
}

/** About what a session would take if there were room enough. */
function bytesOf({ result = '', structured, prompt, description, message = '', ...rest }: ReportSession): number {
  const { warnings, attempts, rejection } = rest;
  const json = structured === undefined ? '' : JSON.stringify(structured);
  const small = [description, message, ...warnings.map((warning) => warning.message)];
  const texts = [result, json, prompt, rejection?.output ?? '', ...small, ...attempts.map((one) => one.message ?? '')];
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(Bun.escapeHTML(text.slice(0, 5000))), 0);
  return Math.min(sessionBytesMax, bytes);
}

/** What may still be shown of one session's texts, so that a page stays small however much was said. */
export class Room {
  private left: number;

  /** Bytes of UTF-8 in the page. */
  constructor(bytes: number) {
    this.left = bytes;
  }

  /** A text of several lines, its end cut off when it is too long; `whole` says where all of it is. */
  block(text: string, maxBytes: number, whole: string): Child {
    const room = Math.max(leastBytes, Math.min(maxBytes, this.left));
    const { text: shown, cutFrom } = cutText(text, room);
    this.left -= Buffer.byteLength(escapeText(shown));
    const note =
      cutFrom === undefined
        ? null
        : el('p', { class: 'dim' }, `Cut: ${shown.length} of ${cutFrom} characters are shown. ${whole}`);
    return [el('pre', { dir: 'auto' }, shown), note];
  }

  /** A part of what is left, at most `maxBytes`. */
  share(part: number, maxBytes: number): number {
    return Math.min(maxBytes, Math.floor(this.left * part));
  }

  /** A text within a sentence. */
  line(text: string, maxBytes: number): Markup {
    const room = Math.max(leastBytes, Math.min(maxBytes, this.left));
    this.left -= Math.min(room, text.length);
    return foreign(text, room);
  }
}
