/**
 * Measures and prints a table; a whole run is kept in bench/results.md. Nothing is asserted: figures depend on the
 * machine and on what else it does, so the load stands beside them and every target says whether it was met.
 */
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { real } from './real.ts';
import { scheduling } from './schedule.ts';
import { size } from './size.ts';
import { startup } from './startup.ts';
import { type Benchmark, type Effort, type Figure, formatBytes, load } from './support/figures.ts';
import { renderTable, verdict } from './support/table.ts';

const benchmarks: Readonly<Record<string, Benchmark>> = { scheduling, size, startup, real };
const resultsFile = join(import.meta.dir, 'results.md');
/** What a whole run has measured so far: it is not lost when something later fails, nor taken for a whole run. */
const unfinishedFile = join(import.meta.dir, 'results.unfinished.md');
const thorough: Effort = { isQuick: false, rounds: 5 };
const quick: Effort = { isQuick: true, rounds: 1 };

function machine(): string {
  const model = cpus()[0]?.model ?? 'unknown CPU';
  const parts = [`${process.platform} ${process.arch}`, `${availableParallelism()} cores (${model})`];
  return [...parts, `${formatBytes(totalmem())} of memory`, `Bun ${Bun.version}`].join(', ');
}

const words = process.argv.slice(2);
const names = words.filter((word) => word !== '--quick');
const usage = `npm run bench -- [--quick] [${Object.keys(benchmarks).join(' | ')}]...`;
if (words.includes('--help') || words.includes('-h')) {
  console.log(usage);
  process.exit(0);
}
const unknown = names.filter((name) => !Object.hasOwn(benchmarks, name));
if (unknown.length > 0) {
  console.error(`There is no benchmark ${unknown.join(', ')}. Usage: ${usage}`);
  process.exit(2);
}
const effort = words.includes('--quick') ? quick : thorough;
const isWhole = names.length === 0 && !effort.isQuick;
const report: string[] = [];
const keep = () => writeFileSync(unfinishedFile, `# Benchmarks\n\n${report.join('\n')}\n`);
if (isWhole) rmSync(unfinishedFile, { force: true });
const say = (...lines: string[]) => {
  report.push(...lines);
  for (const line of lines) console.log(line);
};
say(`${machine()}; load average ${load()}`);
if (effort.isQuick) say('One round of everything (--quick): good to see that it runs, not to quote.');
const all: Figure[] = [];
const wanted = Object.keys(benchmarks).filter((name) => names.length === 0 || names.includes(name));
for (const name of wanted) {
  const { about, run } = benchmarks[name] as Benchmark;
  const before = load();
  const figures = await run(effort);
  all.push(...figures);
  say(
    '',
    `## ${name}`,
    '',
    about(effort),
    `Load average ${before} before, ${load()} after.`,
    '',
    ...renderTable(figures),
  );
  if (isWhole) keep();
}
say('', '## targets', '', ...verdict(all));
if (isWhole) {
  keep();
  renameSync(unfinishedFile, resultsFile);
} else console.log('\nNot kept: bench/results.md holds whole runs only.');
