/** The tabs of the details: what a session does and why, its log, changes, task, cost and settings. */
import type { SessionDefinition } from '../../core/group.ts';
import { slotSentence } from '../../core/plan/command-slot.ts';
import type { WaitReason } from '../../core/plan/decision.ts';
import { unmetOf } from '../../core/plan/plan.ts';
import { deniedSentence, silenceSentence } from '../../core/progress.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import {
  colourStyle,
  formatClock,
  formatCount,
  formatDate,
  formatDuration,
  formatMoney,
  formatTokens,
  plural,
  type Tone,
} from '../../view/format.ts';
import { safeText } from '../../view/terminal-text.ts';
import { type Line, markdownLines } from '../../view/transcript/markdown.ts';
import {
  listTitles,
  retrySentence,
  setupSentence,
  statusTone,
  titleOf,
  withAdvice,
  withLocalTimes,
} from '../../view/wording.ts';
import type { PaneContent } from '../layout.ts';
import { type AttemptNote, rateAfterMs } from './attempts.ts';
import { cellsOf, fitLine, padded, plainWidths, rowOf, type ScreenCell, widthOf, wrapCells, wrapLed } from './cells.ts';
import { withoutRunnerText } from './session-row.ts';
import { type Tab, tabs } from './ui.ts';
import { type Diff, type SessionDetails, type Terminal, usageNow, type View } from './view.ts';

/** Longer lines are cut: a line of claude may have megabytes. */
const lineLengthMax = 4_000;
const linesMax = 2_000;
const nameColumns = 14;

interface Wanted {
  readonly record: SessionRecord;
  readonly columns: number;
}

export function tabLines(view: View, tab: Tab, wanted: Wanted): ScreenCell[][] {
  const { record, columns } = wanted;
  const material = view.material?.sessionId === record.definition.id ? view.material : undefined;
  switch (tab) {
    case 'now':
      return nowLines(view, record, columns);
    case 'log': {
      const lines = logLines(material, columns);
      return lines.length === 0 ? [[{ text: 'No output yet.', tone: 'dim' }]] : lines;
    }
    case 'diff':
      return diffLines(material?.diff, columns);
    case 'prompt':
      return textLines(record.definition.prompt, columns);
    case 'config':
      return configLines(record, columns);
    case 'cost':
      return costLines(view, wanted, material?.attempts ?? []);
  }
}

export function logLines(
  material: SessionDetails | undefined,
  columns: number,
  linesMax = Number.POSITIVE_INFINITY,
): ScreenCell[][] {
  const log = material?.log ?? [];
  const blocks: ScreenCell[][][] = [];
  let count = 0;
  for (let index = log.length - 1; index >= 0 && count < linesMax; index -= 1) {
    const block = broken(log[index] as Line, columns);
    blocks.push(block);
    count += block.length;
  }
  const lines = blocks.reverse().flat();
  return lines.slice(Math.max(0, lines.length - linesMax));
}

const knownBroken = new WeakMap<Line, { readonly columns: number; readonly lines: ScreenCell[][] }>();

/** A log only grows, so lines that were wrapped for this width are kept. */
function broken(line: Line, columns: number): ScreenCell[][] {
  const known = knownBroken.get(line);
  if (known?.columns === columns) return known.lines;
  const lines = lineCells(line, columns);
  knownBroken.set(line, { columns, lines });
  return lines;
}

function diffLines(diff: Diff | undefined, columns: number): ScreenCell[][] {
  if (diff === undefined) return [[{ text: 'Reading the changes…', tone: 'dim' }]];
  const head = wrapCells([{ text: plainWidths(diff.summary), tone: 'dim' }], columns);
  const lines = diff.lines.slice(0, linesMax).flatMap((text) => lineCells({ lead: '', text }, columns));
  return [...head, ...lines];
}

function costLines(view: View, { record, columns }: Wanted, attempts: readonly AttemptNote[]): ScreenCell[][] {
  if (record.attempts === 0) return [[{ text: 'Not started yet.', tone: 'dim' }]];
  const { definition } = record;
  const { costUsd, estimated, tokens, turns, durationMs } = usageNow(view, record);
  const { maxBudgetUsd: cap } = definition;
  const ofCap = cap === undefined ? '' : ` of ${formatMoney(cap)}`;
  const rate = durationMs < rateAfterMs ? '' : `, ${formatMoney((costUsd / durationMs) * 3_600_000)}/h`;
  const rows: readonly (readonly [string, string])[] = [
    ['spent', `${formatMoney(costUsd, estimated)}${ofCap}${rate}`],
    ['time', `${formatDuration(durationMs)}, ${plural(turns, 'turn')}`],
    ['input', formatCount(tokens.input)],
    ['from cache', formatCount(tokens.cacheRead)],
    ['into cache', formatCount(tokens.cacheCreation)],
    ['output', formatCount(tokens.output)],
  ];
  const notes = attempts.toReversed().flatMap((note) => wrapCells(attemptCells(note, view.nowMs), columns));
  return [
    ...rows.flatMap(([name, value]) => named(name, value, columns)),
    ...(notes.length === 0 ? [] : [[], [{ text: 'Attempts, newest first', tone: 'dim' } as const], ...notes]),
  ];
}

/** Replaces tabs and joiners, which would shift the rest of the line. */
function harmless(cells: readonly ScreenCell[]): ScreenCell[] {
  return cells.map((cell) => ({
    ...cell,
    text: plainWidths(cell.text.slice(0, lineLengthMax).replaceAll('\t', '  ')),
  }));
}

/** A line of a transcript; wrapped lines continue below its text. */
function lineCells({ lead, text }: Line, columns: number): ScreenCell[][] {
  const [indent = ''] = /^ */.exec(text) ?? [];
  const [before, after] = [lead + indent, text.slice(indent.length)].map((part) => harmless(cellsOf(part)));
  return wrapLed(before ?? [], after ?? [], columns);
}

function textLines(text: string, columns: number, tone?: Tone): ScreenCell[][] {
  const lines = safeText(text.slice(0, lineLengthMax * 20))
    .trimEnd()
    .split('\n')
    .slice(0, linesMax);
  return lines.flatMap((line) =>
    wrapCells(harmless([tone === undefined ? { text: line } : { text: line, tone }]), columns),
  );
}

function nowLines(view: View, record: SessionRecord, columns: number): ScreenCell[][] {
  const { state } = view;
  const { definition } = record;
  const { status } = record.state;
  const usage = usageNow(view, record);
  const why = view.verdicts(record);
  const word = why === null ? status : `${status} (${why.reason})`;
  const money = `${formatMoney(usage.costUsd, usage.estimated)}, ${formatTokens(usage.tokens)}`;
  const attempts = plural(record.attempts, 'attempt');
  const head: ScreenCell[] = [
    { text: word, tone: statusTone(status) },
    { text: record.attempts === 0 ? '' : `  ${attempts}, ${formatDuration(usage.durationMs)}, ${money}` },
  ];
  const lines: ScreenCell[][] = [...wrapCells(head, columns)];
  const add = (name: string, text: string | undefined, tone?: Tone): void => {
    if (text !== undefined && text.trim() !== '') lines.push(...named(name, text, columns, tone));
  };
  add('why', whySentence(view, record, why), status === 'failed' ? 'bad' : 'warn');
  if (status === 'pending') add('waits for', listTitles(state, unmetOf(state, record)));
  const now = view.live.get(definition.id);
  const slot = now?.slot;
  add('why', slot === undefined ? undefined : slotSentence(state, slot), 'warn');
  const setupLog = view.runner === 'none' || slot !== undefined ? null : view.setupLog?.(record);
  add('set-up', typeof setupLog === 'string' ? setupSentence(setupLog) : undefined);
  add('API', now?.retry === undefined ? undefined : retrySentence(now.retry), 'warn');
  const { silentMs } = now ?? {};
  add('host', silentMs === undefined ? undefined : silenceSentence(record.host ?? '', silentMs), 'bad');
  add('denied', now?.denied === undefined ? undefined : deniedSentence(now.denied), 'warn');
  add('tool', now?.currentTool, 'accent');
  const say = (name: string, markdown: string | undefined): void => {
    if (markdown !== undefined && markdown.trim() !== '') lines.push(...saidLines(name, markdown, columns));
  };
  say('last text', now?.lastText);
  for (const message of record.messages) add('to send', message);
  for (const warning of record.warnings) add('warning', warning.message, 'warn');
  if (record.rejection !== undefined)
    add('not accepted', `${record.rejection.message}\n${record.rejection.output}`, 'bad');
  if (record.state.status === 'completed') {
    const { work, result } = record.state;
    if (work !== undefined) {
      add('work', `${plural(work.files, 'file')}, +${work.insertions} -${work.deletions}, ${work.commit.slice(0, 12)}`);
    }
    add('merged into', record.mergedInto);
    say('result', result);
  }
  return lines;
}

/** Includes the next step if the group has no runner. Absent when the session runs well or is completed. */
function whySentence(
  { state, runner, nowMs }: View,
  record: SessionRecord,
  why: WaitReason | null,
): string | undefined {
  if (record.state.status === 'running' && runner === 'none') {
    const does = withoutRunnerText(state);
    return `${does[0]?.toUpperCase()}${does.slice(1)}. The group's runner is gone. Press P to resume.`;
  }
  if (why === null) return undefined;
  const { advice } = why;
  const [command, ...others] = advice?.commands ?? [];
  if (record.state.status === 'failed' && others.length === 0 && command?.[1] === 'retry' && command.length === 3)
    return `${why.message} ${record.state.failure.next} Press r to retry.`.replaceAll('  ', ' ');
  return why.reason === 'runner-gone'
    ? "The group's runner is gone. Press P to resume."
    : withLocalTimes(withAdvice(why.message, advice), nowMs);
}

/** Text of a model, in Markdown, beside the name. */
function saidLines(name: string, markdown: string, columns: number): ScreenCell[][] {
  const said = markdownLines(markdown.slice(0, lineLengthMax * 20), colourStyle).slice(0, linesMax);
  const lines = said.flatMap((line) => lineCells(line, Math.max(10, columns - nameColumns)));
  return lines.map((line, index) => [nameCell(index === 0 ? name : ''), ...line]);
}

function nameCell(name: string): ScreenCell {
  return { text: padded(name, nameColumns), tone: 'dim' };
}

/** `name   text`: the text is wrapped in its own column. */
function named(name: string, text: string, columns: number, tone?: Tone): ScreenCell[][] {
  const lines = textLines(text, Math.max(10, columns - nameColumns), tone);
  return lines.map((line, index) => [nameCell(index === 0 ? name : ''), ...line]);
}

function configLines(
  { definition, model, workspace, claudeSessionIds }: SessionRecord,
  columns: number,
): ScreenCell[][] {
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['session', definition.id],
    ['description', definition.description],
    ['project', definition.projectPath],
    ['requires', definition.requires?.join(', ')],
    ['only on', definition.host],
    ['model', definition.model ?? model],
    ['permissions', definition.permissionMode],
    ['tools', definition.allowedTools?.join(', ')],
    ['template', definition.template],
    ['config', definition.configTemplate?.name],
    ['context', definition.context?.join(', ')],
    ['own cap', definition.maxBudgetUsd === undefined ? undefined : formatMoney(definition.maxBudgetUsd)],
    ...limits(definition),
    ['isolate', definition.isolate],
    ['branch', workspace?.branch],
    ['worktree', workspace?.path],
    ['setup', definition.setup],
    ['accept', definition.accept],
    ['claude id', claudeSessionIds.at(-1)],
  ];
  return rows.flatMap(([name, value]) => (value === undefined || value === '' ? [] : named(name, value, columns)));
}

function limits(definition: SessionDefinition): (readonly [string, string | undefined])[] {
  const time = (ms: number | undefined): string | undefined => (ms === undefined ? undefined : formatDuration(ms));
  return [
    ['timeout', time(definition.timeoutMs)],
    ['stall timeout', time(definition.stallTimeoutMs)],
    ['retries', definition.retries === undefined ? undefined : String(definition.retries)],
  ];
}

function attemptCells(
  { number, kind, startedAt, endedAt, outcome, reason, usage, pid, model }: AttemptNote,
  nowMs: number,
): ScreenCell[] {
  const until = endedAt === undefined ? nowMs : Date.parse(endedAt);
  const parts = [
    `${formatDate(startedAt)}${endedAt === undefined ? '' : ` to ${formatClock(endedAt)}`}`,
    formatDuration(until - Date.parse(startedAt)),
    ...(usage === undefined ? [] : [formatMoney(usage.costUsd, usage.estimated), formatTokens(usage.tokens)]),
    ...(model === undefined ? [] : [fitLine(model, 40)]),
    ...(pid === undefined ? [] : [`pid ${pid}`]),
  ];
  return [
    { text: `${String(number).padStart(2)} ${kind.padEnd(6)} ` },
    { text: reason === undefined ? outcome : `${outcome} (${reason})`, tone: statusTone(outcome) },
    { text: `  ${parts.join(', ')}`, tone: 'dim' },
  ];
}

export interface PaneOptions {
  readonly record: SessionRecord;
  readonly tab: Tab;
  readonly scroll: number;
}

/** Columns and rows for the lines. */
export type Part = Pick<Terminal, 'columns' | 'rows' | 'glyphs'>;

export interface DetailsContent extends PaneContent {
  readonly scroll: number;
}

/** If this many rows are left below the current activity, a short log fills them. */
const logRowsMin = 3;

/** `rows`: the maximum number of rows. */
export function linesFor(view: View, { record, tab }: PaneOptions, { columns, rows }: Part): ScreenCell[][] {
  const lines = tabLines(view, tab, { record, columns: columns - 2 });
  const left = rows - lines.length - 2;
  if (tab !== 'now' || left < logRowsMin) return lines;
  const material = view.material?.sessionId === record.definition.id ? view.material : undefined;
  const log = logLines(material, columns - 2, left);
  return log.length === 0 ? lines : [...lines, [], [{ text: 'log', tone: 'dim' }], ...log];
}

export function detailsContent(
  { state }: View,
  { record, tab, scroll: wanted }: PaneOptions,
  { columns, rows }: Part,
  lines: readonly ScreenCell[][],
): DetailsContent {
  const most = Math.max(0, lines.length - rows);
  const scroll = Math.min(wanted, most);
  const from = tab === 'log' ? most - scroll : scroll;
  const shown = lines.slice(from, from + rows).map((line) => rowOf([{ text: ' ' }, ...line], columns));
  const below = Math.max(0, lines.length - from - rows);
  const hidden = from + below === 0 ? '' : ` ${from} above, ${below} below `;
  const names = tabs.flatMap((name): ScreenCell[] => [
    { text: ' ', tone: 'dim' },
    { text: name === tab ? `[${name}]` : name, tone: name === tab ? 'strong' : 'dim', on: { on: 'tab', tab: name } },
  ]);
  const title = plainWidths(titleOf(state, record.definition.id));
  const room = Math.max(minNameColumns, columns - widthOf(names) - 7);
  return {
    title: [{ text: ` ${fitLine(title, room)} `, tone: 'strong' }, ...names, { text: ' ' }],
    end: hidden === '' ? [] : [{ text: hidden, tone: 'dim' }],
    rows: shown,
    on: { on: 'pane' },
    scroll,
  };
}

const minNameColumns = 8;
