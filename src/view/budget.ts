/** The budget of a group: spent, reserved and left, by session and by model. */
import { commandText } from '../core/advice.ts';
import { defined } from '../core/defined.ts';
import {
  addTokens,
  addUsage,
  type GroupId,
  noTokens,
  noUsage,
  roundUsd,
  type SessionId,
  type Usage,
} from '../core/group.ts';
import { settleCommands } from '../core/plan/advice.ts';
import type { DayBudget } from '../core/plan/decision.ts';
import type { SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import { formatCount, formatMoney, formatTable, type Style, type TableCell, titled } from './format.ts';
import { safeLine } from './terminal-text.ts';
import { estimateNote, lostHosts, rehearsalNote, sessionTitle, statusTone } from './wording.ts';

/** US dollars. `estimated`: claude has not reported the final figure; held amounts count in full. */
interface Spent {
  readonly spentUsd: number;
  readonly estimated?: true;
  readonly heldUsd?: number;
}

type BudgetReport = ReturnType<typeof budgetReport>;

/** `spentUsd + reservedUsd + leftUsd` is the cap. */
export function budgetReport(state: GroupState, live: ReadonlyMap<SessionId, Usage>) {
  const rows = [...state.sessions.values()].map((record) => {
    const now = live.get(record.definition.id) ?? noUsage;
    return { usage: addUsage(record.usage, now), heldUsd: heldBy(record, now), session: sessionBudget(record, now) };
  });
  let usage = state.usage;
  for (const now of live.values()) usage = addUsage(usage, now);
  const reservedUsd = roundUsd(rows.reduce((sum, { heldUsd }) => sum + heldUsd, 0));
  const ofSessions = rows.reduce((sum, { session }) => sum + session.spentUsd, 0);
  const { maxBudgetUsd: limitUsd, onBudgetExceeded } = state.group.config;
  const leftUsd = limitUsd === undefined ? undefined : leftOf(limitUsd, usage.costUsd + reservedUsd);
  return {
    groupId: state.group.id,
    ...(state.run?.rehearsal ? { rehearsal: true as const } : {}),
    ...spentOf(usage),
    reservedUsd,
    ...defined({ limitUsd, leftUsd }),
    onBudgetExceeded,
    sessions: rows.map(({ session }) => session),
    removedUsd: leftOf(usage.costUsd, ofSessions),
    models: modelBudgets(
      usage,
      rows.map((row) => row.usage),
    ),
  };
}

function spentOf(usage: Usage): Spent {
  const { costUsd, estimated, heldUsd } = usage;
  return {
    spentUsd: costUsd,
    ...(estimated ? { estimated: true as const } : {}),
    ...defined({ heldUsd }),
  };
}

function heldBy({ state, takenOver }: SessionRecord, now: Usage): number {
  if (takenOver !== undefined && state.status !== 'running') return takenOver.reservedUsd ?? 0;
  return state.status === 'running' ? Math.max(0, (state.attempt.reservedUsd ?? 0) - now.costUsd) : 0;
}

function sessionBudget(record: SessionRecord, now: Usage) {
  const { id, name, maxBudgetUsd } = record.definition;
  return {
    id,
    ...defined({ name }),
    status: record.state.status,
    ...spentOf(addUsage(record.usage, now)),
    reservedUsd: roundUsd(heldBy(record, now)),
    ...defined({ limitUsd: maxBudgetUsd }),
    ...(record.lost === undefined ? {} : { lostHosts: lostHosts(record) }),
  };
}

function leftOf(usd: number, takenUsd: number): number {
  return Math.max(0, roundUsd(usd - takenUsd));
}

function modelBudgets(total: Usage, parts: readonly Usage[]) {
  const guessed = new Set(parts.filter(({ estimated }) => estimated).flatMap(({ models }) => Object.keys(models)));
  return Object.entries(total.models)
    .map(([model, { costUsd, tokens }]) => ({
      model,
      costUsd,
      tokens,
      ...(guessed.has(model) ? { estimated: true as const } : {}),
    }))
    .sort((a, b) => b.costUsd - a.costUsd);
}

const sessionColumns = titled(['SESSION', 'STATUS', 'SPENT', 'RESERVED', 'CAP'], 'SPENT', 'RESERVED', 'CAP');

const modelFigures = ['COST', 'INPUT', 'OUTPUT', 'CACHE READ', 'CACHE WRITE'];
const modelColumns = titled(['MODEL', ...modelFigures], ...modelFigures);

export function budgetLines(report: BudgetReport, style: Style): string[] {
  const { limitUsd, onBudgetExceeded } = report;
  const lines = [
    ...(report.rehearsal ? [rehearsalNote] : []),
    `Cap: ${limitUsd === undefined ? 'none' : `${formatMoney(limitUsd)} (then ${onBudgetExceeded})`}`,
    `Spent: ${formatMoney(report.spentUsd, report.estimated)}`,
    `Reserved: ${formatMoney(report.reservedUsd)}`,
    ...(report.leftUsd === undefined ? [] : [`Left: ${formatMoney(report.leftUsd, report.estimated)}`]),
  ];
  for (const { heldUsd, ...session } of report.sessions) {
    if (heldUsd !== undefined) lines.push('', ...heldLines(report.groupId, session, heldUsd));
  }
  if (report.sessions.length > 0) lines.push('', ...formatTable(sessionColumns, sessionRows(report), style));
  if (report.models.length > 0) lines.push('', ...formatTable(modelColumns, modelRows(report), style));
  if (report.estimated) lines.push('', `~ ${estimateNote}`);
  return lines;
}

/** The daily cap of the user over all groups. */
export function dayLines(day: DayBudget | undefined): string[] {
  if (day === undefined) return [];
  const { capUsd, spentUsd, othersReservedUsd } = day;
  const reserved = othersReservedUsd > 0 ? `, ${formatMoney(othersReservedUsd)} reserved` : '';
  const end = spentUsd + othersReservedUsd < capUsd ? '' : '; nothing starts before midnight unless you raise the cap';
  return [`All groups today: ${formatMoney(spentUsd)} of ${formatMoney(capUsd)} spent${reserved}${end}`];
}

/** Why the amount is held, and the commands that settle it. */
function heldLines(
  groupId: GroupId,
  session: Omit<BudgetReport['sessions'][number], 'heldUsd'>,
  heldUsd: number,
): string[] {
  const { id, name, lostHosts: lost } = session;
  const title = sessionTitle(id, name);
  const { free, book } = settleCommands(groupId, id);
  const held = `Held: ${formatMoney(heldUsd)} for session ${title}, counted as spent.`;
  const why =
    lost === undefined
      ? 'claude was killed before it reported its final totals. Check the bill of your account.'
      : `Host ${safeLine(lost.join(', '), 200)}, where it ran, does not respond. The figure is known when ` +
        'the host is back; otherwise check the bill of your account.';
  return [`${held} ${why}`, `  record it:  ${commandText(book)}`, `  release it: ${commandText(free)}`];
}

function sessionRows({ sessions, removedUsd }: BudgetReport): TableCell[][] {
  const rows = sessions.map((session): TableCell[] => [
    sessionTitle(session.id, session.name),
    { text: session.status, tone: statusTone(session.status) },
    formatMoney(session.spentUsd, session.estimated),
    session.reservedUsd > 0 ? formatMoney(session.reservedUsd) : '',
    session.limitUsd === undefined ? '' : formatMoney(session.limitUsd),
  ]);
  return removedUsd > 0 ? [...rows, ['(removed)', '', formatMoney(removedUsd)]] : rows;
}

function modelRows({ models, spentUsd, estimated }: BudgetReport): TableCell[][] {
  const sum = models.reduce((tokens, model) => addTokens(tokens, model.tokens), noTokens);
  const row = (name: string, cost: string, tokens: typeof sum): TableCell[] => {
    const counts = [tokens.input, tokens.output, tokens.cacheRead, tokens.cacheCreation];
    return [name, cost, ...counts.map(formatCount)];
  };
  const rows = models.map((one) => row(safeLine(one.model, 60), formatMoney(one.costUsd, one.estimated), one.tokens));
  // Held amounts, and totals that claude reported without a model.
  const unassignedUsd = leftOf(
    spentUsd,
    models.reduce((usd, { costUsd }) => usd + costUsd, 0),
  );
  if (unassignedUsd > 0) rows.push(['(unknown)', formatMoney(unassignedUsd)]);
  if (rows.length === 1) return rows;
  return [...rows, row('all', formatMoney(spentUsd, estimated), sum)];
}
