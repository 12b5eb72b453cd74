/** What the user has chosen: the session, the pane, the filter, the open question. */
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

export const sortings = ['graph', 'status', 'project', 'cost', 'time', 'name'] as const;
export type Sorting = (typeof sortings)[number];

export type Mode =
  | { readonly kind: 'browse' }
  | { readonly kind: 'palette'; readonly text: string; readonly index: number }
  | { readonly kind: 'filter' }
  | { readonly kind: 'say'; readonly sessionId: SessionId; readonly text: string }
  /** To an item of a session, or as the note to a wave that continues. */
  | { readonly kind: 'answer' | 'note'; readonly item: string; readonly text: string }
  | { readonly kind: 'ask-pause' }
  | { readonly kind: 'ask-start' }
  | { readonly kind: 'ask-resume' }
  | { readonly kind: 'ask-open'; readonly sessionId: SessionId }
  | { readonly kind: 'ask-wave'; readonly item: string }
  | { readonly kind: 'ask-leave' };

/** `auto`: `split` where there is room. `split` shows details beside or below the list, `full` instead of it. */
export type DetailsPlace = 'auto' | 'none' | 'split' | 'full';

export interface Ui {
  /** null = none yet, or a new filter has to choose one. */
  readonly selected: SessionId | null;
  /** Chosen by the user: selected again as soon as no filter hides it. null = it follows running sessions. */
  readonly home: SessionId | null;
  readonly top: number;
  readonly filter: string;
  readonly onlyProblems: boolean;
  readonly arrangement: Arrangement;
  readonly sorting: Sorting;
  readonly marked: readonly SessionId[];
  readonly pane: DetailsPlace;
  readonly under: Exclude<DetailsPlace, 'full'>;
  /** The pane that the arrow keys move in, if details are shown. */
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
/** With less, the list beside the details has no room for project and activity. */
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

export function hasDetailsFocus({ focus }: Pick<Ui, 'focus'>, shape: Shape): boolean {
  return shape === 'full' || (shape !== 'none' && focus === 'details');
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
  // The selected row is gone: select the row that took its place on the screen.
  const from = selected === null ? 0 : Math.max(0, Math.min(top, rows.length - 1));
  const next = rows.findIndex((row, index) => index >= from && row !== null);
  return Math.max(0, next >= 0 ? next : rows.findLastIndex((row) => row !== null));
}
