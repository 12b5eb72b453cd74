/** Cost and tokens of a report page: over time, and by model. By session they stand in the table of sessions. */
import { defined } from '../../core/defined.ts';
import type { Tokens } from '../../core/group.ts';
import { formatCount, formatMoney } from '../format.ts';
import { el, type Markup } from '../picture/markup.ts';
import { type Step, stepChart } from '../picture/step-chart.ts';
import { safeLine } from '../terminal-text.ts';
import type { ReportModel, ReportTimeline } from './model.ts';
import { foreign, legend, numberCell, table } from './parts.ts';
import { timeMs } from './times.ts';

/** Models that get a colour of their own; the others share one. */
const modelsMax = 5;

export function moneyOf(model: ReportModel): Markup {
  const { timeline } = model;
  const charts = timeline === undefined || model.spending.length === 0 ? null : chartsOf(model, timeline);
  return el('section', { id: 'cost' }, el('h2', {}, 'Cost and tokens'), charts, modelTable(model), removedOf(model));
}

function chartsOf(model: ReportModel, timeline: ReportTimeline): Markup[] {
  const span = { from: timeMs(timeline.from), to: Math.max(timeMs(timeline.to), timeMs(timeline.from) + 1) };
  const idle = timeline.idle.map(({ from, to }) => ({ from: timeMs(from), to: timeMs(to) }));
  const named = model.models.slice(0, modelsMax).map((one) => one.model);
  const names = hasOthers(model, named) ? [...named, null] : named;
  const { limitUsd } = model.cost;
  const cap = defined({ cap: limitUsd });
  const words = names.map((name) => (name === null ? 'other' : safeLine(name, 40)));
  const cost = stepChart(
    words,
    model.spending.map((spending) => costStep(spending, names)),
    { span, idle, label: 'Cost over time by model', format: (usd) => formatMoney(usd), ...cap },
  );
  const tokens = stepChart(
    tokenSeries.map(({ name }) => name),
    model.spending.map(({ from, at, tokens: used }) => {
      return { from: timeMs(from), at: timeMs(at), added: tokenSeries.map(({ of }) => of(used)) };
    }),
    { span, idle, label: 'Tokens over time', format: formatCount },
  );
  const colours = (texts: readonly string[]): Markup =>
    legend(texts.map((text, index) => ({ className: `f-${index + 1}`, text })));
  return [
    el('h3', {}, 'Cost over time'),
    el('p', { class: 'dim' }, 'What an attempt cost is spread evenly over the time it worked.'),
    el('div', { class: 'wide' }, cost),
    colours(words),
    el('h3', {}, 'Tokens over time'),
    el('div', { class: 'wide' }, tokens),
    colours(tokenSeries.map(({ name }) => name)),
  ];
}

const tokenSeries: readonly { readonly name: string; readonly of: (tokens: Tokens) => number }[] = [
  { name: 'output', of: ({ output }) => output },
  { name: 'input', of: ({ input }) => input },
  { name: 'written to the cache', of: ({ cacheCreation }) => cacheCreation },
  { name: 'read from the cache', of: ({ cacheRead }) => cacheRead },
];

/** Models beyond those with a colour, and what no model is named for. */
function hasOthers({ models, spending }: ReportModel, named: readonly string[]): boolean {
  return models.length > named.length || named.length === 0 || spending.some((one) => unnamedUsd(one) > 1e-9);
}

type Spending = ReportModel['spending'][number];

/** What no model is named for. */
function unnamedUsd({ costUsd, models }: Spending): number {
  return costUsd - Object.values(models).reduce((sum, usd) => sum + usd, 0);
}

/** The place of `null` takes what none of the names stands for. */
function costStep(spending: Spending, names: readonly (string | null)[]): Step {
  const own = new Map(Object.entries(spending.models));
  const shared = [...own].filter(([name]) => !names.includes(name)).reduce((sum, [, usd]) => sum + usd, 0);
  const rest = shared + Math.max(0, unnamedUsd(spending));
  const span = { from: timeMs(spending.from), at: timeMs(spending.at) };
  return { ...span, added: names.map((name) => (name === null ? rest : (own.get(name) ?? 0))) };
}

function modelTable({ models, cost }: ReportModel): Markup | null {
  if (models.length === 0) return null;
  const heads = [
    { title: 'Model' },
    ...['Cost', 'Share', 'Input', 'Output', 'Cache read', 'Cache written'].map((title) => ({
      title,
      isNumber: true as const,
    })),
  ];
  const rows = models.slice(0, 50).map(({ model, costUsd, tokens, estimated }) => {
    const share = cost.spentUsd > 0 ? `${Math.round((costUsd / cost.spentUsd) * 100)}%` : '';
    const counts = [tokens.input, tokens.output, tokens.cacheRead, tokens.cacheCreation];
    const figures = [formatMoney(costUsd, estimated), share, ...counts.map(formatCount)];
    return el('tr', {}, el('td', {}, foreign(model, 200)), figures.map(numberCell));
  });
  return table(heads, rows);
}

function removedOf({ cost }: ReportModel): Markup | null {
  if (cost.removedUsd <= 0) return null;
  return el('p', { class: 'dim' }, `${formatMoney(cost.removedUsd)} of it went to sessions that were removed since.`);
}
