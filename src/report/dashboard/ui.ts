/** What the person at the dashboard has chosen: which session, which pane, which filter, which question is open. */
import type { SessionId } from '../../core/group.ts';

export const tabs = ['now', 'log', 'prompt', 'config', 'attempts'] as const;
export type Tab = (typeof tabs)[number];

export type Mode =
  | { readonly kind: 'browse' }
  | { readonly kind: 'help' }
  /** The filter is being typed; it holds at once. */
  | { readonly kind: 'filter' }
  /** A message to a session is being typed. */
  | { readonly kind: 'say'; readonly sessionId: SessionId; readonly text: string }
  /** How the whole group is to be paused. */
  | { readonly kind: 'ask-pause' }
  /** Whether a group that was not started yet is to start. */
  | { readonly kind: 'ask-start' }
  /** Whether a group whose runner is gone is to go on, or its sessions are to be paused. */
  | { readonly kind: 'ask-go-on' }
  /** Whether the group goes on when the dashboard of its own runner is left. */
  | { readonly kind: 'ask-leave' };

export interface Ui {
  /** null = the first one. */
  readonly selected: SessionId | null;
  /** Index of the first visible row of the list. */
  readonly top: number;
  readonly filter: string;
  readonly onlyProblems: boolean;
  /** `split` shows details below the list, `full` instead of it. */
  readonly pane: 'none' | 'split' | 'full';
  readonly tab: Tab;
  /** Lines by which the pane is scrolled: down from its beginning, or, for the log, up from its end. */
  readonly scroll: number;
  readonly mode: Mode;
}

export const firstUi: Ui = {
  selected: null,
  top: 0,
  filter: '',
  onlyProblems: false,
  pane: 'none',
  tab: 'now',
  scroll: 0,
  mode: { kind: 'browse' },
};

/** The list with its selection moved into it and scrolled so that the selected row is among `visible` ones. */
export function settled(ui: Ui, ids: readonly SessionId[], visible: number): Ui & { readonly index: number } {
  const rows = Math.max(1, visible);
  const found = ui.selected === null ? 0 : ids.indexOf(ui.selected);
  // What was selected is hidden by a filter now: the row that took its place on the screen is next.
  const index = found >= 0 ? found : Math.max(0, Math.min(ui.top, ids.length - 1));
  const last = Math.max(0, ids.length - rows);
  const top = Math.max(0, Math.min(ui.top, last, index), index - rows + 1);
  return { ...ui, selected: ids[index] ?? ui.selected, top, index };
}
