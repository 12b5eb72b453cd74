/** What each key does: it runs an action, or is part of a text or an answer. */
import type { GroupState } from '../../core/state.ts';
import {
  actionOfKey,
  atOf,
  browse,
  type KeyCommand,
  type KeyContext,
  type OpenTarget,
  opened,
  type Pressed,
  paletteChoices,
  refiltered,
  scrolled,
  selected,
} from './actions.ts';
import type { Mode, Ui } from './ui.ts';

export const keyNames = [
  ...([
    'up',
    'down',
    'left',
    'right',
    'page-up',
    'page-down',
    'home',
    'end',
    'enter',
    'escape',
    'tab',
    'erase',
  ] as const),
  ...(['ctrl-c', 'ctrl-l', 'ctrl-u', 'ctrl-z'] as const),
] as const;
export type KeyName = (typeof keyNames)[number];

export type Press = { readonly key: KeyName } | { readonly text: string; readonly isPasted?: true } | MousePress;

export interface MousePress {
  readonly mouse: 'click' | 'wheel-up' | 'wheel-down';
  readonly x: number;
  readonly y: number;
}

type KeyPress = Exclude<Press, MousePress>;

/** A message is one line, not a file. */
const messageLengthMax = 8_000;
const filterLengthMax = 200;
export function press(ui: Ui, key: Press, context: KeyContext): Pressed {
  if ('mouse' in key) return { ui: pointed(ui, key, context) };
  if ('key' in key && key.key === 'ctrl-c') return { ui: { ...ui, mode: browse }, command: { do: 'interrupt' } };
  if ('key' in key && (key.key === 'ctrl-z' || key.key === 'ctrl-l')) return act(ui, key.key, context);
  const { mode } = ui;
  switch (mode.kind) {
    case 'palette':
      return choose(ui, mode, key, context);
    case 'filter':
      return { ui: refiltered(ui, typeFilter(ui, key)) };
    case 'say':
    case 'answer':
    case 'note':
      return typeMessage(ui, mode, key);
    case 'ask-pause':
      return answered(ui, key, pauseAnswers);
    case 'ask-start':
      return answered(ui, key, { y: { do: 'resume-group' } });
    case 'ask-resume':
      return answered(ui, key, { y: { do: 'resume-group' }, p: { do: 'pause-group', mode: 'now' } });
    case 'ask-open': {
      const open = (thing: OpenTarget): KeyCommand => ({ do: 'open', sessionId: mode.sessionId, thing });
      return answered(ui, key, { w: open('worktree'), l: open('log'), r: open('report') });
    }
    case 'ask-wave': {
      if ('text' in key && key.text === 'n')
        return { ui: { ...ui, mode: { kind: 'note', item: mode.item, text: '' } } };
      const decide = (text: string): KeyCommand => ({ do: 'answer', item: mode.item, text });
      return answered(ui, key, { c: decide('continue'), s: decide('stop') });
    }
    case 'ask-leave':
      return answered(ui, key, staysFor(context.state) === null ? { l: { do: 'leave' }, ...pauseOnly } : pauseOnly);
    case 'browse':
      if ('key' in key) return act(ui, key.key, context);
      // Text that was pasted by mistake must not press a key with each of its letters.
      return key.isPasted || key.text.length > 1 ? { ui } : act(ui, key.text, context);
  }
}

function act(ui: Ui, key: string, context: KeyContext): Pressed {
  return actionOfKey.get(key === ' ' ? 'space' : key)?.run(atOf(ui, context)) ?? { ui };
}

/** Lines or sessions per step of the mouse wheel. */
const wheelStep = 3;

function pointed(ui: Ui, { mouse, x, y }: MousePress, context: KeyContext): Ui {
  const { mode } = ui;
  const step = mouse === 'wheel-up' ? -wheelStep : mouse === 'wheel-down' ? wheelStep : 0;
  if (mode.kind === 'palette') {
    return { ...ui, mode: step === 0 ? browse : { ...mode, index: Math.max(0, mode.index + step) } };
  }
  const hit = mode.kind === 'browse' ? context.hit(x, y) : null;
  if (hit === null) return ui;
  const isOfList = hit.on === 'session' || hit.on === 'list';
  if (step !== 0) return isOfList ? selected(ui, context, context.index + step) : scrolled(ui, step);
  const focused: Ui = { ...ui, focus: isOfList ? 'list' : 'details' };
  if (hit.on === 'tab') return opened(focused, ui.pane, hit.tab);
  if (hit.on !== 'session') return focused;
  // A second click opens details that are closed.
  if (hit.id === ui.selected && context.shape === 'none') return opened(focused, 'split', ui.tab);
  return selected(focused, context, context.ids.indexOf(hit.id));
}

type PaletteMode = Extract<Mode, { kind: 'palette' }>;

function choose(ui: Ui, mode: PaletteMode, key: KeyPress, context: KeyContext): Pressed {
  const to = (changes: Partial<PaletteMode>): Pressed => ({ ui: { ...ui, mode: { ...mode, ...changes } } });
  if ('text' in key) return to({ text: typed(mode.text, oneLine(key.text), filterLengthMax), index: 0 });
  const choices = paletteChoices(ui, context);
  const at = (index: number): Pressed => to({ index: Math.max(0, Math.min(index, choices.length - 1)) });
  switch (key.key) {
    case 'up':
      return at(mode.index - 1);
    case 'down':
    case 'tab':
      return at(mode.index + 1);
    case 'page-up':
      return at(mode.index - 10);
    case 'page-down':
      return at(mode.index + 10);
    case 'erase':
      return mode.text === '' ? { ui: { ...ui, mode: browse } } : to({ text: withoutLast(mode.text), index: 0 });
    case 'ctrl-u':
      return to({ text: '', index: 0 });
    case 'enter': {
      const chosen = choices[Math.min(mode.index, choices.length - 1)];
      const closed = { ...ui, mode: browse };
      return chosen === undefined ? { ui: closed } : chosen.action.run(atOf(closed, context));
    }
    default:
      return { ui: { ...ui, mode: browse } };
  }
}

function typeFilter(ui: Ui, key: KeyPress): Ui {
  if ('text' in key) return { ...ui, filter: typed(ui.filter, oneLine(key.text), filterLengthMax) };
  switch (key.key) {
    case 'enter':
      return { ...ui, mode: browse };
    case 'escape':
      return { ...ui, filter: '', mode: browse };
    case 'erase':
      return ui.filter === '' ? { ...ui, mode: browse } : { ...ui, filter: withoutLast(ui.filter) };
    case 'ctrl-u':
      return { ...ui, filter: '' };
    default:
      return ui;
  }
}

type TypeMode = Extract<Mode, { kind: 'say' | 'answer' | 'note' }>;

function typeMessage(ui: Ui, mode: TypeMode, key: KeyPress): Pressed {
  const { text } = mode;
  const changed = (now: string): Pressed => ({ ui: { ...ui, mode: { ...mode, text: now } } });
  if ('text' in key) return changed(typed(text, key.text.replaceAll(/\r\n?/g, '\n'), messageLengthMax));
  switch (key.key) {
    case 'enter':
      return text.trim() === ''
        ? { ui: { ...ui, mode: browse } }
        : { ui: { ...ui, mode: browse }, command: sent(mode) };
    case 'escape':
      return { ui: { ...ui, mode: browse } };
    case 'erase':
      return changed(withoutLast(text));
    case 'ctrl-u':
      return changed('');
    default:
      return { ui };
  }
}

function sent(mode: TypeMode): KeyCommand {
  const text = mode.text.trim();
  if (mode.kind === 'say') return { do: 'say', sessionId: mode.sessionId, text };
  return mode.kind === 'answer'
    ? { do: 'answer', item: mode.item, text }
    : { do: 'answer', item: mode.item, text: 'continue', note: text };
}

function typed(before: string, added: string, lengthMax: number): string {
  return (before + added).slice(0, lengthMax);
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ');
}

function withoutLast(text: string): string {
  const last = [...new Intl.Segmenter().segment(text)].at(-1);
  return last === undefined ? '' : text.slice(0, last.index);
}

const pauseAnswers: Answers = {
  y: { do: 'pause-group', mode: 'now' },
  enter: { do: 'pause-group', mode: 'now' },
  d: { do: 'pause-group', mode: 'drain' },
  f: { do: 'pause-group', mode: 'freeze' },
};

type Answers = Readonly<Record<string, KeyCommand>>;

const pauseOnly: Answers = { p: { do: 'pause-group', mode: 'now' } };

/** Why the runner should not be left now: the next runner would resume everything. Null = it may be left. */
export function staysFor({ pausing, draining, frozenUntil }: GroupState): 'frozen' | 'draining' | 'pausing' | null {
  if (frozenUntil !== undefined) return 'frozen';
  if (pausing === undefined) return null;
  return draining ? 'draining' : 'pausing';
}

function answered(ui: Ui, key: KeyPress, answers: Answers): Pressed {
  const now = { ...ui, mode: browse };
  const answer = 'text' in key ? key.text.toLowerCase() : key.key;
  const command = Object.hasOwn(answers, answer) ? answers[answer] : undefined;
  return command === undefined ? { ui: now } : { ui: now, command };
}
