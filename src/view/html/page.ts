/**
 * view/html/: the report of a group. This file: one HTML page that needs nothing else: no script, no font, no
 * picture, no request. Its policy forbids them as well, so that even a defect here could not make the page of a
 * hostile transcript load anything.
 */
import type { GroupState } from '../../core/state.ts';
import { graphPicture } from '../picture/graph-picture.ts';
import { el, fragment, type Markup, styleElement } from '../picture/markup.ts';
import { timelinePicture, waitWords } from '../picture/timeline-picture.ts';
import { safeLine } from '../terminal-text.ts';
import { anchorOf, type ReportModel } from './model.ts';
import { moneyOf } from './money.ts';
import { headerOf, notesOf, shownStatus, summaryOf, troublesOf } from './overview.ts';
import { legend } from './parts.ts';
import { sessionsOf } from './sessions.ts';
import { pageStyle } from './style.ts';
import type { WaitReason } from './waits.ts';

/** How every page begins: tells a report, which may be written again, from any other file. */
export const pageStart = '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="generator" ';

const href = (id: string): string => `#${anchorOf(id)}`;

/** The whole page. `model` is that of `state`. */
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
    moneyOf(model),
    sessionsOf(model),
  );
  const footer = el('footer', {}, `Group ${model.groupId}, made by claude-code-agent. All times are UTC.`);
  const body = el('body', {}, headerOf(model), main, footer);
  return `${pageStart}content="claude-code-agent">${head}</head>\n${body}</html>\n`;
}

function timelineOf(model: ReportModel): Markup | null {
  const drawn = timelinePicture(model, href);
  if (drawn === null) return null;
  return el(
    'section',
    { id: 'timeline' },
    el('h2', {}, 'Timeline'),
    el('div', { class: 'wide tall' }, drawn.picture),
    legend(drawn.kinds.map(kindEntry)),
    drawn.caption === '' ? null : el('p', { class: 'dim' }, drawn.caption),
    notesOf(model),
  );
}

const kindWords: Readonly<Record<string, string>> = {
  preparing: 'getting ready',
  completed: 'at work, completed',
  running: 'at work',
  failed: 'at work, failed',
  paused: 'at work, then interrupted',
  accepting: 'its work was judged',
};

function kindEntry(kind: string): { readonly className: string; readonly text: string } {
  if (kind.startsWith('wait-')) {
    const reason = kind.slice(5) as WaitReason;
    return { className: `wait w-${reason}`, text: waitWords[reason] };
  }
  const className =
    kind === 'preparing' ? 'bar s-running preparing' : `bar ${kind === 'accepting' ? kind : `s-${kind}`}`;
  return { className, text: kindWords[kind] ?? kind };
}

function graphOf(state: GroupState, { sessions }: ReportModel): Markup | null {
  if (sessions.length === 0) return null;
  const { picture, caption, statuses } = graphPicture(state, { href });
  return el(
    'section',
    { id: 'graph' },
    el('h2', {}, 'Dependencies'),
    el('div', { class: 'wide tall' }, picture),
    legend(statuses.map((status) => ({ className: `node s-${status}`, text: status }))),
    caption === '' ? null : el('p', { class: 'dim' }, caption),
  );
}
