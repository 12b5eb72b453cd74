/** One row for a session. Foreign text comes last, so that its width cannot shift a column. */

import { openItems } from '../../core/item.ts';
import type { WaitReason } from '../../core/plan/decision.ts';
import { isHeldBack } from '../../core/plan/plan.ts';
import type { ApiRetry } from '../../core/progress.ts';
import type { Attempt, SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import {
  fitMoney,
  formatAge,
  formatClock,
  formatCount,
  formatDuration,
  inputTokens,
  plural,
  type Tone,
} from '../../view/format.ts';
import { plainWords } from '../../view/transcript/markdown.ts';
import { listTitles, machineName, projectName, titleOf, withLocalTimes } from '../../view/wording.ts';
import { frameSize } from '../layout.ts';
import { fitLine, type Glyphs, padded, plainWidths, type Row, rowOf, type ScreenCell } from './cells.ts';
import { byDefinitions, type Lane, placeSessions } from './list.ts';
import { isBlocked, limitNow, reasoned, type Terminal, usageNow, type View } from './view.ts';

export interface RowLayout {
  readonly gap: number;
  readonly title: number;
  readonly project: number;
  readonly model: number;
  readonly host: number;
  readonly time: number;
  readonly cost: number;
  readonly changes: number;
  readonly tasks: number;
  readonly tokens: number;
  readonly tool: number;
  readonly words: number;
}

/** Marker, glyph and the blanks after them. */
const edge = 4;
const laneColumns = 2;
/** No row has room for more text. */
const wordsColumnsMax = 250;

/** Narrower lists have no times. */
const narrowColumns = 56;
/** From here on each row names its project. */
const projectColumns = 76;
const modelColumnsMin = 100;
const tokenColumnsMin = 150;
const doingColumnsMin = 12;
const titleColumnsMin = 10;
const besideMost = 130;

/** From this width on, the list beside the details shows projects and activity. */
export function listColumns(columns: number): number {
  return Math.min(besideMost, Math.max(projectColumns + frameSize, Math.round(columns / 2)));
}

export function layoutFor({ state, live }: Pick<View, 'state' | 'live'>, columns: number): RowLayout {
  const wanted = widest(state);
  if (columns < narrowColumns) return narrowLayout(wanted, columns);
  const isWide = columns >= 110;
  const project = columns < projectColumns ? 0 : Math.min(wanted.project, isWide ? 20 : 10);
  const host = columns < projectColumns ? 0 : hostColumns(state, isWide ? 16 : 8);
  const gap = isWide ? 2 : 1;
  const time = 7;
  const cost = 7;
  const model = columns < modelColumnsMin ? 0 : Math.min(16, modelColumns(state));
  const changes = columns < projectColumns ? 0 : 10;
  const hasTasks = columns >= projectColumns && [...live.values()].some((now) => now.tasks !== undefined);
  const tasks = hasTasks ? 5 : 0;
  const tokens = columns < tokenColumnsMin ? 0 : 6;
  const used = [project, model, host, time, cost, changes, tasks, tokens].reduce(
    (sum, width) => sum + (width === 0 ? 0 : width + gap),
    edge,
  );
  // A name is cut only where DOING would have less than this share of the row.
  const room = columns - used - gap - Math.floor(columns / (isWide ? 4 : 6));
  const title = Math.min(wanted.title, Math.max(room, isWide ? 34 : 18));
  const rest = Math.max(0, columns - used - title - gap);
  const tool = columns >= 150 ? Math.floor((rest - gap) * 0.45) : rest;
  const figures = { time, cost, changes, tasks, tokens };
  return { gap, title, project, model, host, ...figures, tool, words: rest === tool ? 0 : rest - gap - tool };
}

function narrowLayout({ title }: Widest, columns: number): RowLayout {
  const [gap, figures] = [1, 7];
  const none = { project: 0, model: 0, host: 0, time: 0, changes: 0, tasks: 0, tokens: 0, tool: 0, words: 0 };
  const layout = { ...none, gap, cost: figures };
  const room = Math.max(0, columns - edge - figures - 2 * gap);
  const titled = Math.min(title, room - doingColumnsMin);
  // The name comes first.
  if (titled < titleColumnsMin) return { ...layout, title: room };
  return { ...layout, title: titled, tool: room - titled };
}

/** 0 if the group never used another host. */
function hostColumns({ sessions }: GroupState, most: number): number {
  let width = 0;
  for (const record of sessions.values()) {
    if (record.host !== undefined) width = Math.max(width, 'HOST'.length, machineName(record).length);
  }
  return Math.min(most, width);
}

/** Which model answers is known only after the start. */
function modelColumns({ sessions }: GroupState): number {
  let width = 0;
  for (const record of sessions.values()) width = Math.max(width, modelName(record).length);
  return width === 0 ? 0 : Math.max(width, 'MODEL'.length);
}

interface Widest {
  readonly title: number;
  readonly project: number;
}

const widest = byDefinitions((state): Widest => {
  let title = 'SESSION'.length;
  let project = 'PROJECT'.length;

  for (const { id, lanes } of placeSessions(state)) {
    const path = state.sessions.get(id)?.definition.projectPath ?? '';
    title = Math.max(title, lanes.length * laneColumns + Bun.stringWidth(plainWidths(titleOf(state, id))));
    project = Math.max(project, Bun.stringWidth(plainWidths(projectName(path))));
  }
  return { title, project };
});

export function columnTitles(layout: RowLayout, columns: number): Row {
  const cells = [
    ' '.repeat(edge),
    column(layout, 'SESSION', layout.title),
    column(layout, 'PROJECT', layout.project),
    column(layout, 'MODEL', layout.model),
    column(layout, 'HOST', layout.host),
    column(layout, 'TIME', layout.time, 'right'),
    column(layout, 'COST', layout.cost, 'right'),
    column(layout, 'CHANGES', layout.changes, 'right'),
    column(layout, 'TASKS', layout.tasks, 'right'),
    column(layout, 'TOKENS', layout.tokens, 'right'),
    layout.words > 0 ? `${padded('DOING', layout.tool)}  LAST WORDS` : layout.tool > 0 ? 'DOING' : '',
  ];
  return rowOf([{ text: cells.join('').trimEnd(), tone: 'dim' }], columns);
}

function column({ gap }: RowLayout, text: string, width: number, align: 'left' | 'right' = 'left'): string {
  return width === 0 ? '' : `${padded(text, width, align)}${' '.repeat(gap)}`;
}

export interface RowDetails {
  readonly record: SessionRecord;
  readonly lanes: readonly Lane[];
  readonly isSelected: boolean;
  readonly isMarked: boolean;
}

export function sessionRow(
  view: View,
  { record, lanes, isSelected, isMarked }: RowDetails,
  layout: RowLayout,
  terminal: Terminal,
): Row {
  const { columns, glyphs } = terminal;
  const { definition } = record;
  const sign = signOf(view, record, glyphs);
  const usage = usageNow(view, record);
  const isTried = record.attempts > 0;
  const room = Math.max(0, layout.title - 4);
  const drawn = drawLanes(lanes, glyphs, room);
  const title = plainWidths(titleOf(view.state, definition.id));
  const tokens = inputTokens(usage.tokens) + usage.tokens.output;
  return rowOf(
    [
      isMarked ? { text: glyphs.mark, tone: 'accent' } : { text: isSelected ? glyphs.marker : ' ' },
      { text: sign.glyph, tone: sign.tone },
      { text: '  ' },
      { text: drawn, tone: 'dim' },
      {
        text: column(layout, title, layout.title - Bun.stringWidth(drawn)),
        ...(sign.isLoud ? { tone: sign.tone } : {}),
      },
      { text: column(layout, plainWidths(projectName(definition.projectPath)), layout.project), tone: 'dim' },
      { text: column(layout, modelName(record), layout.model), tone: 'dim' },
      { text: column(layout, machineName(record), layout.host), tone: 'dim' },
      { text: column(layout, isTried ? formatDuration(usage.durationMs) : '', layout.time, 'right') },
      {
        text: column(
          layout,
          isTried ? fitMoney(usage.costUsd, usage.estimated === true, layout.cost) : '',
          layout.cost,
          'right',
        ),
      },
      ...changeCells(view, record, layout),
      { text: column(layout, tasksDone(view, record), layout.tasks, 'right'), tone: 'accent' },
      { text: column(layout, isTried ? formatCount(tokens) : '', layout.tokens, 'right'), tone: 'dim' },
      ...doingCells(doingNow(view, record), layout),
    ],
    columns,
    isSelected,
  );
}

/** Shortened as far as it stays clear: `claude-opus-4-8-20260101` is `opus-4-8`. */
function modelName({ definition, model }: SessionRecord): string {
  return fitLine((definition.model ?? model ?? '').replace(/^claude-|-\d{8}$/g, ''), 40);
}

function changeCells({ changes }: View, { definition, state }: SessionRecord, layout: RowLayout): ScreenCell[] {
  const lines = (state.status === 'completed' ? state.work : undefined) ?? changes?.get(definition.id);
  const isEmpty = lines === undefined || lines.insertions + lines.deletions === 0;
  if (isEmpty || layout.changes === 0) return [{ text: column(layout, '', layout.changes) }];
  const [added, removed] = [`+${formatCount(lines.insertions)}`, ` -${formatCount(lines.deletions)}`];
  const blank = ' '.repeat(Math.max(0, layout.changes - added.length - removed.length));
  return [
    { text: `${blank}${added}`, tone: 'good' },
    { text: `${removed}${' '.repeat(layout.gap)}`, tone: 'bad' },
  ];
}

function tasksDone({ live }: View, { definition, state }: SessionRecord): string {
  const tasks = state.status === 'running' ? live.get(definition.id)?.tasks : undefined;
  return tasks === undefined ? '' : `${tasks.done}/${tasks.total}`;
}

function doingCells({ tool, idle, words }: Doing, layout: RowLayout): ScreenCell[] {
  const cell = (said: Said | undefined, width: number): ScreenCell => {
    const text = fitLine(said?.text ?? '', width);
    return said?.tone === undefined ? { text } : { text, tone: said.tone };
  };
  if (layout.words === 0) return [cell(tool ?? words, layout.tool)];
  // The reason for waiting uses the room of both columns.
  if (words === undefined) return [cell(tool, layout.tool + layout.gap + layout.words)];
  const first = cell(tool ?? idle, layout.tool);
  return [
    { ...first, text: padded(first.text, layout.tool) },
    { text: ' '.repeat(layout.gap) },
    cell(words, layout.words),
  ];
}

/** Deep branches keep their inner end. */
function drawLanes(lanes: readonly Lane[], glyphs: Glyphs, room: number): string {
  const signs: Readonly<Record<Lane, string>> = {
    pass: `${glyphs.lane} `,
    none: '  ',
    branch: `${glyphs.branch} `,
    'last-branch': `${glyphs.lastBranch} `,
  };
  const shown = lanes.slice(-Math.max(1, Math.min(lanes.length, Math.floor(room / 2 / laneColumns))));
  return lanes.length === 0 ? '' : shown.map((lane) => signs[lane]).join('');
}

interface Sign {
  readonly glyph: string;
  readonly tone: Tone;
  readonly isLoud?: true;
}

/** Milliseconds for which each frame of the spinner is shown. */
const turnMs = 300;

export function isTurning({ state, live, runner }: View, record: SessionRecord): boolean {
  const { definition, state: session } = record;
  if (session.status !== 'running' || runner === 'none' || state.frozenUntil !== undefined) return false;
  const { stopping, accepting } = session.attempt;
  if (openItems(record).length > 0) return false;
  return stopping === undefined && accepting === undefined && live.get(definition.id)?.currentTool !== undefined;
}

function signOf(view: View, record: SessionRecord, glyphs: Glyphs): Sign {
  const { verdicts, live, runner } = view;
  switch (record.state.status) {
    case 'completed':
      return { glyph: glyphs.completed, tone: 'good' };
    case 'failed':
      return { glyph: glyphs.failed, tone: 'bad', isLoud: true };
    case 'paused':
      return { glyph: glyphs.paused, tone: 'warn' };
    case 'pending':
      if (isBlocked(verdicts, record)) return { glyph: glyphs.blocked, tone: 'warn' };
      if (isHeldBack(record)) return { glyph: glyphs.paused, tone: 'warn' };
      return { glyph: glyphs.pending, tone: 'dim' };
    case 'running': {
      const { attempt } = record.state;
      if (runner === 'none') return { glyph: glyphs.running, tone: 'warn' };
      if (attempt.stopping !== undefined) return { glyph: glyphs.stopping, tone: 'warn' };
      if (attempt.accepting !== undefined) return { glyph: glyphs.accepting, tone: 'accent' };
      // The session continues, but a call was denied.
      const now = live.get(record.definition.id);
      const tone = now?.denied === undefined ? 'accent' : 'warn';
      const turn = Math.floor(view.nowMs / turnMs) % glyphs.turning.length;
      return { glyph: isTurning(view, record) ? (glyphs.turning[turn] as string) : glyphs.running, tone };
    }
  }
}

interface Said {
  readonly text: string;
  readonly tone?: Tone;
}

interface Doing {
  /** The running tool, or why the session is idle. */
  readonly tool?: Said;
  /** Shown in the column of the tool if there is room for the text beside it. */
  readonly idle?: Said;
  readonly words?: Said;
}

function doingNow(view: View, record: SessionRecord): Doing {
  const { state, verdicts, nowMs } = view;
  const session = record.state;
  const [asked] = openItems(record);
  if (asked !== undefined && (session.status === 'paused' || view.runner !== 'none'))
    return { tool: { text: `asks: ${asked.text}`, tone: 'warn' } };
  if (session.status === 'running') return runningNow(view, record, session.attempt);
  const why = verdicts(record);
  if (why === null) return completedWith(record);
  if (why.reason === 'blocked')
    return { tool: { text: `blocked by ${listTitles(state, why.on ?? [])}`, tone: 'warn' } };
  const waiting =
    session.status === 'pending' && why.on !== undefined ? `waits for ${listTitles(state, why.on)}` : undefined;
  // This check is first, because the session waits for others in any case.
  if (isHeldBack(record)) {
    const also = session.status === 'pending' ? waiting : why.reason;
    return { tool: { text: heldBack(view, record, also), tone: 'warn' } };
  }
  if (why.reason === 'waiting') return { tool: { text: waiting ?? why.message, tone: 'dim' } };
  const said = session.status === 'paused' ? session.message : why.message;
  if (why.reason === 'backoff' && why.until !== undefined) {
    const again = `again in ${formatDuration(why.until - nowMs)}`;
    return { tool: { text: `${again}: ${withLocalTimes(said, nowMs)}`, tone: 'warn' } };
  }
  const keeps = record.queued ? waitingNow(view, why) : undefined;
  if (keeps !== undefined) return { tool: keeps };
  if (session.status === 'pending') return {};
  // Its own reason: the header shows the state of the group.
  const reason = session.status === 'paused' ? session.reason : why.reason;
  const tone = session.status === 'failed' ? 'bad' : 'warn';
  return { tool: { text: withLocalTimes(reasoned(reason, said), nowMs), tone } };
}

/** Why a session that could start does not start, in a few words. */
const waitWords: Readonly<Record<string, string>> = {
  cache: 'waits for prompt cache',
  slot: 'waits for a free slot',
  starting: 'waits while others start',
  checkout: 'waits for the checkout',
  money: 'waits for budget',
  memory: 'waits for free memory',
  disk: 'waits for free disk space',
  files: 'waits for open files to be closed',
  host: 'waits for a host',
  'no-host': 'no host may run it',
};

function waitingNow({ state, nowMs }: View, { reason }: WaitReason): Said | undefined {
  if (state.status !== 'running') return undefined;
  const limit = reason === 'limit' ? limitNow(state, nowMs) : null;
  if (limit !== null) return { text: limit, tone: 'warn' };
  const text = waitWords[reason];
  return text === undefined ? undefined : { text, tone: 'dim' };
}

/** `also`: what the session would wait for if it were not held back, or why it is idle. */
function heldBack({ runner }: View, { state: { status } }: SessionRecord, also: string | undefined): string {
  // Without a runner only the whole group can be resumed, with all its sessions.
  if (runner === 'none') return also === undefined ? 'held back until P' : `held back until P: ${also}`;
  if (also !== undefined) return `held back (p): ${also}`;
  return status === 'pending' ? 'held back: p starts it' : 'held back: p resumes it';
}

function runningNow({ state, live, runner, setupLog }: View, record: SessionRecord, attempt: Attempt): Doing {
  const now = live.get(record.definition.id);
  const words = now?.lastText === undefined ? {} : { words: { text: plainWords(now.lastText, wordsColumnsMax) } };
  if (runner === 'none') return { tool: { text: withoutRunnerText(state), tone: 'warn' }, ...words };
  if (attempt.stopping !== undefined)
    return { tool: { text: `stopping (${attempt.stopping})`, tone: 'warn' }, ...words };
  if (state.frozenUntil !== undefined) {
    return { tool: { text: `halted until ${formatClock(state.frozenUntil)}`, tone: 'warn' }, ...words };
  }
  if (now?.slot !== undefined) return { tool: { text: `waits for a command slot (${now.slot.command})`, tone: 'dim' } };
  if (attempt.accepting !== undefined) {
    const command = record.definition.accept;
    return { tool: { text: command === undefined ? 'commits its work' : `accepting: ${command}`, tone: 'accent' } };
  }
  if (now?.silentMs !== undefined) {
    const text = `${attempt.place?.host ?? 'its host'} last seen ${formatAge(now.silentMs)} ago`;
    return { tool: { text, tone: 'bad' }, ...words };
  }
  if (now?.retry !== undefined) return { tool: { text: retryWords(now.retry), tone: 'warn' }, ...words };
  if (now?.currentTool !== undefined) return { tool: { text: now.currentTool, tone: 'accent' }, ...words };
  const starting = typeof setupLog?.(record) === 'string' ? 'set-up command runs' : 'claude is starting';
  const resting = { text: attempt.identified ? 'waits for the model' : starting, tone: 'dim' } as const;
  const { denied } = now ?? {};
  const idle =
    denied === undefined ? resting : ({ text: `${plural(denied.calls, 'call')} denied`, tone: 'warn' } as const);
  return now?.lastText === undefined ? { tool: idle } : { idle, ...words };
}

/** Like retrySentence, for a narrow column. */
function retryWords({ attempt, attemptsMax, errorStatus }: ApiRetry): string {
  const answer = errorStatus === null ? 'no answer' : `no answer (${errorStatus})`;
  const most = attemptsMax === undefined ? '' : ` of ${attemptsMax}`;
  return `${errorStatus === 429 ? 'throttled' : answer}, try ${attempt}${most}`;
}

/** The state of a session without a runner. A frozen session stays suspended, because only a runner thaws it. */
export function withoutRunnerText({ frozenUntil }: GroupState): string {
  return frozenUntil === undefined ? 'running without a runner, or ended' : 'suspended';
}

function completedWith({ state }: SessionRecord): Doing {
  if (state.status !== 'completed') return {};
  const words = { text: plainWords(state.result, wordsColumnsMax), tone: 'dim' } as const;
  const done = state.work === undefined ? 'done' : plural(state.work.files, 'file');
  return { idle: { text: done, tone: 'dim' }, words };
}
