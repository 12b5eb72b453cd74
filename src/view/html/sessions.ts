/** The sessions of a report page: a table of all, then a card for each with its result, its attempts and its texts. */

import { commandText } from '../../core/advice.ts';
import type { SessionId } from '../../core/group.ts';
import { formatCount, formatDuration, formatMoney, inputTokens, plural } from '../format.ts';
import { type Child, el, type Markup, round } from '../picture/markup.ts';
import { safeLine } from '../terminal-text.ts';
import { anchorOf, type ReportAttempt, type ReportModel, type ReportSession } from './model.ts';
import { listTitlesOf, projectName } from './names.ts';
import { foreign, numberCell, pill, table } from './parts.ts';
import { Room, textBytesEach } from './text-room.ts';
import { formatUtc, timeMs } from './times.ts';

/** Sessions with a card of their own; the table has all. */
const cardsMax = 1000;
const attemptsMax = 8;
const warningsMax = 5;

export function sessionsOf(model: ReportModel): Markup {
  const { sessions } = model;
  if (sessions.length === 0) return el('section', { id: 'sessions' }, el('h2', {}, 'Sessions'), el('p', {}, 'None.'));
  const shown = cardsOf(sessions);
  const bytes = textBytesEach(shown);
  const some = `Cards for ${shown.length} of ${sessions.length} sessions: those with a problem, then the dearest.`;
  const titles = new Map(sessions.map(({ id, title }) => [id, title]));
  const problem = sessions.some((session) => !isFine(session));
  return el(
    'section',
    { id: 'sessions' },
    el('h2', {}, 'Sessions'),
    problem && sessions.length > 3 ? filter() : null,
    sessionTable(model, titles),
    shown.length < sessions.length ? el('p', { class: 'dim' }, some) : null,
    shown.map((session) => cardOf(session, titles, model.groupId, new Room(bytes))),
  );
}

function filter(): Markup {
  const box = el('input', { type: 'checkbox', id: 'only-problems' });
  return el('label', { class: 'filter' }, box, ' Only sessions with a problem or a warning');
}

function isFine({ status, warnings }: ReportSession): boolean {
  return status === 'completed' && warnings.length === 0;
}

function cardsOf(sessions: readonly ReportSession[]): readonly ReportSession[] {
  if (sessions.length <= cardsMax) return sessions;
  const weight = (session: ReportSession): number => (isFine(session) ? 1 : 0);
  const chosen = [...sessions].sort((a, b) => weight(a) - weight(b) || b.costUsd - a.costUsd).slice(0, cardsMax);
  const ids = new Set(chosen.map(({ id }) => id));
  return sessions.filter(({ id }) => ids.has(id));
}

const heads = [
  { title: 'Session' },
  { title: 'Project' },
  { title: 'Status' },
  { title: 'After' },
  ...['Attempts', 'Time', 'Cost', '', 'In', 'Out'].map((title) => ({ title, isNumber: true as const })),
  { title: 'Changes' },
];

type Titles = ReadonlyMap<SessionId, string>;

function sessionTable({ sessions }: ReportModel, titles: Titles): Markup {
  const isFleet = sessions.some(({ host }) => host !== undefined);
  const dearest = sessions.reduce((max, { costUsd }) => Math.max(max, costUsd), 0);
  const rows = sessions.map((session) => {
    const { id, title, status, reason, blockedBy, attempts, costUsd, estimated, tokens } = session;
    const tried = attempts.length > 0;
    const after = listTitlesOf(session.dependsOn, titles, 3);
    return el(
      'tr',
      { class: isFine(session) ? 'fine' : undefined },
      el('td', { class: 'words' }, el('a', { href: `#${anchorOf(id)}` }, foreign(title))),
      el('td', { class: 'words' }, foreign(projectName(session.projectPath))),
      isFleet ? el('td', { class: 'words' }, foreign(session.host ?? 'here')) : null,
      el('td', {}, pill(blockedBy === undefined ? status : 'blocked', blockedBy === undefined ? reason : undefined)),
      el('td', { class: 'words' }, foreign(after)),
      numberCell(tried ? attempts.length : ''),
      numberCell(tried ? formatDuration(session.durationMs) : ''),
      numberCell(tried ? formatMoney(costUsd, estimated) : ''),
      el('td', {}, tried && dearest > 0 ? shareBar(costUsd / dearest) : null),
      numberCell(tried ? formatCount(inputTokens(tokens)) : ''),
      numberCell(tried ? formatCount(tokens.output) : ''),
      el('td', {}, changesText(session)),
    );
  });
  return table(isFleet ? heads.toSpliced(2, 0, { title: 'Host' }) : heads, rows);
}

/** How dear a session was beside the dearest. */
function shareBar(share: number): Markup {
  const bar = el('rect', { class: 'f-1', width: round(Math.max(0.5, 70 * share)), height: 8 });
  return el('svg', { width: 70, height: 8, viewBox: '0 0 70 8', 'aria-hidden': 'true' }, bar);
}

function changesText({ work }: ReportSession): string {
  if (work === undefined) return '';
  return `+${work.insertions} −${work.deletions} in ${plural(work.files, 'file')}`;
}

function cardOf(session: ReportSession, titles: Titles, groupId: string, room: Room): Markup {
  const { id, title, status, reason, blockedBy, description, message, next, warnings } = session;
  const shownStatus = blockedBy === undefined ? status : 'blocked';
  const whole = `All of it: ${commandText(['session', 'logs', `${groupId}/${id}`])}`;
  const hidden = warnings.length - warningsMax;
  // First to be cut to what there is room for, because it is what most readers look for.
  const result = resultOf(session, room, whole);
  return el(
    'article',
    { id: anchorOf(id), class: isFine(session) ? `s-${shownStatus} fine` : `s-${shownStatus}` },
    el('h3', {}, foreign(title), ' ', pill(shownStatus, blockedBy === undefined ? reason : undefined)),
    description === '' ? null : el('p', {}, room.line(description, 600)),
    el('p', { class: 'dim' }, factsOf(session, titles)),
    status === 'completed' || message === undefined ? null : el('p', {}, room.line(message, 1200)),
    next === undefined || next === '' ? null : el('p', { class: 'cure' }, room.line(next, 600)),
    warnings.slice(0, warningsMax).map((warning) => el('p', {}, `Warning: `, room.line(warning.message, 400))),
    hidden > 0 ? el('p', { class: 'dim' }, `And ${plural(hidden, 'further warning')}.`) : null,
    result,
    rejectionOf(session, room),
    attemptsOf(session, room),
    details('Prompt', firstLine(session.prompt), room.block(session.prompt, 2000, '')),
  );
}

/** What is known of it in figures and names, in one line. */
function factsOf(session: ReportSession, titles: Titles): Child[] {
  const { projectPath, attempts, costUsd, estimated, limitUsd, tokens, durationMs, turns, model, work } = session;
  const facts: Child[] = [foreign(projectPath, 300)];
  if (session.dependsOn.length > 0) {
    facts.push(['after ', foreign(listTitlesOf(session.dependsOn, titles, 8))]);
  }
  if (attempts.length > 0) {
    const cap = limitUsd === undefined ? '' : ` of ${formatMoney(limitUsd)}`;
    facts.push(`${formatMoney(costUsd, estimated)}${cap}`, formatDuration(durationMs), plural(turns, 'turn'));
    facts.push(`${formatCount(inputTokens(tokens))} in, ${formatCount(tokens.output)} out`);
  }
  if (session.phase !== undefined) facts.push(session.phase);
  if (model !== undefined) facts.push(foreign(model, 120));
  if (session.branch !== undefined) {
    const removed = session.branchRemoved ? ', removed' : null;
    facts.push(['branch ', el('code', {}, foreign(session.branch, 300)), removed]);
  }
  if (work !== undefined) facts.push([changesText(session), ', commit ', el('code', {}, work.commit.slice(0, 12))]);
  if (session.mergedInto !== undefined) facts.push(['merged into ', el('code', {}, foreign(session.mergedInto, 300))]);
  return facts.flatMap((fact, index) => (index === 0 ? [fact] : [' · ', fact]));
}

function details(title: string, more: string, ...body: Child[]): Markup {
  return el('details', {}, el('summary', {}, title, more === '' ? null : [': ', foreign(more)]), body);
}

function firstLine(text: string): string {
  return safeLine(text.trimStart().slice(0, 400).split('\n', 1)[0] ?? '', 90);
}

function resultOf({ result, structured }: ReportSession, room: Room, whole: string): Child {
  const text =
    result === undefined
      ? null
      : details('Result', firstLine(result), room.block(result, room.share(0.6, 5000), whole));
  if (structured === undefined) return text;
  const json = JSON.stringify(structured, null, 2);
  return [text, details('Structured result', '', room.block(json, room.share(0.5, 3000), whole))];
}

function rejectionOf({ rejection, status }: ReportSession, room: Room): Child {
  if (rejection === undefined) return null;
  // The message of a session that failed for it stands above already.
  const message = status === 'failed' ? null : el('p', {}, room.line(rejection.message, 600));
  if (rejection.output === '') return message;
  return [message, details('What the acceptance command printed', '', room.block(rejection.output, 2000, ''))];
}

function attemptsOf({ attempts }: ReportSession, room: Room): Child {
  if (attempts.length === 0) return null;
  const hidden = attempts.length - attemptsMax;
  const rows = attempts.slice(-attemptsMax).map((attempt) => attemptRow(attempt, room));
  const title = `${plural(attempts.length, 'attempt')}, the first at ${formatUtc(attempts[0]?.startedAt ?? '')}`;
  const some = hidden > 0 ? el('p', { class: 'dim' }, `The last ${attemptsMax} of ${attempts.length}.`) : null;
  return details(title, '', some, table(attemptHeads, rows));
}

const attemptHeads = [
  { title: '#', isNumber: true as const },
  { title: 'Begun as' },
  { title: 'At' },
  { title: 'Lasted', isNumber: true as const },
  { title: 'Ended' },
  { title: 'Cost', isNumber: true as const },
  { title: 'Why' },
];

function attemptRow(attempt: ReportAttempt, room: Room): Markup {
  const { number, kind, startedAt, endedAt, outcome, reason, message, costUsd, estimated } = attempt;
  const lasted = endedAt === undefined ? '' : formatDuration(timeMs(endedAt) - timeMs(startedAt));
  return el(
    'tr',
    {},
    numberCell(number),
    el('td', {}, kind),
    el('td', {}, formatUtc(startedAt)),
    numberCell(lasted),
    el('td', {}, pill(outcome, reason)),
    numberCell(formatMoney(costUsd, estimated)),
    el('td', { class: 'long' }, message === undefined ? null : room.line(message, 300)),
  );
}
