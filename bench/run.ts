/**
 * `npm run bench -- [name...]`: measures, prints a table and keeps it in bench/results.md. Nothing is asserted: figures
 * depend on the machine and on what else it does, so the load stands beside them.
 */
import { writeFileSync } from 'node:fs';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { dashboard } from './dashboard.ts';
import { events } from './events.ts';
import { hook } from './hook.ts';
import { ingest } from './ingest.ts';
import { real } from './real.ts';
import { size } from './size.ts';
import { startup } from './startup.ts';
import { type Benchmark, type Figure, formatBytes, load } from './support/figures.ts';
import { tokens } from './tokens.ts';
import { worktrees } from './worktrees.ts';

const benchmarks: Readonly<Record<string, Benchmark>> = {
  ingest,
  events,
  startup,
  size,
  hook,
  worktrees,
  dashboard,
  real,
  tokens,
};
const resultsFile = join(import.meta.dir, 'results.md');

function machine(): string {
  const model = cpus()[0]?.model ?? 'unknown CPU';
  const parts = [`${process.platform} ${process.arch}`, `${availableParallelism()} cores (${model})`];
  return [...parts, `${formatBytes(totalmem())} of memory`, `Bun ${Bun.version}`].join(', ');
}

function table(figures: readonly Figure[]): string[] {
  const rows = [
    { what: 'what', value: 'figure', beside: 'beside' },
    ...figures.map(({ what, value, beside = '' }) => ({ what, value, beside })),
  ];
  const width = (key: keyof (typeof rows)[number]) => Math.max(...rows.map((row) => row[key].length));
  const [what, value, beside] = [width('what'), width('value'), width('beside')];
  const lines = rows.map(
    (row) => `| ${row.what.padEnd(what)} | ${row.value.padStart(value)} | ${row.beside.padEnd(beside)} |`,
  );
  const rule = `|-${'-'.repeat(what)}-|-${'-'.repeat(value)}:|-${'-'.repeat(beside)}-|`;
  return [lines[0] as string, rule, ...lines.slice(1)];
}

const names = process.argv.slice(2);
const unknown = names.filter((name) => !Object.hasOwn(benchmarks, name));
if (unknown.length > 0) {
  console.error(`There is no benchmark ${unknown.join(', ')}; there are: ${Object.keys(benchmarks).join(', ')}.`);
  process.exit(2);
}
const report: string[] = [];
const say = (...lines: string[]) => {
  report.push(...lines);
  for (const line of lines) console.log(line);
};
say(`${machine()}; load average ${load()}`);
for (const [name, { about, run }] of Object.entries(benchmarks)) {
  if (names.length > 0 && !names.includes(name)) continue;
  const before = load();
  const figures = await run();
  say('', `## ${name}`, '', about, `Load average ${before} before, ${load()} after.`, '', ...table(figures));
}
writeFileSync(resultsFile, `# Benchmarks\n\n${report.join('\n')}\n`);
