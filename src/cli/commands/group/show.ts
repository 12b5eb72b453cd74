/**
 * cli/commands/group/: the commands of groups. This one: `group show` shows how a group stands, session by session, and
 * what to do next.
 */
import type { Command } from '@commander-js/extra-typings';
import { type LoadedGroup, loadReferredGroup } from '../../../app/resolve.ts';
import { presentMeta, progressOf, type Standing, standingOf } from '../../../app/watch/live-view.ts';
import { defined } from '../../../core/defined.ts';
import { ok } from '../../../core/failure.ts';
import { planOf } from '../../../core/plan/plan.ts';
import { formatDate, formatMoney, plural } from '../../../view/format.ts';
import { nextSteps, sessionTable, totalsLine, troubleLines } from '../../../view/summary.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import { rehearsalNote } from '../../../view/wording.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent group show auth-refactor
  $ claude-code-agent group show auth-refactor --json | jq .progress.totalCost
  $ claude-code-agent group show auth-refactor --json | jq '.sessions[] | {name, status, cost}'`;

export function define(command: Command, context: Context): void {
  command
    .description('Shows a group: its status, its sessions in dependency order, and what to do next.')
    .argument('<group>', 'id, unique prefix or slug')
    .option('--json', 'one JSON document: meta.json plus `progress`')
    .addHelpText('after', example)
    .action((reference, { json }) => context.run(() => show(context, reference, json === true)));
}

function show(context: Context, reference: string, json: boolean): Work {
  const group = loadReferredGroup(context, reference);
  if (!group.ok) return group;
  const { state } = group.value;
  if (json) {
    // Looked at once, so that one document tells of one moment.
    const standing = standingOf(context.world, group.value);
    const progress = progressOf(context.world, group.value, standing);
    const meta = presentMeta(state, standing.live);
    context.stdout.line(safeJson({ ...meta, ...conditions(state), progress }, 2));
  } else {
    for (const line of describe(context, group.value, standingOf(context.world, group.value)))
      context.stdout.line(line);
  }
  return ok(exitCode.done);
}

function describe(context: Context, { state, paths }: LoadedGroup, standing: Standing): string[] {
  const { style, isTerminal, columns } = context.stdout;
  const { group } = state;
  const order = planOf(state).graph.order;
  const trouble = troubleLines(state, style, standing.verdicts);
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

/** Only while they hold. */
function conditions(state: LoadedGroup['state']): object {
  const { pausing, draining, frozenUntil, limitResetsAt, limitType } = state;
  return {
    ...(pausing === undefined ? {} : { pausing: draining ? 'drain' : pausing }),
    ...defined({ frozenUntil, limitResetsAt, limitType }),
  };
}

function settings(config: LoadedGroup['state']['group']['config']): string {
  return [
    `${config.maxConcurrentSessions} at once`,
    ...(config.commandsAtOnce === undefined ? [] : [`${plural(config.commandsAtOnce, 'command')} at once`]),
    config.maxBudgetUsd === undefined
      ? 'no budget'
      : `budget ${formatMoney(config.maxBudgetUsd)} (then ${config.onBudgetExceeded})`,
    `stops starting after ${config.errorThreshold} failed`,
    ...(config.model === undefined ? [] : [`model ${safeLine(config.model, 60)}`]),
    ...(config.onLimit === 'pause' ? ['pauses at a usage limit'] : []),
    ...(config.warmCache === false ? ['similar sessions start at once'] : []),
    ...(config.acceptClaude === undefined ? [] : [`uses claude ${config.acceptClaude} whatever its check says`]),
    ...(config.minFreeMemoryBytes === undefined ? [] : [`keeps ${config.minFreeMemoryBytes / 1_000_000} MB free`]),
    ...(config.respectDependencies ? [] : ['dependencies ignored']),
    ...whereWords(config),
  ].join(', ');
}

function whereWords({ where, onLost }: LoadedGroup['state']['group']['config']): string[] {
  const words = { local: 'on this machine only', fleet: 'on machines of the fleet only', any: 'on any machine' };
  return [
    ...(where === undefined ? [] : [words[where]]),
    ...(onLost === 'wait' ? ['waits for a machine that is lost'] : []),
  ];
}
