/** A group's work as it is reviewed: rows in the order in which a person should look, and what each line says. */
import { adviceText, type CommandLine, commandText } from '../../core/advice.ts';
import type { CheckRun } from '../../core/evidence.ts';
import type { GroupId, SessionId } from '../../core/group.ts';
import type { ItemKind } from '../../core/item.ts';
import { groupAdvice, interruptedAdvice } from '../../core/plan/advice.ts';
import { isBeforeDecision } from '../../core/plan/plan.ts';
import type { GroupState } from '../../core/state.ts';
import type { SessionStatus } from '../../core/status.ts';
import { formatDuration, formatMoney, plural } from '../format.ts';
import type { ChangedFile } from './patch.ts';
import { compareRisks, type Risk } from './risks.ts';

/** In the order of the review. */
export const reviewKinds = [
  'decision',
  'unfinished',
  'risk',
  'unchanged',
  'safe',
  'waiting',
  'proposed',
  'merged',
] as const;
export type ReviewKind = (typeof reviewKinds)[number];

/** What a person is asked. */
export interface OpenDecision {
  readonly id: string;
  readonly kind: ItemKind | 'wave';
  readonly text: string;
  readonly options: readonly string[];
  readonly firstOptions?: readonly number[];
}

export type ReviewFile = Pick<ChangedFile, 'path' | 'from' | 'kind' | 'isBinary' | 'text'> & {
  readonly insertions: number;
  readonly deletions: number;
};

export interface ReviewRow {
  readonly sessionId: SessionId;
  readonly title: string;
  readonly project: string;
  readonly kind: ReviewKind;
  readonly status: SessionStatus;
  readonly reason?: string;
  readonly branch?: string;
  readonly asked: string;
  /** Its result, or why it has none. */
  readonly said: string;
  readonly decisions: readonly OpenDecision[];
  readonly risks: readonly Risk[];
  readonly files: readonly ReviewFile[];
  readonly evidence: readonly CheckRun[];
  /** US dollars. */
  readonly costUsd: number;
  /** What nine of ten such sessions cost before; absent = no history. */
  readonly quoteUsd?: number;
  /** Why its work can be handed over by no command; absent = it can. */
  readonly notMergeable?: string;
  /** The address of the pull request that contains its work as it is now. */
  readonly pullRequest?: string;
}

export interface Review {
  readonly version: 1;
  readonly groupId: GroupId;
  readonly name: string;
  readonly headline: string;
  readonly rows: readonly ReviewRow[];
  /** Decisions that belong to no session. */
  readonly decisions: readonly OpenDecision[];
  /** Why a paused group does not go on, and how it does. */
  readonly halt?: string;
  /** Whether the safe work passes its checks together: a sentence. */
  readonly union?: string;
}

export function orderRows(rows: readonly ReviewRow[]): ReviewRow[] {
  const place = ({ kind }: ReviewRow) => reviewKinds.indexOf(kind);
  return rows.toSorted((a, b) => place(a) - place(b) || compareRisks(a.risks, b.risks));
}

const kindTitles: Readonly<Record<ReviewKind, string>> = {
  decision: 'Waits for your decision',
  unfinished: 'Not completed',
  risk: 'Look at this first',
  unchanged: 'Changed nothing',
  safe: 'Safe to merge',
  waiting: 'Waits or still runs',
  proposed: 'In a pull request',
  merged: 'Merged',
};

export function kindTitle(kind: ReviewKind): string {
  return kindTitles[kind];
}

/** `Failed: 3 of 80 sessions completed, $41.20 spent. 2 decisions wait, 60 failed.` */
export function headlineOf(
  state: GroupState,
  rows: readonly ReviewRow[],
  decisions: number,
  hasRunner: boolean,
): string {
  const { status, usage, counts } = state;
  // A session that waits for a person, or for the next run after a decision, has not failed.
  const undecided = rows.filter(
    ({ kind, sessionId }) =>
      kind === 'decision' || startsLater(state, sessionId) || (kind === 'waiting' && waitsForPerson(state)),
  ).length;
  const isFailed = status === 'failed' || (!hasRunner && counts.completed * 2 < rows.length - undecided);
  const of = (kind: ReviewKind) => rows.filter((row) => row.kind === kind).length;
  const paused = rows.filter(({ kind, status: now }) => kind === 'unfinished' && now === 'paused').length;
  const parts = [
    [decisions, decisions === 1 ? 'decision waits' : 'decisions wait'],
    [of('unfinished') - paused, 'failed'],
    [paused, 'paused'],
    [of('waiting'), 'not done'],
    [of('risk'), 'to look at'],
    [of('unchanged'), 'changed nothing'],
    [of('safe'), 'safe to merge'],
    [of('proposed'), 'in a pull request'],
    [of('merged'), 'merged'],
  ] as const;
  const rest = parts.flatMap(([count, words]) => (count > 0 ? [`${count} ${words}`] : [])).join(', ');
  const done = `${counts.completed} of ${plural(rows.length, 'session')} completed`;
  const spent = `${formatMoney(usage.costUsd, usage.estimated)} spent`;
  return `${isFailed ? 'Failed: ' : ''}${done}, ${spent}.${rest === '' ? '' : ` ${rest}.`}`;
}

/** Absent if it runs or has ended, or waits for decisions only, which are listed. */
export function haltOf(state: GroupState, hasRunner: boolean): string | undefined {
  const { status, message } = state;
  if (status === 'running' && !hasRunner) return adviceText(interruptedAdvice(state));
  if (status !== 'paused' || waitsForPerson(state) || message === undefined) return undefined;
  return `${message} ${adviceText(groupAdvice(state))}`;
}

/** Also after the decision, until the next run. */
function waitsForPerson({ reason }: GroupState): boolean {
  return reason === 'waits-for-answer' || reason === 'waits-for-wave';
}

function startsLater(state: GroupState, id: SessionId): boolean {
  const record = state.sessions.get(id);
  return record !== undefined && isBeforeDecision(state, record);
}

/** `$0.42, quote $0.50`. */
export function costText({ costUsd, quoteUsd }: Pick<ReviewRow, 'costUsd' | 'quoteUsd'>): string {
  return `${formatMoney(costUsd)}${quoteUsd === undefined ? ', no quote' : `, quote ${formatMoney(quoteUsd)}`}`;
}

export function changeText({ files, kind }: Pick<ReviewRow, 'files' | 'kind'>): string {
  // Its branch is gone.
  if (kind === 'merged' && files.length === 0) return 'merged';
  const [added, removed] = files.reduce(
    ([plus, minus], { insertions, deletions }) => [plus + insertions, minus + deletions],
    [0, 0],
  );
  return files.length === 0 ? 'no changes' : `${plural(files.length, 'file')}, +${added} −${removed}`;
}

const places: Readonly<Record<CheckRun['where'], string>> = {
  fresh: 'in a fresh checkout',
  worktree: 'in its worktree',
  folder: 'in the project folder',
};
const versions: Readonly<Record<CheckRun['code'], string>> = {
  own: '',
  'base-guarded': ' with the earlier tests',
  base: ' on the earlier code',
};

/** `npm test in a fresh checkout: exit code 0, 12s, log accept.log`. */
export function checkText({ command, where, code, exitCode, ms, log, flaky }: CheckRun): string {
  const end = exitCode === null ? 'ended early' : `exit code ${exitCode}${flaky ? ' when repeated' : ''}`;
  return `${command} ${places[where]}${versions[code]}: ${end}, ${formatDuration(ms)}, log ${log}`;
}

export type ReviewAction = 'merge' | 'pr' | 'send-back' | 'discard';

export interface ActionCommand {
  readonly action: ReviewAction;
  readonly words: CommandLine;
  /** Why it cannot be done now. */
  readonly disabled?: string;
}

/** Its number with zeros in front, as commands take it. */
function numberOf({ sessionId }: Pick<ReviewRow, 'sessionId'>): string {
  return sessionId.slice(0, sessionId.indexOf('-'));
}

/** What can be done with the work of a session, by which command. `words` for the session are left open. */
export function actionsOf(groupId: GroupId, row: ReviewRow, words = 'What to change'): ActionCommand[] {
  const number = numberOf(row);
  const session = `${groupId}/${number}`;
  const no = row.notMergeable === undefined ? {} : { disabled: row.notMergeable };
  const isRunning = row.status === 'running' ? { disabled: 'The session is running.' } : {};
  const isNew = row.status === 'pending' ? { disabled: 'The session was not started.' } : isRunning;
  return [
    { action: 'merge', words: ['group', 'merge', groupId, '--session', number], ...no },
    { action: 'pr', words: ['group', 'pr', groupId, '--session', number], ...no },
    { action: 'send-back', words: ['session', 'retry', session, '--prompt', words], ...isNew },
    { action: 'discard', words: ['session', 'remove', session], ...isRunning },
  ];
}

/** The command that merges all that is safe; null when nothing is. */
export function mergeSafeCommand({ groupId, rows }: Pick<Review, 'groupId' | 'rows'>): string | null {
  const safe = rows.filter(({ kind, notMergeable }) => kind === 'safe' && notMergeable === undefined);
  const sessions = safe.flatMap(({ sessionId }) => ['--session', numberOf({ sessionId })]);
  return safe.length === 0 ? null : commandText(['group', 'merge', groupId, ...sessions]);
}

/** The numbered options of a question. */
export function choicesOf({ kind, options }: Pick<OpenDecision, 'kind' | 'options'>): string[] {
  return kind === 'question' ? options.map((option, index) => `${index + 1}. ${option}`) : [];
}

/** Commands that answer a decision. */
export function answersOf({ id, kind, options, firstOptions = [1] }: OpenDecision): string[] {
  if (kind === 'question') {
    const chosen = firstOptions.flatMap((number) => ['--option', String(number)]);
    return [commandText(['answer', id, ...(options.length > 0 ? chosen : ['Your answer'])])];
  }
  return (kind === 'wave' ? options : ['allow', 'deny']).map((word) => commandText(['answer', id, word]));
}
