/** `--output text`: one line per event, for logs, CI and terminals without a dashboard. */
import { adviceText } from '../core/advice.ts';
import { type GroupEvent, type MergedRepository, thisMachine } from '../core/event.ts';
import { needsPerson, unreachable } from '../core/failure.ts';
import type { SessionId, Usage } from '../core/group.ts';
import { eventAdvice } from '../core/plan/advice.ts';
import { isolationOf } from '../core/plan/isolation.ts';
import { deniedSentence } from '../core/progress.ts';
import type { SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import {
  formatClock,
  formatDuration,
  formatMoment,
  formatMoney,
  formatTokens,
  padColumns,
  plural,
  type Style,
} from './format.ts';
import type { Reporter } from './reporter.ts';
import { summaryLines } from './summary.ts';
import { safeLine, safeText } from './terminal-text.ts';
import {
  blockedBy,
  listTitles,
  projectName,
  resumesAtText,
  settingWords,
  titleOf,
  withAdvice,
  withLocalTimes,
} from './wording.ts';

const groupLabel = 'group';
const labelColumnsMax = 32;
const toolColumnsMax = 80;
const sentenceColumnsMax = 400;

export interface TextReporterOptions {
  readonly write: (text: string) => void;
  readonly style: Style;
  /** Milliseconds since 1970, for lines without an event. */
  readonly now: () => number;
  readonly groupFolder?: string;
  readonly columns?: number | undefined;
}

export function createTextReporter(options: TextReporterOptions): Reporter {
  const { write, style, now } = options;
  const width = labelWidth();
  const toolShown = new Map<SessionId, string>();
  const deniedShown = new Map<SessionId, number>();
  const say = (at: string, state: GroupState, label: string, text: string): void =>
    write(`${style('dim', formatClock(at))}  ${padColumns(label, width(state))}  ${text}\n`);

  return {
    event(event, state) {
      if (event.type === 'session_starting') deniedShown.delete(event.sessionId);
      // The denial was printed when it happened.
      const isDenial = event.type === 'session_warning' && event.warning.code === 'denied-tools';
      const text = isDenial && deniedShown.has(event.sessionId) ? null : describeEvent(event, state, style);
      if (text === null) return;
      const about = 'sessionId' in event && event.sessionId !== undefined;
      if (about && !event.type.startsWith('item_')) toolShown.delete(event.sessionId as SessionId);
      say(event.at, state, about ? titleOf(state, event.sessionId as SessionId) : groupLabel, text);
    },
    progress(sessionId, state, live) {
      const session = live.get(sessionId);
      const tools = session?.recentTools ?? (session?.currentTool === undefined ? [] : [session.currentTool]);
      for (const tool of tools) {
        if (tool === toolShown.get(sessionId)) continue;
        toolShown.set(sessionId, tool);
        const at = new Date(now()).toISOString();
        say(at, state, titleOf(state, sessionId), style('dim', safeLine(tool, toolColumnsMax)));
      }
      const { denied } = session ?? {};
      if (denied === undefined || denied.calls === deniedShown.get(sessionId)) return;
      deniedShown.set(sessionId, denied.calls);
      const sentence = style('warn', safeLine(deniedSentence(denied), sentenceColumnsMax));
      say(new Date(now()).toISOString(), state, titleOf(state, sessionId), sentence);
    },
    waiting(reason, message, state) {
      const at = new Date(now()).toISOString();
      const words = withLocalTimes(message, now());
      say(at, state, groupLabel, style('warn', `waiting (${reason})${trailing(words)}`));
    },
    warning(message, state) {
      say(new Date(now()).toISOString(), state, groupLabel, style('warn', `warning: ${sentence(message)}`));
    },
    summarize(state, live, atMs) {
      write(`\n${summaryLines(state, live, atMs, options).join('\n')}\n`);
    },
  };
}

function labelWidth(): (state: GroupState) => number {
  let version = -1;
  let width = groupLabel.length;
  return (state) => {
    if (state.definitionsVersion !== version) {
      version = state.definitionsVersion;
      width = groupLabel.length;
      for (const id of state.sessions.keys()) width = Math.max(width, Bun.stringWidth(titleOf(state, id)));
      width = Math.min(width, labelColumnsMax);
    }
    return width;
  };
}

function describeEvent(event: GroupEvent, state: GroupState, style: Style): string | null {
  switch (event.type) {
    case 'group_created':
    case 'session_starting':
    case 'rehearsal_chosen':
    case 'session_identified':
    case 'request_answered':
    case 'session_queued':
    case 'session_attaching':
      return null;
    case 'session_message':
      return `message: ${sentence(event.text)}`;
    case 'session_stalled':
      return style('warn', `no progress for ${formatDuration(event.silentMs)} (${event.step})`);
    case 'session_added':
      return `added  ${projectName(event.session.projectPath)}`;
    case 'session_changed':
      return `changed${event.changed === undefined ? '' : `: ${settingWords(event.changed)}`}`;
    case 'session_removed':
      return 'removed';
    case 'session_inherited':
      return `${style('good', 'completed')}  in ${event.from.groupId}`;
    case 'group_started':
    case 'group_resumed':
      return describeRun(event, state);
    case 'session_started':
    case 'session_resumed':
    case 'session_retrying':
    case 'session_adopted':
      return describeStart(event, state);
    case 'session_stopping':
      return style('warn', `stopping (${event.reason})`);
    case 'session_attached':
      return style('warn', 'attached to a terminal');
    case 'session_detached':
      return `detached  ${describeUsage(totalUsage(state, event.sessionId, event.usage))}`;
    case 'session_warning':
      return style('warn', `warning: ${sentence(event.warning.message)}`);
    case 'session_isolated':
      return `worktree ${sentence(event.workspace.path)} on branch ${sentence(event.workspace.branch)}`;
    case 'session_accepting': {
      const command = state.sessions.get(event.sessionId)?.definition.accept;
      return command === undefined ? null : `accepting: ${sentence(command)}`;
    }
    case 'session_cost_settled':
    case 'session_cleaned':
    case 'session_moved':
    case 'session_host_lost':
    case 'session_booked':
    case 'item_opened':
    case 'item_answered':
    case 'item_withdrawn':
      return describeAside(event, style);
    case 'session_completed':
      return `${style('good', 'completed')}  ${describeUsage(totalUsage(state, event.sessionId, event.usage))}`;
    case 'session_failed':
      return describeSessionFailure(event, state, style);
    case 'session_paused': {
      const usage = describeUsage(totalUsage(state, event.sessionId, event.usage));
      const { retryAt } = event;
      const again = retryAt === undefined ? '' : `, ${resumesAtText(Date.parse(retryAt), Date.parse(event.at))}`;
      return `${style('warn', `paused (${event.reason}${again})`)}  ${usage}${trailing(event.message)}`;
    }
    default:
      return describeGroupEvent(event, style);
  }
}

type AsideEvent = Extract<
  GroupEvent,
  { type: `item_${string}` | `session_${'cost_settled' | 'cleaned' | 'moved' | 'host_lost' | 'booked'}` }
>;

/** Events that do not change the status of a session. */
function describeAside(event: AsideEvent, style: Style): string {
  switch (event.type) {
    case 'session_cost_settled':
      return `held amount settled: ${describeUsage(event.usage)}`;
    case 'session_cleaned':
      return 'worktree and branch removed';
    case 'item_opened':
      return style('warn', `asks (item ${event.item}): ${sentence(event.text)}`);
    case 'item_answered':
      return `answered by ${event.by} (item ${event.item}): ${sentence(event.answer.text)}`;
    case 'item_withdrawn':
      return `no longer waiting for an answer (item ${event.item})`;
    case 'session_moved':
      return `${event.from === undefined ? 'assigned' : `moved from ${machine(event.from)}`} to ${machine(event.to)}`;
    case 'session_host_lost': {
      const held = event.held > 0 ? `; up to ${formatMoney(event.held)} held` : '';
      return style('warn', `its host ${sentence(event.host)} is lost${held}`);
    }
    case 'session_booked':
      return `cost on the lost host: ${describeUsage(event.usage)}`;
  }
}

type GroupLevelEvent = Exclude<
  Extract<GroupEvent, { type: `${'group' | 'budget' | 'session_budget' | 'limit' | 'wave'}_${string}` }>,
  { type: 'group_created' | 'group_started' | 'group_resumed' }
>;

function describeGroupEvent(event: GroupLevelEvent, style: Style): string | null {
  const own = event.type.startsWith('session_') ? 'own ' : '';
  switch (event.type) {
    case 'budget_warning':
    case 'session_budget_warning': {
      const share = event.limit > 0 ? Math.round((event.usage / event.limit) * 100) : 100;
      const amounts = `${formatMoney(event.usage)} of ${formatMoney(event.limit)}`;
      return style('warn', `${own}budget warning: ${share}% used, ${amounts}`);
    }
    case 'budget_exceeded':
    case 'session_budget_exceeded': {
      const amounts = `${formatMoney(event.usage)} of ${formatMoney(event.limit)}`;
      return style('warn', `${own}budget exceeded: ${amounts}, ${event.action}`);
    }
    case 'group_pausing':
      return style('warn', `pausing (${event.reason})${event.mode === 'drain' ? ': running sessions finish' : ''}`);
    case 'group_frozen':
      return style('warn', `frozen until ${formatClock(event.until)}, then paused`);
    case 'group_thawed':
      return 'continued';
    case 'limit_reached':
      return style(
        'warn',
        `${limitWords(event)}; nothing starts before ${formatMoment(event.resetsAt, Date.parse(event.at))}`,
      );
    case 'limit_lifted':
      return style('good', 'limit lifted');
    case 'group_paused':
      return `${style('warn', `paused (${sentence(event.reason)})`)}${trailing(unsaid(event))}`;
    case 'group_completed':
      return style('good', 'completed');
    case 'group_failed':
      return `${style('bad', `failed (${sentence(event.reason)})`)}${trailing(event.message)}`;
    case 'group_merged':
      return style('good', event.merged.map(describeMerge).join('; '));
    case 'group_archived':
      return 'archived';
    case 'wave_finished':
      return `wave ${event.wave} finished: ${event.accepted} accepted, ${formatMoney(event.cost)}`;
    case 'wave_decided': {
      const note = event.note === undefined ? '' : `: ${sentence(event.note)}`;
      return `decided by ${event.by} after wave ${event.wave}: ${event.decision}${note}`;
    }
    // Earlier versions did not log the changed settings.
    case 'group_changed':
    case 'group_redefined':
      return event.changed === undefined ? null : `changed: ${settingWords(event.changed)}`;
    default:
      return unreachable(event);
  }
}

/** The session that needs the user has already shown the reason. */
function unsaid({ reason, message }: Extract<GroupEvent, { type: 'group_paused' }>): string {
  return reason === 'needs-person' ? '' : message;
}

function machine(host: string): string {
  return host === thisMachine ? 'this machine' : sentence(host);
}

function describeMerge({ into, repository, sessionIds }: MergedRepository): string {
  const project = repository.replace(/\/\.git$/, '');
  return `merged ${plural(sessionIds.length, 'session')} into ${sentence(into)} of ${projectName(project)}`;
}

function limitWords({ limitType }: Extract<GroupEvent, { type: 'limit_reached' }>): string {
  return limitType === 'throttled' ? 'the server throttles requests' : 'usage limit reached';
}

function describeRun(
  event: Extract<GroupEvent, { type: 'group_started' | 'group_resumed' }>,
  state: GroupState,
): string {
  const { maxConcurrentSessions, maxBudgetUsd } = state.group.config;
  const left = state.sessions.size - state.counts.completed;
  const parts = [
    `${event.type === 'group_started' ? 'started' : 'resumed'}: ${plural(left, 'session')} to run`,
    `up to ${maxConcurrentSessions} at once`,
    maxBudgetUsd === undefined ? 'no cap' : `cap ${formatMoney(maxBudgetUsd)}`,
  ];
  const isolated = [...state.sessions].filter(
    ([id, record]) => record.state.status !== 'completed' && isolationOf(state, id) === 'worktree',
  );
  if (isolated.length > 0) parts.push(`${isolated.length} in worktrees (your checkouts do not change)`);
  if (event.type === 'group_resumed' && event.retry.length > 0) parts.push(`retrying ${event.retry.length} failed`);
  if (event.run.rehearsal) parts.push('rehearsal: no account, no cost');
  return parts.join(', ');
}

type StartEvent = Extract<GroupEvent, { type: `session_${'started' | 'resumed' | 'retrying' | 'adopted'}` }>;

function describeStart({ type, attempt, sessionId, process }: StartEvent, state: GroupState): string {
  const path = state.sessions.get(sessionId)?.definition.projectPath;
  const project = path === undefined ? '' : `  ${projectName(path)}`;
  const pid = type === 'session_adopted' ? `  pid ${process.pid}` : '';
  return `${type.slice('session_'.length)} (attempt ${attempt})${project}${pid}`;
}

function describeSessionFailure(
  event: Extract<GroupEvent, { type: 'session_failed' }>,
  state: GroupState,
  style: Style,
): string {
  const usage = describeUsage(totalUsage(state, event.sessionId, event.usage));
  const blocked = blockedBy(state, event.sessionId);
  const blocks = blocked.length > 0 ? `  Blocks ${listTitles(state, blocked)}.` : '';
  const reason = style('bad', `failed (${event.reason})`);
  // The run ends now with the same message.
  const isToldNext = needsPerson(event.reason) && state.running.size === 0;
  if (isToldNext) return `${reason}  ${usage}${blocks}`;
  return `${reason}  ${usage}${trailing(event.message)}${blocks}${trailing(adviceText(eventAdvice(event, state)))}`;
}

/** Usage of all attempts, because users want the cost of the session so far. */
function totalUsage(state: GroupState, sessionId: SessionId, ofAttempt: Usage): Usage {
  const record: SessionRecord | undefined = state.sessions.get(sessionId);
  return record?.usage ?? ofAttempt;
}

function describeUsage(usage: Usage): string {
  const money = formatMoney(usage.costUsd, usage.estimated);
  return `${money}, ${formatTokens(usage.tokens)}, ${formatDuration(usage.durationMs)}`;
}

function trailing(text: string): string {
  const clean = sentence(text);
  return clean === '' ? '' : `  ${clean}`;
}

function sentence(text: string): string {
  return safeLine(text, sentenceColumnsMax);
}

// The reporter for GitHub Actions: folds the details of each session and annotates failures. Text of sessions must not
// become a workflow command.

const linesMax = 100;
const lineColumnsMax = 400;
const annotationColumnsMax = 1_000;

export function createGithubReporter(options: TextReporterOptions): Reporter {
  const text = createTextReporter({ ...options, write: (text) => options.write(withoutCommands(text)) });
  return {
    event(event, state, live) {
      text.event(event, state, live);
      for (const line of [...detailLines(event, state), ...annotations(event, state)]) options.write(`${line}\n`);
    },
    progress: (...what) => text.progress(...what),
    waiting: (...what) => text.waiting(...what),
    warning: (message, state) => {
      text.warning?.(message, state);
      options.write(`${annotation('warning', `Group ${state.group.name}`, message)}\n`);
    },
    summarize: (...what) => text.summarize(...what),
  };
}

function detailLines(event: GroupEvent, state: GroupState): string[] {
  switch (event.type) {
    case 'session_completed': {
      const { work } = event;
      const changes =
        work === undefined ? [] : [`${plural(work.files, 'file')}, +${work.insertions} -${work.deletions}`];
      return folded(`${titleOf(state, event.sessionId)}: result`, [...changes, ...linesOf(event.result)]);
    }
    case 'session_failed': {
      const sentences = [event.message, adviceText(eventAdvice(event, state))].filter((sentence) => sentence !== '');
      return folded(`${titleOf(state, event.sessionId)}: failed (${event.reason})`, [
        ...sentences.map((sentence) => safeLine(sentence, annotationColumnsMax)),
        ...linesOf(event.output ?? ''),
      ]);
    }
    case 'session_paused':
      return folded(`${titleOf(state, event.sessionId)}: paused (${event.reason})`, [
        ...linesOf(event.message),
        ...linesOf(event.output ?? ''),
      ]);
    default:
      return [];
  }
}

function linesOf(text: string): string[] {
  const clean = safeText(text).trim();
  if (clean === '') return [];
  const lines = clean.split('\n');
  const shown = lines.slice(0, linesMax).map(shownLine);
  const hidden = lines.length - linesMax;
  return hidden > 0 ? [...shown, `and ${plural(hidden, 'more line')}`] : shown;
}

function shownLine(line: string): string {
  const [indent = ''] = /^ {0,40}/.exec(line) ?? [];
  return indent + safeLine(line, lineColumnsMax);
}

/** Each line starts with a mark, so that it is not a command. */
function folded(title: string, lines: readonly string[]): string[] {
  if (lines.length === 0) return [];
  return [
    `::group::${escapeData(withoutCommands(title))}`,
    ...lines.map((line) => withoutCommands(`| ${line}`.trimEnd())),
    '::endgroup::',
  ];
}

function annotations(event: GroupEvent, state: GroupState): string[] {
  const message = 'message' in event ? withAdvice(event.message, eventAdvice(event, state)) : '';
  switch (event.type) {
    case 'session_failed': {
      const title = `Session ${titleOf(state, event.sessionId)} failed (${event.reason})`;
      return [annotation('error', title, message)];
    }
    case 'session_warning':
      return [annotation('warning', `Session ${titleOf(state, event.sessionId)}`, event.warning.message)];
    case 'group_failed':
      return [annotation('error', `Group ${state.group.name} failed (${event.reason})`, message)];
    case 'group_paused':
      return [annotation('warning', `Group ${state.group.name} is paused (${event.reason})`, message)];
    default:
      return [];
  }
}

function annotation(level: 'error' | 'warning', title: string, message: string): string {
  const body = escapeData(withoutCommands(safeText(message).trim()));
  return `::${level} title=${escapeProperty(withoutCommands(safeLine(title, lineColumnsMax)))}::${body}`;
}

/** As GitHub's own toolkit does it. */
export function escapeData(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

export function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}

// GitHub Actions treats lines that begin with `::`, after optional blanks, as commands, and `##[` anywhere.

/** Defuses commands in `text`. `isLineBegin`: only blanks precede it in its first line. */
export function withoutCommands(text: string, isLineBegin = true): string {
  const plain = text.replaceAll('##[', '## [');
  const rest = isLineBegin ? 0 : plain.search(/[\r\n]|$/);
  return plain.slice(0, rest) + plain.slice(rest).replace(/^(\s*)::/gm, '$1| ::');
}

/** True if text after `text` would start a line, apart from blanks. */
export function endsInLineBegin(text: string, wasLineBegin: boolean): boolean {
  const line = text.split(/[\r\n]/);
  return (line.length > 1 || wasLineBegin) && (line.at(-1) ?? '').trim() === '';
}
