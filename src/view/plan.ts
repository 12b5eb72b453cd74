/** Prints the preview of a run: waves, critical path, missing items, and what it may cost. */

import { basename, dirname } from 'node:path';
import type { IsolationMode } from '../core/definitions.ts';
import {
  defaultAcceptRetries,
  defaultCommandTimeoutMs,
  type SessionDefinition,
  type SessionId,
} from '../core/group.ts';
import type { DayBudget } from '../core/plan/decision.ts';
import { buildsInPlace, isolationOf } from '../core/plan/isolation.ts';
import type { Preview, Spread } from '../core/plan/preview.ts';
import type { SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import { listNames } from '../core/text.ts';
import { dayLines } from './budget.ts';
import { formatDuration, formatMoney, formatTable, plural, type Style, titled } from './format.ts';
import { safeLine } from './terminal-text.ts';
import { listTitles, projectName, titleOf } from './wording.ts';

/** A problem for which a session, or the run, would fail. */
export interface Missing {
  readonly sessionId?: SessionId;
  readonly message: string;
  readonly next: string;
}

const sentenceColumnsMax = 400;
const rulesShown = 2;

export interface PlanDetails {
  readonly preview: Preview;
  readonly spentUsd: number;
  readonly missing: readonly Missing[];
  readonly modes: ReadonlyMap<SessionId, string>;
  readonly notes: readonly string[];
  readonly warnings: readonly string[];
  readonly day?: DayBudget;
  /** Configuration that plain claude would use and the sessions do not. */
  readonly leftOut: readonly string[];
  /** Sentences on size and location of worktrees. */
  readonly worktrees: readonly string[];
}

type Details = (id: SessionId) => readonly string[];

export function textPlan(state: GroupState, plan: PlanDetails, details: Details, style: Style): string[] {
  const { group } = state;
  const { preview } = plan;
  return [
    style('strong', safeLine(group.name, 120)),
    summary(state, preview),
    ...waveLines(state, plan, details, style),
    ...workPlanLines(state, preview.waves.flat(), style),
    ...paragraph(style('dim', 'Worktrees'), plan.worktrees),
    ...paragraph(style('dim', 'Waves, each after a decision about the previous one'), canaryTexts(state, preview)),
    ...pathLines(state, preview, style),
    ...paragraph(
      style('dim', 'Prompt cache (filled by the first session, read by the others)'),
      warmUpTexts(state, preview),
    ),
    ...moneyLines(state, preview, plan.spentUsd, style),
    ...dayLines(plan.day).map((line) => `  ${line}`),
    ...paragraph(style('dim', 'Config templates'), plan.notes),
    ...paragraph(style('warn', 'Would wait'), plan.warnings),
    ...paragraph(style('warn', 'Differences from plain claude'), plan.leftOut),
    ...paragraph(
      style('bad', 'Missing'),
      plan.missing.map((one) => missingText(state, one)),
    ),
  ];
}

function canaryTexts(state: GroupState, { canaryWaves }: Preview): string[] {
  const { continueIf } = state.group.config;
  const waves = canaryWaves.map(({ sessions, quoteUsd }, index) => {
    const cost = quoteUsd === null ? 'no estimate' : `quote ${formatMoney(quoteUsd)}`;
    return `wave ${index + 1}: ${plural(sessions.length, 'session')}, ${cost}`;
  });
  const rule = continueIf === undefined ? 'you decide' : `continues if ${continueIf}, else you decide`;
  return waves.length === 0 ? [] : [...waves, rule];
}

/** If the group has decision waves, the waves of the graph are called steps. */
function nounOf({ canaryWaves }: Preview): 'wave' | 'step' {
  return canaryWaves.length === 0 ? 'wave' : 'step';
}

function summary(state: GroupState, preview: Preview): string {
  const { waves } = preview;
  const { maxConcurrentSessions, respectDependencies } = state.group.config;
  const open = waves.reduce((total, wave) => total + wave.length, 0);
  if (open === 0) return 'Nothing is left to run.';
  const done = state.sessions.size - open;
  return [
    `${plural(open, 'session')} in ${plural(waves.length, nounOf(preview))}, ${maxConcurrentSessions} at once`,
    ...(done === 0 ? [] : [`${done} completed already`]),
    ...(respectDependencies ? [] : ['dependencies are ignored']),
  ].join('; ');
}

function waveLines(state: GroupState, { preview, modes }: PlanDetails, details: Details, style: Style): string[] {
  const ids = preview.waves.flat();
  const names = ['SESSION', 'PROJECT', 'TEMPLATE', 'CONFIG', 'MODEL', 'PERMISSIONS', 'CAP', 'MAY COST', 'AFTER'];
  const rows = ids.map((id) => row(state, preview, id, modes.get(id) ?? ''));
  const [titles = '', ...lines] = formatTable(titled(names, 'CAP', 'MAY COST'), rows, style);
  const lineOf = new Map(ids.map((id, index) => [id, lines[index] ?? '']));
  return [
    ...(ids.length === 0 ? [] : ['', titles]),
    ...preview.waves.flatMap((wave, index) => [
      style('dim', `${nounOf(preview) === 'wave' ? 'Wave' : 'Step'} ${index + 1}`),
      ...wave.flatMap((id) => [lineOf.get(id) ?? '', ...details(id)]),
    ]),
  ];
}

function row(state: GroupState, { forecasts }: Preview, id: SessionId, mode: string): string[] {
  const { definition } = state.sessions.get(id) as SessionRecord;
  const { allowedTools = [] } = definition;
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
    [mode, ...(allowedTools.length === 0 ? [] : [safeLine(listNames(allowedTools, rulesShown), 60)])].join(', '),
    definition.maxBudgetUsd === undefined ? '' : formatMoney(definition.maxBudgetUsd),
    forecast === undefined ? '' : moneySpread(forecast.costUsd),
    definition.dependsOn.length === 0 ? '' : listTitles(state, definition.dependsOn),
  ];
}

/** True for a template of the project, which may hide a shared one of the same name. */
function isOfProject(origin: string): boolean {
  return origin.includes('/.claude-code-agent/templates/');
}

function paragraph(title: string, texts: readonly string[]): string[] {
  return texts.length === 0 ? [] : ['', title, ...texts.map((text) => `  ${safeLine(text, sentenceColumnsMax)}`)];
}

function pathLines(state: GroupState, { criticalPath, criticalMs }: Preview, style: Style): string[] {
  if (criticalPath.length < 2) return [];
  const time = criticalMs === null ? '' : ` (${formatDuration(criticalMs.p50)} to ${formatDuration(criticalMs.p90)})`;
  const titles = criticalPath.map((id) => titleOf(state, id));
  const hidden = titles.length - 8;
  const shown = hidden <= 1 ? titles : [...titles.slice(0, 4), `(${hidden} more)`, ...titles.slice(-4)];
  return ['', `${style('dim', 'Critical path')}${time}: ${shown.join(' -> ')}`];
}

function warmUpTexts(state: GroupState, preview: Preview): string[] {
  return preview.warmUps.map(({ wave, first, others }) => {
    const who = `${plural(others, 'similar session')} ${others === 1 ? 'waits' : 'wait'}`;
    return `${nounOf(preview)} ${wave}: ${who} some seconds for the first answer to ${titleOf(state, first)}`;
  });
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
    `${style('dim', 'Budget')}: ${cap}${spent}; ${guess}`,
    ...preview.budgetWarnings.map((warning) => style('warn', `  ${warning}`)),
  ];
}

function moneySpread({ p50, p90 }: Spread): string {
  return `${formatMoney(p50)}–${formatMoney(p90)}`;
}

function missingText(state: GroupState, { sessionId, message, next }: Missing): string {
  return `${sessionId === undefined ? '' : `${titleOf(state, sessionId)}: `}${message} ${next}`;
}

const commandColumnsMax = 200;
const linesMax = 30;

export interface Isolation {
  readonly mode: IsolationMode;
  /** Completes "because …"; no full stop. */
  readonly why: string;
}

/** Where the session works, or would work if it started now, and why. */
export function isolationWhy(state: GroupState, id: SessionId): Isolation {
  const mode = isolationOf(state, id);
  const record = state.sessions.get(id);
  const { isolate, repository } = record?.definition ?? {};
  if (isolate === mode) return { mode, why: 'it was requested' };
  if (record?.isolated !== undefined) return { mode, why: 'its first attempt started there' };
  if (repository === undefined) return { mode, why: 'the project is not in a git repository' };
  if (mode === 'worktree') return { mode, why: 'sessions may share a repository, or one requested it' };
  return buildsInPlace(state, id)
    ? { mode, why: `it depends on work in the checkout of ${repositoryName(repository)} itself` }
    : { mode, why: 'no two sessions of the group share a repository' };
}

export function repositoryName(repository: string): string {
  const folder = basename(repository) === '.git' ? dirname(repository) : repository;
  return safeLine(basename(folder) || folder, 40);
}

export function placeText(mode: IsolationMode): string {
  return mode === 'worktree' ? 'its own worktree' : 'the project folder itself';
}

export function acceptText(definition: SessionDefinition): string | undefined {
  const { accept, acceptRetries = defaultAcceptRetries, acceptTimeoutMs = defaultCommandTimeoutMs } = definition;
  if (accept === undefined) return undefined;
  const retries = acceptRetries === 1 ? '1 retry' : `${acceptRetries} retries`;
  return `${commandText(accept)} (${retries}, at most ${formatDuration(acceptTimeoutMs)})`;
}

export function setupText({ setup, setupTimeoutMs = defaultCommandTimeoutMs }: SessionDefinition): string | undefined {
  if (setup === undefined) return undefined;
  return `${commandText(setup)} (at most ${formatDuration(setupTimeoutMs)})`;
}

export function trustText({ untrusted }: SessionDefinition): string | undefined {
  return untrusted ? 'its hooks do not run, and only its harmless variables are used' : undefined;
}

export function memoryText({ memoryBytes }: SessionDefinition): string | undefined {
  if (memoryBytes === undefined) return undefined;
  const megabytes = Math.round(memoryBytes / 1_000_000).toLocaleString('en-US');
  return `${megabytes} MB, shared with the commands of other running sessions`;
}

export function processesText({ maxProcesses }: SessionDefinition): string | undefined {
  if (maxProcesses === undefined) return undefined;
  return `at most ${maxProcesses.toLocaleString('en-US')} processes and threads, including those of claude`;
}

export function machineText({ requires = [], host }: SessionDefinition): string | undefined {
  const having = requires.length === 0 ? '' : `a host with ${requires.map((label) => safeLine(label, 63)).join(', ')}`;
  return host === undefined ? having || undefined : safeLine(host, 63);
}

function commandText(command: string): string {
  return safeLine(command.includes('\n') ? JSON.stringify(command) : command, commandColumnsMax);
}

export function workPlanLines(state: GroupState, ids: readonly SessionId[], style: Style): string[] {
  const places = collect(ids, (id) => {
    if (definitionOf(state, id)?.repository === undefined) return [];
    const { mode, why } = isolationWhy(state, id);
    return [`${placeText(mode)}, because ${why}`];
  });
  const commands = collect(ids, (id) => {
    const definition = definitionOf(state, id);
    if (definition === undefined) return [];
    const accept = acceptText(definition);
    const setup = isSetUp(state, id) ? setupText(definition) : undefined;
    return [...(setup === undefined ? [] : [`setup ${setup}`]), ...(accept === undefined ? [] : [`accept ${accept}`])];
  });
  const idle = collect(ids, (id) => {
    const setup = definitionOf(state, id)?.setup;
    return setup === undefined || isSetUp(state, id) ? [] : [`setup ${commandText(setup)}`];
  });
  const bounds = (text: (definition: SessionDefinition) => string | undefined) =>
    collect(ids, (id) => [definitionOf(state, id)].flatMap((one) => (one === undefined ? [] : (text(one) ?? []))));
  return [
    ...section(state, 'Works in', places, style),
    ...section(state, 'Untrusted projects', bounds(trustText), style),
    ...section(state, 'Memory', bounds(memoryText), style),
    ...section(state, 'Processes', bounds(processesText), style),
    ...section(state, 'Shell commands', commands, style),
    ...section(state, 'Not run without a worktree', idle, style),
    ...eventCommandLines(state, style),
  ];
}

function isSetUp(state: GroupState, id: SessionId): boolean {
  return isolationOf(state, id) === 'worktree';
}

function eventCommandLines({ group }: GroupState, style: Style): string[] {
  const { onEvent } = group.config;
  if (onEvent === undefined) return [];
  return ['', style('dim', 'Command for events (end, pauses, limits)'), `  ${commandText(onEvent)}`];
}

function definitionOf(state: GroupState, id: SessionId): SessionDefinition | undefined {
  return state.sessions.get(id)?.definition;
}

function collect(ids: readonly SessionId[], textsOf: (id: SessionId) => readonly string[]): Map<string, SessionId[]> {
  const found = new Map<string, SessionId[]>();
  for (const id of ids) {
    for (const text of textsOf(id)) {
      const same = found.get(text);
      if (same === undefined) found.set(text, [id]);
      else same.push(id);
    }
  }
  return found;
}

function section(state: GroupState, title: string, lines: ReadonlyMap<string, SessionId[]>, style: Style): string[] {
  if (lines.size === 0) return [];
  const shown = [...lines].map(([text, ids]) => `  ${text}: ${listTitles(state, ids)}`);
  const hidden = shown.length - linesMax;
  if (hidden <= 1) return ['', style('dim', title), ...shown];
  return ['', style('dim', title), ...shown.slice(0, linesMax), `  and ${plural(hidden, 'other')}`];
}
