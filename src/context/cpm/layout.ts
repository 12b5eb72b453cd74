/**
 * Fits several progress files into the characters of a hook: the first one as far as possible, others whole or in one
 * line each. Never the beginnings of many, from which a model would learn none.
 */
import { harmlessLine } from '../hook-call.ts';
import { fittedState, hoursOf, labelOf, type ProgressHeader, progressFolder, withoutStructure } from './state.ts';

/** A progress file to show. */
export interface ShownProgress {
  readonly name: string;
  readonly path: string;
  readonly ageMs: number;
  readonly header: ProgressHeader;
  readonly text: string;
  /** The file is longer than `text`. */
  readonly truncated: boolean;
  /** Completes a sentence that begins with the path; null = the text can be shown. */
  readonly trouble: string | null;
  /** Gets one line at most. */
  readonly isNamedOnly: boolean;
}

export interface ContextLayout {
  /** The first line; empty = none. */
  readonly first: string;
  /** Shown as far as there is space. */
  readonly primary: ShownProgress | null;
  /** The most important first. */
  readonly others: readonly ShownProgress[];
  /** Others are shown whole while there is space. */
  readonly showsOthers: boolean;
  readonly othersTitle: string;
  readonly stale: readonly ShownProgress[];
  /** Number of files that were not read. */
  readonly unread: number;
  /** Empty = none. */
  readonly closing: string;
}

export interface LaidOut {
  readonly text: string;
  readonly whole: readonly string[];
  readonly named: readonly string[];
  readonly leftOut: number;
}

const warning =
  'WARNING: These CPM progress files are older than 48 hours and were most likely left behind by sessions that were ' +
  'given up. Ask the user before you delete one.';

/** Space for the sentence that counts omitted files. */
const moreCharacters = 120;

/** A first file that must be cut leaves this much for the lines of others. */
const linesCharacters = 1_800;

const separator = '\n\n';

interface Named {
  readonly shown: ShownProgress;
  readonly line: string;
}

export function layOutContext(layout: ContextLayout, max: number): LaidOut {
  const { first, primary, showsOthers, othersTitle, unread, closing } = layout;
  const others = layout.others.map((shown): Named => ({ shown, line: otherLine(shown) }));
  const stale = layout.stale.map((shown): Named => ({ shown, line: staleLine(shown) }));
  const count = others.length + stale.length + unread;
  const titles = (others.length > 0 ? cost(othersTitle) : 0) + (stale.length > 0 ? cost(warning) : 0);
  let room = max - cost(first) - cost(closing) - (count > 0 ? moreCharacters : 0);
  const linesCost = titles + [...others, ...stale].reduce((sum, { line }) => sum + line.length + 1, 0);
  const top = primary === null ? '' : primaryBlock(primary, room - separator.length, linesCost);
  room -= cost(top) + titles;
  const fits = ({ line }: Named): boolean => {
    if (line.length + 1 > room) return false;
    room -= line.length + 1;
    return true;
  };
  const [named, namedStale] = [others.filter(fits), stale.filter(fits)];
  const whole = new Map<Named, string>();
  for (const one of showsOthers ? named : []) {
    const { shown, line } = one;
    if (shown.trouble !== null || shown.truncated || shown.isNamedOnly) continue;
    const text = block(shown);
    const price = cost(text) - line.length - 1;
    if (price > room) continue;
    room -= price;
    whole.set(one, text);
  }
  const inLine = named.filter((one) => !whole.has(one));
  const leftOut = count - named.length - namedStale.length;
  const more = `${leftOut} more CPM progress ${leftOut === 1 ? 'file' : 'files'} in ${progressFolder}.`;
  const parts = [first, top, ...whole.values(), section(othersTitle, inLine), section(warning, namedStale)];
  const all = [...parts, leftOut === 0 ? '' : more, closing];
  return {
    text: all.filter((part) => part !== '').join(separator),
    whole: [...(primary === null ? [] : [primary]), ...[...whole.keys()].map(({ shown }) => shown)].map(nameOf),
    named: [...inLine, ...namedStale].map(({ shown }) => shown.name),
    leftOut,
  };
}

const nameOf = ({ name }: ShownProgress): string => name;

/** Whole if it fits; one that must be cut leaves space for the lines of others. */
function primaryBlock(primary: ShownProgress, room: number, linesCost: number): string {
  const whole = block(primary);
  if (whole.length <= room && !primary.truncated) return whole;
  return block(primary, room - Math.min(linesCharacters, linesCost));
}

function cost(text: string): number {
  return text === '' ? 0 : text.length + separator.length;
}

function section(title: string, named: readonly Named[]): string {
  return named.length === 0 ? '' : [title, ...named.map(({ line }) => line)].join('\n');
}

function block(shown: ShownProgress, max = Number.POSITIVE_INFINITY): string {
  const top = `--- CPM SESSION STATE (${labelOf(shown.header)}) [${shown.name}] ---`;
  const bottom = '--- END ---';
  const body = withoutStructure(shown.text).trimEnd();
  const room = max - top.length - bottom.length - 2;
  const text = fittedState(body === '' ? '(empty)' : body, shown.path, room, shown.truncated);
  return `${top}\n${text}\n${bottom}`;
}

function otherLine({ path, trouble, header, ageMs }: ShownProgress): string {
  if (trouble !== null) return `- ${path} ${harmlessLine(trouble, 200)}`;
  return `- ${labelOf(header)} — file: ${path} (${hoursOf(ageMs)}h old)`;
}

/** In the form of the public CPM plugin, so that its skills understand it. */
function staleLine({ path, header, ageMs, trouble }: ShownProgress): string {
  const line = `STALE: ${labelOf(header)} — file: ${path} (${hoursOf(ageMs)}h old). To remove: delete ${path}`;
  return trouble === null ? line : `${line}\n  It ${harmlessLine(trouble, 200)}.`;
}
