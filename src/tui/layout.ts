/** A screen as data: panes of rows in bands from top to bottom. ink draws their borders and places them. */
import {
  asciiRow,
  cellAt,
  type Glyphs,
  type Paint,
  paintRow,
  type Row,
  rowBetween,
  rowOf,
  type ScreenCell,
  tagged,
  widthOf,
} from './dashboard/cells.ts';
import type { Hit } from './dashboard/ui.ts';

export interface Pane {
  /** Shown in the upper border. */
  readonly title: readonly ScreenCell[];
  readonly end: readonly ScreenCell[];
  readonly rows: readonly Row[];
  /** Includes the border. */
  readonly columns: number;
  readonly height: number;
  readonly isFramed: boolean;
  readonly isFocused?: boolean;
}

export interface Layout {
  readonly bands: readonly (readonly Pane[])[];
  readonly cursor?: { readonly x: number; readonly y: number };
}

export interface PaneContent {
  readonly title: readonly ScreenCell[];
  readonly end?: readonly ScreenCell[];
  readonly rows: readonly Row[];
  /** The click target of all cells that have none. */
  readonly on?: Hit;
}

export type PaneSize = Pick<Pane, 'columns' | 'height' | 'isFramed' | 'isFocused'>;

/** Columns and rows of two borders. */
export const frameSize = 2;

/** Cut or filled so that it has exactly this size. Without a frame the title is the first row, if there is one. */
export function paneOf({ title, end = [], rows, on }: PaneContent, size: PaneSize): Pane {
  const { columns, height, isFramed } = size;
  const inner = isFramed ? columns - frameSize : columns;
  const head = isFramed || title.length === 0 ? [] : [rowBetween(title, end, columns)];
  const room = Math.max(0, isFramed ? height - frameSize : height);
  const shown = [...head, ...rows].slice(0, room);
  const blanks = Array.from({ length: room - shown.length }, () => rowOf([], inner));
  const all = [...shown, ...blanks];
  // Keep the corners, and a blank on both sides of each text.
  const titleRoom = Math.max(0, columns - 6);
  const ended = widthOf(end) + widthOf(title) < titleRoom ? end : [];
  return {
    ...size,
    title: isFramed ? fitted(title, titleRoom - widthOf(ended)) : [],
    end: isFramed ? ended : [],
    rows: on === undefined ? all : all.map((row) => tagged(row, on)),
  };
}

function fitted(cells: readonly ScreenCell[], columns: number): readonly ScreenCell[] {
  return rowOf(cells, Math.min(columns, widthOf(cells))).cells;
}

/** The click target at this position. */
export function hitAt({ bands }: Layout, x: number, y: number): Hit | null {
  let top = 0;
  for (const panes of bands) {
    const height = Math.max(0, ...panes.map((pane) => pane.height));
    if (y >= top && y < top + height) return hitIn(panes, x, y - top);
    top += height;
  }
  return null;
}

function hitIn(panes: readonly Pane[], x: number, y: number): Hit | null {
  let left = 0;
  for (const { columns, isFramed, rows, title } of panes) {
    const place = x - left;
    left += columns;
    if (place < 0 || x >= left) continue;
    if (!isFramed) return (rows[y] === undefined ? null : cellAt(rows[y], place)?.on) ?? null;
    if (y === 0) return cellAt({ cells: title }, place - frameSize)?.on ?? null;
    return (rows[y - 1] === undefined ? null : cellAt(rows[y - 1] as Row, place - 1)?.on) ?? null;
  }
  return null;
}

export interface PaintedPane {
  readonly title: string;
  readonly end: string;
  readonly lines: readonly string[];
  readonly columns: number;
  readonly height: number;
  /** Absent = no frame. */
  readonly border?: Border;
}

interface Border {
  readonly style: 'round' | 'bold' | 'classic';
  readonly color?: string;
  readonly isDim: boolean;
}

export interface Painted {
  readonly bands: readonly (readonly PaintedPane[])[];
  readonly cursor?: { readonly x: number; readonly y: number } | undefined;
}

export function paintLayout({ bands, cursor }: Layout, paint: Paint, { isAscii }: Glyphs): Painted {
  const line = (row: Row): string => paintRow(isAscii ? asciiRow(row) : row, paint);
  const paintPane = ({ title, end, rows, columns, height, isFramed, isFocused = false }: Pane): PaintedPane => {
    const style = isAscii ? 'classic' : isFocused && paint === 'plain' ? 'bold' : 'round';
    const color = isFocused && paint === 'colour' ? { color: 'cyan' } : {};
    const border = { style, isDim: !isFocused, ...color } as const;
    return {
      title: line({ cells: title }),
      end: line({ cells: end }),
      lines: rows.map(line),
      columns,
      height,
      ...(isFramed ? { border } : {}),
    };
  };
  return { bands: bands.map((panes) => panes.map(paintPane)), cursor };
}
