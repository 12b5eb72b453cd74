/** What a pull request says: whose work it holds, what each session answered, and which requests belong together. */
import type { GroupState } from '../../core/state.ts';
import { plural } from '../../view/format.ts';
import { safeLine, safeText } from '../../view/terminal-text.ts';
import { type MergeItem, titleOfItem } from './merge-items.ts';
import { placeName } from './plan.ts';

/** GitHub takes 65,536 characters. */
const bodyMax = 60_000;
const answerMax = 6_000;
const titleMax = 200;

/** Whatever people write around it stays when it is written anew. */
const begin = '<!-- claude-code-agent: begin -->';
const end = '<!-- claude-code-agent: end -->';

export interface Related {
  readonly repository: string;
  readonly url: string;
}

export function proposalTitle({ group }: GroupState): string {
  return safeLine(group.name, titleMax) || group.slug;
}

/** The part of the text that is ours. */
export function proposalSection(
  { group }: GroupState,
  items: readonly MergeItem[],
  related: readonly Related[],
): string {
  const head = [
    ...(group.description === '' ? [] : [plain(group.description), '']),
    ...(related.length === 0 ? [] : ['Belongs together with:', ...related.map(relatedLine), '']),
  ];
  const perPiece = Math.min(answerMax, Math.floor(bodyMax / Math.max(1, items.length)) - 400);
  const body = items.flatMap((item) => [...pieceText(item, Math.max(0, perPiece)), '']);
  return `${[begin, ...head, ...body].join('\n').slice(0, bodyMax)}\n${end}`;
}

function relatedLine({ repository, url }: Related): string {
  return `- ${url} (${safeLine(placeName(repository).split('/').at(-1) ?? '', 80)})`;
}

function pieceText(item: MergeItem, answerLimit: number): string[] {
  const { record, work } = item;
  const { description } = record.definition;
  const what = description === '' ? '' : `: ${safeLine(description, 120)}`;
  const answer = record.state.status === 'completed' ? plain(record.state.result).trim() : '';
  const shown = answer.length > answerLimit ? `${answer.slice(0, answerLimit).trimEnd()} …` : answer;
  const quoted = shown.split('\n').map((line) => (line === '' ? '>' : `> ${line}`));
  return [
    `### ${titleOfItem(item)}${what}`,
    '',
    `${plural(work.files, 'file')} changed, +${work.insertions} -${work.deletions}`,
    ...(shown === '' ? [] : ['', ...quoted]),
  ];
}

/** A model wrote it: it must not end our part, call people, or close issues by a word. */
function plain(text: string): string {
  return safeText(text)
    .replaceAll('<!--', '&lt;!--')
    .replace(/(^|[^\w`])@(?=[A-Za-z0-9])/g, '$1@\u200b')
    .replace(/\b(close[sd]?|fix(?:e[sd])?|resolve[sd]?)(:?\s+)(?=(?:[\w./-]*#|https?:)\S*\d)/gi, '$1\u200b$2');
}

/** A text that holds our part already gets the new one in its place; any other keeps what it says in front of it. */
export function withSection(text: string, section: string): string {
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from >= 0 && to > from) return `${text.slice(0, from)}${section}${text.slice(to + end.length)}`;
  return text.trim() === '' ? section : `${text.trimEnd()}\n\n${section}`;
}
