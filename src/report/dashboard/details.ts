/** The details pane: what the selected session does and why, its log, its task, its settings and its attempts. */

import type { SessionDefinition } from '../../core/group.ts';
import { slotSentence } from '../../core/plan/command-slot.ts';
import { deniedSentence } from '../../core/progress.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import {
  colourStyle,
  formatClock,
  formatDate,
  formatDuration,
  formatMoney,
  formatTokens,
  plural,
  type Tone,
} from '../format.ts';
import { safeText } from '../terminal-text.ts';
import type { Line } from '../transcript/line.ts';
import { markdownLines } from '../transcript/markdown.ts';
import {
  listTitles,
  retrySentence,
  setupSentence,
  statusTone,
  titleOf,
  withAdvice,
  withLocalTimes,
} from '../wording.ts';
import {
  type Cell,
  cellsOf,
  foreign,
  padded,
  plainWidths,
  type Row,
  rowOf,
  widthOf,
  wrapCells,
  wrapLed,
} from './cells.ts';
import { leftAlone, usageNow } from './session-row.ts';
import { type Tab, tabs, type Ui } from './ui.ts';
import { explain, type Terminal, type View } from './view.ts';

/** What is longer is cut: a line of claude may be megabytes long. */
const lineLengthMax = 4_000;
const linesMax = 2_000;
const nameColumns = 14;

/**
 * Exactly `rows` rows, the first of which names the session and the tabs. `lines` are those of `paneLines`;
 * `scroll` is brought within bounds.
 */
export function paneRows(
  view: View,
  record: SessionRecord,
  { tab, scroll: wanted, lines }: Pick<Ui, 'tab' | 'scroll'> & { readonly lines: readonly Cell[][] },
  terminal: Terminal,
  rows: number,
): { readonly rows: Row[]; readonly scroll: number } {
  const { columns } = terminal;
  const room = Math.max(0, rows - 1);
  const most = Math.max(0, lines.length - room);
  const scroll = Math.min(wanted, most);
  const from = tab === 'log' ? most - scroll : scroll;
  const shown = lines.slice(from, from + room);
  const body = Array.from({ length: room }, (_, index) => rowOf([{ text: ' ' }, ...(shown[index] ?? [])], columns));
  const hidden = { above: from, below: Math.max(0, lines.length - from - room) };
  return { rows: [headRow(view, record, tab, terminal, hidden), ...body], scroll };
}

interface Hidden {
  readonly above: number;
  readonly below: number;
}

function headRow(
  { state }: View,
  record: SessionRecord,
  tab: Tab,
  { columns, glyphs }: Terminal,
  { above, below }: Hidden,
): Row {
  const title = plainWidths(titleOf(state, record.definition.id));
  const names = tabs.flatMap((name, index): Cell[] => [
    { text: index === 0 ? ' ' : ` ${glyphs.dot} `, tone: 'dim' },
    name === tab ? { text: `[${name}]`, tone: 'strong' } : { text: name, tone: 'dim' },
  ]);
  const hidden = above + below === 0 ? '' : ` ${above} above, ${below} below `;
  const left: Cell[] = [
    { text: glyphs.rule.repeat(2), tone: 'dim' },
    { text: ` ${title} `, tone: 'strong' },
    { text: glyphs.rule.repeat(2), tone: 'dim' },
    ...names,
    { text: ' ' },
  ];
  const room = columns - widthOf(left);
  const end = hidden.length + 2 <= room ? hidden : '';
  const rule = { text: glyphs.rule.repeat(Math.max(0, room - end.length)), tone: 'dim' } as const;
  return rowOf([...left, rule, { text: end, tone: 'dim' }], columns);
}

/** What the pane has to show below its first row. */
export function paneLines(view: View, record: SessionRecord, tab: Tab, { columns }: Terminal): Cell[][] {
  return tabLines(view, record, tab, columns - 2);
}

function tabLines(view: View, record: SessionRecord, tab: Tab, columns: number): Cell[][] {
  const material = view.material?.sessionId === record.definition.id ? view.material : undefined;
  switch (tab) {
    case 'now':
      return nowLines(view, record, columns);
    case 'log': {
      const log = material?.log ?? [];
      if (log.length === 0) return [[{ text: 'Nothing was printed so far.', tone: 'dim' }]];
      return log.flatMap((line) => lineCells(line, columns));
    }
    case 'prompt':
      return textLines(record.definition.prompt, columns);
    case 'config':
      return configLines(record, columns);
    case 'attempts': {
      const attempts = material?.attempts ?? [];
      if (attempts.length === 0) return [[{ text: 'It was not started so far.', tone: 'dim' }]];
      return attempts.toReversed().flatMap((note) => wrapCells(attemptCells(note, view.nowMs), columns));
    }
  }
}

/** Tabs would jump; what joins characters would shift what follows. */
function harmless(cells: readonly Cell[]): Cell[] {
  return cells.map((cell) => ({
    ...cell,
    text: plainWidths(cell.text.slice(0, lineLengthMax).replaceAll('\t', '  ')),
  }));
}

/** A line of a transcript; broken lines go on below its text. */
function lineCells({ lead, text }: Line, columns: number): Cell[][] {
  const [indent = ''] = /^ */.exec(text) ?? [];
  const [before, after] = [lead + indent, text.slice(indent.length)].map((part) => harmless(cellsOf(part)));
  return wrapLed(before ?? [], after ?? [], columns);
}

/** A text of several lines by somebody else. */
function textLines(text: string, columns: number, tone?: Tone): Cell[][] {
  const lines = safeText(text.slice(0, lineLengthMax * 20))
    .trimEnd()
    .split('\n')
    .slice(0, linesMax);
  return lines.flatMap((line) =>
    wrapCells(harmless([tone === undefined ? { text: line } : { text: line, tone }]), columns),
  );
}

function nowLines(view: View, record: SessionRecord, columns: number): Cell[][] {
  const { state } = view;
  const { definition } = record;
  const { status } = record.state;
  const usage = usageNow(view, record);
  const explained = explain(state, record);
  const word = explained.reason === undefined ? status : `${status} (${explained.reason})`;
  const money = `${formatMoney(usage.costUsd, usage.estimated)}, ${formatTokens(usage.tokens)}`;
  const attempts = plural(record.attempts, 'attempt');
  const head: Cell[] = [
    { text: word, tone: statusTone(status) },
    { text: record.attempts === 0 ? '' : `  ${attempts}, ${formatDuration(usage.durationMs)}, ${money}` },
  ];
  const lines: Cell[][] = [...wrapCells(head, columns)];
  const add = (name: string, text: string | undefined, tone?: Tone): void => {
    if (text !== undefined && text.trim() !== '') lines.push(...named(name, text, columns, tone));
  };
  add(
    'why',
    whySentence(view, record) ?? withAdvice(explained.message ?? '', explained.advice),
    status === 'failed' ? 'bad' : 'warn',
  );
  add('waits for', explained.waitsFor === undefined ? undefined : listTitles(state, explained.waitsFor));
  const now = view.live.get(definition.id);
  const slot = now?.slot;
  add('why', slot === undefined ? undefined : slotSentence(state, slot), 'warn');
  const setupLog = view.runner === 'none' || slot !== undefined ? null : view.setupLog?.(record);
  add('set-up', typeof setupLog === 'string' ? setupSentence(setupLog) : undefined);
  add('trouble', now?.retry === undefined ? undefined : retrySentence(now.retry), 'warn');
  add('denied', now?.denied === undefined ? undefined : deniedSentence(now.denied), 'warn');
  add('tool', now?.currentTool, 'accent');
  const say = (name: string, markdown: string | undefined): void => {
    if (markdown !== undefined && markdown.trim() !== '') lines.push(...saidLines(name, markdown, columns));
  };
  say('said last', now?.lastText);
  for (const message of record.messages) add('to be told', message);
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

/** With the next step where nobody runs the group; absent when the session runs well or is completed. */
function whySentence({ state, runner, why, nowMs }: View, record: SessionRecord): string | undefined {
  if (record.state.status === 'running' && runner === 'none') {
    const does = leftAlone(state);
    return `${does[0]?.toUpperCase()}${does.slice(1)}. The group's runner is gone; P lets it go on.`;
  }
  const answer = why?.(record) ?? null;
  if (answer === null) return undefined;
  const isIdle = state.status === 'running' && runner === 'none' && /^(slot|frozen)$/.test(answer.reason);
  return isIdle
    ? "The group's runner is gone; P lets it go on."
    : withLocalTimes(withAdvice(answer.message, answer.advice), nowMs);
}

/** What a model said, in Markdown, beside the name. */
function saidLines(name: string, markdown: string, columns: number): Cell[][] {
  const said = markdownLines(markdown.slice(0, lineLengthMax * 20), colourStyle).slice(0, linesMax);
  const lines = said.flatMap((line) => lineCells(line, Math.max(10, columns - nameColumns)));
  return lines.map((line, index) => [nameCell(index === 0 ? name : ''), ...line]);
}

function nameCell(name: string): Cell {
  return { text: padded(name, nameColumns), tone: 'dim' };
}

/** `name   text`, the text in a column of its own over as many lines as it needs. */
function named(name: string, text: string, columns: number, tone?: Tone): Cell[][] {
  const lines = textLines(text, Math.max(10, columns - nameColumns), tone);
  return lines.map((line, index) => [nameCell(index === 0 ? name : ''), ...line]);
}

function configLines({ definition, model, workspace, claudeSessionIds }: SessionRecord, columns: number): Cell[][] {
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['session', definition.id],
    ['description', definition.description],
    ['project', definition.projectPath],
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

type Note = NonNullable<View['material']>['attempts'][number];

function attemptCells(
  { number, kind, startedAt, endedAt, outcome, reason, usage, pid, model }: Note,
  nowMs: number,
): Cell[] {
  const until = endedAt === undefined ? nowMs : Date.parse(endedAt);
  const parts = [
    `${formatDate(startedAt)}${endedAt === undefined ? '' : ` to ${formatClock(endedAt)}`}`,
    formatDuration(until - Date.parse(startedAt)),
    ...(usage === undefined ? [] : [formatMoney(usage.costUsd, usage.estimated), formatTokens(usage.tokens)]),
    ...(model === undefined ? [] : [foreign(model, 40)]),
    ...(pid === undefined ? [] : [`pid ${pid}`]),
  ];
  return [
    { text: `${String(number).padStart(2)} ${kind.padEnd(6)} ` },
    { text: reason === undefined ? outcome : `${outcome} (${reason})`, tone: statusTone(outcome) },
    { text: `  ${parts.join(', ')}`, tone: 'dim' },
  ];
}
