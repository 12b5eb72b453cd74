/**
 * context/cpm/: progress files of CPM. This file: its hooks, from an event of claude to what the model is told about
 * the progress files of its project.
 */
import { basename, dirname, join } from 'node:path';
import { type ContextSystem, charactersMax, fileBytesMax, type HookAnswer, type HookCall } from '../hook-call.ts';
import { adopt } from './adoption.ts';
import { type Layout, layOut, type Shown } from './layout.ts';
import { findProgress, type Progress, type ProgressFile, readProgress, shownPath } from './progress-files.ts';
import { hoursOf, isSessionId, labelOf } from './state.ts';

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

/** So many files are read; more are only counted. */
const filesReadMax = 64;
/** Bytes that are read of a file of another session: more than is shown of one, in any language. */
const otherBytesMax = 32 * 1024;

interface Candidate {
  readonly file: ProgressFile;
  readonly shown: Shown;
}

interface Candidates {
  /** What was read: the own file first, then the newest first, stale ones last. */
  readonly all: readonly Candidate[];
  /** Names of the rest. */
  readonly unread: readonly string[];
}

function sessionStart(call: HookCall): HookAnswer {
  const adoption = adoptEarlier(call);
  const progress = findProgress(call.files, call.projectFolder, call.nowMs);
  const candidates = readCandidates(call, progress, adoption?.ownId ?? call.sessionId);
  const layout = layoutFor(call, candidates, adoption?.ownId ?? call.sessionId);
  const { text, whole, named, leftOut } = layOut(layout, charactersMax);
  const notes = {
    shown: whole,
    named,
    leftOut,
    ...(progress.oddNames === 0 ? {} : { oddNames: progress.oddNames }),
    ...(progress.trouble === null ? {} : { trouble: progress.trouble }),
    ...(adoption === null ? {} : { adoption: adoption.note }),
  };
  return { text, notes };
}

/**
 * A worker keeps its id through resumes, but `/clear` gives it a new one, and so does `/branch` (a fork) in a session
 * that was attached. So its state can be taken over here instead of being left to the model. Only then: a claude that
 * the worker itself starts has the same folder and must not take the state away.
 */
function adoptEarlier(call: HookCall) {
  const { isWorker, source, sessionId, files, projectFolder } = call;
  const isNewId = source === 'clear' || source === 'fork';
  if (!isWorker || !isNewId || sessionId === undefined) return null;
  for (const earlierId of earlierIds(call)) {
    if (earlierId === sessionId || !isSessionId(earlierId)) continue;
    const adopted = adopt(files, projectFolder, earlierId, sessionId);
    if (adopted.ok) return { ownId: sessionId, note: `${earlierId}: ${adopted.value}` };
    // What could not be moved is still the state of this session.
    if (adopted.failure.reason !== 'not-found') return { ownId: earlierId, note: adopted.failure.message };
  }
  return null;
}

/**
 * Its folder `<NNN-uuid>` tells the first id of a worker. After it come those whose conversation lies beside this one,
 * for no other worker has this config dir: a second `/clear` finds the state under the id of the first.
 */
function earlierIds({ env, transcriptPath, files, projectFolder, nowMs }: HookCall): string[] {
  const firstId = /^\d+-(.+)$/.exec(basename(dirname(env.CLAUDE_CONFIG_DIR ?? '')))?.[1];
  if (firstId === undefined) return [];
  const conversations = transcriptPath === undefined ? null : dirname(transcriptPath);
  const later = findProgress(files, projectFolder, nowMs).sessions.flatMap(({ sessionId: id }) =>
    id !== null && conversations !== null && files.entryKind(join(conversations, `${id}.jsonl`)) !== null ? [id] : [],
  );
  return [firstId, ...later];
}

function readCandidates(call: HookCall, { sessions, legacy }: Progress, ownId: string | undefined): Candidates {
  const own = sessions.filter(({ sessionId }) => sessionId === ownId);
  const others = withLegacy(
    sessions.filter((file) => !own.includes(file)),
    legacy,
  );
  const ordered = [...own, ...others.filter(({ stale }) => !stale), ...others.filter(({ stale }) => stale)];
  const all = ordered.slice(0, filesReadMax).map((file) => {
    const shown = shownOf(call, file, own.includes(file) ? fileBytesMax : otherBytesMax);
    return { file, shown: file === legacy && sessions.length > 0 ? { ...shown, isNamedOnly: true } : shown };
  });
  return { all, unread: ordered.slice(filesReadMax).map(({ name }) => name) };
}

/**
 * A session that knows no id writes the legacy file. Beside files of sessions it is only named, for it is most likely
 * left over from before they had ids. It stands at its age, but behind one other at most: no id leads to it, so the
 * files of many sessions must not crowd it out.
 */
function withLegacy(others: readonly ProgressFile[], legacy: ProgressFile | null): readonly ProgressFile[] {
  if (legacy === null) return others;
  const [newest, ...rest] = others;
  if (newest === undefined) return [legacy];
  return legacy.mtimeMs > newest.mtimeMs ? [legacy, ...others] : [newest, legacy, ...rest];
}

function shownOf(call: HookCall, file: ProgressFile, bytesMax: number): Shown {
  const read = readProgress(call.files, call.projectFolder, file.path, bytesMax);
  const about = { name: file.name, path: shownPath(file), ageMs: file.ageMs, isNamedOnly: false };
  if (!read.ok) return { ...about, header: {}, text: '', truncated: false, trouble: read.trouble };
  return { ...about, header: read.header, text: read.text, truncated: read.truncated, trouble: null };
}

function layoutFor(call: HookCall, { all, unread }: Candidates, ownId: string | undefined): Layout {
  const first = call.sessionId === undefined ? '' : `CPM_SESSION_ID: ${call.sessionId}`;
  const isOwn = ({ file, shown }: Candidate) =>
    file.sessionId !== null && file.sessionId === ownId && shown.trouble === null;
  const own = all.find(isOwn) ?? null;
  const rest = all.filter((one) => one !== own).map(({ shown }) => shown);
  const base = { first, primary: own?.shown ?? null, stale: [], othersTitle: notShown, unread, closing: '' };
  if (call.source === 'compact' && own !== null) {
    const others = rest.filter(({ isNamedOnly }) => isNamedOnly);
    return { ...base, others, showsOthers: false, othersTitle: ofOthers, unread: [], closing: goOn(call) };
  }
  // Without an id nobody can tell whose state is whose, so a worker then gets all that there is.
  if (call.isWorker && ownId !== undefined) {
    const closing = own === null ? '' : goOn(call);
    return { ...base, others: rest, showsOthers: false, othersTitle: ofOthers, closing };
  }
  if (call.source === 'compact' || call.isWorker) {
    return { ...base, ...firstAndOthers(rest), showsOthers: true, closing: rest.length === 0 ? '' : noMatch(call) };
  }
  return startLayout(call, all, own, base);
}

/**
 * Somebody is there to be asked: every file, and the old ones to be cleared away. Not the own one: who resumes a
 * session after a long weekend wants its state back, and is told how old it is.
 */
function startLayout(
  call: HookCall,
  all: readonly Candidate[],
  own: Candidate | null,
  base: Omit<Layout, 'others' | 'showsOthers'>,
): Layout {
  const rest = all.filter((one) => one !== own);
  const stale = rest.filter(({ file }) => file.stale).map(({ shown }) => shown);
  const fresh = rest.filter(({ file }) => !file.stale).map(({ shown }) => shown);
  const files = own === null ? firstAndOthers(fresh) : { others: fresh };
  const closing = all.length === 0 ? '' : `${askUser(call)}${own?.file.stale === true ? oldButOwn(own) : ''}`;
  return { ...base, ...files, showsOthers: true, stale, closing };
}

/** The first file that can be shown, and the rest. */
function firstAndOthers(shown: readonly Shown[]): Pick<Layout, 'primary' | 'others'> {
  const primary = shown.find(({ trouble, isNamedOnly }) => trouble === null && !isNamedOnly) ?? null;
  return { primary, others: shown.filter((one) => one !== primary) };
}

const notShown = 'Not shown here; read what you need:';
const ofOthers = 'Progress files of other sessions; leave them alone unless your task names them:';

/**
 * The time makes the text differ from that of an earlier start: claude drops a hook's text that stands in the
 * conversation already, and an older state in between would then look like the newest.
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

function oldButOwn({ file }: Candidate): string {
  return ` ${file.name} belongs to this very session and was last written ${hoursOf(file.ageMs)} hours ago.`;
}

function goOn(call: HookCall): string {
  const alone = call.isWorker ? ' Nobody can be asked.' : '';
  return `NOTE: This is the state of this very session ${asOf(call)}: continue with its next action.${alone}`;
}

function noMatch(call: HookCall): string {
  return (
    `NOTE: No CPM progress file bears the id of this session ${asOf(call)}, so all are shown. Go on only with the ` +
    'one that belongs to your own work.'
  );
}

/** Printed into the instructions for the summary. */
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
