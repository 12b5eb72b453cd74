/** `group list`, `show`, `graph`, `budget`, `why` and `report`. */

import { dirname, resolve } from 'node:path';
import { type Command, Option } from '@commander-js/extra-typings';
import { dayBudget } from '../../../app/config/user-config.ts';
import { submit } from '../../../app/group-commands.ts';
import { suspendedRunner, suspendedSentence } from '../../../app/live-runner.ts';
import { tryPath } from '../../../app/path-argument.ts';
import { whileWaiting } from '../../../app/request.ts';
import {
  type GroupListing,
  type LoadedGroup,
  listGroups,
  loadReferredGroup,
  resolveGroup,
  sessionOf,
} from '../../../app/resolve.ts';
import {
  acceptanceLog,
  attemptUsages,
  type GroupStanding,
  leftWorker,
  loadReport,
  presentGroup,
  presentMeta,
  progressOf,
  readStanding,
  runningSetup,
} from '../../../app/watch/live-view.ts';
import { advise, commandText } from '../../../core/advice.ts';
import { defined } from '../../../core/defined.ts';
import { describeFailure, type Failure, publicFailure } from '../../../core/failure.ts';
import type { SessionId } from '../../../core/group.ts';
import { quoted } from '../../../core/id.ts';
import { openItems } from '../../../core/item.ts';
import { resumeCommand, runCommand, sessionReference } from '../../../core/plan/advice.ts';
import { slotReason, slotSentence } from '../../../core/plan/command-slot.ts';
import { planOf } from '../../../core/plan/plan.ts';
import { runnerGone, waitsForAnswer } from '../../../core/plan/verdicts.ts';
import { deniedSentence, type LiveSession, silenceSentence } from '../../../core/progress.ts';
import type { Attempt, SessionRecord } from '../../../core/session-state.ts';
import type { GroupState } from '../../../core/state.ts';
import { activeGroupStatuses, groupStatuses } from '../../../core/status.ts';
import { isDiskFull } from '../../../store/system-failure.ts';
import { budgetLines, budgetReport, dayLines } from '../../../view/budget.ts';
import {
  formatAge,
  formatClock,
  formatDate,
  formatMoney,
  formatTable,
  plural,
  type TableCell,
  titled,
} from '../../../view/format.ts';
import { pageStart } from '../../../view/html/markup.ts';
import { dotGraph, graphNodes, mermaidGraph, reportMarkdown, textGraph } from '../../../view/markdown.ts';
import { nextSteps, problemLines, sessionTable, totalsLine } from '../../../view/summary.ts';
import { safeLine } from '../../../view/terminal-text.ts';
import {
  acceptanceSentence,
  rehearsalNote,
  retrySentence,
  sessionTitle,
  setupSentence,
  statusTone,
  titleOf,
  withAdvice,
  withLocalTimes,
} from '../../../view/wording.ts';
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
    .addOption(new Option('--book <session>', "record the session's held amount as spent").conflicts('free'))
    .option('--free <session>', "release the session's held amount")
    .option('--json', 'one JSON document, amounts in US dollars')
    .addHelpText('after', budgetExample)
    .action((reference, { raiseTo, book, free, json }) =>
      context.run(async () => {
        const group = need(loadReferredGroup(context, reference));
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

const whyExample = `
Example:
  $ claude-code-agent group why auth-refactor
  $ claude-code-agent group why auth-refactor web
  $ claude-code-agent group why auth-refactor --json | jq -r '.sessions[] | select(.reason == "blocked") | .id'`;

const messageColumnsMax = 1_000;

export function defineWhy(command: Command, context: Context): void {
  command
    .description('Explain why sessions are not running, with a reason code and a next step for each.')
    .argument('<group>', 'id, unique prefix or slug')
    .argument('[session]', 'id, unique prefix, number or name (default: all)')
    .option('--json', 'one JSON document')
    .addHelpText('after', whyExample)
    .action((reference, wanted, { json }) =>
      context.run(() => {
        const group = need(loadReferredGroup(context, reference));
        // Also accept `<group>/<session>` for the session.
        const only =
          wanted === undefined ? undefined : need(sessionOf(group, wanted.slice(wanted.indexOf('/') + 1))).sessionId;
        const answers = answersFor(context, group);
        const { state, groupId } = group;
        if (json) {
          const sessions = answers.filter(({ id }) => only === undefined || id === only);
          context.stdout.json({ groupId, status: state.status, sessions });
          return;
        }
        const shown = answers.filter(({ id, status }) => (only === undefined ? status !== 'completed' : id === only));
        const halted = suspendedRunner(context.world, group.paths);
        if (halted !== null) {
          const { message, advice } = suspendedSentence(groupId, halted);
          context.stdout.line(`${message} ${advice}`);
          context.stdout.line('');
        }
        context.stdout.lines(whyLines(context, group, shown));
      }),
    );
}

interface Answer {
  readonly id: SessionId;
  readonly name?: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

function whyLines(context: Context, { state }: LoadedGroup, answers: readonly Answer[]): string[] {
  if (answers.length === 0) {
    const { size } = state.sessions;
    return [size === 0 ? 'The group has no sessions.' : `All sessions are completed (${size}).`];
  }
  const nowMs = context.world.clock.now();
  const shown = answers.map((answer) => ({ ...answer, message: withLocalTimes(answer.message, nowMs) }));
  const shared = sharedSentences(shown);
  const columns = titled(['SESSION', 'STATUS', 'REASON', 'WHY']);
  const rows = shown.map(({ id, name, status, reason, message }) => [
    sessionTitle(id, name),
    { text: status, tone: statusTone(status) },
    reason,
    shared.has(message) ? '' : safeLine(message, messageColumnsMax),
  ]);
  const heads = [...shared].map(([message, reason]) => `${reason}: ${safeLine(message, messageColumnsMax)}`);
  return [...heads, ...(heads.length > 0 ? [''] : []), ...formatTable(columns, rows, context.stdout.style)];
}

/** Shorter messages are repeated in each row. */
const sharedLengthMin = 40;

/** A message that several sessions share is printed once above the table, with the reason code of their rows. */
function sharedSentences(answers: readonly Answer[]): ReadonlyMap<string, string> {
  const shared = new Map<string, string>();
  for (const [reason, alike = []] of Map.groupBy(answers, (answer) => answer.reason)) {
    const messages = new Set(alike.map(({ message }) => message));
    const [message = ''] = messages;
    if (alike.length > 1 && messages.size === 1 && message.length >= sharedLengthMin) shared.set(message, reason);
  }
  return shared;
}

function answersFor(context: Context, group: LoadedGroup): Answer[] {
  const { state } = group;
  const standing = readStanding(context.world, group);
  return [...state.sessions.values()].map((record): Answer => {
    const { id, name } = record.definition;
    const head = { id, ...defined({ name }), status: record.state.status };
    if (record.state.status === 'running') {
      return { ...head, ...whatItDoes(context, group, standing, record, record.state.attempt) };
    }
    if (isAttachmentGone(context, state, standing, record)) return { ...head, ...attachmentGone(state) };
    const why = standing.verdicts(record);
    return why === null
      ? { ...head, reason: 'completed', message: 'It is completed.' }
      : { ...head, reason: why.reason, message: withAdvice(why.message, why.advice) };
  });
}

type Reason = Pick<Answer, 'reason' | 'message'>;

/** The `session attach` command was killed. The next runner counts the cost of the attached conversation. */
function isAttachmentGone(
  { world }: Context,
  { status }: GroupState,
  { isInterrupted }: GroupStanding,
  { takenOver }: SessionRecord,
): boolean {
  return takenOver !== undefined && (isInterrupted || status !== 'running') && leftWorker(world, takenOver) === 'ended';
}

function attachmentGone(state: GroupState): Reason {
  const message = 'The attached terminal is gone. Its cost is counted when the group continues.';
  return { reason: 'attached', message: withAdvice(message, advise('Continue with', runCommand(state))) };
}

function whatItDoes(
  { world }: Context,
  group: LoadedGroup,
  { isInterrupted, live }: GroupStanding,
  record: SessionRecord,
  attempt: Attempt,
): Reason {
  const { stopping, identified } = attempt;
  if (isInterrupted) {
    const { reason, message, advice } = runnerGone(group.state);
    return { reason, message: withAdvice(`${whatIsLeft(world, group.state, attempt)} ${message}`, advice) };
  }
  if (stopping !== undefined) return { reason: 'stopping', message: `It is being stopped (${stopping}).` };
  const { frozenUntil } = group.state;
  if (frozenUntil !== undefined) {
    return { reason: 'frozen', message: `It is frozen until ${formatClock(frozenUntil)}.` };
  }
  if (isDiskFull(world, group.root)) {
    const message = `The disk of ${group.root} is full. Suspended until space is available.`;
    const free = advise('Free some space, for example with', ['group', 'prune', '--older-than', '30d']);
    return { reason: 'disk', message: withAdvice(message, free) };
  }
  const now = live.get(record.definition.id);
  if (now?.slot !== undefined) return { reason: slotReason, message: slotSentence(group.state, now.slot) };
  if (attempt.accepting !== undefined) {
    return { reason: 'accepting', message: acceptanceSentence(acceptanceLog(group.paths, record.definition)) };
  }
  const [item] = openItems(record);
  if (item !== undefined) {
    const { reason, message, advice } = waitsForAnswer(group.state, item);
    return { reason, message: withAdvice(message, advice) };
  }
  const setupLog = runningSetup(world, group.paths, record);
  if (setupLog !== null) return { reason: 'preparing', message: setupSentence(setupLog) };
  return {
    reason: identified ? 'working' : 'preparing',
    message: activity(group.state, record, now, identified),
  };
}

function whatIsLeft(world: Context['world'], { frozenUntil }: GroupState, attempt: Attempt): string {
  const left = leftWorker(world, attempt);
  if (left === 'ended') return 'Its process has ended.';
  if (left !== 'alive') return `It was started ${left.elsewhere}; its state is unknown here.`;
  const doing = frozenUntil === undefined ? 'is still running without a runner' : 'is suspended';
  return `It ${doing} (process ${attempt.process?.pid}).`;
}

function activity(state: GroupState, record: SessionRecord, now: LiveSession | undefined, identified: boolean): string {
  if (now?.silentMs !== undefined) return silenceSentence(record.host ?? '', now.silentMs);
  const doing = doingNow(now, identified);
  if (now?.denied === undefined) return doing;
  const allow = advise('Allow it with', ['session', 'allow', sessionReference(state, record)]);
  return withAdvice(`${doing.replace(/(?<![.!?…])$/, '.')} ${deniedSentence(now.denied)}`, allow);
}

function doingNow(now: LiveSession | undefined, identified: boolean): string {
  if (now?.retry !== undefined) return retrySentence(now.retry);
  if (now?.currentTool !== undefined) return `It is using a tool: ${now.currentTool}`;
  if (now?.lastText !== undefined) return `Last message: ${now.lastText}`;
  return identified ? 'Waiting for the model.' : 'claude is starting.';
}

const reportExample = `
Example:
  $ claude-code-agent group report auth-refactor --html report.html
  $ claude-code-agent group report auth-refactor --markdown | gh pr create --body-file - --title "Auth"
  $ claude-code-agent group report auth-refactor --json | jq '.sessions[] | {title, status, costUsd}'`;

export function defineReport(command: Command, context: Context): void {
  command
    .description(
      `Write a report on a group: results, changes, failures with next steps, waits,
cost and tokens. The HTML file is self-contained. The default format is
Markdown.`,
    )
    .argument('<group>', 'id, unique prefix or slug')
    .addOption(
      new Option('--html <file>', 'write one self-contained HTML file ("-" = standard output)').conflicts([
        'markdown',
        'json',
      ]),
    )
    .addOption(new Option('--markdown', 'print Markdown, for the body of a pull request').conflicts('json'))
    .option('--json', 'one JSON document: the data of the report')
    .option('--force', 'with --html: overwrite a file that is not a report')
    .addHelpText('after', reportExample)
    .action((reference, { html, json, force }) =>
      context.run(async () => {
        const { stdout, world } = context;
        const { state, model } = need(await loadReport(world, need(resolveGroup(context, reference))));
        if (json) return stdout.json(model);
        if (html === undefined) return stdout.write(reportMarkdown(state, model));
        // Loaded on demand, because the graph layout library is large.
        const { reportPage } = await import('../../../view/html/page.ts');
        const page = reportPage(state, model);
        if (html === '-') return stdout.write(page);
        const path = resolve(context.cwd, html);
        checkPageTarget(context, path, force === true);
        world.files.writeAtomic(path, page);
        stdout.line(path);
      }),
    );
}

/** Refuses to overwrite a file that is not a page of this program, unless `force`. */
export function checkPageTarget({ world }: Context, path: string, force: boolean): void {
  const shown = quoted(path);
  const next = 'Give --html a file in an existing folder.';
  const folder = tryPath(() => world.files.info(dirname(path)));
  if (!folder.ok) refuse('usage', `The folder of ${shown} ${folder.trouble}.`, next);
  if (folder.value?.kind !== 'folder') refuse('usage', `The folder of ${shown} does not exist.`, next);
  const there = tryPath(() => world.files.info(path));
  if (!there.ok) refuse('usage', `The path ${shown} ${there.trouble}.`, next);
  if (there.value === null) return;
  if (there.value.kind !== 'file') refuse('usage', `${shown} is not a regular file.`, next);
  if (force || there.value.size === 0) return;
  const head = tryPath(() => world.files.readBytes(path, 0, pageStart.length));
  const isReport = head.ok && new TextDecoder().decode(head.value) === pageStart;
  if (isReport) return;
  refuse('usage', `${shown} exists and is not a report.`, 'Give another name, or overwrite it with --force.');
}
