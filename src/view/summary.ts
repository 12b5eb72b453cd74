/** The summary of a group: a table of sessions, totals, problems with suggestions, and the next steps. */
import { join } from 'node:path';
import { type Advice, adviceText, advise, adviseInOrder, type CommandLine } from '../core/advice.ts';
import { addUsage, noUsage, type SessionId, type Usage } from '../core/group.ts';
import { groupAdvice, interruptedAdvice, runCommand, sessionReference } from '../core/plan/advice.ts';
import type { Verdicts } from '../core/plan/decision.ts';
import { verdictsAtRest } from '../core/plan/verdicts.ts';
import { type SessionRecord, workedMs } from '../core/session-state.ts';
import { elapsedMs, type GroupState, isRehearsal } from '../core/state.ts';
import { listNames } from '../core/text.ts';
import {
  type Column,
  formatCount,
  formatDuration,
  formatMoment,
  formatMoney,
  formatTable,
  formatTokens,
  inputTokens,
  plural,
  type Style,
  type TableCell,
} from './format.ts';
import type { LiveView } from './reporter.ts';
import { safeLine } from './terminal-text.ts';
import {
  conditionOf,
  listTitles,
  lostHosts,
  machineName,
  messageAtRest,
  problemText,
  projectName,
  sessionTitle,
  statusTone,
  withAdvice,
} from './wording.ts';

const columns: readonly Column[] = [
  { title: 'SESSION' },
  { title: 'PROJECT', spare: 4 },
  { title: 'HOST' },
  { title: 'STATUS' },
  { title: 'REASON' },
  { title: 'RESUMES AT' },
  { title: 'ATTEMPTS', align: 'right', spare: 3 },
  { title: 'TIME', align: 'right' },
  { title: 'COST', align: 'right' },
  { title: 'IN', align: 'right', spare: 2 },
  { title: 'OUT', align: 'right', spare: 1 },
];

const sentenceColumnsMax = 1_000;
const namedMax = 3;

export interface SummaryOptions {
  readonly style: Style;
  readonly groupFolder?: string;
  readonly columns?: number | undefined;
}

export function summaryLines(state: GroupState, live: LiveView, atMs: number, options: SummaryOptions): string[] {
  const { style, groupFolder, columns: columnsMax } = options;
  const verdicts = verdictsAtRest(state);
  const order = [...state.sessions.keys()];
  const lines = [...sessionTable(state, { live, verdicts }, order, { style, columns: columnsMax, nowMs: atMs }), ''];
  lines.push(totalsLine(state, live, atMs, style));
  const trouble = problemLines(state, style, verdicts);
  if (trouble.length > 0) lines.push('', ...trouble);
  if (groupFolder === undefined) return lines;
  if (!isRehearsal(state) || state.run?.keep) lines.push(...workLines(state));
  // While the group is running, the command that detached from it prints the next steps.
  lines.push('', ...(state.status === 'running' ? [] : nextSteps(state)));
  if (state.sessions.size > 0) {
    lines.push(`Transcripts: ${safeLine(join(groupFolder, 'sessions'), sentenceColumnsMax)}/*/transcript.jsonl`);
  }
  return lines;
}

export interface TableOptions extends Pick<SummaryOptions, 'style' | 'columns'> {
  readonly nowMs: number;
}

export function sessionTable(
  state: GroupState,
  seen: SessionActivity,
  order: readonly SessionId[],
  { style, columns: columnsMax, nowMs }: TableOptions,
): string[] {
  const rows = order.flatMap((id) => {
    const record = state.sessions.get(id);
    return record === undefined ? [] : [sessionRow(record, seen, nowMs)];
  });
  return rows.length === 0 ? ['No sessions.'] : formatTable(columns, rows, style, columnsMax);
}

interface SessionActivity {
  readonly live: LiveView;
  readonly verdicts: Verdicts;
}

function sessionRow(record: SessionRecord, { live, verdicts }: SessionActivity, nowMs: number): TableCell[] {
  const { definition } = record;
  const { status } = record.state;
  const now = status === 'running' ? live.get(definition.id)?.usage : undefined;
  const usage: Usage = now === undefined ? record.usage : addUsage(record.usage, now);
  const { reason = '', until } = verdicts(record) ?? {};
  const tried = record.attempts > 0;
  return [
    sessionTitle(definition.id, definition.name),
    projectName(definition.projectPath),
    machineName(record),
    { text: status, tone: statusTone(status) },
    { text: reason, tone: statusTone(reason) },
    until === undefined ? '' : formatMoment(new Date(until).toISOString(), nowMs),
    tried ? String(record.attempts) : '',
    tried ? formatDuration(workedMs(record) + sinceStart(record, now)) : '',
    tried ? formatMoney(usage.costUsd, usage.estimated) : '',
    tried ? formatCount(inputTokens(usage.tokens)) : '',
    tried ? formatCount(usage.tokens.output) : '',
  ];
}

/** Working time of the current attempt. */
function sinceStart({ state }: SessionRecord, now: Usage | undefined): number {
  if (state.status !== 'running' || now === undefined) return 0;
  const { startedAt, spawnedAt = startedAt } = state.attempt;
  return Math.max(0, Date.parse(spawnedAt) - Date.parse(startedAt)) + now.durationMs;
}

export function totalsLine(state: GroupState, live: LiveView, atMs: number, style: Style, hasRunner = false): string {
  const status = state.status === 'running' && !hasRunner ? 'interrupted' : state.status;
  let usage = state.usage;
  for (const id of state.running) usage = addUsage(usage, live.get(id)?.usage ?? noUsage);
  const budget = state.group.config.maxBudgetUsd;
  const money = formatMoney(usage.costUsd, usage.estimated);
  const why = conditionOf(state, atMs) ?? state.reason;
  const reason = why === undefined ? '' : ` (${safeLine(why, 60)})`;
  const parts = [
    `${style(statusTone(status), status)}${reason}`,
    `${state.counts.completed} of ${plural(state.sessions.size, 'session')} completed`,
    budget === undefined ? money : `${money} of ${formatMoney(budget)}`,
    formatTokens(usage.tokens),
    formatDuration(elapsedMs(state, atMs)),
  ];
  return `${style('strong', safeLine(state.group.name, 60))}: ${parts.join(', ')}`;
}

/** One line with the next step per session that did not complete, and one per warning. */
export function problemLines(state: GroupState, style: Style, verdicts: Verdicts): string[] {
  const lines: string[] = [];
  for (const record of state.sessions.values()) {
    const title = sessionTitle(record.definition.id, record.definition.name);
    const why = verdicts(record);
    const words = problemText(state, record, why);
    if (why?.reason === 'blocked') {
      lines.push(`${style('warn', title)}  blocked by ${listTitles(state, why.on ?? [])}`);
    } else if (words !== undefined && !isToldOfGroup(state, words.message)) {
      const tone = record.state.status === 'failed' ? 'bad' : 'warn';
      const message = safeLine(withAdvice(words.message, words.advice), sentenceColumnsMax);
      lines.push(`${style(tone, title)}  ${record.state.status}: ${message}`);
    }
    const { heldUsd } = record.usage;
    if (record.lost !== undefined && heldUsd !== undefined) {
      lines.push(`${style('warn', title)}  ${heldWords(record, heldUsd)}`);
    }
    for (const warning of record.warnings) {
      lines.push(`${style('warn', title)}  warning: ${safeLine(warning.message, sentenceColumnsMax)}`);
    }
  }
  return lines;
}

/** The amount held for a lost host. */
function heldWords(record: SessionRecord, heldUsd: number): string {
  const hosts = lostHosts(record);
  const names = safeLine(hosts.join(', '), 200);
  const held = `lost: ${names} does not respond; ${formatMoney(heldUsd)} is held`;
  return adviceText(
    adviseInOrder(
      `${held} until the host is back or you record it with`,
      ...hosts.map((host) => ['host', 'forget', host]),
    ),
  );
}

/** Whether the group's own message already says this: a group paused for its user repeats its session's message. */
function isToldOfGroup({ status, reason, message = '' }: GroupState, words: string): boolean {
  return status === 'paused' && reason === 'needs-person' && message.startsWith(words);
}

export function nextSteps(state: GroupState, hasRunner = false): string[] {
  return nextAdvice(state, hasRunner).map((advice) => safeLine(adviceText(advice), sentenceColumnsMax));
}

export function nextAdvice(state: GroupState, hasRunner: boolean): Advice[] {
  const { id } = state.group;
  switch (state.status) {
    case 'created': {
      const add: CommandLine = ['session', 'add', id, '--project', 'DIR', '--prompt', 'TEXT'];
      return [advise('Next', state.sessions.size === 0 ? add : runCommand(state))];
    }
    case 'running':
      return hasRunner ? [advise('Next', ['group', 'watch', id])] : [interruptedAdvice(state)];
    case 'paused':
    case 'failed': {
      // A group that is being deleted does not continue.
      if (state.reason === 'deleted') return [advise(state.message ?? '')];
      const message = messageAtRest(state);
      return [
        ...(message ? [advise(message)] : []),
        ...oneByOne(groupAdvice(state)),
        ...reviewSteps(state, 'Review the rest with'),
      ];
    }
    case 'completed':
      return isRehearsal(state)
        ? [
            ...(state.run?.keep ? lookSteps(state) : logSteps(state)),
            adviseInOrder('For real', ['group', 'copy', id, '--real'], ['group', 'run', '@']),
          ]
        : [...lookSteps(state), ...(hasWorkToMerge(state) ? [advise('Then', ['group', 'merge', id])] : [])];
    case 'archived':
      return [];
  }
}

/** One line per command, so that each can be pasted. */
function oneByOne({ sentence, commands, inOrder }: Advice): Advice[] {
  if (inOrder) return [adviseInOrder(sentence, ...commands)];
  return commands.map((command, index) => advise(index === 0 ? sentence : 'Or', command));
}

function lookSteps(state: GroupState): Advice[] {
  const review = reviewSteps(state, 'Next');
  return review.length > 0 ? review : logSteps(state);
}

function reviewSteps(state: GroupState, words: string): Advice[] {
  return hasWorkToMerge(state) ? [advise(words, ['review', state.group.id])] : [];
}

function logSteps(state: GroupState): Advice[] {
  const first = state.sessions.values().next().value;
  return first ? [advise('Next', ['session', 'logs', sessionReference(state, first)])] : [];
}

/** Names the worktrees with work that is not in the project folders. */
function workLines({ sessions }: GroupState): string[] {
  const branches = [...sessions.values()].flatMap(({ workspace, mergedInto, state }) => {
    const hasWork = state.status === 'completed' && (state.work?.files ?? 0) > 0 && mergedInto === undefined;
    return hasWork && workspace !== undefined ? [workspace.branch] : [];
  });
  if (branches.length === 0) return [];
  const where = listNames(branches, namedMax);
  return ['', safeLine(`The work is on ${where}, not yet in your checkouts.`, sentenceColumnsMax)];
}

/** Merged sessions have no worktree any more. */
function hasWorkToMerge({ sessions }: GroupState): boolean {
  return [...sessions.values()].some(
    ({ workspace, state }) => workspace !== undefined && state.status === 'completed' && (state.work?.files ?? 0) > 0,
  );
}
