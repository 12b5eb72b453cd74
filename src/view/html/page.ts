/** The report of a group as one HTML page that loads nothing, which its content security policy enforces. */
import { commandText } from '../../core/advice.ts';

import type { GroupState } from '../../core/state.ts';
import { formatCount, formatDuration, formatMoney, formatUtc, inputTokens, plural } from '../format.ts';
import { safeLine } from '../terminal-text.ts';
import { estimateNote, listTitles, projectName } from '../wording.ts';
import {
  type Child,
  cutText,
  el,
  escapeText,
  fragment,
  isolated,
  type Markup,
  numberCell,
  pageStart,
  pageStyle,
  pill,
  styleElement,
  table,
} from './markup.ts';
import {
  anchorOf,
  isFine,
  notableSessions,
  type ReportAttempt,
  type ReportModel,
  type ReportSession,
  shownStatus,
} from './model.ts';
import { type BarKind, graphPicture, timelinePicture } from './pictures.ts';

const troublesMax = 200;
const modelsMax = 50;

export function reportPage(state: GroupState, model: ReportModel): string {
  const digest = new Bun.CryptoHasher('sha256').update(pageStyle).digest('base64');
  const policy = `default-src 'none'; style-src 'sha256-${digest}'; base-uri 'none'; form-action 'none'`;
  const head = fragment(
    el('meta', { 'http-equiv': 'Content-Security-Policy', content: policy }),
    el('meta', { name: 'viewport', content: 'width=device-width, initial-scale=1' }),
    el('meta', { name: 'color-scheme', content: 'light dark' }),
    el('meta', { name: 'referrer', content: 'no-referrer' }),
    el('meta', { name: 'robots', content: 'noindex' }),
    el('title', {}, `${safeLine(model.name, 60)}: ${shownStatus(model)}`),
    styleElement(pageStyle),
  );
  const main = el(
    'main',
    {},
    summaryOf(model),
    troublesOf(model),
    timelineOf(model),
    graphOf(state, model),
    costOf(model),
    sessionCards(state, model),
  );
  const footer = el('footer', {}, `Group ${model.groupId}, made by claude-code-agent. All times are UTC.`);
  const body = el('body', {}, headerOf(model), main, footer);
  return `${pageStart}content="claude-code-agent">${head}</head>\n${body}</html>\n`;
}

function headerOf(model: ReportModel): Markup {
  const { name, description, status, reason, condition, asOf, rehearsal, interrupted } = model;
  const running = status === 'running' && !interrupted ? ' The group is still running.' : '';
  const play = rehearsal ? ' This was a rehearsal with a scripted model; the costs are not real.' : '';
  return el(
    'header',
    {},
    el('h1', {}, isolated(name, 400), ' ', pill(shownStatus(model), condition ?? reason)),
    description === '' ? null : el('p', {}, isolated(description, 4000)),
    el('p', { class: 'dim' }, `As of ${formatUtc(asOf)}.${running}${play}`),
  );
}

function summaryOf(model: ReportModel): Markup {
  const { counts, cost, tokens, sessions, attempts, elapsedMs, blocked } = model;
  const cap = cost.limitUsd === undefined ? 'no cap' : `of ${formatMoney(cost.limitUsd)}`;
  const reserved = cost.reservedUsd > 0 ? `, ${formatMoney(cost.reservedUsd)} reserved` : '';
  const others = Object.entries({ ...counts, completed: 0, blocked, pending: counts.pending - blocked })
    .filter(([, count]) => count > 0)
    .map(([status, count]) => `${count} ${status}`);
  const cards = [
    card('Sessions completed', `${counts.completed} of ${sessions.length}`, others.join(', ') || 'no other'),
    card('Spent', formatMoney(cost.spentUsd, cost.estimated), `${cap}${reserved}`),
    card('Tokens', `${formatCount(inputTokens(tokens))} in`, `${formatCount(tokens.output)} out`),
    card('Time', formatDuration(elapsedMs), plural(attempts, 'attempt')),
    changesOf(sessions),
  ];
  const estimated = cost.estimated ? el('p', { class: 'dim' }, `~ ${estimateNote}.`) : null;
  const next = model.next.map((line) => el('p', {}, isolated(line)));
  return el('section', { id: 'summary' }, el('div', { class: 'cards' }, cards), estimated, next);
}

function card(title: string, figure: string, more: string): Markup {
  return el('div', { class: 'card' }, el('span', { class: 'dim' }, title), el('b', {}, figure), el('small', {}, more));
}

function changesOf(sessions: readonly ReportSession[]): Markup | null {
  const works = sessions.flatMap(({ work }) => (work === undefined ? [] : [work]));
  if (works.length === 0) return null;
  const [files, insertions, deletions] = works.reduce(
    (sums, work) => [sums[0] + work.files, sums[1] + work.insertions, sums[2] + work.deletions],
    [0, 0, 0] as [number, number, number],
  );
  const branches = works.length === 1 ? '1 branch' : `${works.length} branches`;
  return card('Lines changed', `+${insertions} −${deletions}`, `${plural(files, 'file')}, ${branches}`);
}

function troublesOf({ sessions }: ReportModel): Markup | null {
  const all = [
    ...sessions.filter(({ status }) => status === 'failed'),
    ...sessions.filter(({ status }) => status === 'paused'),
    ...sessions.filter(({ status, blockedBy }) => status === 'pending' && blockedBy !== undefined),
  ];
  if (all.length === 0) return null;
  const hidden = all.length - troublesMax;
  return el(
    'section',
    { id: 'problems' },
    el('h2', {}, 'Failures and next steps'),
    all.slice(0, troublesMax).map(troubleOf),
    hidden > 0 ? el('p', { class: 'dim' }, `And ${hidden} more; see the sessions below.`) : null,
  );
}

function troubleOf({ id, title, status, reason, message, next, blockedBy }: ReportSession): Markup {
  const kind = status === 'pending' ? 'blocked' : status;
  const name = el('a', { href: `#${anchorOf(id)}` }, el('b', {}, isolated(title)));
  return el(
    'div',
    { class: `trouble s-${kind}` },
    el('p', {}, name, ' ', pill(kind, blockedBy ? undefined : reason)),
    message === undefined ? null : el('p', {}, isolated(message, 1000)),
    next === undefined || next === '' ? null : el('p', { class: 'cure' }, isolated(next, 600)),
  );
}

function timelineOf(model: ReportModel): Markup | null {
  const drawn = timelinePicture(model);
  if (drawn === null) return null;
  return el(
    'section',
    { id: 'timeline' },
    el('h2', {}, 'Timeline'),
    el('div', { class: 'wide tall' }, drawn.picture),
    legend(
      drawn.kinds.map((kind) => ({ className: `bar ${kindClasses[kind] ?? `s-${kind}`}`, text: kindWords[kind] })),
    ),
    drawn.caption === '' ? null : el('p', { class: 'dim' }, drawn.caption),
  );
}

const kindWords: Readonly<Record<BarKind, string>> = {
  preparing: 'preparing',
  completed: 'working, completed',
  running: 'working',
  failed: 'working, failed',
  paused: 'working, then interrupted',
  accepting: 'acceptance command',
};

const kindClasses: Readonly<Partial<Record<BarKind, string>>> = {
  preparing: 's-running preparing',
  accepting: 'accepting',
};

/** The time, with the date if it differs from the line before. The footer names the time zone. */
function momentAfter(at: string, before = ''): string {
  const [day, clock] = [at.slice(0, 10), at.slice(11, 19)];
  return before.startsWith(day) ? clock : `${day} ${clock}`;
}

function graphOf(state: GroupState, { sessions }: ReportModel): Markup | null {
  if (sessions.length === 0) return null;
  const drawn = graphPicture(state, { href: (id) => `#${anchorOf(id)}` });
  return el(
    'section',
    { id: 'graph' },
    el('h2', {}, 'Dependencies'),
    drawn === null
      ? el('p', { class: 'dim' }, `${plural(sessions.length, 'session')}: the graph is too large to be drawn.`)
      : [
          el('div', { class: 'wide tall' }, drawn.picture),
          legend(drawn.statuses.map((status) => ({ className: `node s-${status}`, text: status }))),
        ],
  );
}

function legend(items: readonly { readonly className: string; readonly text: string }[]): Markup {
  const size = { width: 12, height: 12, viewBox: '0 0 12 12', 'aria-hidden': 'true' };
  const entries = items.map(({ className, text }) => {
    const swatch = el('rect', { class: className, x: 0.75, y: 0.75, width: 10, height: 10, rx: 2 });
    return el('li', {}, el('svg', size, swatch), text);
  });
  return el('ul', { class: 'legend' }, entries);
}

function costOf({ models, cost }: ReportModel): Markup | null {
  if (models.length === 0 && cost.removedUsd <= 0) return null;
  const heads = [
    { title: 'Model' },
    ...['Cost', 'Share', 'Input', 'Output', 'Cache read', 'Cache written'].map((title) => ({ title, isNumber: true })),
  ];
  const rows = models.slice(0, modelsMax).map(({ model, costUsd, tokens, estimated }) => {
    const share = cost.spentUsd > 0 ? `${Math.round((costUsd / cost.spentUsd) * 100)}%` : '';
    const counts = [tokens.input, tokens.output, tokens.cacheRead, tokens.cacheCreation];
    const figures = [formatMoney(costUsd, estimated), share, ...counts.map(formatCount)];
    return el('tr', {}, el('td', {}, isolated(model, 200)), figures.map(numberCell));
  });
  const removed = `${formatMoney(cost.removedUsd)} of it went to sessions that were removed since.`;
  return el(
    'section',
    { id: 'cost' },
    el('h2', {}, 'Cost and tokens'),
    models.length === 0 ? null : table(heads, rows),
    cost.removedUsd > 0 ? el('p', { class: 'dim' }, removed) : null,
  );
}

/** Most sessions with a card; the table lists all. */
const cardsMax = 1000;
const attemptsMax = 8;
const warningsMax = 5;
/** Limits of the texts of a page and of a session, bytes. */
const pageBytes = 380_000;
const sessionBytes = { min: 400, max: 16_000 };
/** Shown of a text even if the limit is reached, bytes. */
const leastBytes = 80;

export function sessionCards(state: GroupState, { sessions, groupId }: ReportModel): Markup {
  const shown = notableSessions(sessions, cardsMax);
  const share = Math.floor(pageBytes / Math.max(1, shown.length));
  const bytes = Math.max(sessionBytes.min, Math.min(sessionBytes.max, share));
  const count = `${shown.length} of ${sessions.length} sessions`;
  const some = `Cards for ${count}: those with a problem, then the most expensive.`;
  return el(
    'section',
    { id: 'sessions' },
    el('h2', {}, 'Sessions'),
    sessions.length > 3 && !sessions.every(isFine) ? filter() : null,
    sessions.length === 0 ? el('p', {}, 'None.') : sessionTable(state, sessions),
    shown.length < sessions.length ? el('p', { class: 'dim' }, some) : null,
    shown.map((session) => cardOf(session, state, groupId, new Room(bytes))),
  );
}

function filter(): Markup {
  const box = el('input', { type: 'checkbox', id: 'only-problems' });
  return el('label', { class: 'filter' }, box, ' Only sessions with a problem or a warning');
}

const heads = [
  { title: 'Session' },
  { title: 'Project' },
  { title: 'Status' },
  { title: 'After' },
  ...['Attempts', 'Time', 'Cost', 'In', 'Out'].map((title) => ({ title, isNumber: true })),
  { title: 'Changes' },
];

function sessionTable(state: GroupState, sessions: readonly ReportSession[]): Markup {
  const isFleet = sessions.some(({ host }) => host !== undefined);
  const rows = sessions.map((session) => {
    const { id, title, status, reason, blockedBy, attempts, costUsd, estimated, tokens } = session;
    const tried = attempts.length > 0;
    return el(
      'tr',
      { class: isFine(session) ? 'fine' : undefined },
      el('td', { class: 'words' }, el('a', { href: `#${anchorOf(id)}` }, isolated(title))),
      el('td', { class: 'words' }, isolated(projectName(session.projectPath))),
      isFleet ? el('td', { class: 'words' }, isolated(session.host ?? 'here')) : null,
      el('td', {}, pill(blockedBy === undefined ? status : 'blocked', blockedBy === undefined ? reason : undefined)),
      el('td', { class: 'words' }, isolated(listTitles(state, session.dependsOn))),
      numberCell(tried ? attempts.length : ''),
      numberCell(tried ? formatDuration(session.durationMs) : ''),
      numberCell(tried ? formatMoney(costUsd, estimated) : ''),
      numberCell(tried ? formatCount(inputTokens(tokens)) : ''),
      numberCell(tried ? formatCount(tokens.output) : ''),
      el('td', {}, changesText(session)),
    );
  });
  return table(isFleet ? heads.toSpliced(2, 0, { title: 'Host' }) : heads, rows);
}

function changesText({ work }: ReportSession): string {
  if (work === undefined) return '';
  return `+${work.insertions} −${work.deletions} in ${plural(work.files, 'file')}`;
}

function cardOf(session: ReportSession, state: GroupState, groupId: string, room: Room): Markup {
  const { id, title, status, reason, blockedBy, description, message, next, warnings } = session;
  const shownStatus = blockedBy === undefined ? status : 'blocked';
  const whole = `All of it: ${commandText(['session', 'logs', `${groupId}/${id}`])}`;
  const hidden = warnings.length - warningsMax;
  // The result first, because most readers look for it.
  const result = resultOf(session, room, whole);
  return el(
    'article',
    { id: anchorOf(id), class: isFine(session) ? `s-${shownStatus} fine` : `s-${shownStatus}` },
    el('h3', {}, isolated(title), ' ', pill(shownStatus, blockedBy === undefined ? reason : undefined)),
    description === '' ? null : el('p', {}, room.line(description, 600)),
    el('p', { class: 'dim' }, factsOf(session, state)),
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

function factsOf(session: ReportSession, state: GroupState): Child[] {
  const { projectPath, attempts, costUsd, estimated, limitUsd, tokens, durationMs, turns, model, work } = session;
  const facts: Child[] = [isolated(projectPath, 300)];
  if (session.dependsOn.length > 0) {
    facts.push(['after ', isolated(listTitles(state, session.dependsOn))]);
  }
  if (attempts.length > 0) {
    const cap = limitUsd === undefined ? '' : ` of ${formatMoney(limitUsd)}`;
    facts.push(`${formatMoney(costUsd, estimated)}${cap}`, formatDuration(durationMs), plural(turns, 'turn'));
    facts.push(`${formatCount(inputTokens(tokens))} in, ${formatCount(tokens.output)} out`);
  }
  if (session.phase !== undefined) facts.push(session.phase);
  if (model !== undefined) facts.push(isolated(model, 120));
  if (session.branch !== undefined) {
    const removed = session.branchRemoved ? ', removed' : null;
    facts.push(['branch ', el('code', {}, isolated(session.branch, 300)), removed]);
  }
  if (work !== undefined) facts.push([changesText(session), ', commit ', el('code', {}, work.commit.slice(0, 12))]);
  if (session.mergedInto !== undefined) facts.push(['merged into ', el('code', {}, isolated(session.mergedInto, 300))]);
  return facts.flatMap((fact, index) => (index === 0 ? [fact] : [' · ', fact]));
}

function details(title: string, more: string, ...body: Child[]): Markup {
  return el('details', {}, el('summary', {}, title, more === '' ? null : [': ', isolated(more)]), body);
}

function firstLine(text: string): string {
  return safeLine(text.trimStart().slice(0, 400).split('\n', 1)[0] ?? '', 90);
}

function resultOf({ result, structured }: ReportSession, room: Room, whole: string): Child {
  const text = result === undefined ? null : details('Result', firstLine(result), room.block(result, 5000, whole));
  if (structured === undefined) return text;
  const json = JSON.stringify(structured, null, 2);
  return [text, details('Structured result', '', room.block(json, 3000, whole))];
}

function rejectionOf({ rejection, status }: ReportSession, room: Room): Child {
  if (rejection === undefined) return null;
  // The card of a failed session already shows the message.
  const message = status === 'failed' ? null : el('p', {}, room.line(rejection.message, 600));
  if (rejection.output === '') return message;
  return [message, details('Output of the acceptance command', '', room.block(rejection.output, 2000, ''))];
}

function attemptsOf({ attempts }: ReportSession, room: Room): Child {
  if (attempts.length === 0) return null;
  const hidden = attempts.length - attemptsMax;
  const [first] = attempts;
  const rows = attempts.slice(-attemptsMax).map((attempt) => attemptRow(attempt, first?.startedAt, room));
  const title = `${plural(attempts.length, 'attempt')}, the first at ${formatUtc(first?.startedAt ?? '')}`;
  const some = hidden > 0 ? el('p', { class: 'dim' }, `The last ${attemptsMax} of ${attempts.length}.`) : null;
  return details(title, '', some, table(attemptHeads, rows));
}

const attemptHeads = [
  { title: '#', isNumber: true },
  { title: 'Kind' },
  { title: 'At' },
  { title: 'Lasted', isNumber: true },
  { title: 'Ended' },
  { title: 'Cost', isNumber: true },
  { title: 'Why' },
];

function attemptRow(attempt: ReportAttempt, since: string | undefined, room: Room): Markup {
  const { number, kind, startedAt, endedAt, outcome, reason, message, costUsd, estimated } = attempt;
  const lasted = endedAt === undefined ? '' : formatDuration(Date.parse(endedAt) - Date.parse(startedAt));
  return el(
    'tr',
    {},
    numberCell(number),
    el('td', {}, kind),
    el('td', {}, momentAfter(startedAt, since)),
    numberCell(lasted),
    el('td', {}, pill(outcome, reason)),
    numberCell(formatMoney(costUsd, estimated)),
    el('td', { class: 'long' }, message === undefined ? null : room.line(message, 300)),
  );
}

/** The remaining bytes of UTF-8 for the texts of a session. */
class Room {
  #left: number;

  constructor(bytes: number) {
    this.#left = bytes;
  }

  /** A block of text, cut if it is too long; `whole` names the command that prints all of it. */
  block(text: string, maxBytes: number, whole: string): Child {
    const { text: shown, cutFrom } = cutText(text, Math.max(leastBytes, Math.min(maxBytes, this.#left)));
    this.#left -= Buffer.byteLength(escapeText(shown));
    const note = `Cut: ${shown.length} of ${cutFrom} characters are shown. ${whole}`;
    return [el('pre', { dir: 'auto' }, shown), cutFrom === undefined ? null : el('p', { class: 'dim' }, note)];
  }

  line(text: string, maxBytes: number): Markup {
    const bytes = Math.max(leastBytes, Math.min(maxBytes, this.#left));
    this.#left -= Math.min(bytes, text.length);
    return isolated(text, bytes);
  }
}
