/** A preview for people: waves, the critical path, what is missing, what it may cost. */

import type { SessionId } from '../core/group.ts';
import type { Spread } from '../core/plan/forecast.ts';
import type { Preview } from '../core/plan/preview.ts';
import type { SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import { formatDuration, formatMoney, formatTable, plural, type Style } from './format.ts';
import { safeLine } from './terminal-text.ts';
import { listTitles, projectName, titleOf } from './wording.ts';
import { workPlanLines } from './work-plan.ts';

/** Something without which a session, or the run, would fail. */
export interface Missing {
  readonly sessionId?: SessionId;
  readonly message: string;
  readonly next: string;
}

const sentenceColumnsMax = 400;

export interface PlanDetails {
  /** US dollars so far, running sessions included. */
  readonly spentUsd: number;
  readonly missing: readonly Missing[];
  /** Further lines of a session, such as its prompt; they are shown below it. */
  readonly details: (id: SessionId) => readonly string[];
  /** The permission mode of each session. */
  readonly modes: ReadonlyMap<SessionId, string>;
  /** What the config templates in use bring with them. */
  readonly notes: readonly string[];
  /** Sentences about sessions that would wait. */
  readonly warnings: readonly string[];
  /** A sentence about what going on with conversations costs; null = nothing worth a word. */
  readonly goingOn: string | null;
}

export function textPlan(state: GroupState, preview: Preview, plan: PlanDetails, style: Style): string[] {
  const { group } = state;
  return [
    style('strong', safeLine(group.name, 120)),
    summary(state, preview),
    ...waveLines(state, preview, plan, style),
    ...workPlanLines(state, preview.waves.flat(), style),
    ...pathLines(state, preview, style),
    ...cacheLines(state, preview, style),
    ...moneyLines(state, preview, plan.spentUsd, style),
    ...(plan.goingOn === null ? [] : [`  ${plan.goingOn}`]),
    ...noteLines(plan.notes, style),
    ...warningLines(plan.warnings, style),
    ...missingLines(state, plan.missing, style),
  ];
}

function summary(state: GroupState, { waves }: Preview): string {
  const { maxConcurrentSessions, respectDependencies } = state.group.config;
  const open = waves.reduce((total, wave) => total + wave.length, 0);
  if (open === 0) return 'Nothing is left to run.';
  const done = state.sessions.size - open;
  return [
    `${plural(open, 'session')} in ${plural(waves.length, 'wave')}, ${maxConcurrentSessions} at once`,
    ...(done === 0 ? [] : [`${done} completed already`]),
    ...(respectDependencies ? [] : ['dependencies are ignored']),
  ].join('; ');
}

/** One table, so that columns stand below each other in every wave. */
function waveLines(state: GroupState, preview: Preview, { details, modes }: PlanDetails, style: Style): string[] {
  const ids = preview.waves.flat();
  const columns = [
    { title: 'SESSION' },
    { title: 'PROJECT' },
    { title: 'TEMPLATE' },
    { title: 'CONFIG' },
    { title: 'MODEL' },
    { title: 'PERMISSIONS' },
    { title: 'CAP', align: 'right' as const },
    { title: 'MAY COST', align: 'right' as const },
    { title: 'AFTER' },
  ];
  const [titles = '', ...lines] = formatTable(
    columns,
    ids.map((id) => row(state, preview, id, modes.get(id) ?? '')),
    style,
  );
  const lineOf = new Map(ids.map((id, index) => [id, lines[index] ?? '']));
  return [
    ...(ids.length === 0 ? [] : ['', titles]),
    ...preview.waves.flatMap((wave, index) => [
      style('dim', `Wave ${index + 1}`),
      ...wave.flatMap((id) => [lineOf.get(id) ?? '', ...details(id)]),
    ]),
  ];
}

function row(state: GroupState, { forecasts }: Preview, id: SessionId, mode: string): string[] {
  const { definition } = state.sessions.get(id) as SessionRecord;
  const { config, configTemplate } = state.group;
  const inherited = definition.config?.inheritFromGroup === false ? undefined : configTemplate;
  const template = definition.configTemplate ?? inherited;
  const forecast = forecasts.get(id);
  return [
    titleOf(state, id),
    projectName(definition.projectPath),
    safeLine(definition.template ?? '', 30),
    template === undefined ? '' : safeLine(`${template.name}${isOfProject(template.origin) ? ' (project)' : ''}`, 40),
    safeLine(definition.model ?? config.model ?? '', 30),
    mode,
    definition.maxBudgetUsd === undefined ? '' : formatMoney(definition.maxBudgetUsd),
    forecast === undefined ? '' : moneySpread(forecast.costUsd),
    definition.dependsOn.length === 0 ? '' : listTitles(state, definition.dependsOn),
  ];
}

/** A project's own template takes the place of a shared one of the same name; that is worth a look. */
function isOfProject(origin: string): boolean {
  return origin.includes('/.claude-code-agent/templates/');
}

function noteLines(notes: readonly string[], style: Style): string[] {
  if (notes.length === 0) return [];
  return ['', style('dim', 'Config templates'), ...notes.map((note) => `  ${safeLine(note, sentenceColumnsMax)}`)];
}

function pathLines(state: GroupState, { criticalPath, criticalMs }: Preview, style: Style): string[] {
  if (criticalPath.length < 2) return [];
  const time = criticalMs === null ? '' : ` (${formatDuration(criticalMs.p50)} to ${formatDuration(criticalMs.p90)})`;
  const titles = criticalPath.map((id) => titleOf(state, id));
  const hidden = titles.length - 8;
  const shown = hidden <= 1 ? titles : [...titles.slice(0, 4), `(${hidden} more)`, ...titles.slice(-4)];
  return ['', `${style('dim', 'Critical path')}${time}: ${shown.join(' -> ')}`];
}

function cacheLines(state: GroupState, { warmUps }: Preview, style: Style): string[] {
  if (warmUps.length === 0) return [];
  const lines = warmUps.map(({ wave, first, others }) => {
    const leader = titleOf(state, first);
    const who = `${plural(others, 'similar session')} ${others === 1 ? 'waits' : 'wait'}`;
    return `  wave ${wave}: ${who} some seconds for the first answer to ${leader}`;
  });
  return ['', style('dim', 'Prompt cache, filled by the first and read by the others'), ...lines];
}

function moneyLines(state: GroupState, preview: Preview, spentUsd: number, style: Style): string[] {
  const { maxBudgetUsd } = state.group.config;
  const spent = spentUsd === 0 ? '' : `, ${formatMoney(spentUsd)} spent`;
  const cap = maxBudgetUsd === undefined ? 'no cap' : `cap ${formatMoney(maxBudgetUsd)}`;
  const known = preview.forecasts.size;
  const without = preview.withoutHistory.length;
  const others = without === 0 ? '' : `, ${without} without history`;
  const guess =
    preview.costUsd === null
      ? 'no history to forecast from'
      : `${plural(known, 'session')} may cost ${moneySpread(preview.costUsd)}${others}`;
  return [
    '',
    `${style('dim', 'Money')}: ${cap}${spent}; ${guess}`,
    ...preview.budgetWarnings.map((warning) => style('warn', `  ${warning}`)),
  ];
}

function moneySpread({ p50, p90 }: Spread): string {
  return `${formatMoney(p50)}–${formatMoney(p90)}`;
}

function warningLines(warnings: readonly string[], style: Style): string[] {
  if (warnings.length === 0) return [];
  return ['', style('warn', 'Would wait'), ...warnings.map((text) => `  ${safeLine(text, sentenceColumnsMax)}`)];
}

function missingLines(state: GroupState, missing: readonly Missing[], style: Style): string[] {
  if (missing.length === 0) return [];
  return [
    '',
    style('bad', 'Missing'),
    ...missing.map(({ sessionId, message, next }) => {
      const who = sessionId === undefined ? '' : `${titleOf(state, sessionId)}: `;
      return `  ${who}${safeLine(`${message} ${next}`, sentenceColumnsMax)}`;
    }),
  ];
}
