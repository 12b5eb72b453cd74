/** tui/: the home screen and the dashboard. This file: the ink application, which draws lines and passes on keys. */
import { Box, type Key, Transform, useApp, useCursor, useInput, usePaste } from 'ink';
import { createElement, memo, type ReactNode, useSyncExternalStore } from 'react';
import type { KeyName, Press } from './dashboard/keys.ts';

export interface Painted {
  readonly lines: readonly string[];
  readonly cursor?: { readonly x: number; readonly y: number };
}

export interface Store {
  /** Calls `listener` whenever there is another frame; the returned function ends it. */
  subscribe(listener: () => void): () => void;
  current(): Painted;
}

type Suspend = ReturnType<typeof useApp>['suspendTerminal'];

export interface AppOptions {
  readonly store: Store;
  onPress(press: Press): void;
  /** Called with every frame: how to hand the terminal to another program for a while. */
  onSuspendable(suspend: Suspend): void;
}

export function createApp(options: AppOptions): ReactNode {
  return createElement(App, options);
}

function App({ store, onPress, onSuspendable }: AppOptions): ReactNode {
  const { lines, cursor } = useSyncExternalStore(store.subscribe, store.current);
  const { suspendTerminal } = useApp();
  onSuspendable(suspendTerminal);
  useInput((input, key) => {
    for (const press of pressesOf(input, key)) onPress(press);
  });
  usePaste((text) => onPress({ text, isPasted: true }));
  const { setCursorPosition } = useCursor();
  setCursorPosition(cursor);
  return createElement(Box, { flexDirection: 'column' }, lines.map(lineAt));
}

/** A row is its place on the screen, whatever stands there. */
function lineAt(text: string, index: number): ReactNode {
  return createElement(Line, { key: index, text });
}

/** Handed in where ink writes it: to measure each row again would cost more than everything else together. */
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

/** What ink took together because it came at once is taken apart again. */
export function pressesOf(input: string, key: Key): Press[] {
  const special = named.find(([flag]) => key[flag] === true);
  if (special !== undefined) return [{ key: special[1] }];
  if (key.ctrl) {
    const name = withControl[input];
    return name === undefined ? [] : [{ key: name }];
  }
  if (key.meta || input === '') return [];
  return input.split(/(\r)/).flatMap((part): Press[] => {
    if (part === '\r') return [{ key: 'enter' }];
    if (part === '') return [];
    // A key that is held down, or keys that came together over a slow line; what is longer was pasted.
    const isTyped = part.length <= typedAtOnceMax || new Set(part).size === 1;
    return isTyped ? [...part].map((text) => ({ text })) : [{ text: part }];
  });
}
