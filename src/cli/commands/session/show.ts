/** `session list` and `session show`. */
import type { Command } from '@commander-js/extra-typings';
import { configLines, configView } from '../../../app/config-view.ts';
import {
  type LoadedSession,
  loadReferredGroup,
  loadReferredSession,
  sessionMeta,
  sessionPaths,
} from '../../../app/resolve.ts';
import { type GroupStanding, readStanding, runningSetup } from '../../../app/watch/live-view.ts';
import { advise } from '../../../core/advice.ts';
import { addUsage, defaultRetries, defaultStallTimeoutMs, noUsage, type Usage } from '../../../core/group.ts';
import { sessionReference } from '../../../core/plan/advice.ts';
import { slotSentence } from '../../../core/plan/command-slot.ts';
import type { WaitReason } from '../../../core/plan/decision.ts';
import { planOf } from '../../../core/plan/plan.ts';
import { type DenialSummary, deniedSentence, groupProgress, silenceSentence } from '../../../core/progress.ts';
import { type SessionRecord, workedMs } from '../../../core/session-state.ts';
import type { GroupState } from '../../../core/state.ts';
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
import { sessionTable } from '../../../view/summary.ts';
import { safeLine, safeText } from '../../../view/terminal-text.ts';
import {
  listTitles,
  machineName,
  problemText,
  resumesAtText,
  retrySentence,
  sessionTitle,
  setupSentence,
  statusTone,
  withAdvice,
  withLocalTimes,
} from '../../../view/wording.ts';
import { type CommandResult, type Context, need } from '../../context.ts';

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
