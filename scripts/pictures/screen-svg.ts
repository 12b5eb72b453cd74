/** What a terminal shows, as SVG: one text for each run of cells that look alike. */
import { type IBufferCell, Terminal } from '@xterm/headless';

interface Look {
  readonly colour: string;
  /** Null = the background of the screen. */
  readonly fill: string | null;
  readonly isBold: boolean;
  readonly isDim: boolean;
  readonly isUnderlined: boolean;
}

/** One column. The second half of a wide character has an empty text. */
interface Cell {
  readonly text: string;
  readonly look: Look;
}

export interface ScreenSize {
  readonly columns: number;
  readonly rows: number;
}

const cellWidth = 8.4;
const lineHeight = 18;
const fontSize = 14;
const margin = 16;
const background = '#0d1117';
const foreground = '#e6edf3';
/** The first sixteen colours of a terminal. */
const palette = [
  ...['#484f58', '#ff7b72', '#3fb950', '#d29922', '#58a6ff', '#bc8cff', '#39c5cf', '#b1bac4'],
  ...['#6e7681', '#ffa198', '#56d364', '#e3b341', '#79c0ff', '#d2a8ff', '#56d4dd', '#f0f6fc'],
];

/** One picture of a cast. */
export interface ScreenFrame {
  /** All that was written to the terminal so far. */
  readonly bytes: string;
  /** How long it is shown. */
  readonly seconds: number;
}

/** `bytes` is what a program wrote to a terminal of this size. Rows below the last one with text are left out. */
export async function screenSvg(bytes: string, size: ScreenSize): Promise<string> {
  const rows = await shownRows(bytes, size);
  return drawing(size.columns, rows.length, rows.flatMap(rowMarkup));
}

/**
 * The pictures in a loop without a script, so that it also plays where a page only shows an image. Readers with reduced
 * motion, or without animation, see the picture number `still`.
 */
export async function castSvg(frames: readonly ScreenFrame[], size: ScreenSize, still: number): Promise<string> {
  const shown = await Promise.all(frames.map(({ bytes }) => shownRows(bytes, size)));
  const total = frames.reduce((sum, { seconds }) => sum + seconds, 0);
  const starts = frames.map((_, at) => frames.slice(0, at).reduce((sum, { seconds }) => sum + seconds, 0));
  const percent = (seconds: number) => `${round((seconds / total) * 100)}%`;
  const styles = frames.map(({ seconds }, at) => {
    const [from, to] = [starts[at] ?? 0, (starts[at] ?? 0) + seconds];
    const before = from === 0 ? '' : '0%{visibility:hidden}';
    const after = to === total ? '' : `${percent(to)}{visibility:hidden}`;
    return `@keyframes f${at}{${before}${percent(from)}{visibility:visible}${after}}#f${at}{animation-name:f${at}}`;
  });
  const css = [
    `.f{visibility:hidden;animation:${total}s step-end infinite}#f${still}{visibility:visible}`,
    ...styles,
    '@media(prefers-reduced-motion:reduce){.f{animation:none}}',
  ];
  const pictures = shown.flatMap((rows, at) => [`<g class="f" id="f${at}">`, ...rows.flatMap(rowMarkup), '</g>']);
  return drawing(size.columns, Math.max(...shown.map((rows) => rows.length)), [
    ...css.map((rule) => `<style>${rule}</style>`),
    ...pictures,
  ]);
}

function drawing(columns: number, rows: number, markup: readonly string[]): string {
  const width = Math.ceil(columns * cellWidth + 2 * margin);
  const height = rows * lineHeight + 2 * margin;
  const font = "ui-monospace,SFMono-Regular,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace";
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">`,
    `<rect width="${width}" height="${height}" rx="8" fill="${background}"/>`,
    `<g font-family="${font}" font-size="${fontSize}" fill="${foreground}">`,
    ...markup,
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

async function shownRows(bytes: string, { columns, rows }: ScreenSize): Promise<Cell[][]> {
  const terminal = new Terminal({ cols: columns, rows, allowProposedApi: true, scrollback: 0 });
  await new Promise<void>((resolve) => terminal.write(bytes, resolve));
  const shown = Array.from({ length: rows }, (_, row) => cellsOf(terminal, row, columns));
  const used = shown.findLastIndex((row) => row.some(({ text }) => text.trim() !== '')) + 1;
  return shown.slice(0, used);
}

function cellsOf(terminal: Terminal, row: number, columns: number): Cell[] {
  const line = terminal.buffer.active.getLine(row);
  return Array.from({ length: columns }, (_, column): Cell => {
    const cell = line?.getCell(column);
    if (cell === undefined) return { text: ' ', look: plain };
    // The second half of a wide character has no text of its own.
    return { text: cell.getWidth() === 0 ? '' : cell.getChars() || ' ', look: lookOf(cell) };
  });
}

const plain: Look = { colour: foreground, fill: null, isBold: false, isDim: false, isUnderlined: false };

function lookOf(cell: IBufferCell): Look {
  const colour = cell.isFgDefault() ? foreground : colourOf(cell.getFgColor(), cell.isFgRGB());
  const fill = cell.isBgDefault() ? null : colourOf(cell.getBgColor(), cell.isBgRGB());
  const isReversed = cell.isInverse() !== 0;
  return {
    colour: isReversed ? (fill ?? background) : colour,
    fill: isReversed ? colour : fill,
    isBold: cell.isBold() !== 0,
    isDim: cell.isDim() !== 0,
    isUnderlined: cell.isUnderline() !== 0,
  };
}

function colourOf(value: number, isRgb: boolean): string {
  if (isRgb) return `#${value.toString(16).padStart(6, '0')}`;
  const named = palette[value];
  if (named !== undefined) return named;
  if (value >= 232) return grey((value - 232) * 10 + 8);
  const level = (step: number): string => (step === 0 ? 0 : step * 40 + 55).toString(16).padStart(2, '0');
  const cube = value - 16;
  return `#${level(Math.floor(cube / 36))}${level(Math.floor(cube / 6) % 6)}${level(cube % 6)}`;
}

function grey(value: number): string {
  return `#${value.toString(16).padStart(2, '0').repeat(3)}`;
}

function rowMarkup(cells: readonly Cell[], row: number): string[] {
  const markup: string[] = [];
  const top = margin + row * lineHeight;
  for (let start = 0; start < cells.length; ) {
    const look = (cells[start] as Cell).look;
    let end = start + 1;
    while (end < cells.length && isSame((cells[end] as Cell).look, look)) end += 1;
    const text = cells
      .slice(start, end)
      .map((cell) => cell.text)
      .join('');
    markup.push(...runMarkup(text, look, { left: margin + start * cellWidth, top, width: (end - start) * cellWidth }));
    start = end;
  }
  return markup;
}

interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
}

function runMarkup(text: string, look: Look, { left, top, width }: Box): string[] {
  const { colour, fill, isBold, isDim, isUnderlined } = look;
  const [x, wide] = [round(left), round(width)];
  const markup =
    fill === null ? [] : [`<rect x="${x}" y="${top}" width="${wide}" height="${lineHeight}" fill="${fill}"/>`];
  const words = text.trim();
  if (words === '') return markup;
  // Blanks at the ends, and more than one in a row, are no blanks to a browser, which would stretch what is left.
  const before = (text.length - text.trimStart().length) * cellWidth;
  const length = width - (text.length - words.length) * cellWidth;
  // Fonts differ in the width of their characters; the columns must not.
  const place =
    `x="${round(left + before)}" y="${top + fontSize - 1}" ` +
    `textLength="${round(length)}" lengthAdjust="spacingAndGlyphs"`;
  const style = [
    ...(colour === foreground ? [] : [` fill="${colour}"`]),
    ...(isBold ? [' font-weight="bold"'] : []),
    ...(isDim ? [' opacity="0.6"'] : []),
    ...(isUnderlined ? [' text-decoration="underline"'] : []),
  ].join('');
  return [...markup, `<text ${place}${style}>${escapeXml(words.replaceAll(' ', '\u00a0'))}</text>`];
}

function isSame(one: Look, other: Look): boolean {
  return (
    one.colour === other.colour &&
    one.fill === other.fill &&
    one.isBold === other.isBold &&
    one.isDim === other.isDim &&
    one.isUnderlined === other.isUnderlined
  );
}

function round(value: number): string {
  return String(Math.round(value * 10) / 10);
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
