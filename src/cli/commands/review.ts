/** `review`: what sessions did, in the order in which a person should look at it. */
import { resolve } from 'node:path';
import { type Command, Option } from '@commander-js/extra-typings';
import { readReview } from '../../app/delivery/review.ts';
import { loadReferredGroup } from '../../app/resolve.ts';
import { commandText } from '../../core/advice.ts';
import type { Style } from '../../view/format.ts';
import {
  actionsOf,
  answersOf,
  changeText,
  checkText,
  choicesOf,
  costText,
  kindTitle,
  mergeSafeCommand,
  type OpenDecision,
  type Review,
  type ReviewRow,
} from '../../view/review/review.ts';
import { safeLine, spelledLine } from '../../view/terminal-text.ts';
import { type Context, need } from '../context.ts';
import { checkPageTarget } from './group/show.ts';

const columnsMax = 400;
const saidMax = 200;

const example = `
Lists decisions first, then sessions without a result, then work by risk, then
what is safe to merge. Safe work with an acceptance command is merged and
checked together in scratch worktrees; no branch moves.

Example:
  $ claude-code-agent review auth-refactor
  $ claude-code-agent review auth-refactor --html review.html
  $ claude-code-agent review auth-refactor --json | jq '.rows[] | {title, kind, risks}'`;

export function define(command: Command, context: Context): void {
  command
    .description('Show what sessions did, and what to look at first.')
    .argument('<group>', 'id, unique prefix or slug')
    .addOption(
      new Option('--html <file>', 'write one self-contained HTML file ("-" = standard output)').conflicts('json'),
    )
    .option('--json', 'one JSON document: the rows with risks, files and evidence')
    .option('--no-check', 'do not check the safe work together')
    .option('--force', 'with --html: overwrite a file that is not a report')
    .addHelpText('after', example)
    .action((reference, { html, json, check, force }) =>
      context.run(async () => {
        const { stdout } = context;
        const path = html === undefined || html === '-' ? undefined : resolve(context.cwd, html);
        if (path !== undefined) checkPageTarget(context, path, force === true);
        const group = need(loadReferredGroup(context, reference));
        const review = need(await readReview(context, group, check));
        if (json) return stdout.json(review);
        if (html !== undefined) {
          const { reviewPage } = await import('../../view/review/page.ts');
          const page = reviewPage(review);
          if (path === undefined) return stdout.write(page);
          context.world.files.writeAtomic(path, page);
          return stdout.line(path);
        }
        if (stdout.isTerminal && context.stdinIsTerminal) {
          const { showReview } = await import('../review/review-screen.ts');
          return showReview(context, group, review);
        }
        return stdout.lines(reviewLines(review, stdout.style));
      }),
    );
}

function reviewLines(review: Review, style: Style): string[] {
  const lines = [style('strong', safeLine(review.headline, columnsMax)), ...decisionLines(review.decisions)];
  if (review.halt !== undefined) lines.push(safeLine(review.halt, columnsMax));
  if (review.union !== undefined) lines.push(safeLine(review.union, columnsMax));
  for (const [kind, rows] of Map.groupBy(review.rows, (row) => row.kind)) {
    lines.push('', style('strong', `${kindTitle(kind)} (${rows.length})`));
    for (const row of rows) lines.push(...rowLines(review, row, style));
    const all = kind === 'safe' ? mergeSafeCommand(review) : null;
    if (all !== null) lines.push(`  ${all}`);
  }
  return lines;
}

const tones = { high: 'bad', medium: 'warn', low: 'dim' } as const;

function rowLines(review: Review, row: ReviewRow, style: Style): string[] {
  const { title, project, kind, said, risks, evidence, pullRequest } = row;
  const facts = [title, project, changeText(row), costText(row), ...(kind === 'proposed' ? [pullRequest ?? ''] : [])];
  const head = `  ${facts.map((fact) => safeLine(fact, columnsMax)).join('  ')}`;
  if (kind === 'proposed' || kind === 'safe' || kind === 'merged' || kind === 'waiting') return [head];
  const commands = actionsOf(review.groupId, row).filter(({ disabled }) => disabled === undefined);
  return [
    head,
    ...decisionLines(row.decisions),
    ...risks.map(({ level, text }) => `    ${style(tones[level], spelledLine(safeLine(text, columnsMax)))}`),
    ...(said === '' ? [] : [`    ${style('dim', safeLine(said, saidMax))}`]),
    ...evidence.map((run) => `    ${safeLine(checkText(run), columnsMax)}`),
    ...commands.map(({ words }) => `      ${commandText(words)}`),
  ];
}

function decisionLines(decisions: readonly OpenDecision[]): string[] {
  return decisions.flatMap((decision) => [
    `    ${safeLine(decision.text, columnsMax)}`,
    ...choicesOf(decision).map((choice) => `    ${safeLine(choice, columnsMax)}`),
    ...answersOf(decision).map((command) => `      ${command}`),
  ]);
}
