/**
 * view/html/: the report of a group. This file: one HTML page that needs nothing else: no script, no font, no picture,
 * no request. Its policy forbids them as well, so that a defect here could not make the page of a hostile transcript
 * load anything.
 */
import type { GroupState } from '../../core/state.ts';
import { formatCount, formatDuration, formatMoney, formatUtc, inputTokens, plural } from '../format.ts';
import { safeLine } from '../terminal-text.ts';
import { estimateNote } from '../wording.ts';
import { graphPicture } from './graph-picture.ts';
import { type Child, el, foreign, fragment, type Markup, numberCell, pill, styleElement, table } from './markup.ts';
import { anchorOf, type ReportModel, type ReportSession, shownStatus } from './model.ts';
import { sessionsOf } from './sessions.ts';
import { pageStyle } from './style.ts';
import { type BarKind, timelinePicture } from './timeline.ts';

/** How every page begins: distinguishes a report, which may be written again, from any other file. */
export const pageStart = '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="generator" ';

const troublesMax = 200;
const notesMax = 200;
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
    notesOf(model),
    graphOf(state, model),
    costOf(model),
    sessionsOf(state, model),
  );
  const footer = el('footer', {}, `Group ${model.groupId}, made by claude-code-agent. All times are UTC.`);
  const body = el('body', {}, headerOf(model), main, footer);
  return `${pageStart}content="claude-code-agent">${head}</head>\n${body}</html>\n`;
}

function headerOf(model: ReportModel): Markup {
  const { name, description, status, reason, condition, asOf, rehearsal, interrupted } = model;
  const running = status === 'running' && !interrupted ? ' The group is still running.' : '';
  const play = rehearsal ? ' This was a rehearsal: no model was asked, and the figures are play money.' : '';
  return el(
    'header',
    {},
    el('h1', {}, foreign(name, 400), ' ', pill(shownStatus(model), condition ?? reason)),
    description === '' ? null : el('p', {}, foreign(description, 4000)),
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
  const next = model.next.map((line) => el('p', {}, foreign(line)));
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
    el('h2', {}, 'What went wrong, and its cure'),
    all.slice(0, troublesMax).map(troubleOf),
    hidden > 0 ? el('p', { class: 'dim' }, `And ${hidden} more; see the sessions below.`) : null,
  );
}

function troubleOf({ id, title, status, reason, message, next, blockedBy }: ReportSession): Markup {
  const kind = status === 'pending' ? 'blocked' : status;
  const name = el('a', { href: `#${anchorOf(id)}` }, el('b', {}, foreign(title)));
  return el(
    'div',
    { class: `trouble s-${kind}` },
    el('p', {}, name, ' ', pill(kind, blockedBy ? undefined : reason)),
    message === undefined ? null : el('p', {}, foreign(message, 1000)),
    next === undefined || next === '' ? null : el('p', { class: 'cure' }, foreign(next, 600)),
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
  accepting: 'its work is accepted',
};

const kindClasses: Readonly<Partial<Record<BarKind, string>>> = {
  preparing: 's-running preparing',
  accepting: 'accepting',
};

function notesOf({ notes }: ReportModel): Child {
  if (notes.length === 0) return null;
  const items = notes
    .slice(-notesMax)
    .map(({ at, text }) => el('li', {}, el('time', { datetime: at }, formatUtc(at)), foreign(text, 400)));
  return el(
    'section',
    { id: 'notes' },
    el('h2', {}, 'What happened'),
    notes.length > notesMax ? el('p', { class: 'dim' }, `The last ${notesMax} of ${notes.length}.`) : null,
    el('ul', { class: 'notes' }, items),
  );
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
    return el('tr', {}, el('td', {}, foreign(model, 200)), figures.map(numberCell));
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
