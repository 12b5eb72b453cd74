/** What each key does on the home screen: it changes what is shown, or becomes a command that somebody else grants. */

import type { HomeGroup, HomeWorkflow } from '../../app/watch/overview.ts';
import type { GroupId } from '../../core/group.ts';
import type { KeyName, Press } from '../dashboard/keys.ts';

export type HomeMode =
  | { readonly kind: 'browse' }
  | { readonly kind: 'help' }
  | { readonly kind: 'ask-delete'; readonly id: GroupId }
  | { readonly kind: 'choose'; readonly index: number }
  | { readonly kind: 'ask-start'; readonly reference: string };

export interface HomeUi {
  readonly selected: GroupId | null;
  readonly top: number;
  readonly mode: HomeMode;
}

export const firstHomeUi: HomeUi = { selected: null, top: 0, mode: { kind: 'browse' } };

export type HomeCommand =
  | { readonly do: 'open' | 'delete'; readonly id: GroupId }
  | { readonly do: 'start'; readonly reference: string; readonly rehearse: boolean }
  | { readonly do: 'quit' }
  | { readonly do: 'redraw' }
  | { readonly do: 'suspend' }
  | { readonly do: 'tell'; readonly message: string };

export interface HomeSituation {
  readonly groups: readonly HomeGroup[];
  readonly workflows: readonly HomeWorkflow[];
  readonly index: number;
  readonly listRows: number;
}

export interface HomePressed {
  readonly ui: HomeUi;
  readonly command?: HomeCommand;
}

const browse: HomeMode = { kind: 'browse' };

export function pressHome(ui: HomeUi, press: Press, situation: HomeSituation): HomePressed {
  const key = 'key' in press ? press.key : null;
  if (key === 'ctrl-c') return { ui, command: { do: 'quit' } };
  if (key === 'ctrl-z') return { ui, command: { do: 'suspend' } };
  if (key === 'ctrl-l') return { ui, command: { do: 'redraw' } };
  // A text that lands here by accident must not press a key with each of its letters.
  const text = 'text' in press && press.isPasted !== true && press.text.length === 1 ? press.text : null;
  const { mode } = ui;
  switch (mode.kind) {
    case 'help':
      return { ui: { ...ui, mode: browse } };
    case 'ask-delete': {
      const quiet = { ...ui, mode: browse };
      return text?.toLowerCase() === 'y' ? { ui: quiet, command: { do: 'delete', id: mode.id } } : { ui: quiet };
    }
    case 'choose':
      return choose(ui, mode.index, key ?? text, situation);
    case 'ask-start': {
      const { reference } = mode;
      const quiet = { ...ui, mode: browse };
      if (text === 'r' || key === 'enter') return { ui: quiet, command: { do: 'start', reference, rehearse: true } };
      return text === 'y' ? { ui: quiet, command: { do: 'start', reference, rehearse: false } } : { ui: quiet };
    }
    case 'browse':
      return key === null ? letter(ui, text, situation) : move(ui, key, situation);
  }
}

function choose(ui: HomeUi, index: number, key: string | null, { workflows }: HomeSituation): HomePressed {
  const at = (to: number): HomePressed => {
    const within = Math.max(0, Math.min(to, workflows.length - 1));
    return { ui: { ...ui, mode: { kind: 'choose', index: within } } };
  };
  switch (key) {
    case 'up':
    case 'k':
      return at(index - 1);
    case 'down':
    case 'j':
      return at(index + 1);
    case 'home':
      return at(0);
    case 'end':
      return at(workflows.length - 1);
    case 'enter': {
      const chosen = workflows[index];
      if (chosen === undefined) return { ui: { ...ui, mode: browse } };
      return { ui: { ...ui, mode: { kind: 'ask-start', reference: chosen.reference } } };
    }
    default:
      return { ui: { ...ui, mode: browse } };
  }
}

function letter(ui: HomeUi, text: string | null, situation: HomeSituation): HomePressed {
  const { groups, index, workflows } = situation;
  const selected = groups[index];
  switch (text) {
    case 'j':
      return move(ui, 'down', situation);
    case 'k':
      return move(ui, 'up', situation);
    case 'g':
      return move(ui, 'home', situation);
    case 'G':
      return move(ui, 'end', situation);
    case ' ':
      return move(ui, 'page-down', situation);
    case '?':
    case 'h':
      return { ui: { ...ui, mode: { kind: 'help' } } };
    case 'q':
      return { ui, command: { do: 'quit' } };
    case 'd':
      if (selected === undefined) return { ui };
      if (selected.status.startsWith('running')) {
        return { ui, command: { do: 'tell', message: 'It is running. Open it with enter and pause it with P first.' } };
      }
      return { ui: { ...ui, mode: { kind: 'ask-delete', id: selected.id } } };
    case 'n': {
      const message = 'There is no workflow in this folder and no template of one.';
      if (workflows.length === 0) return { ui, command: { do: 'tell', message } };
      return { ui: { ...ui, mode: { kind: 'choose', index: 0 } } };
    }
    default:
      return { ui };
  }
}

function move(ui: HomeUi, key: KeyName, { groups, index, listRows }: HomeSituation): HomePressed {
  const page = Math.max(1, listRows - 1);
  const to = (place: number): HomePressed => {
    const group = groups[Math.max(0, Math.min(place, groups.length - 1))];
    return { ui: group === undefined ? ui : { ...ui, selected: group.id } };
  };
  switch (key) {
    case 'up':
      return to(index - 1);
    case 'down':
      return to(index + 1);
    case 'page-up':
      return to(index - page);
    case 'page-down':
      return to(index + page);
    case 'home':
      return to(0);
    case 'end':
      return to(groups.length - 1);
    case 'enter':
    case 'right': {
      const selected = groups[index];
      return selected === undefined ? { ui } : { ui, command: { do: 'open', id: selected.id } };
    }
    default:
      return { ui };
  }
}
