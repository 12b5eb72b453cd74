/**
 * context/cpm/: progress files of CPM. This file: its hooks, which tell the model about the progress files of its
 * project.
 */
import {
  type ContextSystem,
  charactersMax,
  fileBytesMax,
  type HookAnswer,
  type HookCall,
  harmlessLine,
  isEarlierId,
  quietly,
} from '../hook-call.ts';
import {
  findProgress,
  fittedState,
  hoursOf,
  labelOf,
  type Progress,
  type ProgressFile,
  type ProgressHeader,
  progressFolder,
  progressPath,
  readProgressText,
  shownPath,
  withoutStructure,
} from './state.ts';

export const cpm = { name: 'cpm', answer } satisfies ContextSystem;

function answer(call: HookCall): HookAnswer {
  switch (call.event) {
    case 'session-start':
      return sessionStart(call);
    case 'pre-compact':
      return preCompact(call);
    case 'session-end':
      return { text: '' };
  }
}

const filesReadMax = 64;
/** Bytes read of another session's file: more than is ever shown of it, whatever its language. */
const otherBytesMax = 32 * 1024;

interface Candidates {
  /** The files read: the session's own first, then the newest first, stale ones last. */
  readonly all: readonly ShownProgress[];
  readonly unread: number;
}

function sessionStart(call: HookCall): HookAnswer {
  const adopted = adoptEarlier(call);
  const progress = findProgress(call.files, call.projectFolder, call.nowMs);
  const layout = layoutFor(call, readCandidates(call, progress));
  const { text, whole, named, leftOut } = layOutContext(layout, charactersMax);
  const notes = {
    shown: whole,
    named,
    leftOut,
    ...(progress.oddNames === 0 ? {} : { oddNames: progress.oddNames }),
    ...(progress.trouble === null ? {} : { trouble: progress.trouble }),
    ...(adopted === null ? {} : { adopted }),
  };
  return { text, notes };
}

/** The progress file of a worker goes with its session to a new id. Returns the earlier one. */
function adoptEarlier(call: HookCall): string | null {
  const { files, projectFolder, nowMs, sessionId } = call;
  const ids = findProgress(files, projectFolder, nowMs).sessions.flatMap((file) => file.sessionId ?? []);
  const earlier = ids.find((id) => isEarlierId(call, id));
  if (earlier === undefined || sessionId === undefined || ids.includes(sessionId)) return null;
  // A file that cannot be renamed is named like those of other sessions.
  quietly(() => files.rename(progressPath(projectFolder, earlier), progressPath(projectFolder, sessionId)));
  return earlier;
}

function readCandidates(call: HookCall, { sessions, legacy }: Progress): Candidates {
  const own = sessions.filter(({ sessionId }) => sessionId === call.sessionId);
  // No id leads to the legacy file, so the files of many sessions must not hide it.
  const others = [...(legacy === null ? [] : [legacy]), ...sessions.filter((file) => !own.includes(file))];
  const ordered = [...own, ...others.filter(({ stale }) => !stale), ...others.filter(({ stale }) => stale)];
  const all = ordered.slice(0, filesReadMax).map((file) => {
    const shown = shownOf(call, file, own.includes(file) ? fileBytesMax : otherBytesMax);
    // Next to files of sessions it is only named, because it most likely predates ids.
    return { ...shown, isNamedOnly: file === legacy && sessions.length > 0 };
  });
  return { all, unread: ordered.length - all.length };
}

function shownOf(call: HookCall, file: ProgressFile, bytesMax: number): ShownProgress {
  const read = readProgressText(call.files, call.projectFolder, file.path, bytesMax);
  const about = { ...file, path: shownPath(file.path), isNamedOnly: false };
  if (!read.ok) return { ...about, header: {}, text: '', truncated: false, trouble: read.trouble };
  return { ...about, header: read.header, text: read.text, truncated: read.truncated, trouble: null };
}

function layoutFor(call: HookCall, { all, unread }: Candidates): ContextLayout {
  const first = call.sessionId === undefined ? '' : `CPM_SESSION_ID: ${call.sessionId}`;
  const own = all.find(({ sessionId, trouble }) => sessionId === call.sessionId && trouble === null) ?? null;
  const rest = all.filter((one) => one !== own);
  const base = { first, primary: own, stale: [], unread, othersTitle: ofOthers };
  const isCompact = call.source === 'compact';
  if (isCompact && own !== null) {
    return { ...base, others: rest.filter(({ isNamedOnly }) => isNamedOnly), unread: 0, closing: goOn(call) };
  }
  // Without an id, states cannot be assigned to sessions, so a worker then gets all of them.
  if (call.isWorker && call.sessionId !== undefined) {
    const others = rest.map((one) => ({ ...one, isNamedOnly: true }));
    return { ...base, others, closing: own === null ? '' : goOn(call) };
  }
  const shows = { ...base, othersTitle: notShown };
  if (isCompact || call.isWorker) {
    return { ...shows, ...firstAndOthers(rest), closing: rest.length === 0 ? '' : noMatch(call) };
  }
  // A user is asked what to do with each file. The session's own file is never treated as stale: it is still wanted
  // after a long weekend.
  const [stale, fresh] = [rest.filter((one) => one.stale), rest.filter((one) => !one.stale)];
  const files = own === null ? firstAndOthers(fresh) : { others: fresh };
  const closing = all.length === 0 ? '' : `${askUser(call)}${own?.stale === true ? oldButOwn(own) : ''}`;
  return { ...shows, ...files, stale, closing };
}

function firstAndOthers(shown: readonly ShownProgress[]): Pick<ContextLayout, 'primary' | 'others'> {
  const primary = shown.find(({ trouble, isNamedOnly }) => trouble === null && !isNamedOnly) ?? null;
  return { primary, others: shown.filter((one) => one !== primary) };
}

const notShown = 'Not shown here; read what you need:';
const ofOthers = 'Progress files of other sessions; leave them alone unless your task names them:';

/**
 * The time makes the text differ from that of an earlier start: claude drops hook text that is already in the
 * conversation: if the state went A, B, A, the second A would be dropped and B would look current.
 */
function asOf({ nowMs }: HookCall): string {
  return `(read at ${new Date(nowMs).toISOString()})`;
}

function askUser(call: HookCall): string {
  return (
    `NOTE: Found CPM session state ${asOf(call)}. Ask the user whether to continue where it left off or to discard ` +
    'it; to discard it, delete its file. To continue it under another session id, write it to the file of ' +
    'CPM_SESSION_ID, check that, then delete the old file.'
  );
}

function oldButOwn({ name, ageMs }: ShownProgress): string {
  return ` ${name} belongs to this session and was last written ${hoursOf(ageMs)} hours ago.`;
}

function goOn(call: HookCall): string {
  return `NOTE: This is the state of this session ${asOf(call)}: continue with its next action.`;
}

function noMatch(call: HookCall): string {
  return (
    `NOTE: No CPM progress file bears the id of this session ${asOf(call)}, so all are shown. Go on only with the ` +
    'one that belongs to your own work.'
  );
}

/** claude adds this text to its instructions for the summary. */
function preCompact(call: HookCall): HookAnswer {
  const { sessions } = findProgress(call.files, call.projectFolder, call.nowMs);
  const own = sessions.find(({ sessionId }) => sessionId === call.sessionId);
  const shown = own === undefined ? null : shownOf(call, own, otherBytesMax);
  const keep =
    'keep in the summary: the skill and its current phase, what was decided in each completed phase, the path of the ' +
    'output, the next action, and the CPM_SESSION_ID line.';
  if (shown === null || shown.trouble !== null) return { text: `CPM: if a CPM skill is at work, ${keep}` };
  const text =
    `CPM: this session (CPM_SESSION_ID: ${call.sessionId}) is at work: ${labelOf(shown.header)}. Its ` +
    `state is in ${shown.path} and is shown again after the compaction. Nevertheless ${keep}`;
  return { text, notes: { shown: [shown.name] } };
}

// Fits several progress files into the characters of a hook: the first one as far as possible, others whole or
// in one line each. Never the beginnings of many, from which a model would learn none.

/** A progress file to show; `path` is safe in a sentence. */
export interface ShownProgress extends ProgressFile {
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
  /** Shown whole while there is space, the most important first. */
  readonly others: readonly ShownProgress[];
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
  const { first, primary, othersTitle, unread, closing } = layout;
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
  for (const one of named) {
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
