/** tui/: the home screen and the dashboard. This file: the ink application, which draws panes and passes on keys. */
import { Box, type Key, Text, Transform, useApp, useCursor, useInput, usePaste } from 'ink';
import { createElement, memo, type ReactNode, useSyncExternalStore } from 'react';
import type { KeyName, Press } from './dashboard/keys.ts';
import type { Painted, PaintedPane } from './layout.ts';

export interface Store {
  /** Calls `listener` at each new frame; the returned function unsubscribes. */
  subscribe(listener: () => void): () => void;
  current(): Painted;
}

type Suspend = ReturnType<typeof useApp>['suspendTerminal'];

export interface AppOptions {
  readonly store: Store;
  onPress(press: Press): void;
  /** Called with every frame: hands the terminal to another program for a while. */
  onSuspendable(suspend: Suspend): void;
}

export function createApp(options: AppOptions): ReactNode {
  return createElement(App, options);
}

function App({ store, onPress, onSuspendable }: AppOptions): ReactNode {
  const painted = useSyncExternalStore(store.subscribe, store.current);
  const { suspendTerminal } = useApp();
  onSuspendable(suspendTerminal);
  useInput((input, key) => {
    for (const press of pressesOf(input, key)) onPress(press);
  });
  usePaste((text) => onPress({ text, isPasted: true }));
  const { setCursorPosition } = useCursor();
  setCursorPosition(painted.cursor);
  return screenNode(painted);
}

export function screenNode({ bands }: Painted): ReactNode {
  return createElement(
    Box,
    { flexDirection: 'column' },
    bands.map((panes, index) => createElement(Box, { key: index, flexShrink: 0 }, panes.map(paneNode))),
  );
}

function paneNode({ title, end, lines, columns, height, border }: PaintedPane, index: number): ReactNode {
  const size = { width: columns, height, flexShrink: 0, flexDirection: 'column' } as const;
  if (border === undefined) return createElement(Box, { key: index, ...size }, lines.map(lineAt));
  const { style, color, isDim } = border;
  const frame = { borderStyle: style, borderDimColor: isDim, ...(color === undefined ? {} : { borderColor: color }) };
  return createElement(
    Box,
    { key: index, ...size },
    createElement(Box, { ...size, ...frame }, lines.map(lineAt)),
    inBorder('left', title),
    inBorder('right', end),
  );
}

/** Text in the upper border of the box around it. */
export function inBorder(side: 'left' | 'right', text: string): ReactNode {
  return text === ''
    ? null
    : createElement(Box, { position: 'absolute', top: 0, [side]: 2 }, createElement(Text, { wrap: 'hard' }, text));
}

/** The key of a row is its position on the screen, whatever its text. */
function lineAt(text: string, index: number): ReactNode {
  return createElement(Line, { key: index, text });
}

/** Rows have the width of their pane. Measuring each again would cost more than all other drawing. */
const Line = memo(
  ({ text }: { readonly text: string }): ReactNode => createElement(Transform, { transform: () => text }, '.'),
);

const named: readonly (readonly [flag: keyof Key, name: KeyName])[] = [
  ['upArrow', 'up'],
  ['downArrow', 'down'],
  ['leftArrow', 'left'],
  ['rightArrow', 'right'],
  ['pageUp', 'page-up'],
  ['pageDown', 'page-down'],
  ['home', 'home'],
  ['end', 'end'],
  ['return', 'enter'],
  ['escape', 'escape'],
  ['tab', 'tab'],
  ['backspace', 'erase'],
  ['delete', 'erase'],
];

const withControl: Readonly<Record<string, KeyName>> = {
  c: 'ctrl-c',
  l: 'ctrl-l',
  u: 'ctrl-u',
  z: 'ctrl-z',
  h: 'erase',
};

const typedAtOnceMax = 4;

/** Separates keys that ink received together. */
export function pressesOf(input: string, key: Key): Press[] {
  const special = named.find(([flag]) => key[flag] === true);
  if (special !== undefined) return [{ key: special[1] }];
  if (key.ctrl) {
    const name = withControl[input];
    return name === undefined ? [] : [{ key: name }];
  }
  if (key.meta || input === '') return [];
  return input.split(input.length > typedAtOnceMax ? /(\r)/ : /([\r\t])/).flatMap((part): Press[] => {
    if (part === '\r' || part === '\t') return [{ key: part === '\r' ? 'enter' : 'tab' }];
    if (part === '') return [];
    // A key that is held down, or keys that a slow connection delivers together. Longer input was pasted.
    const isTyped = part.length <= typedAtOnceMax || new Set(part).size === 1;
    return isTyped ? [...part].map((text) => ({ text })) : [{ text: part }];
  });
}
