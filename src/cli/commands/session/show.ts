/** `session list`, `show` and `logs`. */
import { type Command, Option } from '@commander-js/extra-typings';
import { configLines, configView } from '../../../app/config-view.ts';
import { liveRunner } from '../../../app/live-runner.ts';
import {
  type LoadedSession,
  loadReferredGroup,
  loadReferredSession,
  sessionMeta,
  sessionPaths,
} from '../../../app/resolve.ts';
import { followGroup } from '../../../app/watch/follow-group.ts';
import { type GroupStanding, readStanding, runningSetup } from '../../../app/watch/live-view.ts';
import { advise, commandText, see } from '../../../core/advice.ts';
import { addUsage, defaultRetries, defaultStallTimeoutMs, noUsage, type Usage } from '../../../core/group.ts';
import { runCommand, sessionReference } from '../../../core/plan/advice.ts';
import { slotSentence } from '../../../core/plan/command-slot.ts';
import type { WaitReason } from '../../../core/plan/decision.ts';
import { planOf } from '../../../core/plan/plan.ts';
import { type DenialSummary, deniedSentence, groupProgress, silenceSentence } from '../../../core/progress.ts';
import { type SessionRecord, workedMs } from '../../../core/session-state.ts';
import type { GroupState } from '../../../core/state.ts';
import { delay } from '../../../system/clock.ts';
import { diffStatText } from '../../../template/fill-references.ts';
import { formatDate, formatDuration, formatMoney, formatTokens, type Style } from '../../../view/format.ts';
import {
  acceptText,
  isolationWhy,
  machineText,
  memoryText,
  placeText,
  processesText,
  setupText,
  trustText,
} from '../../../view/plan.ts';
import { nextSteps, sessionTable } from '../../../view/summary.ts';
import { safeLine, safeText } from '../../../view/terminal-text.ts';
import { TranscriptMarks } from '../../../view/transcript/entry-lines.ts';
import {
  listTitles,
  machineName,
  problemText,
  resumesAtText,
  retrySentence,
  sessionTitle,
  setupSentence,
  statusTone,
  titleOf,
  withAdvice,
  withLocalTimes,
} from '../../../view/wording.ts';
import { type CommandResult, type Context, need, refuse } from '../../context.ts';
import { parsePattern } from '../../options/options.ts';
import {
  jsonSink,
  rawSink,
  readableSink,
  TranscriptPrinter,
  type TranscriptSink,
} from '../../transcript/transcript.ts';

const listExample = `
Example:
  $ claude-code-agent session list auth-refactor
  $ claude-code-agent session list auth-refactor --json | jq -r '.[] | select(.status == "failed") | .id'`;

export function defineSessionList(command: Command, context: Context): void {
  command
    .description('List the sessions of a group in dependency order.')
    .argument('<group>', 'id, unique prefix or slug')
    .option('--json', 'one JSON document: an array of SessionProgress')
    .addHelpText('after', listExample)
    .action((reference, { json }) =>
      context.run(() => {
        const group = need(loadReferredGroup(context, reference));
        const { state } = group;
        const standing = readStanding(context.world, group);
        const { live, atMs, verdicts } = standing;
        const order = planOf(state).graph.order;
        if (json) {
          const byId = new Map(groupProgress(state, live, atMs, verdicts).sessions.map((one) => [one.id, one]));
          context.stdout.json(order.map((id) => byId.get(id)));
        } else {
          const { style, isTerminal, columns } = context.stdout;
          const options = { style, columns: isTerminal ? columns : undefined, nowMs: atMs };
          context.stdout.lines(sessionTable(state, standing, order, options));
        }
      }),
    );
}

const showExample = `
Example:
  $ claude-code-agent session show auth-refactor/002
  $ claude-code-agent session show auth-refactor/api --config
  $ claude-code-agent session show auth-refactor/api --json | jq .cost`;

export function defineSessionShow(command: Command, context: Context): void {
  command
    .description('Show one session: its task, status and reason, cost, and the paths of its files.')
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .option('--config', "show the contents of the session's config dir, with the source of each part")
    .option('--json', 'one JSON document: meta.json of the session, or its config')
    .addHelpText('after', showExample)
    .action((reference, { config, json }) => {
      const view = config === true ? showConfig : show;
      return context.run(() => view(context, reference, json === true));
    });
}

function showConfig(context: Context, reference: string, json: boolean): CommandResult {
  const session = need(loadReferredSession(context, reference));
  const view = need(configView(context, session));
  if (json) context.stdout.json(view);
  else context.stdout.lines(configLines(view, context.stdout.style));
}

function show(context: Context, reference: string, json: boolean): CommandResult {
  const session = need(loadReferredSession(context, reference));
  const { record, sessionId } = session;
  const standing = readStanding(context.world, session);
  const now = standing.live.get(sessionId);
  const usage = addUsage(record.usage, now?.usage ?? noUsage);
  const why = standing.verdicts(record);
  if (json) {
    const retryAt = why?.until === undefined ? {} : { retryAt: new Date(why.until).toISOString() };
    context.stdout.json({ ...sessionMeta({ ...record, usage }), ...retryAt });
  } else {
    const activity = { used: usage, now: doing(context, session, standing), denied: now?.denied, why };
    context.stdout.lines(describe(context, session, activity));
  }
}

function doing({ world }: Context, session: LoadedSession, { live, isInterrupted }: GroupStanding): string | undefined {
  const now = live.get(session.sessionId);
  if (now?.slot !== undefined) return slotSentence(session.state, now.slot);
  const setupLog = isInterrupted ? null : runningSetup(world, session.paths, session.record);
  if (setupLog !== null) return setupSentence(setupLog);
  if (now?.silentMs !== undefined) return silenceSentence(session.record.host ?? '', now.silentMs);
  return now?.retry === undefined ? now?.currentTool : retrySentence(now.retry);
}

const deniedCode = 'denied-tools';

interface Activity {
  readonly used: Usage;
  readonly now: string | undefined;
  readonly denied: DenialSummary | undefined;
  readonly why: WaitReason | null;
}

function describe(context: Context, session: LoadedSession, { used, now, denied, why }: Activity): string[] {
  const { record, state, sessionId } = session;
  const { definition } = record;
  const { style } = context.stdout;
  const { status } = record.state;
  const until = why?.until === undefined ? [] : [resumesAtText(why.until, context.world.clock.now())];
  const reasons = [why?.reason ?? [], until].flat().join(', ');
  const words = why === null ? undefined : withLocalTimes(whyWords(state, record, why), context.world.clock.now());
  const cost = formatMoney(used.costUsd, used.estimated);
  const allow = advise('Allow it, or see other ways, with', ['session', 'allow', sessionReference(state, record)]);
  const lines: [string, string | undefined][] = [
    ['Group', state.group.id],
    ['Status', `${style(statusTone(status), status)}${reasons === '' ? '' : ` (${reasons})`}`],
    ['Why', words],
    ['Now', now],
    ['Project', definition.projectPath],
    ...workLines(session),
    ['Description', definition.description === '' ? undefined : definition.description],
    ['Depends on', definition.dependsOn.length > 0 ? listTitles(state, definition.dependsOn) : undefined],
    ['Model', record.model ?? definition.model],
    ['Fallback model', definition.fallbackModel],
    ['Effort', definition.effort],
    ['Max turns', definition.maxTurns === undefined ? undefined : String(definition.maxTurns)],
    ['Template', definition.template],
    ['Config', definition.configTemplate?.name ?? state.group.configTemplate?.name],
    ['Permissions', permissions(session)],
    ['Untrusted', trustText(definition)],
    ['Host', machineName(record) || undefined],
    ['Only on', machineText(definition)],
    ['Memory', memoryText(definition)],
    ['Processes', processesText(definition)],
    ['Cap', definition.maxBudgetUsd === undefined ? undefined : formatMoney(definition.maxBudgetUsd)],
    ['Limits', limits(session)],
    ['Attempts', String(record.attempts)],
    ['Cost', `${cost}, ${formatTokens(used.tokens)}`],
    ['Time', timeText(record, used)],
    ['Started', record.startedAt === undefined ? undefined : formatDate(record.startedAt)],
    ['Ended', record.endedAt === undefined ? undefined : formatDate(record.endedAt)],
    ['Claude session', record.claudeSessionIds.at(-1)],
    ['Files', sessionPaths(session.paths, sessionId).folder],
  ];
  return [
    `${style('strong', sessionTitle(sessionId, definition.name))}  ${sessionId}`,
    ...lines.flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${shown(name, value)}`])),
    ...[
      ...record.warnings,
      ...(denied === undefined ? [] : [{ code: deniedCode, message: deniedSentence(denied) }]),
    ].map(({ code, message }) => {
      const text = code === deniedCode ? withAdvice(message, allow) : message;
      return `${style('warn', 'Warning')}: ${safeLine(text, 600)}`;
    }),
    '',
    style('dim', 'Task:'),
    safeText(definition.prompt),
    ...rejected(record.rejection?.output ?? '', style),
    ...(record.state.status === 'completed' ? ['', style('dim', 'Result:'), safeText(record.state.result)] : []),
  ];
}

/** The problem of the session, and why it is not running. */
function whyWords(state: GroupState, record: SessionRecord, why: WaitReason): string {
  const words = problemText(state, record, why);
  const reason = withAdvice(why.message, why.advice);
  if (words === undefined || why.message.includes(words.message)) return reason;
  return `${words.message} ${reason}`;
}

function rejected(output: string, style: Style): string[] {
  const printed = safeText(output).trimEnd();
  return printed === '' ? [] : ['', style('dim', 'Last output of the acceptance command:'), printed];
}

/** The workspace of the session, its changes and its acceptance command. */
function workLines({ state, record, sessionId }: LoadedSession): [string, string | undefined][] {
  const { definition, workspace, mergedInto } = record;
  const { mode, why } = isolationWhy(state, sessionId);
  const planned = definition.repository === undefined ? undefined : `${placeText(mode)}, because ${why}`;
  const setup = setupText(definition);
  const work = record.state.status === 'completed' ? record.state.work : undefined;
  return [
    ['Works in', workspace?.folder ?? planned],
    ['Branch', workspace === undefined ? undefined : `${workspace.branch}, from ${workspace.base.slice(0, 12)}`],
    ['Changed', work === undefined ? undefined : diffStatText(work)],
    ['Merged into', mergedInto],
    ['Set-up', setup !== undefined && mode === 'none' ? `${setup}; not run without a worktree` : setup],
    ['Accept', acceptText(definition)],
  ];
}

/** Only the status contains our own colour codes; all other values must be cleaned. */
function shown(name: string, value: string): string {
  return name === 'Status' ? value : safeLine(value, 1000);
}

/** Elapsed time, with the parts of set-up and acceptance. */
function timeText(record: SessionRecord, { durationMs }: Usage): string {
  const { preparingMs = 0, acceptingMs = 0 } = record.worked ?? {};
  const parts = [
    `claude ${formatDuration(durationMs)}`,
    ...(preparingMs < 1000 ? [] : [`set-up ${formatDuration(preparingMs)}`]),
    ...(acceptingMs < 1000 ? [] : [`acceptance ${formatDuration(acceptingMs)}`]),
  ];
  const all = Math.max(workedMs(record), durationMs);
  return parts.length === 1 ? formatDuration(all) : `${formatDuration(all)} (${parts.join(', ')})`;
}

function limits({ record }: LoadedSession): string {
  const { retries = defaultRetries, timeoutMs, stallTimeoutMs = defaultStallTimeoutMs } = record.definition;
  return [
    timeoutMs === undefined ? 'no timeout' : `timeout ${formatDuration(timeoutMs)}`,
    `stalled after ${formatDuration(stallTimeoutMs)} without progress`,
    `${retries === 1 ? '1 retry' : `${retries} retries`} after transient failures`,
  ].join(', ');
}

function permissions({ record }: LoadedSession): string | undefined {
  const { permissionMode, allowedTools } = record.definition;
  const parts = [...(permissionMode === undefined ? [] : [permissionMode]), ...(allowedTools ?? [])];
  return parts.length > 0 ? parts.join(', ') : undefined;
}

const logsDescription = `Print the transcript of a session: messages, tool calls with their results,
edits, and the start and end of each attempt. Sub-agents are indented.`;

const logsExample = `
Example:
  $ claude-code-agent session logs auth-refactor/api --follow
  $ claude-code-agent session logs auth-refactor/api --grep 'npm (test|run)'
  $ claude-code-agent session logs auth-refactor/api --json | jq -r '.entries[] | select(.kind == "said") | .text'
  $ claude-code-agent session logs auth-refactor/api --raw | jq -r 'select(.type == "result").total_cost_usd'`;

const lookEveryMs = 250;

export function defineLogs(command: Command, context: Context): void {
  command
    .description(logsDescription)
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .option('--follow', 'follow the session through all its attempts, while its group runs')
    .option('--raw', 'print the stream-json lines exactly as claude wrote them')
    .option('--grep <regexp>', 'only lines that match', parsePattern)
    .addOption(new Option('--json', 'print one JSON document').conflicts(['raw', 'follow']))
    .addHelpText('after', logsExample)
    .action((reference, { follow, raw, json, grep }) =>
      context.run(async () => {
        const session = need(loadReferredSession(context, reference));
        const { stdout } = context;
        const readable = raw ? rawSink(stdout, grep) : readableSink(stdout, grep);
        const sink = json ? jsonSink(stdout, grep, session) : readable;
        const { log, printer, look, isBroken } = openTranscript(context, session, sink);
        const title = titleOf(session.state, session.sessionId);
        let hasMore = await look();
        if (follow && hasMore && session.state.status === 'created') {
          const start = commandText(runCommand(session.state));
          context.stderr.line(`Waiting for session ${title} to start. Start its group with: ${start}`);
        }
        while (follow && hasMore && !context.stdout.isClosed) {
          await delay(context.world.clock, lookEveryMs);
          hasMore = await look();
        }
        log.close();
        printer.finish(hasMore);
        // A reader that closed the pipe, such as `head`, must not be told that the transcript is empty.
        if (printer.isEmpty && !context.stdout.isClosed) context.stderr.line(whyEmpty(session));
        if (!follow || hasMore) return;
        if (isBroken()) {
          return refuse(
            'gone',
            `Session ${title} cannot be followed: its group was deleted, or its log is damaged.`,
            see('group', 'list'),
          );
        }
        context.stderr.lines(leftBehind(session, log.state));
      }),
    );
}

function whyEmpty({ sessionId, state }: LoadedSession): string {
  const title = titleOf(state, sessionId);
  const { inherited } = state.sessions.get(sessionId) ?? {};
  if (inherited === undefined) return `Session ${title} has not printed anything yet.`;
  const log = commandText(['session', 'logs', inherited.sessionId]);
  return `Session ${title} ran in group ${inherited.groupId}. See its log: ${log}`;
}

/** Why following ended before the session did, with the next steps; empty if the session has finished. */
function leftBehind({ sessionId }: LoadedSession, state: GroupState | null): readonly string[] {
  const status = state?.sessions.get(sessionId)?.state.status;
  if (state === null || status === undefined) return ['The session was removed.'];
  if (status === 'completed' || status === 'failed') return [];
  return [`Session ${titleOf(state, sessionId)} is ${status}, and its group has no runner.`, ...nextSteps(state)];
}

/** `look` prints what is new; true = more may follow. */
function openTranscript({ world, stdout }: Context, session: LoadedSession, sink: TranscriptSink) {
  let isBroken = false;
  const marks = new TranscriptMarks(session.sessionId);
  const log = followGroup(
    world,
    session,
    (event) => marks.take([event]),
    () => {
      isBroken = true;
    },
  );
  const printer = new TranscriptPrinter(world, session, { stdout, sink, marks: marks.list });
  const look = async (): Promise<boolean> => {
    const hasRunner = liveRunner(world, session) !== null;
    // Read the size before the log, so that the log contains every attempt whose output is printed.
    const size = printer.size;
    log.catchUp();
    const hasMore = !isBroken && canGrow(session, log.state, hasRunner, world);
    // The session is over and no runner can start another attempt, so print to the end.
    await printer.printTo(hasMore ? size : printer.size);
    return hasMore;
  };
  return { log, printer, look, isBroken: () => isBroken };
}

/** False when the session has ended, or when no process is left that could continue it. */
function canGrow(
  session: LoadedSession,
  state: GroupState | null,
  hasRunner: boolean,
  world: Context['world'],
): boolean {
  const record = state?.sessions.get(session.sessionId);
  if (record === undefined) return false;
  // Wait, so that `logs --follow` can be started before the run.
  if (state?.status === 'created') return true;
  switch (record.state.status) {
    case 'running': {
      const { process } = record.state.attempt;
      return hasRunner || (process !== undefined && world.processes.isAlive(process));
    }
    case 'completed':
      return false;
    case 'failed':
      return hasRunner && record.queued;
    // A live runner can still start these.
    case 'pending':
    case 'paused':
      return hasRunner;
  }
}
