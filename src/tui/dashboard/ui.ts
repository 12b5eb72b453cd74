/** What the person at the dashboard has chosen: which session, which pane, which filter, which question is open. */
import type { SessionId } from '../../core/group.ts';

export const tabs = ['now', 'log', 'diff', 'prompt', 'cost', 'config'] as const;
export type Tab = (typeof tabs)[number];

export type Hit =
  | { readonly on: 'session'; readonly id: SessionId }
  | { readonly on: 'list' }
  | { readonly on: 'tab'; readonly tab: Tab }
  | { readonly on: 'pane' };

export const arrangements = ['tree', 'waves', 'status', 'project'] as const;
export type Arrangement = (typeof arrangements)[number];

export const sortings = ['graph', 'cost', 'time', 'name'] as const;
export type Sorting = (typeof sortings)[number];

export type Mode =
  | { readonly kind: 'browse' }
  | { readonly kind: 'help'; readonly top: number }
  | { readonly kind: 'filter' }
  /** `item`: what the text answers. */
  | { readonly kind: 'say'; readonly sessionId: SessionId; readonly text: string; readonly item?: string }
  | { readonly kind: 'ask-pause' }
  | { readonly kind: 'ask-start' }
  | { readonly kind: 'ask-go-on' }
  | { readonly kind: 'ask-open'; readonly sessionId: SessionId }
  | { readonly kind: 'ask-leave' };

/** `auto`: `split` where there is room. `split` shows details beside or below the list, `full` instead of it. */
export type DetailsPlace = 'auto' | 'none' | 'split' | 'full';

export interface Ui {
  /** null = none so far, or a new filter has yet to choose one. */
  readonly selected: SessionId | null;
  /** The one the person went to: selected again as soon as no filter hides it; null = the first one. */
  readonly home: SessionId | null;
  readonly top: number;
  readonly filter: string;
  readonly onlyProblems: boolean;
  readonly arrangement: Arrangement;
  readonly sorting: Sorting;
  readonly marked: readonly SessionId[];
  readonly hasTimeline: boolean;
  readonly pane: DetailsPlace;
  readonly under: Exclude<DetailsPlace, 'full'>;
  /** Which pane the arrow keys are for, where details are shown. */
  readonly focus: 'list' | 'details';
  readonly tab: Tab;
  /** Lines by which the pane is scrolled: down from its beginning, or, for the log, up from its end. */
  readonly scroll: number;
  readonly hasMouse: boolean;
  readonly mode: Mode;
}

export const firstUi: Ui = {
  selected: null,
  home: null,
  top: 0,
  filter: '',
  onlyProblems: false,
  arrangement: 'tree',
  sorting: 'graph',
  marked: [],
  hasTimeline: false,
  pane: 'auto',
  under: 'auto',
  focus: 'list',
  tab: 'now',
  scroll: 0,
  hasMouse: true,
  mode: { kind: 'browse' },
};

export type Shape = 'none' | 'below' | 'beside' | 'full';

const autoColumnsMin = 100;
/** With less, the list beside the details could not say what each session does and where. */
const besideColumnsMin = 130;

export function paneShape({ pane }: Pick<Ui, 'pane'>, columns: number): Shape {
  switch (pane) {
    case 'auto':
      return columns < autoColumnsMin ? 'none' : paneShape({ pane: 'split' }, columns);
    case 'split':
      return columns < besideColumnsMin ? 'below' : 'beside';
    default:
      return pane;
  }
}

type Selectable = SessionId | null;

/** The list with its selection moved into it and scrolled so that the selected row is among `visible` ones. */
export function settled(ui: Ui, rows: readonly Selectable[], visible: number): Ui & { readonly index: number } {
  const height = Math.max(1, visible);
  const index = selectedIndex(ui, rows);
  const last = Math.max(0, rows.length - height);
  const bottomMost = index - height + 1;
  // The heading of a selected row is shown too, where there is room for both.
  const lead = height > 1 && rows[index - 1] === null ? 1 : 0;
  const top = Math.max(0, Math.min(ui.top, last, index - lead), bottomMost);
  return { ...ui, selected: rows[index] ?? ui.selected, top, index };
}

function selectedIndex({ selected, home, top }: Ui, rows: readonly Selectable[]): number {
  const found = rows.indexOf(selected ?? home ?? '');
  if (found >= 0) return found;
  // What was selected is gone: the row that took its place on the screen is next.
  const from = selected === null ? 0 : Math.max(0, Math.min(top, rows.length - 1));
  const next = rows.findIndex((row, index) => index >= from && row !== null);
  return Math.max(0, next >= 0 ? next : rows.findLastIndex((row) => row !== null));
}
