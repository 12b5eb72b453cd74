/** Lines that know how they go on when they are too long for a terminal. */

export interface Line {
  /** Stands before the text; where the line is broken, blanks of its width do. May be styled. */
  readonly lead: string;
  /** Free of control characters; may be styled. */
  readonly text: string;
}

/** Under this, breaking lines makes a text worse and not better. */
const columnsMin = 20;

/** The line as it is, for pipes and for searching. */
export function wholeLine({ lead, text }: Line): string {
  return `${lead}${text}`.trimEnd();
}

/** The line in pieces of at most `columns` terminal columns, broken between words where there are any. */
export function wrapLine(line: Line, columns: number): string[] {
  const whole = wholeLine(line);
  // Most lines are short; a character has at most two columns.
  if (whole.length * 2 <= columns || Bun.stringWidth(whole) <= columns) return [whole];
  // Indentation belongs to the lead: broken lines go on below it.
  const [indent = ''] = /^ */.exec(line.text) ?? [];
  const lead = line.lead + indent;
  const width = Bun.stringWidth(lead);
  const room = columns - width;
  if (room < columnsMin) return Bun.wrapAnsi(whole, Math.max(1, columns), { hard: true, trim: false }).split('\n');
  const pieces = Bun.wrapAnsi(line.text.slice(indent.length), room, { hard: true }).split('\n');
  return pieces.map((piece, index) => `${index === 0 ? lead : ' '.repeat(width)}${piece}`);
}
