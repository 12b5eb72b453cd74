/** The top of the report page: what became of the group, what went wrong and its cure, what happened when. */
import { formatCount, formatDuration, formatMoney, inputTokens, plural } from '../format.ts';
import { type Child, el, fragment, type Markup } from '../picture/markup.ts';
import { estimateNote } from '../wording.ts';
import { anchorOf, type ReportModel, type ReportSession } from './model.ts';
import { foreign, pill } from './parts.ts';
import { formatUtc } from './times.ts';

/** One that nobody runs is not running, whatever its log says. */
export function shownStatus({ interrupted, status }: ReportModel): string {
  return interrupted ? 'interrupted' : status;
}

export function headerOf(model: ReportModel): Markup {
  const { name, description, status, reason, condition, asOf, rehearsal, interrupted } = model;
  const running = status === 'running' && !interrupted ? ' The group is still running; this is how it stood then.' : '';
  const play = rehearsal ? ' This was a rehearsal: no model was asked, and the figures are play money.' : '';
  return el(
    'header',
    {},
    el('h1', {}, foreign(name, 400), ' ', pill(shownStatus(model), condition ?? reason)),
    description === '' ? null : el('p', {}, foreign(description, 4000)),
    el('p', { class: 'dim' }, `As of ${formatUtc(asOf)}.${running}${play}`),
  );
}

export function summaryOf(model: ReportModel): Markup {
  const { counts, cost, tokens, sessions, attempts, elapsedMs, blocked } = model;
  const cap = cost.limitUsd === undefined ? 'no cap' : `of ${formatMoney(cost.limitUsd)}`;
  const reserved = cost.reservedUsd > 0 ? `, ${formatMoney(cost.reservedUsd)} reserved` : '';
  const others = [
    ...(counts.failed > 0 ? [`${counts.failed} failed`] : []),
    ...(counts.running > 0 ? [`${counts.running} running`] : []),
    ...(counts.paused > 0 ? [`${counts.paused} paused`] : []),
    ...(blocked > 0 ? [`${blocked} blocked`] : []),
    ...(counts.pending > blocked ? [`${counts.pending - blocked} pending`] : []),
  ];
  const cards = [
    card('Sessions completed', `${counts.completed} of ${sessions.length}`, others.join(', ') || 'no other'),
    card('Spent', formatMoney(cost.spentUsd, cost.estimated), `${cap}${reserved}`),
    card('Tokens', `${formatCount(inputTokens(tokens))} in`, `${formatCount(tokens.output)} out`),
    card('Time', formatDuration(elapsedMs), plural(attempts, 'attempt')),
  ];
  const changes = changesOf(sessions);
  if (changes !== null) cards.push(changes);
  const estimated = cost.estimated ? el('p', { class: 'dim' }, `~ ${estimateNote}.`) : null;
  const next = model.next.map((line) => el('p', {}, foreign(line)));
  return el('section', { id: 'summary' }, el('div', { class: 'cards' }, cards), estimated, next);
}

function card(title: string, figure: string, more: string): Markup {
  return el('div', { class: 'card' }, el('span', { class: 'dim' }, title), el('b', {}, figure), el('small', {}, more));
}

function changesOf(sessions: readonly ReportSession[]): Markup | null {
  const works = sessions.flatMap(({ work }) => (work === undefined ? [] : [work]));
  if (works.length === 0) return null;
  const sum = (of: (work: (typeof works)[number]) => number): number =>
    works.reduce((total, work) => total + of(work), 0);
  const lines = `+${sum(({ insertions }) => insertions)} −${sum(({ deletions }) => deletions)}`;
  return card(
    'Lines changed',
    lines,
    `${plural(
      sum(({ files }) => files),
      'file',
    )}, ${works.length === 1 ? '1 branch' : `${works.length} branches`}`,
  );
}

const troublesMax = 200;

/** Failures with their cure, then what is paused or blocked; null when nothing is. */
export function troublesOf({ sessions }: ReportModel): Markup | null {
  const failed = sessions.filter(({ status }) => status === 'failed');
  const paused = sessions.filter(({ status }) => status === 'paused');
  const blocked = sessions.filter(({ status, blockedBy }) => status === 'pending' && blockedBy !== undefined);
  const all = [...failed, ...paused, ...blocked];
  if (all.length === 0) return null;
  const hidden = all.length - troublesMax;
  return el(
    'section',
    { id: 'problems' },
    el('h2', {}, 'What went wrong, and its cure'),
    all.slice(0, troublesMax).map((session) => troubleOf(session)),
    hidden > 0 ? el('p', { class: 'dim' }, `And ${hidden} more; see the sessions below.`) : null,
  );
}

function troubleOf({ id, title, status, reason, message, next, blockedBy }: ReportSession): Markup {
  const kind = status === 'pending' ? 'blocked' : status;
  return el(
    'div',
    { class: `trouble ${kind}` },
    el(
      'p',
      {},
      el('a', { href: `#${anchorOf(id)}` }, el('b', {}, foreign(title))),
      ' ',
      pill(kind, blockedBy ? undefined : reason),
    ),
    message === undefined ? null : el('p', {}, foreign(message, 1000)),
    next === undefined || next === '' ? null : el('p', { class: 'cure' }, foreign(next, 600)),
  );
}

const notesMax = 200;

/** The story of the group as a whole; null while there is none. */
export function notesOf({ notes }: ReportModel): Child {
  if (notes.length === 0) return null;
  const hidden = notes.length - notesMax;
  const items = notes
    .slice(-notesMax)
    .map(({ at, text }) => el('li', {}, el('time', { datetime: at }, formatUtc(at)), foreign(text, 400)));
  return fragment(
    el('h2', {}, 'What happened'),
    hidden > 0 ? el('p', { class: 'dim' }, `The last ${notesMax} of ${notes.length}.`) : null,
    el('ul', { class: 'notes' }, items),
  );
}
