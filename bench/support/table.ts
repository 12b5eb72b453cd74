/** The table of a benchmark, and what became of all targets. */
import type { Figure, Target } from './figures.ts';

const titles = ['what', 'median', 'spread', 'ratio', 'target', 'met', 'note'] as const;
/** Figures stand at the right of their column. */
const rightAligned: ReadonlySet<string> = new Set(['median']);

/** Markdown, aligned so that it reads as well in a terminal; columns that nothing stands in are left out. */
export function renderTable(figures: readonly Figure[]): string[] {
  const rows = figures.map(cells);
  const columns = titles.map((title, index) => ({ title, index }));
  const used = columns.filter(({ index }) => rows.some((row) => row[index] !== ''));
  const widths = used.map(({ title, index }) => Math.max(title.length, ...rows.map((row) => row[index]?.length ?? 0)));
  const line = (words: readonly string[]) => `| ${words.join(' | ')} |`;
  const padded = (row: readonly string[]) =>
    line(
      used.map(({ title, index }, at) => {
        const width = widths[at] as number;
        const text = row[index] ?? '';
        return rightAligned.has(title) ? text.padStart(width) : text.padEnd(width);
      }),
    );
  const rule = used.map(({ title }, at) => {
    const dashes = '-'.repeat((widths[at] as number) + 1);
    return rightAligned.has(title) ? `${dashes}:` : `-${dashes}`;
  });
  return [padded([...titles]), `|${rule.join('|')}|`, ...rows.map(padded)];
}

function cells({ what, value, spread = '', ratio = '', target, aside, note = '' }: Figure): string[] {
  const word = ({ isMet }: Target) => (isMet ? 'yes' : 'NO');
  if (target !== undefined) return [what, value, spread, ratio, target.text, word(target), note];
  if (aside !== undefined) return [what, value, spread, ratio, `(${aside.text})`, `(${word(aside)})`, note];
  return [what, value, spread, ratio, '', '', note];
}

/** How many targets are met, which are not, and what could not be compared with. */
export function verdict(figures: readonly Figure[]): string[] {
  const aimed = figures.filter(({ target }) => target !== undefined);
  const missed = aimed.filter(({ target }) => target?.isMet === false);
  const absent = figures.filter(({ isMissing }) => isMissing === true);
  const elsewhere = figures.filter(({ aside }) => aside !== undefined);
  const said = ({ value, ratio }: Figure) => (ratio === undefined ? value : `${value}, ${ratio}`);
  return [
    `${aimed.length - missed.length} of ${aimed.length} targets met; ${absent.length} peers not installed.`,
    ...missed.map((figure) => `- missed: ${figure.what}: ${said(figure)} (target ${figure.target?.text})`),
    ...elsewhere.map((figure) => {
      const held = figure.aside?.isMet ? 'holds' : 'does not hold';
      return `- beside the targets: ${figure.what}: ${said(figure)} (${figure.aside?.text} ${held})`;
    }),
    ...absent.map(({ what }) => `- not installed: ${what}`),
  ];
}
