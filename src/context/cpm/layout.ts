/**
 * What of several progress files is shown within the characters a hook has: the first one as far as it goes, others as
 * a whole or as one line each. Never a bit of many: a model that sees the beginnings of five files knows none of them.
 */
import {
  fittedState,
  hoursOf,
  labelOf,
  oneLine,
  type ProgressHeader,
  progressFolder,
  withoutStructure,
} from './state.ts';

/** A progress file as it may be shown. */
export interface Shown {
  readonly name: string;
  /** For sentences. */
  readonly path: string;
  readonly ageMs: number;
  readonly header: ProgressHeader;
  readonly text: string;
  /** The file is longer than `text`. */
  readonly truncated: boolean;
  /** Completes a sentence that begins with the path; null = the text can be shown. */
  readonly trouble: string | null;
  /** Has a line at most, whatever the room. */
  readonly isNamedOnly: boolean;
}

export interface Layout {
  /** The first line; empty = none. */
  readonly first: string;
  /** Shown as far as there is room; null = no file comes before the others. */
  readonly primary: Shown | null;
  /** The most important first. */
  readonly others: readonly Shown[];
  /** Others are shown as a whole while there is room; else one line each. */
  readonly showsOthers: boolean;
  /** Stands before the lines of others. */
  readonly othersTitle: string;
  readonly stale: readonly Shown[];
  /** Names of files that were not even read. */
  readonly unread: readonly string[];
  /** Empty = none. */
  readonly closing: string;
}

export interface LaidOut {
  readonly text: string;
  /** Names of files by how they are shown. */
  readonly whole: readonly string[];
  readonly named: readonly string[];
  readonly leftOut: number;
}

const warning =
  'WARNING: These CPM progress files are older than 48 hours and were most likely left behind by sessions that were ' +
  'given up. Ask the user before you delete one.';

/** Room for the sentence that counts what is left out. */
const moreCharacters = 120;

/** At most so much is spent on names of files. */
const namesCharacters = 1_800;

/** Parts are separated by an empty line. */
const separator = '\n\n';

/** At most `max` characters. */
export function layOut(layout: Layout, max: number): LaidOut {
  const { primary, others, stale } = layout;
  const names = [...[...others, ...stale].map(({ name }) => name), ...layout.unread];
  let room = max - cost(layout.first) - cost(layout.closing) - (names.length > 0 ? moreCharacters : 0);
  const primaryBlock = primary === null ? '' : primaryOf(primary, names, room - separator.length);
  room -= cost(primaryBlock);
  const named = new Map<Shown, string>();
  for (const [group, title, line] of [
    [others, layout.othersTitle, otherLine],
    [stale, warning, staleLine],
  ] as const) {
    for (const [index, shown] of group.entries()) {
      const text = line(shown);
      const price = text.length + 1 + (index === 0 ? cost(title) : 0);
      if (price + namesCost(names.slice(named.size + 1)) > room) break;
      room -= price;
      named.set(shown, text);
    }
  }
  const namedNames = new Set([...named.keys()].map(({ name }) => name));
  const leftOut = names.filter((name) => !namedNames.has(name));
  const more = moreLine(leftOut, moreCharacters + room);
  room -= Math.max(0, cost(more) - moreCharacters);
  const whole = layout.showsOthers ? wholeOnes(others, named, room) : new Map<Shown, string>();
  for (const shown of whole.keys()) named.delete(shown);
  const parts = [
    layout.first,
    primaryBlock,
    ...whole.values(),
    lines(layout.othersTitle, others, named),
    lines(warning, stale, named),
    more,
    layout.closing,
  ];
  return {
    text: parts.filter((part) => part !== '').join(separator),
    whole: [...(primary === null ? [] : [primary]), ...whole.keys()].map(({ name }) => name),
    named: [...named.keys()].map(({ name }) => name),
    leftOut: leftOut.length,
  };
}

/** As a whole when it fits; one that has to be cut anyway leaves room to name the others. */
function primaryOf(primary: Shown, names: readonly string[], room: number): string {
  const whole = block(primary);
  return whole.length <= room && !primary.truncated ? whole : block(primary, room - namesCost(names));
}

/** Those of which there is room for the whole text instead of a line. */
function wholeOnes(others: readonly Shown[], named: ReadonlyMap<Shown, string>, room: number): Map<Shown, string> {
  const whole = new Map<Shown, string>();
  let left = room;
  for (const shown of others) {
    const line = named.get(shown);
    if (line === undefined || shown.trouble !== null || shown.truncated || shown.isNamedOnly) continue;
    const text = block(shown);
    const price = cost(text) - line.length - 1;
    if (price > left) continue;
    left -= price;
    whole.set(shown, text);
  }
  return whole;
}

/** What it takes to name these files, as far as they are all named. */
function namesCost(names: readonly string[]): number {
  let sum = 0;
  for (const name of names) {
    sum += name.length + 2;
    if (sum >= namesCharacters) return namesCharacters;
  }
  return sum;
}

/** At most `max` characters, the separator included. */
function moreLine(names: readonly string[], max: number): string {
  if (names.length === 0) return '';
  const head = `${names.length} more CPM progress ${names.length === 1 ? 'file' : 'files'} in ${progressFolder}`;
  const given: string[] = [];
  let room = Math.min(namesCharacters, max - head.length - 20);
  for (const name of names) {
    room -= name.length + 2;
    if (room < 0) break;
    given.push(name);
  }
  if (given.length === 0) return `${head}.`;
  return `${head}: ${given.join(', ')}${given.length < names.length ? ', and others' : ''}.`;
}

function cost(text: string): number {
  return text === '' ? 0 : text.length + separator.length;
}

function lines(title: string, group: readonly Shown[], named: ReadonlyMap<Shown, string>): string {
  const shown = group.flatMap((one) => named.get(one) ?? []);
  return shown.length === 0 ? '' : [title, ...shown].join('\n');
}

/** One file with its delimiters; without `max` as a whole. */
function block(shown: Shown, max = Number.POSITIVE_INFINITY): string {
  const top = `--- CPM SESSION STATE (${labelOf(shown.header)}) [${shown.name}] ---`;
  const bottom = '--- END ---';
  const body = withoutStructure(shown.text).trimEnd();
  const room = max - top.length - bottom.length - 2;
  const text = fittedState(body === '' ? '(empty)' : body, shown.path, room, shown.truncated);
  return `${top}\n${text}\n${bottom}`;
}

function otherLine(shown: Shown): string {
  const { path, trouble, header, ageMs } = shown;
  if (trouble !== null) return `- ${path} ${oneLine(trouble, 200)}`;
  return `- ${labelOf(header)} — file: ${path} (${hoursOf(ageMs)}h old)`;
}

/** In the form that the public CPM plugin prints, so that its skills understand it. */
function staleLine({ path, header, ageMs, trouble }: Shown): string {
  const line = `STALE: ${labelOf(header)} — file: ${path} (${hoursOf(ageMs)}h old). To remove: delete ${path}`;
  return trouble === null ? line : `${line}\n  It ${oneLine(trouble, 200)}.`;
}
