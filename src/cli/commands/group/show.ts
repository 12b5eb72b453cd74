/** `group list`, `show`, `graph` and `budget`. */
import { type Command, Option } from '@commander-js/extra-typings';
import { dayBudget } from '../../../app/config/user-config.ts';
import { submit } from '../../../app/group-commands.ts';
import { whileWaiting } from '../../../app/request.ts';
import { type GroupListing, type LoadedGroup, listGroups, loadReferredGroup, sessionOf } from '../../../app/resolve.ts';
import { attemptUsages } from '../../../app/watch/attempt-usage.ts';
import {
  type GroupStanding,
  presentGroup,
  presentMeta,
  progressOf,
  readStanding,
} from '../../../app/watch/live-view.ts';
import { advise, commandText } from '../../../core/advice.ts';
import { defined } from '../../../core/defined.ts';
import { describeFailure, type Failure, publicFailure } from '../../../core/failure.ts';
import type { SessionId } from '../../../core/group.ts';
import { resumeCommand } from '../../../core/plan/advice.ts';
import { planOf } from '../../../core/plan/plan.ts';
import type { GroupState } from '../../../core/state.ts';
import { activeGroupStatuses, groupStatuses } from '../../../core/status.ts';
import { budgetLines, budgetReport, dayLines } from '../../../view/budget.ts';
import {
  formatAge,
  formatDate,
  formatMoney,
  formatTable,
  plural,
  type TableCell,
  titled,
} from '../../../view/format.ts';
import { dotGraph, graphNodes, mermaidGraph, textGraph } from '../../../view/markdown.ts';
import { nextSteps, problemLines, sessionTable, totalsLine } from '../../../view/summary.ts';
import { safeLine } from '../../../view/terminal-text.ts';
import { rehearsalNote, statusTone, titleOf } from '../../../view/wording.ts';
import { type CommandResult, type Context, need, refuse } from '../../context.ts';
import { parseMoney } from '../../options/options.ts';

const listExample = `
Example:
  $ claude-code-agent group list --status active
  $ claude-code-agent group list --json | jq -r '.[].id'`;

const description = `List session groups, newest first. Active groups are created, running or
paused. The cost of a rehearsal is marked as fake.`;

const statuses = [...groupStatuses, 'active'] as const;
type StatusFilter = (typeof statuses)[number];

export function defineGroupList(command: Command, context: Context): void {
  command
    .description(description)
    .addOption(new Option('--status <status>', 'only groups with this status').choices(statuses))
    .option('--json', 'one JSON document: an array of current meta.json contents, with "problem" for unreadable logs')
    .addHelpText('after', listExample)
    .action(({ status, json }) =>
      context.run(() => {
        const root = need(context.root());
        const all = listGroups(context.world, root);
        const listings = all.filter((listing) => isWanted(listing, status));
        if (json) {
          context.stdout.json(listings.map((listing) => plain(context, root, listing)));
          return;
        }
        if (listings.length === 0) {
          context.stderr.line(nothingToShow(status, all.length));
        } else {
          // One write: thousands of lines are much slower one by one.
          context.stdout.line(table(context, root, listings).join('\n'));
        }
        for (const listing of listings) {
          const { id, problem } = listing;
          if (problem !== undefined) context.stderr.line(`${id}: ${safeLine(describeFailure(problem), 400)}`);
        }
      }),
    );
}

function nothingToShow(status: StatusFilter | undefined, all: number): string {
  if (status === undefined || all === 0)
    return `There are no groups. Create one with: ${commandText(['group', 'create', 'first'])}`;
  const others = `List all ${all} with: ${commandText(['group', 'list'])}`;
  const archiving = `Archive a finished group with: ${commandText(['group', 'archive', 'latest'])}`;
  return `There are no ${status} groups. ${others}${status === 'archived' ? `\n${archiving}` : ''}`;
}

/** Unreadable groups are always listed, because their status is unknown. */
function isWanted({ meta }: GroupListing, status: StatusFilter | undefined): boolean {
  if (status === undefined || meta === undefined) return true;
  return status === 'active' ? activeGroupStatuses.has(meta.status) : meta.status === status;
}

function plain(context: Context, root: string, { id, meta, problem }: GroupListing): object {
  const present = meta === undefined ? {} : presentGroup(context, root, meta).meta;
  return { id, ...present, ...(problem === undefined ? {} : { problem: publicFailure(problem) }) };
}

function table(context: Context, root: string, listings: readonly GroupListing[]): string[] {
  const columns = titled(['GROUP', 'STATUS', 'DONE', 'COST', 'AGE', 'NAME'], 'DONE', 'COST', 'AGE');
  const nowMs = context.world.clock.now();
  const rows = listings.map((listing): TableCell[] => {
    if (listing.meta === undefined) return [listing.id, troubled(listing.problem)];
    const { id, problem } = listing;
    const { meta, status } = presentGroup(context, root, listing.meta);
    const done = meta.sessions.filter((session) => session.status === 'completed').length;
    return [
      id,
      problem === undefined ? { text: status, tone: statusTone(status.split(' ')[0] ?? '') } : troubled(problem),
      `${done}/${meta.sessions.length}`,
      // Marked, so that rehearsal costs are not added to real costs.
      `${formatMoney(meta.cost, meta.estimated)}${meta.rehearsal ? ' fake' : ''}`,
      formatAge(nowMs - Date.parse(listing.meta.createdAt)),
      meta.name === meta.slug ? '' : safeLine(meta.name, 60),
    ];
  });
  return formatTable(columns, rows, context.stdout.style);
}

/** Shown instead of the status of a group that cannot be read. */
function troubled({ reason }: Failure): TableCell {
  if (reason === 'newer-version') return { text: 'newer version', tone: 'warn' };
  if (reason === 'older-version') return { text: 'older version', tone: 'warn' };
  return { text: 'damaged', tone: 'bad' };
}

const showExample = `
Example:
  $ claude-code-agent group show auth-refactor
  $ claude-code-agent group show auth-refactor --json | jq .progress.totalCost
  $ claude-code-agent group show auth-refactor --json | jq '.sessions[] | {name, status, cost}'`;

export function defineGroupShow(command: Command, context: Context): void {
  command
    .description('Show a group: its status, its sessions in dependency order, and the next steps.')
    .argument('<group>', 'id, unique prefix or slug')
    .option('--json', 'one JSON document: meta.json plus `progress`')
    .addHelpText('after', showExample)
    .action((reference, { json }) =>
      context.run(() => {
        const group = need(loadReferredGroup(context, reference));
        const { state } = group;
        if (json) {
          // Read once, so that the document describes one moment.
          const standing = readStanding(context.world, group);
          const progress = progressOf(context.world, group, standing);
          const meta = presentMeta(state, standing.live);
          context.stdout.json({ ...meta, ...conditions(state), progress });
        } else {
          context.stdout.lines(describe(context, group, readStanding(context.world, group)));
        }
      }),
    );
}

function describe(context: Context, { state, paths }: LoadedGroup, standing: GroupStanding): string[] {
  const { style, isTerminal, columns } = context.stdout;
  const { group } = state;
  const order = planOf(state).graph.order;
  const trouble = problemLines(state, style, standing.verdicts);
  const table = { style, columns: isTerminal ? columns : undefined, nowMs: standing.atMs };
  return [
    `${style('strong', safeLine(group.name, 120))}  ${group.id}`,
    ...(group.description === '' ? [] : [safeLine(group.description, 400)]),
    ...(state.run?.rehearsal ? [rehearsalNote] : []),
    `Created: ${formatDate(group.createdAt)}`,
    `Settings: ${settings(state.group.config)}`,
    `Folder: ${safeLine(paths.folder, 1000)}`,
    '',
    ...sessionTable(state, standing, order, table),
    '',
    totalsLine(state, standing.live, standing.atMs, style, !standing.isInterrupted),
    ...(trouble.length > 0 ? ['', ...trouble] : []),
    '',
    ...nextSteps(state, !standing.isInterrupted),
  ];
}

/** Fields that are present only while they apply. */
function conditions(state: LoadedGroup['state']): object {
  const { pausing, draining, frozenUntil, limitResetsAt, limitType } = state;
  return {
    ...(pausing === undefined ? {} : { pausing: draining ? 'drain' : pausing }),
    ...defined({ frozenUntil, limitResetsAt, limitType }),
  };
}

function settings(config: LoadedGroup['state']['group']['config']): string {
  return [
    `${plural(config.maxConcurrentSessions, 'session')} at once`,
    ...(config.commandsAtOnce === undefined ? [] : [`${plural(config.commandsAtOnce, 'command')} at once`]),
    config.maxBudgetUsd === undefined
      ? 'no cap'
      : `cap ${formatMoney(config.maxBudgetUsd)} (then ${config.onBudgetExceeded})`,
    `starts nothing after ${plural(config.errorThreshold, 'failure')}`,
    ...(config.model === undefined ? [] : [`model ${safeLine(config.model, 60)}`]),
    ...(config.fallbackModel === undefined ? [] : [`fallback model ${safeLine(config.fallbackModel, 60)}`]),
    ...(config.effort === undefined ? [] : [`effort ${config.effort}`]),
    ...(config.maxTurns === undefined ? [] : [`at most ${plural(config.maxTurns, 'turn')} per session`]),
    ...(config.onLimit === 'pause' ? ['pauses at a usage limit'] : []),
    ...(config.warmCache === false ? ['similar sessions start at once'] : []),
    ...(config.acceptClaude === undefined ? [] : [`accepts claude ${config.acceptClaude} even if its check fails`]),
    ...(config.minFreeMemoryBytes === undefined ? [] : [`keeps ${config.minFreeMemoryBytes / 1_000_000} MB free`]),
    ...(config.respectDependencies ? [] : ['dependencies ignored']),
    ...whereWords(config),
  ].join(', ');
}

function whereWords({ where, onLost }: LoadedGroup['state']['group']['config']): string[] {
  const words = { local: 'on this host only', fleet: 'on fleet hosts only', any: 'on any host' };
  return [...(where === undefined ? [] : [words[where]]), ...(onLost === 'wait' ? ['waits for lost hosts'] : [])];
}

const graphExample = `
Example:
  $ claude-code-agent group graph auth-refactor
  $ claude-code-agent group graph auth-refactor --format svg > graph.svg
  $ claude-code-agent group graph auth-refactor --format mermaid`;

const formats = ['text', 'mermaid', 'dot', 'svg'] as const;

export function defineGraph(command: Command, context: Context): void {
  command
    .description('Print the dependency graph of a group. Sessions of one wave can run at the same time.')
    .argument('<group>', 'id, unique prefix or slug')
    .addOption(new Option('--format <format>', 'output format').choices(formats).default('text' as const))
    .option('--json', 'one JSON document: an array of nodes with their dependencies')
    .addHelpText('after', graphExample)
    .action((reference, { format, json }) =>
      context.run(async () => {
        const group = need(loadReferredGroup(context, reference));
        const { state } = group;
        const { stdout } = context;
        if (json) stdout.json(graphNodes(state));
        else if (format === 'mermaid') stdout.line(mermaidGraph(state).join('\n'));
        else if (format === 'dot') stdout.line(dotGraph(state).join('\n'));
        else if (format === 'svg') return await printPicture(context, state);
        else stdout.line(textGraph(state, stdout.style).join('\n'));
      }),
    );
}

/** Prints an SVG file, coloured by status. */
async function printPicture(context: Context, state: GroupState): Promise<CommandResult> {
  // Loaded on demand, because the graph layout library is large.
  const { graphPicture } = await import('../../../view/html/pictures.ts');
  const drawn = graphPicture(state, { isFile: true });
  if (drawn === null) {
    const next = advise('Print it for Graphviz with', ['group', 'graph', state.group.id, '--format', 'dot']);
    return refuse('usage', 'The graph is too large to draw.', next);
  }
  context.stdout.line(drawn.picture.text);
}

const budgetExample = `
Example:
  $ claude-code-agent group budget auth-refactor
  $ claude-code-agent group budget auth-refactor --raise-to 20 && claude-code-agent group resume auth-refactor
  $ claude-code-agent group budget auth-refactor --free 002
  $ claude-code-agent group budget auth-refactor --json | jq .leftUsd`;

export function defineBudget(command: Command, context: Context): void {
  command
    .description(
      `Show what a group has spent, reserved and left. Figures marked with "~" are
estimates until claude reports the final figure. Held amounts count in full.`,
    )
    .argument('<group>', 'id, unique prefix or slug')
    .option('--raise-to <usd>', 'set the cap, even while the group runs', parseMoney)
    .option('--book <session>', "record the session's held amount as spent")
    .option('--free <session>', "release the session's held amount")
    .option('--json', 'one JSON document, amounts in US dollars')
    .addHelpText('after', budgetExample)
    .action((reference, { raiseTo, book, free, json }) =>
      context.run(async () => {
        const group = need(loadReferredGroup(context, reference));
        if (book !== undefined && free !== undefined) {
          return refuse('usage', '--book and --free cannot be combined.', 'Give one of them.');
        }
        const settled = book ?? free;
        if (settled !== undefined) {
          const { sessionId } = need(sessionOf(group, settled));
          need(await submit(context, group, { kind: 'settle-cost', sessionId, isSpent: book !== undefined }));
          saySettled(context, need(loadReferredGroup(context, group.groupId)), sessionId, book !== undefined);
        }
        if (raiseTo !== undefined) {
          const raising = submit(context, group, { kind: 'edit-group', config: { maxBudgetUsd: raiseTo } });
          need(await whileWaiting(context, group, raising));
          sayRaised(context, need(loadReferredGroup(context, group.groupId)), raiseTo);
        }
        const { paths, state } = need(loadReferredGroup(context, group.groupId));
        const report = budgetReport(state, attemptUsages(context.world, paths, state));
        const day = await dayBudget(context, group.root);
        if (json) context.stdout.json({ ...report, ...defined({ day }) });
        else context.stdout.lines([...budgetLines(report, context.stdout.style), ...dayLines(day)]);
      }),
    );
}

/** Printed on stderr, so that stdout is the report alone. */
function saySettled({ stderr }: Context, { state }: LoadedGroup, sessionId: SessionId, isSpent: boolean): void {
  const title = titleOf(state, sessionId);
  // If the budget is still too small, the report that follows contains the next step.
  const next = (state.status === 'paused' || state.status === 'failed') && state.reason !== 'budget';
  const goOn = next ? ` Resume with: ${commandText(resumeCommand(state))}` : '';
  stderr.line(`The amount held for session ${title} is ${isSpent ? 'recorded as spent' : 'released'}.${goOn}`);
}

function sayRaised({ stderr }: Context, { groupId, state }: LoadedGroup, raiseTo: number): void {
  const isAtRest = state.status === 'paused' || state.status === 'failed';
  const goOn = `Resume with: ${commandText(resumeCommand(state))}`;
  const next = state.reason === 'budget' ? (state.message ?? '') : goOn;
  stderr.line(`The cap of ${groupId} is now ${formatMoney(raiseTo)}.${isAtRest ? ` ${next}` : ''}`);
}
